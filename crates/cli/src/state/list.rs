//! `oxiray list`: rows that meet conditions.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use oxiray_observe::find::folder;
use oxiray_observe::{Filter, Query, Resource, Sort};
use oxiray_session::Session;

use super::show::{Format, Rows};
use super::{Which, tell};
use crate::exit::{Failure, Result, end};
use crate::print::{paper, print, terminal_width};

/// What to list.
#[derive(Args, Debug)]
pub struct Options {
    /// tasks, actors, objects, nodes, workers, jobs or placement-groups; or sessions, those that ended included.
    resource: String,
    /// Only rows of which this holds: key=value or key!=value; may be given again.
    #[arg(long, short, value_name = "CONDITION")]
    filter: Vec<String>,
    /// Rows at most.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// By this column; -column: the largest first.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Every column, also those that take longer to find out.
    #[arg(long)]
    detail: bool,
    /// How to show them.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    which: Which,
}

/// Lists.
pub fn run(options: &Options) -> ExitCode {
    end(list(options))
}

fn list(options: &Options) -> Result<()> {
    if options.resource == "sessions" {
        return sessions();
    }
    let resource: Resource = options.resource.parse()?;
    let filters = options.filter.iter().map(|text| text.parse::<Filter>());
    let query = Query {
        filters: filters.collect::<std::result::Result<_, _>>()?,
        limit: Some(options.limit),
        sort: options.sort.as_deref().map(Sort::from),
        detail: options.detail,
        ..Query::default()
    };
    // Before anything is asked: a wrong question is wrong whether or not something runs.
    query.check(resource)?;
    let mut session = options.which.open()?;
    let mut paper = paper();
    let mut rows =
        Rows::new(resource, options.format, options.detail, terminal_width(), &mut paper);
    let page =
        session.each_row(resource, &query, |row| rows.add(&row).map_err(Failure::Unprinted))?;
    let (shown, no_room) = rows.finish().map_err(Failure::Unprinted)?;
    paper.flush().map_err(Failure::Unprinted)?;
    tell(&page.notes);
    if shown < page.filtered {
        let of = page.filtered;
        tell(&[format!("these are {shown} of {of} {resource}; --limit shows more")]);
    }
    if !no_room.is_empty() {
        let columns = no_room.join(", ");
        tell(&[format!("the terminal is too narrow for {columns}; --format yaml shows all")]);
    }
    Ok(())
}

/// The sessions of this user on this machine, by what `--session` takes; the newest last.
fn sessions() -> Result<()> {
    let Some(folder) = folder()? else {
        return Ok(());
    };
    let line = |state: &str, session: &Session| format!("{state:<8} {}\n", session.name());
    let ended: String = folder.ended().iter().map(|session| line("ENDED", session)).collect();
    let running: String = folder.running().iter().map(|session| line("RUNNING", session)).collect();
    print(&format!("{ended}{running}"))
}
