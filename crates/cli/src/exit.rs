//! How commands end.

use std::io;
use std::process::ExitCode;

use oxiray_observe::Error;

use crate::print::remark;

/// The code of "nothing runs", apart from that of errors.
pub(crate) const NOTHING_RUNS: u8 = 3;

/// Why a command did not do all that it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A session cannot be looked at.
    Unseen(Error),
    /// Standard output does not take what is to be printed.
    Unprinted(io::Error),
    /// There is nothing that it could be about; where it looked, in a sentence.
    NothingRuns(String),
    /// Anything else, in a sentence.
    Other(String),
}

/// What a command gives, or why it does not.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Unseen(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// Says why a command failed, if it did, and gives the code that it ends with.
pub(crate) fn end(result: Result<()>) -> ExitCode {
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    let (text, code) = match failure {
        // Whoever reads has enough: that is no error, and nothing to speak of.
        Failure::Unprinted(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Failure::Unprinted(error) => {
            (format!("the output cannot be written: {error}"), ExitCode::FAILURE)
        }
        Failure::Unseen(error) => {
            let nothing = matches!(
                error,
                Error::NothingRuns(_) | Error::NoSuchSession(_) | Error::NothingKept(_)
            );
            let code = if nothing { ExitCode::from(NOTHING_RUNS) } else { ExitCode::FAILURE };
            (error.to_string(), code)
        }
        Failure::NothingRuns(text) => (text, ExitCode::from(NOTHING_RUNS)),
        Failure::Other(text) => (text, ExitCode::FAILURE),
    };
    remark(&format!("oxiray: {text}"));
    code
}
