//! `oxiray drain`: lets a node leave in an orderly way.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use oxiray_ids::NodeId;
use oxiray_observe::find::folder;
use oxiray_session::Started;
use oxiray_wire::cluster::{Drain, NodeInfo};

use crate::commands::tool::Tool;
use crate::commands::{refuse, which_cluster};
use crate::exit::{Result, end};
use crate::print::print;

/// How often is looked whether the node has left.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Which node, and how long it may take.
#[derive(Args, Debug)]
pub struct Options {
    /// The node: the beginning of its id, its address or its host, as `oxiray status` shows them;
    /// `here`: the one of this machine.
    node: String,
    /// Seconds after which it leaves, whatever still runs there [default: when nothing does].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    deadline: Option<f64>,
    /// Why, for those who look.
    #[arg(long, default_value = "")]
    reason: String,
    /// Stay until the node has left.
    #[arg(long)]
    wait: bool,
    /// The cluster, if this machine has nodes of several.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds),
        _ => Err("must be a number of seconds, 0 or more".into()),
    }
}

/// Drains a node.
pub fn run(options: &Options) -> ExitCode {
    end(drain(options))
}

fn drain(options: &Options) -> Result<()> {
    let folder = folder()?;
    let started = which_cluster(folder.as_ref(), options.address.as_deref())?;
    let mut tool = Tool::connect(&started)?;
    let within_ms = options.deadline.map_or(0, |seconds| ((seconds * 1000.0) as u64).max(1));
    let wanted = Drain {
        node: node_of(&options.node, &started)?,
        reason: options.reason.clone(),
        within_ms,
        info: None,
    };
    let info = tool.drain(wanted)?;
    let name = NodeId::from_slice(&info.id).map(|id| id.to_string()).unwrap_or_default();
    let until = match options.deadline {
        Some(seconds) => format!(", or in {seconds} s"),
        None => String::new(),
    };
    print(&format!(
        "Node {name} at {} takes no new work, and leaves when all of it is elsewhere{until}.\n",
        info.address
    ))?;
    if options.wait {
        let begun = Instant::now();
        while !has_left(&mut Tool::connect(&started)?, &info)? {
            std::thread::sleep(LOOK_EVERY);
        }
        print(&format!("It has left, after {:.1} s.\n", begun.elapsed().as_secs_f64()))?;
    }
    Ok(())
}

fn has_left(tool: &mut Tool, info: &NodeInfo) -> Result<bool> {
    let state = tool.see()?;
    Ok(!state.nodes.iter().any(|node| node.number == info.number && node.left.is_empty()))
}

fn node_of(said: &str, started: &Started) -> std::io::Result<String> {
    match said {
        "here" if started.node_id.is_empty() => refuse("no node of this cluster runs here"),
        "here" => Ok(started.node_id.clone()),
        said => Ok(said.to_owned()),
    }
}
