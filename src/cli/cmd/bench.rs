//! `bench`: measures the rows in two sandboxes and prints them with their verdicts.

use std::sync::{Arc, Mutex, PoisonError};

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::{AsyncSandbox, Error, Operation, Result, SandboxProvider, SandboxSpec};

use crate::cli::bench::Machine;
use crate::cli::bench::context::{Context, DockerCli, Target, baseline_failed};
use crate::cli::bench::copies::Room;
use crate::cli::bench::creation::Made;
use crate::cli::bench::docker_compose::DockerCompose;
use crate::cli::bench::fleet::Fleet;
use crate::cli::bench::left::Left;
use crate::cli::bench::measure::measure;
use crate::cli::bench::project::Upped;
use crate::cli::bench::raw::RawEngine;
use crate::cli::bench::report::{BenchReport, RowReport};
use crate::cli::bench::rows::{ROWS, Row};
use crate::cli::bench::scratch::Scratch;
use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{BenchRequest, Effort};
use crate::cli::session::{Afterwards, Outcome, blocking, until_interrupted, with_sandbox};

/// Measures and prints; a goal that is certainly missed is a failure. What is measured when a signal or an error ends it
/// is printed, too.
///
/// # Errors
/// A filter that fits no row, no engine, or a method that failed.
pub(in crate::cli) async fn run(request: BenchRequest) -> Result<u8> {
    let rows = chosen(request.filter.as_deref(), request.effort)?;
    let provider = DockerProvider::new(request.config.clone())?;
    let engine = provider.diagnose().await?;
    let machine = Machine::this();
    let raw = RawEngine::connect(&engine.address)
        .await
        .map_err(|error| baseline_failed(Operation::Connect, error))?;
    let reports = Mutex::new(Vec::new());
    let left = Left::new(request.config);
    let bench = Bench {
        raw: &raw,
        left: &left,
        image: request.image,
        address: engine.address.clone(),
        processors: engine.cpus,
        networks_free: engine.networks_free,
        rows,
        effort: request.effort,
        reports: &reports,
    };
    let outcome = Box::pin(bench.measure_all(Arc::new(provider))).await;
    let outcome = match (outcome, until_interrupted(Box::pin(left.end(&raw))).await) {
        (Err(error), Err(cleanup)) => Err(error.with_cleanup_error(cleanup)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Ok(_), Ok(Outcome::Interrupted(interrupt))) => {
            output::note("interrupted again: a part of what was measured may be left");
            Ok(Outcome::Interrupted(interrupt))
        }
        (Ok(outcome), Ok(Outcome::Ended(()))) => Ok(outcome),
    };
    let rows = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    let is_complete = matches!(outcome, Ok(Outcome::Ended(())));
    let code = match &outcome {
        Ok(Outcome::Interrupted(interrupt)) => interrupt.exit_code(),
        _ if rows.iter().any(RowReport::is_miss) => exit::FAILURE,
        _ => exit::SUCCESS,
    };
    if is_complete || !rows.is_empty() {
        let report = BenchReport {
            machine,
            engine: output::engine_line(&engine),
            rows,
            complete: is_complete,
        };
        blocking(move || match request.format {
            Format::Json => output::json(&report),
            Format::Text => output::data(report.text().as_bytes()),
        })
        .await?;
    }
    outcome.map(|_| code)
}

/// The rows to measure. A long one is measured when it is asked for: by effort, or by a part of its name.
fn chosen(filter: Option<&str>, effort: Effort) -> Result<Vec<&'static Row>> {
    let rows: Vec<&Row> = ROWS
        .iter()
        .filter(|row| match filter {
            Some(filter) => row.name.contains(filter),
            None => !row.is_long() || effort == Effort::Long,
        })
        .collect();
    if rows.is_empty() {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        return Err(
            Error::invalid(Operation::Configure, "no row has a name with this text in it")
                .with_hint(format!("rows are: {}", names.join(", "))),
        );
    }
    Ok(rows)
}

/// What is measured, and with what.
struct Bench<'a> {
    raw: &'a RawEngine,
    left: &'a Left,
    image: String,
    address: String,
    processors: Option<u32>,
    networks_free: u64,
    rows: Vec<&'static Row>,
    effort: Effort,
    /// What is measured so far: it outlives whatever ends the measurement.
    reports: &'a Mutex<Vec<RowReport>>,
}

impl Bench<'_> {
    async fn measure_all(self, docker: Arc<DockerProvider>) -> Result<Outcome<()>> {
        let provider: Arc<dyn SandboxProvider> = Arc::clone(&docker) as _;
        let sandbox = |spec: &SandboxSpec| AsyncSandbox::new(Arc::clone(&provider)).with_spec(spec.clone());
        let by_agent = SandboxSpec::new(&self.image).with_provider_option("exec_path", "agent");
        let spec = by_agent.clone().with_provider_option("exec_path", "engine");
        let hardened = |spec: &SandboxSpec| sandbox(&spec.clone().with_provider_option("preset", "hardened"));
        let others = [sandbox(&by_agent), hardened(&by_agent), hardened(&spec)];
        // The outer one owns the provider: its end waits for whatever a signal left to the background.
        let compat = AsyncSandbox::owning(Arc::clone(&provider)).with_spec(spec);
        let [agent, agent_hardened, hardened] = others;
        let outcome = with_sandbox(compat, Afterwards::Remove, async |compat| {
            let outcome = with_sandbox(agent, Afterwards::Remove, async |agent| {
                let outcome = with_sandbox(agent_hardened, Afterwards::Remove, async |agent_hardened| {
                    let measuring = with_sandbox(hardened, Afterwards::Remove, async |hardened| {
                        let context = Context {
                            compat: Target::of(compat)?,
                            hardened: Target::of(hardened)?,
                            agent: Target::of(agent)?,
                            agent_hardened: Target::of(agent_hardened)?,
                            fleet: Fleet::new(docker, self.image.clone()),
                            made: Made::default(),
                            left: self.left,
                            raw: self.raw,
                            address: self.address.clone(),
                            cli: DockerCli::find().await,
                            upped: Upped::default(),
                            room: Room::new(self.processors, self.networks_free),
                            docker_compose: DockerCompose::find().await,
                            scratch: Scratch::new().await?,
                            is_quick: self.effort == Effort::Quick,
                        };
                        Box::pin(self.measure_rows(context)).await
                    });
                    Box::pin(measuring).await
                });
                Box::pin(outcome).await.map(flat)
            });
            Box::pin(outcome).await.map(flat)
        });
        Box::pin(outcome).await.map(flat)
    }

    async fn measure_rows(&self, context: Context<'_>) -> Result<()> {
        let measured = async {
            for row in &self.rows {
                output::note(&format!("measuring {}", row.name));
                let measured = measure(&context, row).await?;
                let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
                reports.extend(measured);
            }
            Ok(())
        }
        .await;
        let removed = context.made.remove(&context).await;
        let ended = context.fleet.end().await;
        measured.and(removed).and(ended)
    }
}

fn flat<T>(outcome: Outcome<Outcome<T>>) -> Outcome<T> {
    match outcome {
        Outcome::Ended(outcome) => outcome,
        Outcome::Interrupted(interrupt) => Outcome::Interrupted(interrupt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_row_is_measured_only_when_asked_for() {
        let names = |filter, effort| -> Vec<&str> {
            let rows = chosen(filter, effort).unwrap();
            rows.iter().map(|row| row.name).collect()
        };
        let long = "exec engine output 5 GB under a 1 MiB cap";
        for effort in [Effort::Full, Effort::Quick] {
            assert!(!names(None, effort).contains(&long), "{effort:?}");
        }
        assert!(names(None, Effort::Long).contains(&long));
        assert_eq!(names(Some("5 GB"), Effort::Full), [long]);
        assert!(chosen(Some("no such row"), Effort::Long).is_err());
    }
}
