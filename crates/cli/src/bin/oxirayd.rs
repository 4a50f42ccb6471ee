//! The node service of one machine. Started by a driver, not by hand.

use clap::Parser;

/// The node service of one machine. `oxiray.init()` starts it; it is not meant to be run by hand.
#[derive(Parser)]
#[command(name = "oxirayd", version)]
struct Arguments {
    /// Descriptor of the socket to the driver that starts this.
    #[arg(long)]
    driver_fd: i32,
}

fn main() -> std::process::ExitCode {
    match oxiray_cli::daemon::run(Arguments::parse().driver_fd) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oxirayd: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
