//! The size of an item by DynamoDB's rules: what a write is charged by.
//!
//! Source: DynamoDB developer guide, "DynamoDB item sizes and formats". Names and texts count their UTF-8 bytes, numbers
//! about one byte for two significant digits and one more, booleans and null one byte, lists and maps three bytes and
//! one for each element beside what they hold.

use serde_json::Value;

/// Bytes of an item in DynamoDB's JSON (`{"pk": {"S": "..."}, ...}`), names included.
#[must_use]
pub fn item_size(item: &Value) -> usize {
    let members = item.as_object().into_iter().flatten();
    members.map(|(name, value)| name.len() + value_size(value)).sum()
}

/// Bytes of one value (`{"S": "..."}`).
fn value_size(value: &Value) -> usize {
    let Some((kind, inner)) = value.as_object().and_then(|object| object.iter().next()) else { return 0 };
    let text = inner.as_str().unwrap_or_default();
    let each = |size: fn(&Value) -> usize| inner.as_array().into_iter().flatten().map(size).sum::<usize>();
    match kind.as_str() {
        "S" => text.len(),
        "B" => text.trim_end_matches('=').len() * 3 / 4,
        "N" => number_size(text),
        "SS" => each(|one| one.as_str().unwrap_or_default().len()),
        "NS" => each(|one| number_size(one.as_str().unwrap_or_default())),
        "L" => 3 + each(|one| 1 + value_size(one)),
        "M" => {
            let members = inner.as_object().into_iter().flatten();
            3 + members.map(|(name, value)| 1 + name.len() + value_size(value)).sum::<usize>()
        }
        _ => 1, // BOOL, NULL
    }
}

/// One byte for two significant digits, one more, and one more for a sign.
fn number_size(text: &str) -> usize {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0').len();
    significant.div_ceil(2) + 1 + usize::from(text.starts_with('-'))
}

/// Write units of an item of that size, outside a transaction.
#[must_use]
pub fn write_units(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(1024)).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_are_those_of_the_guide() {
        for (value, size) in [
            (json!({"S": "ümlaut"}), 7),
            (json!({"N": "1200"}), 2),           // two significant digits
            (json!({"N": "-1795953600001"}), 9), // thirteen, and a sign
            (json!({"N": "0"}), 1),
            (json!({"BOOL": true}), 1),
            (json!({"L": [{"S": "ab"}, {"S": "c"}]}), 3 + 1 + 2 + 1 + 1),
            (json!({"M": {"ab": {"S": "c"}}}), 3 + 1 + 2 + 1),
            (json!({"M": {}}), 3),
        ] {
            assert_eq!(value_size(&value), size, "{value}");
        }
        assert_eq!(item_size(&json!({"pk": {"S": "abc"}, "n": {"N": "7"}})), 2 + 3 + 1 + 2);
        assert_eq!([0, 1024, 1025, 2048].map(write_units), [1, 1, 2, 2]);
    }
}
