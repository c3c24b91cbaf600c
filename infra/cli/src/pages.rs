//! Lists of the control API that come in pages, read to their end.

use serde_json::Value;

use crate::api::{Answer, Api};
use crate::error::CliError;

/// What can be read from: a server, or what stands for one in a test.
pub trait Source {
    /// One read of the control API.
    ///
    /// # Errors
    /// No answer; an error answer is none.
    fn read(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Answer, CliError>;
}

impl Source for Api {
    fn read(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Answer, CliError> {
        self.get_with(path, query)
    }
}

/// One read that must succeed.
///
/// # Errors
/// No answer, or the server's own error.
pub fn read(source: &impl Source, path: &[&str], query: &[(&str, &str)]) -> Result<Value, CliError> {
    let answer = source.read(path, query)?;
    answer.problem().map_or(Ok(answer.body), |problem| Err(CliError::Refused(problem)))
}

/// Every element of the member `list`, page by page, until the server names no `next`.
///
/// # Errors
/// As [`read`], a server that goes round in a circle, or what `each` says.
pub fn each(
    source: &impl Source, path: &[&str], query: &[(&str, &str)], list: &str,
    mut each: impl FnMut(Value) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut after: Option<String> = None;
    loop {
        let mut query = query.to_vec();
        query.extend(after.as_deref().map(|after| ("after", after)));
        let mut page = read(source, path, &query)?;
        for element in page[list].as_array_mut().map(std::mem::take).unwrap_or_default() {
            each(element)?;
        }
        let next = next(&page);
        if next.is_none() {
            return Ok(());
        }
        if next == after {
            return Err(CliError::Failed("the server answers the same page again; its log may say why".to_owned()));
        }
        after = next;
    }
}

/// Where the next page begins; sequences are numbers, jobs are texts.
pub fn next(page: &Value) -> Option<String> {
    match &page["next"] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A server of a test: answers by path and query, in the order in which they were given.
#[cfg(test)]
pub mod fake {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]
    use std::cell::RefCell;
    use std::collections::{BTreeMap, VecDeque};

    use super::{Answer, CliError, Source, Value};

    /// Each key is `path?query`; the last answer stays.
    #[derive(Default)]
    pub struct Fake(RefCell<BTreeMap<String, VecDeque<Answer>>>);

    impl Fake {
        /// Adds an answer.
        pub fn answer(self, key: &str, status: u16, body: Value) -> Self {
            self.0.borrow_mut().entry(key.to_owned()).or_default().push_back(Answer { status, body });
            self
        }
    }

    impl Source for Fake {
        fn read(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Answer, CliError> {
            let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let key = format!("{}?{}", path.join("/"), query.join("&"));
            let mut answers = self.0.borrow_mut();
            let Some(queue) = answers.get_mut(&key) else { panic!("no answer for {key}") };
            Ok(if queue.len() > 1 { queue.pop_front().unwrap() } else { queue[0].clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::fake::Fake;
    use super::*;
    use serde_json::json;

    fn all(source: &Fake) -> Result<Vec<Value>, CliError> {
        let mut found = Vec::new();
        each(source, &["holds"], &[("a", "b")], "holds", |hold| {
            found.push(hold);
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn pages_are_read_to_the_end() {
        let server = Fake::default()
            .answer("holds?a=b", 200, json!({"holds": [1, 2], "next": 7}))
            .answer("holds?a=b&after=7", 200, json!({"holds": [], "next": "j8"}))
            .answer("holds?a=b&after=j8", 200, json!({"holds": [3], "next": null}));
        assert_eq!(all(&server).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_refused_page_and_a_circle_are_errors() {
        let refused = Fake::default().answer("holds?a=b", 503, json!({"code": "unavailable"}));
        assert!(matches!(all(&refused), Err(CliError::Refused(problem)) if problem.code == "unavailable"));
        let circle = Fake::default().answer("holds?a=b", 200, json!({"holds": [], "next": 7})).answer(
            "holds?a=b&after=7",
            200,
            json!({"holds": [], "next": 7}),
        );
        assert!(matches!(all(&circle), Err(CliError::Failed(_))));
    }
}
