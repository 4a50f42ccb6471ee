//! Numbers, bytes and lists as people read them, the same in every message of every program.

/// A number of bytes in the unit that suits: `1.5 GiB`.
pub fn show_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// `1 object`, `2 objects`.
pub fn plural(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

/// `a`, `a and b`, `a, b and c`; beyond `most` of them `a, b and 7 more`.
pub fn listed<T: AsRef<str>>(things: &[T], most: usize) -> String {
    let more = things.len().saturating_sub(most.max(1));
    let mut shown: Vec<&str> = things.iter().take(things.len() - more).map(AsRef::as_ref).collect();
    let others = format!("{more} more");
    if more > 0 {
        shown.push(&others);
    }
    match shown.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_unit_that_suits() {
        assert_eq!(show_bytes(12), "12 B");
        assert_eq!(show_bytes(1536), "1.5 KiB");
        assert_eq!(show_bytes(3 << 30), "3.0 GiB");
    }

    #[test]
    fn lists_are_read_aloud() {
        assert_eq!(listed::<&str>(&[], 3), "");
        assert_eq!(listed(&["a"], 3), "a");
        assert_eq!(listed(&["a", "b"], 3), "a and b");
        assert_eq!(listed(&["a", "b", "c"], 3), "a, b and c");
        assert_eq!(listed(&["a", "b", "c", "d"], 2), "a, b and 2 more");
        assert_eq!(plural(1, "task"), "1 task");
        assert_eq!(plural(2, "task"), "2 tasks");
    }
}
