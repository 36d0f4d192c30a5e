//! `prefetch`: sees to it that images are on the engine, with progress on a terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::Traced;
use gym_sandbox::{
    Error, ImageDetail, ImageEvent, LayerState, Operation, PrefetchCallback, PrefetchOptions, Prefetched,
    Result, SandboxProvider,
};
use serde::Serialize;

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::PrefetchRequest;
use crate::cli::session::{Outcome, blocking, until_interrupted};

/// How often the progress line is written.
const TICK: Duration = Duration::from_millis(200);

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    images: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    image: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Pulls what is missing, and prints what became of each image; one that can't be had is an error of its own.
///
/// # Errors
/// The engine can't be reached, a reference is none, or the output can't be written.
pub(in crate::cli) async fn run(request: PrefetchRequest) -> Result<u8> {
    let provider = Traced::new(Arc::new(DockerProvider::connect(request.config).await?));
    let images = provider
        .as_images()
        .ok_or_else(|| Error::unsupported(Operation::Image, provider.name(), "images"))?;
    let mut options = PrefetchOptions::default();
    options.progress = progress();
    let outcome = until_interrupted(images.prefetch_images(&request.images, &options)).await;
    output::progress_done();
    let outcomes = match outcome? {
        Outcome::Ended(outcomes) => outcomes,
        Outcome::Interrupted(interrupt) => return Ok(interrupt.exit_code()),
    };
    let mut code = exit::SUCCESS;
    let mut rows = Vec::new();
    for (image, outcome) in request.images.into_iter().zip(outcomes) {
        if let Prefetched::Failed(error) = &outcome {
            output::error(error);
            code = exit::FAILURE;
        }
        rows.push(row(image, outcome));
    }
    blocking(move || match request.format {
        Format::Json => output::json(&Report { images: rows }),
        Format::Text => {
            let cells: Vec<Vec<String>> = rows
                .into_iter()
                .map(|row| vec![row.image, row.outcome.to_owned()])
                .collect();
            output::data(output::table(&cells).as_bytes())
        }
    })
    .await?;
    Ok(code)
}

fn row(image: String, outcome: Prefetched) -> Row {
    let there = |image, outcome, detail: ImageDetail| Row {
        image,
        outcome,
        id: Some(detail.id),
        size_bytes: Some(detail.size_bytes),
        error: None,
    };
    match outcome {
        Prefetched::Present(detail) => there(image, "present", detail),
        Prefetched::Pulled(detail) => there(image, "pulled", detail),
        Prefetched::Failed(error) => Row {
            image,
            outcome: "failed",
            id: None,
            size_bytes: None,
            error: Some(error.to_string()),
        },
        _ => Row {
            image,
            outcome: "unknown",
            id: None,
            size_bytes: None,
            error: None,
        },
    }
}

/// How far all images together are.
#[derive(Default)]
struct Progress {
    /// Of each layer: bytes that have come, bytes that there are, whether it is complete.
    layers: BTreeMap<(usize, String), (u64, u64, bool)>,
    waiting: bool,
    shown: Option<Instant>,
}

impl Progress {
    fn note(&mut self, image: usize, event: &ImageEvent) {
        self.waiting = matches!(event, ImageEvent::Waiting(_));
        let ImageEvent::Layer {
            id,
            state,
            current_bytes,
            total_bytes,
            ..
        } = event
        else {
            return;
        };
        let (done, total, complete) = self.layers.entry((image, id.clone())).or_default();
        match state {
            LayerState::Downloading => {
                *done = *current_bytes;
                *total = total_bytes.unwrap_or(*total).max(*current_bytes);
            }
            LayerState::Downloaded | LayerState::Extracting => *done = *total,
            LayerState::Complete => {
                *done = *total;
                *complete = true;
            }
            _ => {}
        }
    }

    fn line(&self) -> String {
        let sum = |part: fn(&(u64, u64, bool)) -> u64| -> u64 { self.layers.values().map(part).sum() };
        let complete = self.layers.values().filter(|(_, _, complete)| *complete).count();
        let rest = if self.waiting {
            "; the registry limits the rate, waiting"
        } else {
            ""
        };
        format!(
            "{complete} of {} layers, {} of {} MiB{rest}",
            self.layers.len(),
            sum(|(done, ..)| *done) >> 20,
            sum(|(_, total, _)| *total) >> 20,
        )
    }
}

/// Writes a line that is written over again, on a terminal only.
fn progress() -> Option<PrefetchCallback> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let progress = Mutex::new(Progress::default());
    Some(PrefetchCallback::new(move |image, event| {
        // A panic elsewhere can't have left half of it.
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.note(image, event);
        if progress.shown.is_none_or(|shown| shown.elapsed() >= TICK) {
            progress.shown = Some(Instant::now());
            output::progress(&progress.line());
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_sums_up_the_layers_of_all_images() {
        let layer = |id: &str, state, current: u64, total: u64| ImageEvent::Layer {
            id: id.to_owned(),
            state,
            current_bytes: current << 20,
            total_bytes: (total > 0).then_some(total << 20),
        };
        let mut progress = Progress::default();
        progress.note(0, &layer("a", LayerState::Downloading, 1, 4));
        progress.note(1, &layer("a", LayerState::Downloading, 2, 2));
        progress.note(1, &layer("a", LayerState::Complete, 0, 0));
        assert_eq!(progress.line(), "1 of 2 layers, 3 of 6 MiB");
        progress.note(0, &ImageEvent::Waiting(Duration::ZERO));
        assert!(progress.line().contains("waiting"));
    }
}
