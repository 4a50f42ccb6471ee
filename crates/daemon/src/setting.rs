//! Numbers that the environment sets.

use oxiray_settings::Setting;

/// What a setting says, or is unless said. It is no reason not to start: what is no number is said
/// and not used.
pub(crate) fn count(setting: &Setting) -> u64 {
    setting.count().unwrap_or_else(|malformed| {
        tracing::warn!("{malformed}; it is {} then", setting.default);
        setting.default_count()
    })
}
