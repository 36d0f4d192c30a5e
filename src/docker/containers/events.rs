//! What happens to the containers of a project, as the engine tells it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::models::{EventMessage, HealthStatusEnum};
use bollard::query_parameters::EventsOptionsBuilder;
use futures::StreamExt;

use crate::error::{ErrorKind, Operation, Result};
use crate::provider::ContainerEvents;
use crate::spec::container::{ContainerChange, ContainerEvent};

use super::super::DockerProvider;
use super::super::failure::EngineFailure;
use super::label_filter;
use super::look::health_of;

/// How far our idea of the engine's clock may be wrong.
const CLOCK_ERROR: Duration = Duration::from_millis(500);

impl DockerProvider {
    /// The engine keeps its last events: asked for from a moment on, it also gives those that came before the stream
    /// was read.
    pub(super) async fn events_of(&self, labels: &BTreeMap<String, String>) -> Result<ContainerEvents> {
        let engine = self.engine().await?;
        let mut filters: HashMap<String, Vec<String>> = label_filter(labels);
        filters.insert("type".to_owned(), vec!["container".to_owned()]);
        // Probes and commands are most of what happens, and nobody here asks for it.
        let actions = ["start", "die", "health_status", "destroy"];
        filters.insert("event".to_owned(), actions.map(str::to_owned).to_vec());
        let since = engine.engine_now().minus(CLOCK_ERROR).to_event_time();
        let options = EventsOptionsBuilder::new()
            .since(&since)
            .filters(&filters)
            .build();
        let client = engine.client.clone();
        let messages = async_stream(client, options);
        Ok(messages
            .filter_map(|message| async move {
                match message {
                    Ok(message) => event_of(&message).map(Ok),
                    Err(error) => Some(Err(EngineFailure::from(error).into_error(
                        Operation::List,
                        "the engine's events broke off",
                        ErrorKind::Unavailable,
                    ))),
                }
            })
            .boxed())
    }
}

/// A stream that owns its client.
fn async_stream(
    client: bollard::Docker,
    options: bollard::query_parameters::EventsOptions,
) -> impl futures::Stream<Item = Result<EventMessage, bollard::errors::Error>> + Send + 'static {
    futures::stream::once(async move { client.events(Some(options)).boxed() }).flatten()
}

/// Actions carry more than their word at times, as in `health_status: healthy` (engine-facts S21).
fn event_of(message: &EventMessage) -> Option<ContainerEvent> {
    let actor = message.actor.as_ref()?;
    let action = message.action.as_deref()?;
    let (word, rest) = action.split_once(':').unwrap_or((action, ""));
    let change = match word {
        "start" => ContainerChange::Started,
        "die" => {
            let code = actor.attributes.as_ref().and_then(|all| all.get("exitCode"));
            ContainerChange::Ended {
                // Without a code it did not end well.
                exit_code: code.and_then(|code| code.parse().ok()).unwrap_or(-1),
            }
        }
        "health_status" => {
            let status = rest.trim().parse::<HealthStatusEnum>().ok()?;
            ContainerChange::Health(health_of(status)?)
        }
        "destroy" => ContainerChange::Removed,
        _ => return None,
    };
    Some(ContainerEvent::new(actor.id.as_deref()?, change))
}

#[cfg(test)]
mod tests {
    use bollard::models::EventActor;

    use super::*;
    use crate::spec::SandboxHealth;

    #[test]
    fn actions_are_told_by_their_first_word() {
        let change = |action: &str| {
            let message = EventMessage {
                action: Some(action.to_owned()),
                actor: Some(EventActor {
                    id: Some("c".to_owned()),
                    attributes: Some([("exitCode".to_owned(), "3".to_owned())].into()),
                }),
                ..EventMessage::default()
            };
            event_of(&message).map(|event| event.change)
        };
        assert_eq!(change("start"), Some(ContainerChange::Started));
        assert_eq!(change("die"), Some(ContainerChange::Ended { exit_code: 3 }));
        let health = ContainerChange::Health(SandboxHealth::Unhealthy);
        assert_eq!(change("health_status: unhealthy"), Some(health));
        assert_eq!(change("destroy"), Some(ContainerChange::Removed));
        assert_eq!(change("exec_create: sh -c start"), None);
    }
}
