//! `bench`: measures the rows in one sandbox and prints them with their verdicts.

use std::sync::Arc;

use gym_sandbox::docker::{DockerProvider, DockerRaw};
use gym_sandbox::{AsyncSandbox, Error, ErrorKind, Operation, Result, SandboxSpec};

use crate::cli::bench::Machine;
use crate::cli::bench::raw::RawEngine;
use crate::cli::bench::report::{BenchReport, RowReport};
use crate::cli::bench::rows::{Context, DockerCli, ROWS, Row, baseline_failed};
use crate::cli::bench::sample::{Plan, take};
use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{BenchRequest, Effort};
use crate::cli::session::{Afterwards, Outcome, blocking, with_sandbox};

/// Measures and prints; a goal that is certainly missed is a failure.
///
/// # Errors
/// A filter that fits no row, no engine, or a method that failed.
pub(in crate::cli) async fn run(request: BenchRequest) -> Result<u8> {
    let BenchRequest {
        config,
        image,
        filter,
        effort,
        format,
    } = request;
    let rows: Vec<&Row> = ROWS
        .iter()
        .filter(|row| filter.as_deref().is_none_or(|filter| row.name.contains(filter)))
        .collect();
    if rows.is_empty() {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        return Err(
            Error::invalid(Operation::Configure, "no row has a name with this text in it")
                .with_hint(format!("rows are: {}", names.join(", "))),
        );
    }
    let provider = DockerProvider::new(config)?;
    let engine = provider.diagnose().await?;
    let sandbox = AsyncSandbox::owning(Arc::new(provider)).with_spec(SandboxSpec::new(image));
    let address = engine.address.clone();
    let outcome = with_sandbox(sandbox, Afterwards::Remove, async |sandbox| {
        let raw = RawEngine::connect(&address)
            .await
            .map_err(|error| baseline_failed(Operation::Connect, error))?;
        let context = Context {
            sandbox,
            raw,
            container: container(sandbox)?,
            address: address.clone(),
            cli: DockerCli::find().await,
        };
        let mut reports = Vec::with_capacity(rows.len());
        for row in rows {
            output::note(&format!("measuring {}", row.name));
            reports.push(measure(&context, row, effort).await?);
        }
        Ok(reports)
    })
    .await?;
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
        machine: Machine::this(),
        engine: output::engine_line(&engine),
        rows,
    };
    blocking(move || match format {
        Format::Json => output::json(&report),
        Format::Text => output::data(report.text().as_bytes()),
    })
    .await?;
    Ok(code)
}

async fn measure(context: &Context<'_>, row: &Row, effort: Effort) -> Result<RowReport> {
    let plan = match effort {
        Effort::Full => row.plan,
        Effort::Quick => Plan {
            blocks: row.plan.blocks.min(6),
            ..row.plan
        },
    };
    let methods = (row.methods)(context);
    let samples = take(&methods, plan).await?;
    RowReport::new(row, &methods, &samples).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            Operation::Exec,
            format!("row `{}` has no samples", row.name),
        )
    })
}

fn container(sandbox: &AsyncSandbox) -> Result<String> {
    sandbox
        .handle()
        .and_then(|handle| Some(handle.raw::<DockerRaw>()?.container_id.clone()))
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                Operation::Exec,
                "the sandbox has no container",
            )
        })
}
