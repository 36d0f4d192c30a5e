//! Measures one row with what is there. Most give one line of the report, some several.

use gym_sandbox::{Error, ErrorKind, Operation, Result};

use super::context::Context;
use super::report::RowReport;
use super::rows::{Measured, Row, TimeRow};
use super::sample::take;
use super::{compose_config, latency, memory, processor, queue};

/// Measures it.
///
/// # Errors
/// A method failed: one that fails is not measured.
pub(in crate::cli) async fn measure(context: &Context<'_>, row: &'static Row) -> Result<Vec<RowReport>> {
    let name = row.name;
    let report = match &row.measured {
        Measured::Time(time) => times(context, name, time).await?,
        Measured::Memory(work) => {
            let (ours, raw) = memory::measure(context, *work).await?;
            RowReport::of_memory(name, ours, raw, work.expected())
        }
        Measured::Processor(in_flight) => {
            let (ours, raw) = processor::measure(context, *in_flight).await?;
            RowReport::of_processor(name, ours, raw)
        }
        Measured::Terminals => {
            let echo = latency::measure(context).await?;
            let each = RowReport::of_each("memory per open terminal", echo.each);
            return Ok(vec![sampled(name, RowReport::of_echo(name, &echo))?, each]);
        }
        Measured::ComposeConfig(files) => return compose_config::measure(context, *files).await,
        Measured::Queue => queue::measure(context, name).await?,
        Measured::Idle => RowReport::of_each(name, memory::measure_idle(context).await?),
    };
    Ok(vec![report])
}

async fn times(context: &Context<'_>, name: &'static str, row: &TimeRow) -> Result<RowReport> {
    let plan = if context.is_quick {
        row.plan.quick()
    } else {
        row.plan
    };
    let methods = row.methods(context);
    let samples = take(&methods, plan).await?;
    let report = sampled(name, RowReport::of_times(name, row, &methods, &samples))?;
    Ok(match row.note(context) {
        Some(note) => report.with_note(note),
        None => report,
    })
}

/// The report, which only a row without samples lacks.
fn sampled(name: &str, report: Option<RowReport>) -> Result<RowReport> {
    report.ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            Operation::Exec,
            format!("row `{name}` has no samples"),
        )
    })
}
