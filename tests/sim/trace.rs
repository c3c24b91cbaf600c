//! The story of a scenario, and its hash: two runs of one seed must tell the same story, in any process.

/// Lines with their virtual times, and a hash over all of them.
#[derive(Debug, Default)]
pub struct Trace {
    keep: bool,
    /// The lines, if they are kept.
    pub lines: Vec<String>,
    hash: u64,
}

impl Trace {
    /// An empty story; without `keep` only the hash is made.
    pub fn new(keep: bool) -> Self {
        Self { keep, lines: Vec::new(), hash: 0xcbf2_9ce4_8422_2325 }
    }

    /// Adds a line.
    pub fn line(&mut self, at_ms: u64, line: impl FnOnce() -> String) {
        let line = line();
        let bytes = at_ms.to_le_bytes().into_iter().chain(line.bytes());
        self.hash = bytes.fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        if self.keep {
            let (s, ms) = (at_ms / 1_000, at_ms % 1_000);
            self.lines.push(format!("{:>3}:{:02}:{:02}.{ms:03}  {line}", s / 3_600, s / 60 % 60, s % 60));
        }
    }

    /// Mixes in what is not told.
    pub fn mix(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
    }

    /// The hash so far.
    pub fn hash(&self) -> String {
        format!("{:016x}", self.hash)
    }
}

/// A hash of a JSON text that does not depend on the order of its members: the SDK writes maps in any order.
pub fn unordered_hash(body: &[u8]) -> u64 {
    body.split(|byte| matches!(byte, b'"' | b',' | b'{' | b'}')).fold(0_u64, |sum, token| {
        let hash =
            token.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
        sum.wrapping_add(hash)
    })
}
