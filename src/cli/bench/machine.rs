//! On what a measurement was made: numbers mean nothing without it.

use serde::Serialize;

/// The machine that the command runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Machine {
    /// The operating system.
    os: &'static str,
    /// The kind of processor.
    arch: &'static str,
    /// How many processors this process may use. None where it is not known.
    cpus: Option<usize>,
    /// Whether this program was built with optimisation: one that was not measures itself.
    build: &'static str,
}

impl Machine {
    /// This one.
    pub(in crate::cli) fn this() -> Self {
        Self {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            cpus: std::thread::available_parallelism()
                .ok()
                .map(std::num::NonZero::get),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cpus = self
            .cpus
            .map_or_else(|| "an unknown number of".to_owned(), |cpus| cpus.to_string());
        write!(
            f,
            "{} {}, {cpus} processors, {} build",
            self.os, self.arch, self.build
        )
    }
}
