//! The environment variables that Python reads: their declarations.

use std::collections::BTreeMap;

use oxiray_settings::{OURSELVES, USERS};
use pyo3::prelude::*;

/// By name: its other name, and what it is unless said.
#[pyfunction]
pub(crate) fn settings() -> BTreeMap<&'static str, (Option<&'static str>, &'static str)> {
    let all = USERS.iter().chain(OURSELVES);
    all.map(|setting| (setting.name, (setting.or, setting.default))).collect()
}
