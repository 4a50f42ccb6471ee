//! Prints `docs/settings.md`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(oxiray_settings::page().as_bytes())
}
