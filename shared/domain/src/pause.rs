//! Pause switches: one per consumer and per provider. A switch stops effects while receipts go on.
//!
//! All switches are one item, so that a consumer learns of all of them by one strongly consistent read
//! per batch. What they hold back waits in an order of its own, by arrival, and is resumed by the relay.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::RESUME_GRACE_MS;
use crate::operation::OperationKey;

/// One switch that is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who paused.
    #[serde(rename = "ac")]
    pub actor: String,
    /// Why.
    #[serde(rename = "rs")]
    pub reason: String,
    /// Since when, Unix milliseconds.
    #[serde(rename = "cr")]
    pub since_ms: i64,
}

/// All switches (`S|pauses`); every change bumps the revision under a condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switches {
    /// Those that are on, by the name of the consumer or provider.
    #[serde(rename = "on", default)]
    pub paused: BTreeMap<String, Pause>,
    /// Those that were resumed and may still hold operations back: when they were resumed, Unix milliseconds.
    #[serde(rename = "off", default)]
    pub resuming: BTreeMap<String, i64>,
    /// Bumped by every change.
    #[serde(rename = "rv", default)]
    pub revision: u64,
}

/// One change of one switch; append-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// The switch.
    #[serde(rename = "nm")]
    pub name: String,
    /// True when it was paused by this change.
    #[serde(rename = "on")]
    pub paused: bool,
    /// Who.
    #[serde(rename = "ac")]
    pub actor: String,
    /// Why.
    #[serde(rename = "rs")]
    pub reason: String,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

impl Switches {
    /// The switch that holds an operation back, if one does: its consumer's before its provider's.
    pub fn holds(&self, key: &OperationKey) -> Option<&str> {
        let names = [key.name.consumer().as_str(), key.event.provider.as_str()];
        names.into_iter().find_map(|name| self.paused.get_key_value(name)).map(|(name, _)| name.as_str())
    }

    /// These switches after one change; `None` when the switch stands so already.
    pub fn after(&self, change: &Switched) -> Option<Self> {
        if self.paused.contains_key(&change.name) == change.paused {
            return None;
        }
        let mut next = Self { revision: self.revision + 1, ..self.clone() };
        if change.paused {
            let pause =
                Pause { actor: change.actor.clone(), reason: change.reason.clone(), since_ms: change.created_ms };
            next.paused.insert(change.name.clone(), pause);
        } else {
            next.paused.remove(&change.name);
            next.resuming.insert(change.name.clone(), change.created_ms);
        }
        Some(next)
    }

    /// The names whose operations are to be resumed: off, and not known to be empty.
    pub fn to_resume(&self) -> impl Iterator<Item = &str> {
        self.resuming.keys().map(String::as_str).filter(|name| !self.paused.contains_key(*name))
    }

    /// These switches without the names that were found empty after their grace; `None` when none were.
    pub fn without(&self, empty: &[String], now_ms: i64) -> Option<Self> {
        let over = |name: &String| self.resuming.get(name).is_some_and(|since| now_ms - since > RESUME_GRACE_MS);
        let gone: Vec<&String> = empty.iter().filter(|name| over(name)).collect();
        if gone.is_empty() {
            return None;
        }
        let mut next = Self { revision: self.revision + 1, ..self.clone() };
        next.resuming.retain(|name, _| !gone.contains(&name));
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::ids::ItemId;
    use crate::operation::OperationName;

    fn change(name: &str, paused: bool, at_ms: i64) -> Switched {
        let (actor, reason) = ("a".to_owned(), "r".to_owned());
        Switched { name: name.to_owned(), paused, actor, reason, created_ms: at_ms }
    }

    #[test]
    fn a_switch_holds_its_consumer_or_its_provider_and_nothing_else() {
        let key = |event: &str, name| OperationKey { event: event.parse().unwrap(), item: ItemId::only(), name };
        let on = Switches::default().after(&change("billing", true, 1)).unwrap();
        let on = on.after(&change("acme", true, 2)).unwrap();
        assert_eq!(on.holds(&key("acme/e", OperationName::SettleUsage)), Some("billing"));
        assert_eq!(on.holds(&key("acme/e", OperationName::CompleteJob)), Some("acme"));
        assert_eq!(on.holds(&key("other/e", OperationName::CompleteJob)), None);
        assert_eq!(on.after(&change("acme", true, 3)), None, "it is on already");
        let off = on.after(&change("acme", false, 4)).unwrap();
        assert_eq!((off.to_resume().collect::<Vec<_>>(), off.revision), (vec!["acme"], 3));
    }

    #[test]
    fn an_empty_name_is_forgotten_only_after_its_grace() {
        let on = Switches::default().after(&change("job", true, 0)).unwrap();
        let off = on.after(&change("job", false, 1_000)).unwrap();
        let empty = ["job".to_owned()];
        assert_eq!(off.without(&empty, 601_000), None);
        assert_eq!(off.without(&empty, 601_001).unwrap().to_resume().count(), 0);
    }
}
