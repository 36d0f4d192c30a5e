//! Finding an engine and agreeing with it on an API version. What is done with the engine then is the business of the
//! operations.

mod address;
mod clock;
mod context;
mod dial;
mod discovery;
mod engine;
mod environment;
#[cfg(feature = "ssh")]
mod ssh;
#[cfg(feature = "tls")]
mod tls;
mod tried;

use std::time::Duration;

use crate::error::{Error, ErrorKind, Operation, Result};

use tried::Attempt;

#[allow(
    unused_imports,
    reason = "the operations name these types only in some places"
)]
pub(super) use clock::EngineTime;
#[allow(
    unused_imports,
    reason = "the operations name these types only in some places"
)]
pub(super) use engine::{ApiVersion, Engine, Flavor, MINIMUM_API};
pub(super) use environment::Environment;

/// How long reading the docker command's configuration may take; a home folder may be on a network.
const READ_CONFIGURATION: Duration = Duration::from_secs(10);

/// Reaches an engine: the given address, else what the environment of this process names, else the first of the usual
/// sockets that answers.
pub(super) async fn connect(host: Option<&str>) -> Result<Engine> {
    connect_with(host, &Environment::of_this_process()).await
}

/// As [`connect`], with an environment given by the caller.
///
/// # Cancel safety
/// Dropping it leaves nothing behind; an ssh process that was started is ended.
pub(super) async fn connect_with(host: Option<&str>, environment: &Environment) -> Result<Engine> {
    let plan = {
        let (host, environment) = (host.map(str::to_owned), environment.clone());
        let reading = tokio::task::spawn_blocking(move || discovery::plan(host.as_deref(), &environment));
        match tokio::time::timeout(READ_CONFIGURATION, reading).await {
            Ok(Ok(plan)) => plan?,
            Ok(Err(error)) => {
                return Err(Error::new(
                    ErrorKind::Internal,
                    Operation::Connect,
                    "looking for engines failed",
                )
                .with_source(error));
            }
            Err(_) => {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    Operation::Connect,
                    format!("the docker configuration could not be read in {READ_CONFIGURATION:?}"),
                )
                .with_hint("set DOCKER_HOST to the engine's address, or DOCKER_CONFIG to another folder"));
            }
        }
    };
    let mut attempts = plan.failed;
    for candidate in plan.candidates {
        match dial::reach(&candidate).await {
            Ok(engine) => {
                tracing::debug!(
                    address = %engine.address,
                    how = %engine.how,
                    api_version = %engine.api_version,
                    flavor = ?engine.flavor,
                    "connected to an engine"
                );
                return Ok(engine);
            }
            Err(failure) => {
                let attempt = Attempt::of(&candidate, failure);
                tracing::debug!(%attempt, "no engine there");
                attempts.push(attempt);
            }
        }
    }
    Err(tried::nothing_found(attempts, plan.choice))
}

#[cfg(test)]
mod tests;
