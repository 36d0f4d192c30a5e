//! Where the library's log goes: standard error, as much as was asked for.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Says whether more was asked for than warnings.
pub(super) fn is_asked_for(verbose: u8) -> bool {
    verbose > 0 || std::env::var_os("RUST_LOG").is_some()
}

/// Starts logging. `RUST_LOG` wins over the number of `-v`; without either only warnings are shown.
pub(super) fn start(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("gym_sandbox={level}")));
    // Below this the engine client logs whole requests, with the values of environment variables.
    let filter = match "bollard=info".parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(!no_color && std::io::stderr().is_terminal())
        .init();
}
