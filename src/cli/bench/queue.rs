//! Many sandboxes asked for at the same time: the library's own number of creates in flight against every other one.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::try_join_all;
use gym_sandbox::{AsyncSandbox, Error, ErrorKind, Operation, Result};

use super::context::Context;
use super::fleet::agent_sandbox;
use super::report::{Comparison, RowReport};
use super::rows::Amount;
use super::sample::{Method, Plan, Samples, take};
use super::stats::median;

/// At least 0.90 of the best rate, as a ratio of times.
const GOAL: f64 = 1.0 / 0.90;

/// How many are asked for.
const QUEUED: u32 = 32;
const QUEUED_QUICK: u32 = 3;

/// Every number in flight, and what it is called.
const LIMITS: [(usize, &str); 6] = [
    (1, "1 in flight"),
    (2, "2 in flight"),
    (4, "4 in flight"),
    (8, "8 in flight"),
    (16, "16 in flight"),
    (32, "32 in flight"),
];
const LIMITS_QUICK: [(usize, &str); 2] = [(2, "2 in flight"), (4, "4 in flight")];

const PLAN: Plan = Plan {
    warm_up: 1,
    blocks: 8,
    quick_blocks: 2,
    block_length: 1,
};

/// Measures it. One that times out, or fails otherwise, fails the row.
///
/// # Errors
/// A sandbox could not be started or removed.
pub(super) async fn measure(context: &Context<'_>, name: &'static str) -> Result<RowReport> {
    let (queued, limits, plan) = if context.is_quick {
        (QUEUED_QUICK, &LIMITS_QUICK[..], PLAN.quick())
    } else {
        (QUEUED, &LIMITS[..], PLAN)
    };
    let mut methods = vec![method(context, "own", None, queued)];
    methods.extend(
        limits
            .iter()
            .map(|(limit, name)| method(context, name, Some(*limit), queued)),
    );
    let samples = take(&methods, plan).await?;
    context.left.pass(context.raw).await?;
    report(name, &methods, &samples, queued).ok_or_else(|| {
        let text = format!("row `{name}` has no samples");
        Error::new(ErrorKind::Internal, Operation::Create, text)
    })
}

fn method<'a>(context: &'a Context<'_>, name: &'static str, limit: Option<usize>, queued: u32) -> Method<'a> {
    Method {
        name,
        ready: Some(Box::new(|| context.left.pass(context.raw).boxed())),
        once: Box::new(move || {
            async move {
                let provider = context.left.provider(limit)?;
                let sandbox = || {
                    let sandbox = agent_sandbox(&provider, context.fleet.image(), Some("none"));
                    context.left.passing(sandbox)
                };
                let sandboxes: Vec<Arc<AsyncSandbox>> = (0..queued).map(|_| sandbox()).collect();
                let starting = sandboxes.iter().map(|sandbox| sandbox.start());
                try_join_all(starting).await.map(drop)
            }
            .boxed()
        }),
    }
}

/// Ours against whichever was the fastest of the others.
fn report(name: &'static str, methods: &[Method<'_>], samples: &[Samples], queued: u32) -> Option<RowReport> {
    let rates: Vec<(&str, f64)> = methods
        .iter()
        .zip(samples)
        .filter_map(|(method, samples)| Some((method.name, f64::from(queued) / median(&samples.all())?)))
        .collect();
    let best = (1..rates.len()).max_by(|&one, &other| rates[one].1.total_cmp(&rates[other].1))?;
    let compared = Comparison {
        ours: samples.first()?,
        theirs: Some(samples.get(best)?),
        baseline: format!("best: {}", rates[best].0),
        goal: GOAL,
        amount: Amount::Execs(queued),
    };
    let rates: Vec<String> = rates
        .iter()
        .map(|(name, rate)| format!("{name} {rate:.2}/s"))
        .collect();
    let report = RowReport::of_pair(name, compared)?;
    Some(report.with_note(format!("{queued} queued, all started; {}", rates.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_stands_against_the_fastest_other_number() {
        let method = |name| Method {
            name,
            ready: None,
            once: Box::new(|| async { Ok(()) }.boxed()),
        };
        let methods = ["own", "1 in flight", "2 in flight", "4 in flight"].map(method);
        let samples = [4.0, 8.0, 4.0, 5.0].map(|seconds| Samples {
            blocks: vec![vec![seconds]; 3],
        });
        let report = report("queue", &methods, &samples, 32).unwrap();
        let value = serde_json::to_value(report).unwrap();
        assert_eq!(value["baseline"], "best: 2 in flight");
        assert_eq!(
            (&value["ratio"], &value["verdict"]),
            (&1.0.into(), &"pass".into())
        );
        assert_eq!(
            value["note"],
            "32 queued, all started; own 8.00/s, 1 in flight 4.00/s, 2 in flight 8.00/s, 4 in flight 6.40/s"
        );
    }
}
