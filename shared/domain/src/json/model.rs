//! For tests: JSON values by their meaning, the many ways to spell one, and changes that make another of it.
//!
//! Equality of models is worked out by plain arithmetic and owes nothing to the code under test.
#![allow(clippy::unwrap_used, reason = "a test's failure is its report")]

use std::collections::BTreeMap;

use proptest::prelude::*;

/// A JSON value by its meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Model {
    Null,
    Bool(bool),
    /// `digits * 10^power`, without trailing zeros in the digits; zero has the power 0.
    Number {
        digits: i64,
        power: i64,
    },
    Text(String),
    Array(Vec<Model>),
    Object(BTreeMap<String, Model>),
}

pub(super) fn number(mut digits: i64, mut power: i64) -> Model {
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
        power += 1;
    }
    Model::Number { digits, power: if digits == 0 { 0 } else { power } }
}

/// Few values and short texts, so that equal and nearly equal ones are drawn often.
pub(super) fn model() -> impl Strategy<Value = Model> {
    let leaf = prop_oneof![
        Just(Model::Null),
        any::<bool>().prop_map(Model::Bool),
        (-12_i64..=120, -2_i64..=3).prop_map(|(digits, power)| number(digits, power)),
        (any::<i64>(), any::<i32>()).prop_map(|(digits, power)| number(digits, power.into())),
        text().prop_map(Model::Text),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Model::Array),
            prop::collection::btree_map(text(), inner, 0..5).prop_map(Model::Object),
        ]
    })
}

pub(super) fn text() -> impl Strategy<Value = String> {
    let telling = "01ab\"\\/\u{1f}\n\u{7f}é\u{e000}\u{ffff}\u{1f600}".chars().collect::<Vec<_>>();
    let character = prop_oneof![6 => prop::sample::select(telling), 1 => any::<char>()];
    prop::collection::vec(character, 0..4).prop_map(String::from_iter)
}

/// Spells a model as JSON text; a stream of choices decides between all the ways to say the same.
struct Speller<'c> {
    choices: std::iter::Cycle<std::slice::Iter<'c, u8>>,
    out: String,
}

pub(super) fn spell(model: &Model, choices: &[u8]) -> String {
    let mut speller = Speller { choices: choices.iter().cycle(), out: String::new() };
    speller.value(model);
    speller.out
}

impl Speller<'_> {
    fn choose(&mut self, ways: usize) -> usize {
        self.choices.next().map_or(0, |choice| usize::from(*choice) % ways)
    }

    fn space(&mut self) {
        let space = ["", "", " ", "\n", "\t\r "][self.choose(5)];
        self.out.push_str(space);
    }

    fn value(&mut self, model: &Model) {
        self.space();
        match model {
            Model::Null => self.out.push_str("null"),
            Model::Bool(value) => self.out.push_str(&value.to_string()),
            Model::Number { digits, power } => self.number(*digits, *power),
            Model::Text(text) => self.text(text),
            Model::Array(items) => self.list("[]", items, Self::value),
            Model::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let turn = self.choose(members.len().max(1));
                members.rotate_left(turn);
                if self.choose(2) == 1 {
                    members.reverse();
                }
                self.list("{}", &members, |speller, (name, value)| {
                    speller.space();
                    speller.text(name);
                    speller.space();
                    speller.out.push(':');
                    speller.value(value);
                });
            }
        }
        self.space();
    }

    fn list<T>(&mut self, brackets: &str, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.out.push_str(&brackets[..1]);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            each(self, item);
        }
        self.space();
        self.out.push_str(&brackets[1..]);
    }

    fn number(&mut self, digits: i64, power: i64) {
        let sign = if digits < 0 || (digits == 0 && self.choose(2) == 1) { "-" } else { "" };
        let mut digits = digits.unsigned_abs().to_string();
        let mut power = power;
        // Zeros behind the digits, taken back by the exponent.
        let zeros = self.choose(4);
        if digits != "0" {
            digits.push_str(&"0".repeat(zeros));
            power -= i64::try_from(zeros).unwrap();
        }
        // The point anywhere from behind the last digit to before the first, and zeros after it.
        let shift = self.choose(digits.len() + 3);
        if shift > 0 {
            let padded = "0".repeat((shift + 1).saturating_sub(digits.len())) + &digits;
            let (whole, fraction) = padded.split_at(padded.len() - shift);
            digits = format!("{whole}.{fraction}{}", "0".repeat(self.choose(2)));
            power += i64::try_from(shift).unwrap();
        }
        self.out.push_str(sign);
        self.out.push_str(&digits);
        if power != 0 || self.choose(3) == 0 {
            let mark = ["e", "E", "e0"][self.choose(3)];
            match (mark, power < 0) {
                ("e0", negative) => {
                    let sign = if negative { "-" } else { "" };
                    self.out.push_str(&format!("e{sign}00{}", power.unsigned_abs()));
                }
                (_, false) if self.choose(2) == 0 => self.out.push_str(&format!("{mark}+{power}")),
                _ => self.out.push_str(&format!("{mark}{power}")),
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            let must_escape = character < ' ' || character == '"' || character == '\\';
            match (self.choose(4), character) {
                (0, _) => character
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| self.out.push_str(&format!("\\u{unit:04X}"))),
                (_, '"' | '\\') | (1, '/') => self.out.extend(['\\', character]),
                (_, '\n') => self.out.push_str("\\n"),
                _ if must_escape => self.out.push_str(&format!("\\u{:04x}", u32::from(character))),
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }
}

pub(super) fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..64)
}

/// A model that means something else, by a change somewhere inside.
pub(super) fn altered(model: &Model, at: usize) -> Model {
    match model {
        Model::Null => Model::Bool(false),
        Model::Bool(value) => Model::Bool(!value),
        Model::Number { digits, power } => match at % 4 {
            0 => number(digits ^ 1, *power),
            1 if *digits != 0 => number(*digits, power + 1),
            2 if *digits != 0 => number(digits.wrapping_neg(), *power),
            _ => Model::Text(format!("{digits}e{power}")),
        },
        Model::Text(text) if at.is_multiple_of(2) => Model::Text(format!("{text}\0")),
        Model::Text(text) => Model::Array(vec![Model::Text(text.clone())]),
        Model::Array(items) if items.is_empty() => Model::Object(BTreeMap::new()),
        Model::Array(items) => {
            let mut items = items.clone();
            let place = at % items.len();
            items[place] = altered(&items[place], at / items.len());
            Model::Array(items)
        }
        Model::Object(members) => {
            let mut members = members.clone();
            match members.keys().nth(at % (members.len() + 1)).cloned() {
                None => {
                    members.insert("another name".into(), Model::Null);
                }
                Some(name) => {
                    let value = members.remove(&name).unwrap();
                    let kept = altered(&value, at / 3);
                    members.insert(if at.is_multiple_of(3) { name + "x" } else { name }, kept);
                }
            }
            Model::Object(members)
        }
    }
}
