//! Numbers that the environment sets.

/// The value of `OXIRAY_NAME`, or of `RAY_NAME`. It is no reason not to start: what is no number is
/// said and not used.
pub(crate) fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    let names = [format!("OXIRAY_{name}"), format!("RAY_{name}")];
    let set = names.into_iter().find_map(|name| Some((std::env::var(&name).ok()?, name)));
    let (text, name) = set?;
    let value = text.trim().parse().ok();
    if value.is_none() {
        tracing::warn!(name, text, "is not a whole number, and is not used");
    }
    value
}
