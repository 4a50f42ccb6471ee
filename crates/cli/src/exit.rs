//! How commands end.

use std::process::ExitCode;

use oxiray_observe::Error;

/// The code of "nothing runs", apart from that of errors.
pub(crate) const NOTHING_RUNS: u8 = 3;

/// Says why a command failed, and how it ends then.
pub(crate) fn fail(error: &Error) -> ExitCode {
    eprintln!("oxiray: {error}");
    match error {
        Error::NothingRuns(_) | Error::NoSuchSession(_) => ExitCode::from(NOTHING_RUNS),
        _ => ExitCode::FAILURE,
    }
}
