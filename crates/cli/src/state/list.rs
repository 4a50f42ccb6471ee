//! `oxiray list`: rows that meet conditions.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::{Filter, Query, Resource, Result, Sort};

use super::show::{Format, rows};
use super::{Which, print, tell};
use crate::exit::fail;

/// What to list.
#[derive(Args, Debug)]
pub struct Options {
    /// tasks, actors, objects, nodes, workers or jobs.
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
    match list(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn list(options: &Options) -> Result<()> {
    let resource: Resource = options.resource.parse()?;
    let filters: Result<Vec<Filter>> = options.filter.iter().map(|text| text.parse()).collect();
    let query = Query {
        filters: filters?,
        limit: Some(options.limit),
        sort: options.sort.as_deref().map(Sort::from),
        detail: options.detail,
        ..Query::default()
    };
    // Before anything is asked: a wrong question is wrong whether or not something runs.
    query.check(resource)?;
    let page = options.which.open()?.list(resource, &query)?;
    tell(&page.notes);
    print(&rows(resource, &page.rows, options.format, options.detail));
    if page.rows.len() < page.filtered {
        eprintln!(
            "oxiray: these are {} of {} {resource}; --limit shows more",
            page.rows.len(),
            page.filtered
        );
    }
    Ok(())
}
