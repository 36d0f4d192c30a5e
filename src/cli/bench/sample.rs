//! Takes turns: a block of each method after the other, in changing order, so that a slow minute hits all of them.

use std::time::Instant;

use futures::future::BoxFuture;
use gym_sandbox::Result;

use super::stats::median;

/// Something that is done again and again.
pub(in crate::cli) type Step<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<()>> + Send + Sync + 'a>;

/// One way to do the measured thing once.
pub(in crate::cli) struct Method<'a> {
    /// What it is called in the table.
    pub(in crate::cli) name: &'static str,
    /// Makes ready what a run needs, outside of its time.
    pub(in crate::cli) ready: Option<Step<'a>>,
    /// Does it once.
    pub(in crate::cli) once: Step<'a>,
}

impl Method<'_> {
    /// Runs it once and says how many seconds it took.
    async fn run(&self) -> Result<f64> {
        if let Some(ready) = &self.ready {
            ready().await?;
        }
        let start = Instant::now();
        (self.once)().await?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Plan {
    /// Runs of each method before the first that counts.
    pub(in crate::cli) warm_up: usize,
    /// How often each method has its turn.
    pub(in crate::cli) blocks: usize,
    /// The same where only a few samples are wanted.
    pub(in crate::cli) quick_blocks: usize,
    /// Runs in one turn.
    pub(in crate::cli) block_length: usize,
}

impl Plan {
    /// The plan of a measurement with a few samples.
    pub(in crate::cli) fn quick(self) -> Self {
        Self {
            blocks: self.quick_blocks.min(self.blocks),
            ..self
        }
    }
}

/// What was measured of one method: its runs in seconds, by block.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Samples {
    pub(in crate::cli) blocks: Vec<Vec<f64>>,
}

impl Samples {
    /// All runs.
    pub(in crate::cli) fn all(&self) -> Vec<f64> {
        self.blocks.concat()
    }

    /// The medians of neighbouring turns of both methods.
    pub(in crate::cli) fn pairs(&self, other: &Self) -> Vec<(f64, f64)> {
        let turns = self.blocks.iter().zip(&other.blocks);
        turns
            .filter_map(|(ours, theirs)| median(ours).zip(median(theirs)))
            .collect()
    }
}

/// Runs the plan; the answer has the methods' order.
///
/// # Errors
/// That of the first run that failed: a method that fails is not measured.
pub(in crate::cli) async fn take(methods: &[Method<'_>], plan: Plan) -> Result<Vec<Samples>> {
    for method in methods {
        for _ in 0..plan.warm_up {
            method.run().await?;
        }
    }
    let mut samples = vec![
        Samples {
            blocks: Vec::with_capacity(plan.blocks)
        };
        methods.len()
    ];
    for block in 0..plan.blocks {
        for turn in 0..methods.len() {
            // Who begins moves on with every block: coming first must not be an advantage.
            let index = (turn + block) % methods.len();
            let mut runs = Vec::with_capacity(plan.block_length);
            for _ in 0..plan.block_length {
                runs.push(methods[index].run().await?);
            }
            samples[index].blocks.push(runs);
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn methods_take_turns_and_the_first_one_changes() {
        let log = Mutex::new(String::new());
        let method = |name: &'static str| Method {
            name,
            ready: None,
            once: Box::new(|| {
                log.lock().unwrap().push_str(name);
                async { Ok(()) }.boxed()
            }),
        };
        let plan = Plan {
            warm_up: 1,
            blocks: 3,
            quick_blocks: 3,
            block_length: 2,
        };
        let samples = take(&[method("a"), method("b")], plan).await.unwrap();
        assert_eq!(*log.lock().unwrap(), "ab aabb bbaa aabb".replace(' ', ""));
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].pairs(&samples[1]).len(), 3);
    }
}
