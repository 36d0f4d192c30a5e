//! `bench`: measures the rows in two sandboxes and prints them with their verdicts.

use std::sync::Arc;

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::{AsyncSandbox, Error, ErrorKind, Operation, Result, SandboxProvider, SandboxSpec};

use crate::cli::bench::context::{Context, DockerCli, Target, baseline_failed};
use crate::cli::bench::creation::Made;
use crate::cli::bench::fleet::Fleet;
use crate::cli::bench::raw::RawEngine;
use crate::cli::bench::report::{BenchReport, RowReport};
use crate::cli::bench::rows::{Measured, ROWS, Row, TimeRow};
use crate::cli::bench::sample::{Plan, take};
use crate::cli::bench::scratch::Scratch;
use crate::cli::bench::{Machine, memory, processor};
use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{BenchRequest, Effort};
use crate::cli::session::{Afterwards, Outcome, blocking, with_sandbox};

/// Measures and prints; a goal that is certainly missed is a failure.
///
/// # Errors
/// A filter that fits no row, no engine, or a method that failed.
pub(in crate::cli) async fn run(request: BenchRequest) -> Result<u8> {
    let rows = chosen(request.filter.as_deref(), request.effort)?;
    let provider = DockerProvider::new(request.config)?;
    let engine = provider.diagnose().await?;
    let machine = Machine::this();
    let address = engine.address.clone();
    let provider = Arc::new(provider);
    let measuring = measure_all(provider, request.image, address, rows, request.effort);
    let outcome = Box::pin(measuring).await?;
    let rows = match outcome {
        Outcome::Ended(rows) => rows,
        Outcome::Interrupted(interrupt) => return Ok(interrupt.exit_code()),
    };
    let code = if rows.iter().any(RowReport::is_miss) {
        exit::FAILURE
    } else {
        exit::SUCCESS
    };
    let report = BenchReport {
        machine,
        engine: output::engine_line(&engine),
        rows,
    };
    blocking(move || match request.format {
        Format::Json => output::json(&report),
        Format::Text => output::data(report.text().as_bytes()),
    })
    .await?;
    Ok(code)
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

async fn measure_all(
    docker: Arc<DockerProvider>,
    image: String,
    address: String,
    rows: Vec<&'static Row>,
    effort: Effort,
) -> Result<Outcome<Vec<RowReport>>> {
    let provider: Arc<dyn SandboxProvider> = Arc::clone(&docker) as _;
    let sandbox = |spec: &SandboxSpec| AsyncSandbox::new(Arc::clone(&provider)).with_spec(spec.clone());
    let by_agent = SandboxSpec::new(&image).with_provider_option("exec_path", "agent");
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
                    let raw = RawEngine::connect(&address)
                        .await
                        .map_err(|error| baseline_failed(Operation::Connect, error))?;
                    let context = Context {
                        compat: Target::of(compat)?,
                        hardened: Target::of(hardened)?,
                        agent: Target::of(agent)?,
                        agent_hardened: Target::of(agent_hardened)?,
                        fleet: Fleet::new(docker, image),
                        made: Made::default(),
                        raw,
                        address: address.clone(),
                        cli: DockerCli::find().await,
                        scratch: Scratch::new().await?,
                    };
                    Box::pin(measure_rows(context, rows, effort)).await
                });
                Box::pin(measuring).await
            });
            Box::pin(outcome).await.map(flat)
        });
        Box::pin(outcome).await.map(flat)
    });
    Box::pin(outcome).await.map(flat)
}

async fn measure_rows(
    context: Context<'_>,
    rows: Vec<&'static Row>,
    effort: Effort,
) -> Result<Vec<RowReport>> {
    let measured = async {
        let mut reports = Vec::with_capacity(rows.len());
        for row in rows {
            output::note(&format!("measuring {}", row.name));
            reports.push(measure(&context, row, effort).await?);
        }
        Ok(reports)
    }
    .await;
    let removed = context.made.remove(&context).await;
    let ended = context.fleet.end().await;
    let reports = measured?;
    removed.and(ended)?;
    Ok(reports)
}

fn flat<T>(outcome: Outcome<Outcome<T>>) -> Outcome<T> {
    match outcome {
        Outcome::Ended(outcome) => outcome,
        Outcome::Interrupted(interrupt) => Outcome::Interrupted(interrupt),
    }
}

async fn measure(context: &Context<'_>, row: &'static Row, effort: Effort) -> Result<RowReport> {
    match &row.measured {
        Measured::Time(time) => measure_times(context, row.name, time, effort).await,
        Measured::Memory(work) => {
            let (ours, raw) = memory::measure(context, *work).await?;
            Ok(RowReport::of_memory(row.name, ours, raw, work.expected()))
        }
        Measured::Processor => {
            let (ours, raw) = processor::measure(context, effort == Effort::Quick).await?;
            Ok(RowReport::of_processor(row.name, ours, raw))
        }
    }
}

async fn measure_times(
    context: &Context<'_>,
    name: &'static str,
    row: &TimeRow,
    effort: Effort,
) -> Result<RowReport> {
    let plan = match effort {
        Effort::Full | Effort::Long => row.plan,
        Effort::Quick => Plan {
            blocks: row.plan.blocks.min(6),
            ..row.plan
        },
    };
    let methods = row.methods(context);
    let samples = take(&methods, plan).await?;
    RowReport::of_times(name, row, &methods, &samples).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            Operation::Exec,
            format!("row `{name}` has no samples"),
        )
    })
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
