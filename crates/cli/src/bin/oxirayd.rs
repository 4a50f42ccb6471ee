//! The node service of one machine. Started by a driver, not by hand.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// The services of one machine. `oxiray.init()` and `oxiray start` start them; they are not
/// meant to be run by hand.
#[derive(Parser)]
#[command(name = "oxirayd", version)]
struct Arguments {
    #[command(subcommand)]
    service: Service,
}

#[derive(Subcommand)]
enum Service {
    /// The node service of one driver, which it ends with.
    Driver {
        /// Descriptor of the socket to the driver that starts this.
        #[arg(long)]
        fd: i32,
    },
    /// The control service of a cluster.
    Control {
        /// File with its configuration.
        #[arg(long)]
        config: PathBuf,
    },
    /// The node service of one machine of a cluster.
    Node {
        /// File with its configuration.
        #[arg(long)]
        config: PathBuf,
    },
}

fn main() -> std::process::ExitCode {
    let ended = match Arguments::parse().service {
        Service::Driver { fd } => oxiray_cli::daemon::run(fd),
        Service::Control { config } => oxiray_cli::control_service::run(&config),
        Service::Node { config } => oxiray_cli::daemon::run_node(&config),
    };
    match ended {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oxirayd: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
