//! How numbers and things are said.

/// `1 object`, `2 objects`.
pub(crate) fn plural(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}
