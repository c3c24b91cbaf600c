//! The file behind the queues: every change is written through before its call is answered.
//!
//! One SQLite file in WAL mode with `synchronous=NORMAL`: what was answered survives the death of the process (kill
//! -9), though not necessarily a power cut. Kept are the queues, their messages with receive counts and deadlines, the
//! deduplication window, and the counter from which ids come, so that no id or receipt handle is ever given twice.

use std::path::Path;

use rusqlite::{Connection, params};

use super::attributes::QueueAttributes;
use super::error::QueueError;
use super::message::{MessageAttributes, StoredMessage};
use super::queue::{Queue, Remembered};

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS queues (name TEXT PRIMARY KEY, attributes TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS messages (
        queue TEXT NOT NULL, seq INTEGER NOT NULL, message_id TEXT NOT NULL, body TEXT NOT NULL,
        group_id TEXT NOT NULL, deduplication_id TEXT NOT NULL, attributes TEXT NOT NULL, trace_header TEXT,
        sent_ms INTEGER NOT NULL, dead_letter_source TEXT,
        first_received_ms INTEGER, receive_count INTEGER NOT NULL, invisible_until_ms INTEGER,
        PRIMARY KEY (queue, seq)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS remembered (
        queue TEXT NOT NULL, key TEXT NOT NULL, message_id TEXT NOT NULL, seq INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL, PRIMARY KEY (queue, key)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), value INTEGER NOT NULL);
    INSERT OR IGNORE INTO counter VALUES (1, 0);
";

/// One change of one queue.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Attributes(QueueAttributes),
    Put(StoredMessage),
    Flight { seq: u64, first_received_ms: Option<i64>, receive_count: u32, invisible_until_ms: Option<i64> },
    Remove(u64),
    Remember(String, Remembered),
    Forget { now_ms: i64 },
    Purge,
}

impl Change {
    pub(crate) fn flight(message: &StoredMessage) -> Self {
        Self::Flight {
            seq: message.seq,
            first_received_ms: message.first_received_ms,
            receive_count: message.receive_count,
            invisible_until_ms: message.invisible_until_ms,
        }
    }
}

/// The changes of one call, collected only if there is a file to write them to.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) kept: bool,
    pub(crate) list: Vec<Change>,
}

impl Changes {
    pub(crate) fn push(&mut self, change: Change) {
        if self.kept {
            self.list.push(change);
        }
    }
}

/// The open file.
#[derive(Debug)]
pub(crate) struct QueueFile {
    connection: Connection,
}

impl QueueFile {
    pub(crate) fn open(path: &Path) -> Result<Self, QueueError> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self { connection })
    }

    /// Writes the changes of several queues and the counter in one transaction.
    pub(crate) fn write(&mut self, counter: u64, changes: &[(String, Vec<Change>)]) -> Result<(), QueueError> {
        let transaction = self.connection.transaction()?;
        for (queue, list) in changes {
            for change in list {
                apply(&transaction, queue, change)?;
            }
        }
        transaction.prepare_cached("UPDATE counter SET value = ?1")?.execute([to_sql(counter)])?;
        Ok(transaction.commit()?)
    }

    /// Everything in the file: the counter and the queues by name.
    pub(crate) fn load(&self) -> Result<(u64, Vec<(String, Queue)>), QueueError> {
        let counter: i64 = self.connection.query_row("SELECT value FROM counter", [], |row| row.get(0))?;
        let mut queues = Vec::new();
        let mut statement = self.connection.prepare("SELECT name, attributes FROM queues ORDER BY name")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (name, attributes) = row?;
            let mut queue = Queue::new(from_json(&attributes)?);
            self.load_messages(&name, &mut queue)?;
            self.load_remembered(&name, &mut queue)?;
            queues.push((name, queue));
        }
        Ok((from_sql(counter), queues))
    }

    fn load_messages(&self, name: &str, queue: &mut Queue) -> Result<(), QueueError> {
        let mut statement = self.connection.prepare(
            "SELECT seq, message_id, body, group_id, deduplication_id, attributes, trace_header, sent_ms,
                    dead_letter_source, first_received_ms, receive_count, invisible_until_ms
             FROM messages WHERE queue = ?1 ORDER BY seq",
        )?;
        let mut rows = statement.query([name])?;
        while let Some(row) = rows.next()? {
            let attributes: MessageAttributes = from_json(&row.get::<_, String>(5)?)?;
            queue.insert(StoredMessage {
                seq: from_sql(row.get(0)?),
                message_id: row.get(1)?,
                body: row.get::<_, String>(2)?.into(),
                group_id: row.get(3)?,
                deduplication_id: row.get(4)?,
                attributes,
                trace_header: row.get(6)?,
                sent_ms: row.get(7)?,
                dead_letter_source: row.get(8)?,
                first_received_ms: row.get(9)?,
                receive_count: row.get(10)?,
                invisible_until_ms: row.get(11)?,
            });
        }
        Ok(())
    }

    fn load_remembered(&self, name: &str, queue: &mut Queue) -> Result<(), QueueError> {
        let mut statement = self
            .connection
            .prepare("SELECT key, message_id, seq, expires_ms FROM remembered WHERE queue = ?1 ORDER BY expires_ms")?;
        let mut rows = statement.query([name])?;
        while let Some(row) = rows.next()? {
            let entry = Remembered { message_id: row.get(1)?, seq: from_sql(row.get(2)?), expires_ms: row.get(3)? };
            queue.remember(row.get(0)?, entry);
        }
        Ok(())
    }
}

fn apply(connection: &Connection, queue: &str, change: &Change) -> Result<(), QueueError> {
    match change {
        Change::Attributes(attributes) => connection
            .prepare_cached("INSERT OR REPLACE INTO queues VALUES (?1, ?2)")?
            .execute(params![queue, to_json(attributes)?])?,
        Change::Put(message) => put(connection, queue, message)?,
        Change::Flight { seq, first_received_ms, receive_count, invisible_until_ms } => connection
            .prepare_cached(
                "UPDATE messages SET first_received_ms = ?3, receive_count = ?4, invisible_until_ms = ?5
                 WHERE queue = ?1 AND seq = ?2",
            )?
            .execute(params![queue, to_sql(*seq), first_received_ms, receive_count, invisible_until_ms])?,
        Change::Remove(seq) => connection
            .prepare_cached("DELETE FROM messages WHERE queue = ?1 AND seq = ?2")?
            .execute(params![queue, to_sql(*seq)])?,
        Change::Remember(key, entry) => connection
            .prepare_cached("INSERT OR REPLACE INTO remembered VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![queue, key, entry.message_id, to_sql(entry.seq), entry.expires_ms])?,
        Change::Forget { now_ms } => connection
            .prepare_cached("DELETE FROM remembered WHERE queue = ?1 AND expires_ms <= ?2")?
            .execute(params![queue, now_ms])?,
        Change::Purge => connection.prepare_cached("DELETE FROM messages WHERE queue = ?1")?.execute([queue])?,
    };
    Ok(())
}

fn put(connection: &Connection, queue: &str, message: &StoredMessage) -> Result<usize, QueueError> {
    let mut statement = connection
        .prepare_cached("INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")?;
    Ok(statement.execute(params![
        queue,
        to_sql(message.seq),
        message.message_id,
        &*message.body,
        message.group_id,
        message.deduplication_id,
        to_json(&message.attributes)?,
        message.trace_header,
        message.sent_ms,
        message.dead_letter_source,
        message.first_received_ms,
        message.receive_count,
        message.invisible_until_ms,
    ])?)
}

/// SQLite's integers are signed; the counter never comes near the limit.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<String, QueueError> {
    serde_json::to_string(value).map_err(|error| QueueError::Storage(error.to_string()))
}

fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, QueueError> {
    serde_json::from_str(text).map_err(|error| QueueError::Storage(error.to_string()))
}
