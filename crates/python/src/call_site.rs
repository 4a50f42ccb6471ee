//! Where references were created, when the user asks for it by
//! `RAY_record_ref_creation_sites=1`: it costs a look at the stack for each.

use std::sync::OnceLock;

use oxiray_worker::ObjectKey;
use pyo3::prelude::*;

use crate::session::Session;

fn is_recorded() -> bool {
    static RECORDED: OnceLock<bool> = OnceLock::new();
    *RECORDED.get_or_init(|| oxiray_settings::RECORD_REF_CREATION_SITES.is_on())
}

/// Notes that the calling line of Python created these by `what`.
pub(crate) fn note(
    py: Python<'_>,
    session: &Session,
    what: &str,
    keys: impl IntoIterator<Item = ObjectKey>,
) {
    if !is_recorded() {
        return;
    }
    let described = py
        .import("oxiray._call_site")
        .and_then(|module| module.call_method1("describe", (what,))?.extract::<String>());
    // A stack that cannot be read is no reason to fail.
    if let Ok(text) = described {
        let state = &mut *session.runtime.lock();
        keys.into_iter().for_each(|key| state.owner.set_call_site(key, &text));
    }
}
