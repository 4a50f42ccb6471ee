//! The node service of one machine. Started by a driver, not by hand.

// As in the library.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use oxiray_dashboard::Options;

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
    /// The dashboard of a node service, which starts it when somebody looks.
    Dashboard {
        /// Descriptor of the listening socket.
        #[arg(long)]
        fd: i32,
        /// Directory of the session.
        #[arg(long)]
        session_dir: PathBuf,
        /// The name it is served at, if it was given one.
        #[arg(long, default_value = "")]
        host: String,
        /// Version of the workers' Python, to be shown.
        #[arg(long, default_value = "")]
        python_version: String,
    },
}

fn main() -> std::process::ExitCode {
    let ended = match Arguments::parse().service {
        Service::Driver { fd } => oxiray_daemon::daemon::run(fd),
        Service::Control { config } => oxiray_daemon::control_service::run(&config),
        Service::Node { config } => oxiray_daemon::daemon::run_node(&config),
        Service::Dashboard { fd, session_dir, host, python_version } => {
            oxiray_dashboard::run(fd, Options { session_dir, host, python_version })
        }
    };
    match ended {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            oxiray_daemon::complain(&error.to_string());
            std::process::ExitCode::FAILURE
        }
    }
}
