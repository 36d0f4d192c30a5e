//! The memory of this process while it reads a very long output of which little is kept, or copies a large file.

use std::fs;
use std::time::Instant;

use futures::future::try_join_all;
use gym_sandbox::{ExecOptions, ExecTimeout, Operation, OutputCap, Result};
use serde::Serialize;

use super::context::{Context, baseline_failed};
use super::stats::Verdict;
use super::transfer::{Side, Transfer};

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

/// What is done meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum MemoryWork {
    /// A command prints 5 GB.
    Output,
    /// A copy.
    Copy(Transfer),
}

/// What must come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Expected {
    pub(in crate::cli) bytes: u64,
    /// None where no command runs.
    pub(in crate::cli) code: Option<i64>,
}

impl MemoryWork {
    /// What must come of it.
    pub(in crate::cli) fn expected(self) -> Expected {
        match self {
            Self::Output => Expected {
                bytes: OUTPUT_BYTES,
                code: Some(CODE.into()),
            },
            Self::Copy(transfer) => Expected {
                bytes: transfer.what.bytes(),
                code: None,
            },
        }
    }
}

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
    pub(in crate::cli) fn verdict(&self, expected: Expected) -> Verdict {
        if self.output_bytes != expected.bytes || self.return_code != expected.code {
            return Verdict::Miss;
        }
        match self.growth_bytes {
            None => Verdict::Unresolved,
            Some(growth) if growth <= GOAL_BYTES => Verdict::Pass,
            Some(_) => Verdict::Miss,
        }
    }
}

/// Does it by the library, then by the raw calls: whoever is first also pays for what the process keeps afterwards.
///
/// # Errors
/// A call failed.
pub(in crate::cli) async fn measure(context: &Context<'_>, work: MemoryWork) -> Result<(Reading, Reading)> {
    match work {
        MemoryWork::Output => measure_output(context).await,
        MemoryWork::Copy(transfer) => measure_copy(context, transfer).await,
    }
}

async fn measure_copy(context: &Context<'_>, transfer: Transfer) -> Result<(Reading, Reading)> {
    let target = &context.compat;
    transfer.ready(context, target, Side::Ours).await?;
    let memory = Peak::begin();
    let start = Instant::now();
    let output_bytes = transfer.ours(context, target).await?;
    let ours = Reading {
        growth_bytes: memory.growth_bytes(),
        output_bytes,
        return_code: None,
        duration_s: start.elapsed().as_secs_f64(),
    };
    transfer.ready(context, target, Side::Raw).await?;
    let memory = Peak::begin();
    let start = Instant::now();
    transfer.raw(context, target).await?;
    let raw = Reading {
        growth_bytes: memory.growth_bytes(),
        output_bytes: transfer.what.bytes(),
        return_code: None,
        duration_s: start.elapsed().as_secs_f64(),
    };
    Ok((ours, raw))
}

async fn measure_output(context: &Context<'_>) -> Result<(Reading, Reading)> {
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
            before_kib: reset.ok().and_then(|()| resident_kib()),
        }
    }

    fn growth_bytes(&self) -> Option<u64> {
        Some(status_kib("VmHWM")?.saturating_sub(self.before_kib?) << 10)
    }
}

/// What this process needs for each of several things that are open at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Each {
    /// None where the system does not tell.
    pub(in crate::cli) bytes_each: Option<u64>,
    pub(in crate::cli) count: u32,
}

impl Each {
    /// From the memory before (see [`resident_kib`]) to that of now.
    pub(super) fn since(before_kib: Option<u64>, count: u32) -> Self {
        let grown = before_kib
            .zip(resident_kib())
            .map(|(before, now)| now.saturating_sub(before) << 10);
        Self {
            bytes_each: grown.map(|grown| grown / u64::from(count.max(1))),
            count,
        }
    }
}

/// How many sandboxes idle at the same time.
const IDLE: u32 = 16;
const IDLE_QUICK: u32 = 4;

/// Starts sandboxes that do nothing and says what each costs this process.
///
/// # Errors
/// One could not be started or removed.
pub(in crate::cli) async fn measure_idle(context: &Context<'_>) -> Result<Each> {
    let count = if context.is_quick { IDLE_QUICK } else { IDLE };
    let sandbox = || context.left.passing(context.fleet.sandbox(Some("none")));
    let sandboxes: Vec<_> = (0..count).map(|_| sandbox()).collect();
    let before = resident_kib();
    try_join_all(sandboxes.iter().map(|sandbox| sandbox.start())).await?;
    let each = Each::since(before, count);
    context.left.pass(context.raw).await?;
    Ok(each)
}

/// The resident memory of this process. None where the system does not tell.
pub(super) fn resident_kib() -> Option<u64> {
    status_kib("VmRSS")
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
            assert_eq!(
                reading.verdict(MemoryWork::Output.expected()),
                verdict,
                "{reading:?}"
            );
        }
    }
}
