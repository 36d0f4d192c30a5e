//! The memory of this process while it reads a very long output of which little is kept.

use std::fs;
use std::time::Instant;

use gym_sandbox::{ExecOptions, ExecTimeout, Operation, OutputCap, Result};
use serde::Serialize;

use super::context::{Context, baseline_failed};
use super::stats::Verdict;

/// How long the output is, and how the command ends.
const OUTPUT_BYTES: u64 = 5_000_000_000;
const CODE: i32 = 7;
const ARGV: [&str; 3] = [
    "sh",
    "-c",
    "dd if=/dev/zero bs=1000000 count=5000 2>/dev/null; exit 7",
];

/// How much of it is kept.
const CAP_BYTES: usize = 1 << 20;

/// How much the process may grow.
pub(in crate::cli) const GOAL_BYTES: u64 = 16 << 20;

/// What one way of reading came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::cli) struct Reading {
    /// From the memory before to the most memory meanwhile. None where the system does not tell.
    pub(in crate::cli) growth_bytes: Option<u64>,
    pub(in crate::cli) output_bytes: u64,
    pub(in crate::cli) return_code: Option<i64>,
    pub(in crate::cli) duration_s: f64,
}

impl Reading {
    /// Bytes and exit code must be right, too: a reader that loses output needs little memory.
    pub(in crate::cli) fn verdict(&self) -> Verdict {
        if self.output_bytes != OUTPUT_BYTES || self.return_code != Some(i64::from(CODE)) {
            return Verdict::Miss;
        }
        match self.growth_bytes {
            None => Verdict::Unresolved,
            Some(growth) if growth <= GOAL_BYTES => Verdict::Pass,
            Some(_) => Verdict::Miss,
        }
    }
}

/// Reads it by the library, then by the raw calls: whoever is first also pays for what the process keeps afterwards.
///
/// # Errors
/// A call failed.
pub(in crate::cli) async fn measure(context: &Context<'_>) -> Result<(Reading, Reading)> {
    let target = &context.compat;
    let memory = Peak::begin();
    let start = Instant::now();
    let options = ExecOptions::new(ARGV)
        .with_timeout(ExecTimeout::Never)
        .with_output_cap(OutputCap::Bytes(CAP_BYTES));
    let result = target.sandbox.exec_with(options).await?;
    let ours = Reading {
        growth_bytes: memory.growth_bytes(),
        output_bytes: result.bytes().stdout,
        return_code: Some(result.return_code.into()),
        duration_s: start.elapsed().as_secs_f64(),
    };
    drop(result);
    let memory = Peak::begin();
    let start = Instant::now();
    let end = context
        .raw
        .exec_to_the_end(&target.container, &ARGV)
        .await
        .map_err(|error| baseline_failed(Operation::Exec, error))?;
    let raw = Reading {
        growth_bytes: memory.growth_bytes(),
        output_bytes: end.stdout_bytes,
        return_code: end.code,
        duration_s: start.elapsed().as_secs_f64(),
    };
    Ok((ours, raw))
}

/// The most memory that this process has had since it was made.
struct Peak {
    /// None where the system does not tell, or still counts what was before.
    before_kib: Option<u64>,
}

impl Peak {
    fn begin() -> Self {
        // Linux forgets the largest size so far.
        let reset = fs::write("/proc/self/clear_refs", "5");
        Self {
            before_kib: reset.ok().and_then(|()| status_kib("VmRSS")),
        }
    }

    fn growth_bytes(&self) -> Option<u64> {
        Some(status_kib("VmHWM")?.saturating_sub(self.before_kib?) << 10)
    }
}

fn status_kib(field: &str) -> Option<u64> {
    field_kib(&fs::read_to_string("/proc/self/status").ok()?, field)
}

fn field_kib(status: &str, field: &str) -> Option<u64> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_status_is_read_by_its_whole_name() {
        let status = "VmPeak:\t  900 kB\nVmHWM:\t   20 kB\nVmRSS:\t   10 kB\nThreads:\t3\n";
        for (field, kib) in [
            ("VmHWM", Some(20)),
            ("VmRSS", Some(10)),
            ("Vm", None),
            ("Threads", None),
        ] {
            assert_eq!(field_kib(status, field), kib, "{field}");
        }
    }

    #[test]
    fn lost_output_a_wrong_code_and_growth_are_misses() {
        let right = Reading {
            growth_bytes: Some(GOAL_BYTES),
            output_bytes: OUTPUT_BYTES,
            return_code: Some(7),
            duration_s: 1.0,
        };
        for (reading, verdict) in [
            (right, Verdict::Pass),
            (
                Reading {
                    growth_bytes: Some(GOAL_BYTES + 1),
                    ..right
                },
                Verdict::Miss,
            ),
            (
                Reading {
                    growth_bytes: None,
                    ..right
                },
                Verdict::Unresolved,
            ),
            (
                Reading {
                    output_bytes: OUTPUT_BYTES - 1,
                    ..right
                },
                Verdict::Miss,
            ),
            (
                Reading {
                    return_code: Some(0),
                    ..right
                },
                Verdict::Miss,
            ),
        ] {
            assert_eq!(reading.verdict(), verdict, "{reading:?}");
        }
    }
}
