//! `stats`: prints how much of the machine a sandbox uses.

use futures::StreamExt;
use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::StatsProvider;
use gym_sandbox::{Result, SandboxStats};

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::StatsRequest;
use crate::cli::session::{Outcome, blocking, until_interrupted};

/// Prints one sample, or all as they come. The first sample can't say how much of the processors is used: it is left
/// out where one is enough.
///
/// # Errors
/// There is no such sandbox, it does not run, or the numbers can't be written.
pub(in crate::cli) async fn run(request: StatsRequest) -> Result<u8> {
    let provider = DockerProvider::connect(request.config).await?;
    let handle = provider.find(&request.id).await?;
    let work = async {
        let mut samples = provider.stats(&handle).await?;
        let mut has_header = false;
        while let Some(sample) = samples.next().await {
            let sample = sample?;
            if sample.cpus_used.is_none() && !request.follow {
                continue;
            }
            print(sample, request.format, !has_header).await?;
            has_header = true;
            if !request.follow {
                break;
            }
        }
        Ok(())
    };
    match Box::pin(until_interrupted(work)).await? {
        Outcome::Ended(()) => Ok(exit::SUCCESS),
        Outcome::Interrupted(interrupt) => Ok(interrupt.exit_code()),
    }
}

async fn print(sample: SandboxStats, format: Format, with_header: bool) -> Result<()> {
    blocking(move || match format {
        Format::Json => output::json_line(&sample),
        Format::Text => output::data(output::stats_rows(&sample, with_header).as_bytes()),
    })
    .await
}
