//! `gc`: removes what dead owners and expired leases have left.

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::SweepProvider;
use gym_sandbox::{Result, SecondLook, SweepReport};

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{Patience, SweepRequest};
use crate::cli::session::{Outcome, blocking, until_interrupted};

/// Sweeps and prints each object that was removed.
///
/// # Errors
/// The engine can't be reached, or does not list its objects.
pub(in crate::cli) async fn run(request: SweepRequest) -> Result<u8> {
    let provider = DockerProvider::connect(request.config.clone()).await?;
    match until_interrupted(sweep(&provider, request)).await? {
        Outcome::Ended(code) => Ok(code),
        Outcome::Interrupted(interrupt) => Ok(interrupt.exit_code()),
    }
}

async fn sweep(provider: &DockerProvider, request: SweepRequest) -> Result<u8> {
    let at_once = request.options.clone().with_second_look(SecondLook::Never);
    let mut report = provider.sweep(&at_once).await?;
    if request.format == Format::Text {
        print(&report).await?;
    }
    if !report.unsure.is_empty() && request.patience == Patience::Waits {
        output::note(&format!(
            "nothing proves yet that the owners of {} objects are dead; looking a second time where that helps",
            report.unsure.len()
        ));
        let options = request.options.with_second_look(SecondLook::Wait);
        let mut later = provider.sweep(&options).await?;
        later.removed.retain(|object| !report.removed.contains(object));
        if request.format == Format::Text {
            print(&later).await?;
        }
        later.removed.splice(0..0, report.removed);
        report = later;
    }
    let code = if report.failed.is_empty() {
        exit::SUCCESS
    } else {
        exit::FAILURE
    };
    if request.format == Format::Text {
        for object in &report.failed {
            output::note(&format!(
                "{} {} was not removed: {}",
                object.kind, object.name, object.why
            ));
        }
        for object in &report.unsure {
            output::note(&format!(
                "{} {} is left: {}",
                object.kind, object.name, object.why
            ));
        }
    } else {
        blocking(move || output::json(&report)).await?;
    }
    Ok(code)
}

async fn print(report: &SweepReport) -> Result<()> {
    let text = output::swept(&report.removed);
    blocking(move || output::data(text.as_bytes())).await
}
