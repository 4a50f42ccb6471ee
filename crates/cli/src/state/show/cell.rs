//! One value in a line, with nothing in it that a terminal would take for a command.

use serde_json::Value;

/// One value in a line: `-` for nothing, times as people read them.
pub(super) fn cell(column: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) if text.is_empty() => "-".into(),
        Value::String(text) => plain(text),
        Value::Number(ms) if column.ends_with("_time_ms") => {
            ms.as_f64().map_or_else(|| ms.to_string(), time)
        }
        Value::Number(ms) if column.ends_with("_ms") => {
            ms.as_f64().map_or_else(|| ms.to_string(), |ms| format!("{ms:.3}"))
        }
        other => plain(&other.to_string()),
    }
}

/// A text without anything that would end the line or move the cursor.
pub(crate) fn plain(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() || is_invisible(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// JSON in which nothing moves the cursor or hides: it leaves more than a terminal bears as it is.
pub(super) fn escaped(json: &str) -> String {
    if json.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return json.to_owned();
    }
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        match character.is_control() || is_invisible(character) {
            // Each of them is one unit of UTF-16.
            true => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => shown.push(character),
        }
    }
    shown
}

/// Line ends, and what turns the direction of writing: a name could pose as another.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{61c}' | '\u{feff}')
}

/// `2026-01-31 12:00:00.123`, in universal time.
fn time(ms: f64) -> String {
    let ms = ms.max(0.0) as u64;
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, thousandths) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{thousandths:03}")
}

/// The date so many days after 1970-01-01. Years begin in March here: then the day that
/// some lack is the last.
fn date(days: u64) -> (u64, u64, u64) {
    const OF_400_YEARS: u64 = 146_097;
    let shifted = days + 719_468;
    let (era, day) = (shifted / OF_400_YEARS, shifted % OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, years) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + years, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(time(1_709_210_096_007.4), "2024-02-29 12:34:56.007");
        assert_eq!(time(4_102_444_799_999.0), "2099-12-31 23:59:59.999");
    }
}
