//! The way of every command to its streams. What standard output does not take is a failure of the
//! command, whichever it is; what standard error does not take is not.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use crate::exit::{Failure, Result, end};

/// Prints a text.
pub(crate) fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints what may be anything.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::Unprinted)
}

/// Says something beside the output. The command goes on where nobody can be told.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Standard output for what is written in parts, of which there may be many. Who writes sees that
/// all of it is out: [`Write::flush`], and [`Failure::Unprinted`] if that fails.
pub(crate) fn paper() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// How many characters a line has where a person reads; elsewhere lines have no end.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Whether a person reads who wants colours.
pub(crate) fn has_colours() -> bool {
    let wanted = oxiray_settings::NO_COLOR.text().is_none_or(|text| text.is_empty());
    wanted && terminal_width().is_some()
}

/// Prints what a wrong or a curious command line is answered with, and how to end then.
pub fn answer(usage: &clap::Error) -> ExitCode {
    let printed = usage.print().and_then(|()| io::stdout().flush());
    match u8::try_from(usage.exit_code()) {
        Ok(0) => end(printed.map_err(Failure::Unprinted)),
        code => code.map_or(ExitCode::FAILURE, ExitCode::from),
    }
}
