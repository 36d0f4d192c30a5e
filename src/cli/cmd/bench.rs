//! `bench`: measures the rows and prints them with their verdicts.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::try_join_all;
use gym_sandbox::{AsyncSandbox, Error, Operation, Result, SandboxProvider, SandboxSpec};

use crate::cli::bench::Machine;
use crate::cli::bench::context::{Context, DockerCli, Target, baseline_failed};
use crate::cli::bench::copies::Room;
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
use crate::cli::session::{Outcome, blocking, until_interrupted};

/// Measures and prints; a goal that is certainly missed is a failure. What is measured when a signal or an error ends it
/// is printed, too.
///
/// # Errors
/// A filter that fits no row, no engine, or a method that failed.
pub(in crate::cli) async fn run(request: BenchRequest) -> Result<u8> {
    let rows = chosen(request.filter.as_deref(), request.effort)?;
    let left = Left::new(request.config);
    let provider = left.provider(None)?;
    let engine = provider.diagnose().await?;
    let machine = Machine::this();
    let raw = RawEngine::connect(&engine.address)
        .await
        .map_err(|error| baseline_failed(Operation::Connect, error))?;
    let standing = Standing::new(&left, &request.image)?;
    let reports = Mutex::new(Vec::new());
    let measuring = async {
        standing.start().await?;
        let context = Context {
            compat: Target::of(&standing.compat)?,
            hardened: Target::of(&standing.hardened)?,
            agent: Target::of(&standing.agent)?,
            agent_hardened: Target::of(&standing.agent_hardened)?,
            fleet: Fleet::new(provider, request.image),
            left: &left,
            raw: &raw,
            address: engine.address.clone(),
            cli: DockerCli::find().await,
            upped: Upped::default(),
            room: Room::new(engine.cpus),
            docker_compose: DockerCompose::find().await,
            scratch: Scratch::new().await?,
            is_quick: request.effort == Effort::Quick,
        };
        Box::pin(measure_all(context, rows, &reports)).await
    };
    let outcome = until_interrupted(Box::pin(measuring)).await;
    let ended = until_interrupted(Box::pin(left.end(&raw))).await;
    let outcome = with_end(outcome, ended);
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

/// How the measurement and the removal of what it made went together.
fn with_end(outcome: Result<Outcome<()>>, ended: Result<Outcome<()>>) -> Result<Outcome<()>> {
    match (outcome, ended) {
        (Err(error), Err(cleanup)) => Err(error.with_cleanup_error(cleanup)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Ok(_), Ok(Outcome::Interrupted(interrupt))) => {
            output::note("interrupted again: a part of what was measured may be left");
            Ok(Outcome::Interrupted(interrupt))
        }
        (Ok(outcome), Ok(Outcome::Ended(()))) => Ok(outcome),
    }
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

/// The sandboxes that rows share, which are not started yet.
struct Standing {
    compat: Arc<AsyncSandbox>,
    hardened: Arc<AsyncSandbox>,
    agent: Arc<AsyncSandbox>,
    agent_hardened: Arc<AsyncSandbox>,
}

impl Standing {
    fn new(left: &Left, image: &str) -> Result<Self> {
        let docker = left.provider(None)?;
        let provider: Arc<dyn SandboxProvider> = docker;
        let sandbox = |path: &str, preset: Option<&str>| {
            let mut spec = SandboxSpec::new(image).with_provider_option("exec_path", path);
            if let Some(preset) = preset {
                spec = spec.with_provider_option("preset", preset);
            }
            left.standing(AsyncSandbox::new(Arc::clone(&provider)).with_spec(spec))
        };
        Ok(Self {
            compat: sandbox("engine", None),
            hardened: sandbox("engine", Some("hardened")),
            agent: sandbox("agent", None),
            agent_hardened: sandbox("agent", Some("hardened")),
        })
    }

    async fn start(&self) -> Result<()> {
        let all = [&self.compat, &self.hardened, &self.agent, &self.agent_hardened];
        try_join_all(all.map(|sandbox| sandbox.start())).await.map(drop)
    }
}

/// Measures the rows one after the other; what is measured is there whatever ends this.
async fn measure_all(
    context: Context<'_>,
    rows: Vec<&'static Row>,
    reports: &Mutex<Vec<RowReport>>,
) -> Result<()> {
    for row in rows {
        output::note(&format!("measuring {}", row.name));
        let measured = measure(&context, row).await?;
        let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.extend(measured);
    }
    Ok(())
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
