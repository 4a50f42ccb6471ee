//! `docs/settings.md`: all settings for people.

use std::fmt::Write;

use crate::setting::{Kind, Setting};
use crate::table::{OURSELVES, USERS};

const HEAD: &str = "\
# Settings

What a session is to be is said by the arguments of `init()` (`help(oxiray.init)`) and of `oxiray
start` (`oxiray start --help`). Beside them there are environment variables: for what must be known
before there is a session, for what holds on a whole machine, and for what Ray has one for. A variable
of `oxiray start` is that of the node's machine; workers have the environment of their node.

This page is made from their declarations (`crates/settings/src/table.rs`) by
`cargo run -p oxiray-settings --example page > docs/settings.md`, and a test sees that it is.

";

const TABLE: &str = "| variable | is | unless said | what it does |\n|---|---|---|---|\n";

/// The text of the page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str(TABLE);
    USERS.iter().for_each(|setting| row(&mut page, setting));
    page.push_str(
        "\nSwitches are off with `0` or `false`. An empty variable says nothing. Where there are two\n\
         names the first counts more.\n\n\
         ## Between oxiray's own processes\n\n\
         Set by one process for another that it starts; nobody else needs them.\n\n",
    );
    page.push_str(TABLE);
    OURSELVES.iter().for_each(|setting| row(&mut page, setting));
    page
}

fn row(page: &mut String, setting: &Setting) {
    let or = setting.or.map(|name| format!(", `{name}`")).unwrap_or_default();
    let default = match (setting.kind, setting.default) {
        (_, "") => String::new(),
        (Kind::Switch, "0") => "off".into(),
        (Kind::Switch, _) => "on".into(),
        (_, default) => format!("`{default}`"),
    };
    let Setting { name, kind, says, .. } = setting;
    // Writing to a String does not fail.
    let _ = writeln!(page, "| `{name}`{or} | {} | {default} |{says} |", kind.word());
}
