//! How much a container uses: the engine's numbers in neutral terms (engine-facts S23).

use async_trait::async_trait;
use bollard::models::{ContainerBlkioStatEntry, ContainerMemoryStats, ContainerStatsResponse};
use bollard::query_parameters::StatsOptionsBuilder;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::{SandboxHandle, StatsProvider};
use crate::spec::{SandboxId, SandboxStats, SandboxStatus};

use super::failure::{EngineFailure, QUICK};
use super::status::{hint_for, removed, status_of};
use super::{DockerProvider, DockerRaw, PROVIDER};

#[async_trait]
impl StatsProvider for DockerProvider {
    async fn stats(&self, handle: &SandboxHandle) -> Result<BoxStream<'static, Result<SandboxStats>>> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Stats)?;
        // The engine answers 200 with zeros for a container that does not run.
        self.check_running(&raw.container_id)
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))?;
        let client = self.engine().await?.client.clone();
        let options = StatsOptionsBuilder::new().stream(true).build();
        let measuring = Measuring {
            samples: client.stats(&raw.container_id, Some(options)).boxed(),
            before: None,
            sandbox_id: handle.sandbox_id().clone(),
            ended: false,
        };
        Ok(stream::unfold(measuring, |mut measuring| async {
            let next = measuring.next().await?;
            Some((next, measuring))
        })
        .boxed())
    }
}

impl DockerProvider {
    async fn check_running(&self, container_id: &str) -> Result<()> {
        let inspected = self.look_at(container_id, Operation::Stats).await?;
        match status_of(inspected.state.as_ref()) {
            SandboxStatus::Running | SandboxStatus::Paused => Ok(()),
            status => Err(Error::new(
                ErrorKind::Sandbox(SandboxReason::NotRunning),
                Operation::Stats,
                format!("the sandbox is {status}"),
            )
            .with_hint(hint_for(SandboxReason::NotRunning))),
        }
    }
}

struct Measuring {
    samples: BoxStream<'static, Result<ContainerStatsResponse, bollard::errors::Error>>,
    before: Option<Cpu>,
    sandbox_id: SandboxId,
    ended: bool,
}

impl Measuring {
    async fn next(&mut self) -> Option<Result<SandboxStats>> {
        if self.ended {
            return None;
        }
        // A sample comes each second; an engine that is silent for so long hangs.
        let sample = match tokio::time::timeout(QUICK, self.samples.next()).await {
            Ok(Some(Ok(sample))) => sample,
            Ok(Some(Err(error))) => return Some(self.fail(error.into())),
            Ok(None) => return None,
            Err(_) => return Some(self.fail(EngineFailure::Deadline(QUICK))),
        };
        if is_of_an_ended_one(&sample) {
            self.ended = true;
            return None;
        }
        let cpu = Cpu::of(&sample);
        let stats = stats_of(sample, self.before, cpu);
        self.before = cpu;
        Some(Ok(stats))
    }

    fn fail(&mut self, failure: EngineFailure) -> Result<SandboxStats> {
        self.ended = true;
        Err(stats_error(failure).with_sandbox(&self.sandbox_id))
    }
}

fn stats_error(failure: EngineFailure) -> Error {
    if failure.is_status(404) {
        return removed(Operation::Stats);
    }
    failure.into_error(
        Operation::Stats,
        "the engine did not measure the sandbox",
        ErrorKind::Internal,
    )
}

/// A container that has ended is measured as zeros, at no time.
fn is_of_an_ended_one(sample: &ContainerStatsResponse) -> bool {
    sample.read.as_ref().is_none_or(|read| read.starts_with("0001-"))
}

/// What the use of processors is computed from, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cpu {
    used: u64,
    /// Of all processors of the machine together.
    system: u64,
    processors: u32,
}

impl Cpu {
    fn of(sample: &ContainerStatsResponse) -> Option<Self> {
        let stats = sample.cpu_stats.as_ref()?;
        let usage = stats.cpu_usage.as_ref()?;
        let listed = usage
            .percpu_usage
            .as_ref()
            .and_then(|each| u32::try_from(each.len()).ok());
        Some(Self {
            used: usage.total_usage?,
            system: stats.system_cpu_usage?,
            processors: stats.online_cpus.filter(|&online| online > 0).or(listed)?,
        })
    }

    /// Processors in use between two samples. None when no time passed, or the counters began anew.
    #[expect(clippy::cast_precision_loss, reason = "a share needs no exact nanoseconds")]
    fn since(self, before: Self) -> Option<f64> {
        let used = self.used.checked_sub(before.used)?;
        let system = self
            .system
            .checked_sub(before.system)
            .filter(|&system| system > 0)?;
        Some(used as f64 / system as f64 * f64::from(self.processors))
    }
}

fn stats_of(sample: ContainerStatsResponse, before: Option<Cpu>, cpu: Option<Cpu>) -> SandboxStats {
    let mut stats = SandboxStats::default();
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds with as many digits as a float has"
    )]
    if let Some(cpu) = cpu {
        stats.cpu_seconds = Some(cpu.used as f64 / 1e9);
        stats.cpus_used = before.and_then(|before| cpu.since(before));
    }
    stats.read_at = sample.read;
    if let Some(memory) = sample.memory_stats {
        stats.memory_bytes = used_memory(&memory);
        stats.memory_limit_bytes = memory.limit;
    }
    if let Some(pids) = sample.pids_stats {
        stats.pids = pids.current;
        stats.pids_limit = pids.limit.filter(|&limit| limit > 0);
    }
    let blocks = sample
        .blkio_stats
        .and_then(|blocks| blocks.io_service_bytes_recursive);
    if let Some(blocks) = blocks {
        stats.block_read_bytes = Some(operations(&blocks, "read"));
        stats.block_write_bytes = Some(operations(&blocks, "write"));
    }
    if let Some(networks) = sample.networks {
        let sum = |count: fn(&bollard::models::ContainerNetworkStats) -> Option<u64>| {
            networks.values().filter_map(count).fold(0, u64::saturating_add)
        };
        stats.network_received_bytes = Some(sum(|network| network.rx_bytes));
        stats.network_sent_bytes = Some(sum(|network| network.tx_bytes));
    }
    stats
}

/// Without the file cache that the kernel would drop first, as the docker command counts it.
fn used_memory(memory: &ContainerMemoryStats) -> Option<u64> {
    let usage = memory.usage?;
    let cache = memory
        .stats
        .as_ref()
        .and_then(|stats| {
            // The names of control groups v1 and v2.
            ["total_inactive_file", "inactive_file"]
                .iter()
                .find_map(|name| stats.get(*name))
        })
        .copied()
        .unwrap_or_default();
    Some(usage.saturating_sub(cache))
}

fn operations(entries: &[ContainerBlkioStatEntry], operation: &str) -> u64 {
    entries
        .iter()
        .filter(|entry| {
            entry
                .op
                .as_deref()
                .is_some_and(|op| op.eq_ignore_ascii_case(operation))
        })
        .filter_map(|entry| entry.value)
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sample(value: Value) -> ContainerStatsResponse {
        serde_json::from_value(value).unwrap()
    }

    fn at(used: u64, system: u64) -> Value {
        json!({
            "read": "2026-11-30T11:00:00.5Z",
            "cpu_stats": {"cpu_usage": {"total_usage": used}, "system_cpu_usage": system, "online_cpus": 4},
        })
    }

    #[test]
    fn processors_are_counted_between_two_samples() {
        let cpu = |used, system| Cpu::of(&sample(at(used, system))).unwrap();
        // Half of the time of four processors is two of them.
        assert_eq!(cpu(300, 1400).since(cpu(100, 1000)), Some(2.0));
        assert_eq!(cpu(100, 1400).since(cpu(100, 1000)), Some(0.0));
        assert_eq!(cpu(200, 1000).since(cpu(100, 1000)), None, "no time passed");
        assert_eq!(cpu(50, 1400).since(cpu(100, 1000)), None, "started anew");
        assert_eq!(Cpu::of(&sample(json!({"read": "2026-11-30T11:00:00Z"}))), None);
    }

    #[test]
    fn the_engines_numbers_become_neutral_ones() {
        let mut value = at(2_500_000_000, 7);
        value["memory_stats"] = json!({"usage": 1000, "limit": 4096, "stats": {"inactive_file": 300}});
        value["pids_stats"] = json!({"current": 3, "limit": 10});
        value["blkio_stats"] = json!({"io_service_bytes_recursive": [
            {"major": 8, "minor": 0, "op": "Read", "value": 10},
            {"major": 8, "minor": 16, "op": "read", "value": 5},
            {"major": 8, "minor": 0, "op": "Write", "value": 7},
            {"major": 8, "minor": 0, "op": "Total", "value": 17},
        ]});
        value["networks"] = json!({
            "eth0": {"rx_bytes": 1, "tx_bytes": 2},
            "eth1": {"rx_bytes": 10, "tx_bytes": 20},
        });
        let sample = sample(value);
        let cpu = Cpu::of(&sample);
        let stats = stats_of(sample, None, cpu);
        assert_eq!((stats.cpu_seconds, stats.cpus_used), (Some(2.5), None));
        assert_eq!(
            (stats.memory_bytes, stats.memory_limit_bytes),
            (Some(700), Some(4096))
        );
        assert_eq!((stats.pids, stats.pids_limit), (Some(3), Some(10)));
        assert_eq!(
            (stats.block_read_bytes, stats.block_write_bytes),
            (Some(15), Some(7))
        );
        assert_eq!(
            (stats.network_received_bytes, stats.network_sent_bytes),
            (Some(11), Some(22))
        );
    }

    #[test]
    fn what_the_engine_does_not_say_stays_unknown() {
        let stats = stats_of(sample(json!({"read": "2026-11-30T11:00:00Z"})), None, None);
        assert_eq!(
            SandboxStats {
                read_at: None,
                ..stats
            },
            SandboxStats::default()
        );
    }

    #[test]
    fn zeros_of_an_ended_container_are_no_sample() {
        assert!(is_of_an_ended_one(&sample(
            json!({"read": "0001-01-01T00:00:00Z"})
        )));
        assert!(is_of_an_ended_one(&sample(json!({}))));
        assert!(!is_of_an_ended_one(&sample(at(1, 1))));
    }
}
