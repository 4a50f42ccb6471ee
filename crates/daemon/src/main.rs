//! The node service of one machine. Started by a driver, not by hand.

// As in the library.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::io::Write as _;
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
        /// It reigned before, and waits now.
        #[arg(long, hide = true)]
        again: bool,
    },
    /// The node service of one machine of a cluster.
    Node {
        /// File with its configuration.
        #[arg(long)]
        config: PathBuf,
        /// Descriptors that the node left which this one was before.
        #[arg(long, hide = true)]
        again: Vec<i32>,
    },
    /// Brings one file of a bucket to this machine, for a runtime environment.
    Fetch {
        /// Where it is: `s3://bucket/name`.
        url: String,
        /// Where it goes.
        path: PathBuf,
    },
    /// From a dashboard's token, read from standard input, to the certificate (DER, to standard
    /// output) by which its server is known.
    Authority,
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

/// The token is no argument: those can be seen by others.
fn print_authority() -> std::io::Result<()> {
    let token = std::io::read_to_string(std::io::stdin())?;
    let certificate = oxiray_net::front_authority(token.trim()).map_err(std::io::Error::other)?;
    std::io::stdout().write_all(&certificate)
}

fn main() -> std::process::ExitCode {
    let ended = match Arguments::parse().service {
        Service::Driver { fd } => oxiray_daemon::daemon::run(fd),
        Service::Control { config, again } => oxiray_daemon::control_service::run(&config, again),
        Service::Node { config, again } => oxiray_daemon::daemon::run_node(&config, &again),
        Service::Fetch { url, path } => {
            oxiray_spill::download(&url, &path, &[]).map_err(std::io::Error::other)
        }
        Service::Authority => print_authority(),
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
