//! On what a measurement was made: numbers mean nothing without it.

use std::fs;

use serde::Serialize;

/// The machine that the command runs on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct Machine {
    /// The operating system.
    os: &'static str,
    /// The kind of processor.
    arch: &'static str,
    /// How many processors this process may use. None where it is not known.
    cpus: Option<usize>,
    /// What the processor calls itself. None where it is not known.
    cpu: Option<String>,
    /// How many processes wanted to run in the minute before: others that measure or compile. None where it is not
    /// known.
    load: Option<f64>,
    /// Whether this program was built with optimisation: one that was not measures itself.
    build: &'static str,
}

impl Machine {
    /// This one, as it is now.
    pub(in crate::cli) fn this() -> Self {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            cpus: std::thread::available_parallelism()
                .ok()
                .map(std::num::NonZero::get),
            cpu: model_name(&cpus),
            load: load.split(' ').next().and_then(|load| load.parse().ok()),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
        }
    }
}

fn model_name(cpus: &str) -> Option<String> {
    let line = cpus.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let told = |fact: Option<String>| fact.unwrap_or_else(|| "unknown".to_owned());
        write!(
            f,
            "{} {}, processors {} ({}), load {} before, {} build",
            self.os,
            self.arch,
            told(self.cpus.map(|cpus| cpus.to_string())),
            told(self.cpu.clone()),
            told(self.load.map(|load| format!("{load:.1}"))),
            self.build
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_without_a_name_is_unknown() {
        for (cpus, name) in [
            ("", None),
            (
                "model\t\t: 85\nmodel name\t: A Fast One @ 2GHz\nflags\t: a b",
                Some("A Fast One @ 2GHz"),
            ),
            ("processor\t: 0\nBogoMIPS\t: 50", None),
        ] {
            assert_eq!(model_name(cpus).as_deref(), name, "{cpus}");
        }
    }
}
