//! How a row of times is measured: its methods, in their order.

use futures::FutureExt;

use super::super::context::{Context, DockerCli, host_spawn};
use super::super::docker_compose::MISSING;
use super::super::sample::{Method, Step};
use super::super::transfer::Side;
use super::super::work::Work;
use super::{Preset, TimeRow};

impl TimeRow {
    /// Ours, raw, and any other method, in this order.
    pub(in crate::cli) fn methods<'a>(&'a self, context: &'a Context<'a>) -> Vec<Method<'a>> {
        let target = match self.preset {
            Preset::Compat | Preset::Project => &context.compat,
            Preset::Hardened => &context.hardened,
            Preset::Agent | Preset::AgentCli => &context.agent,
            Preset::AgentHardened => &context.agent_hardened,
        };
        let ready = |side: Side| {
            let step: Step<'a> = Box::new(move || self.work.ready(context, target, side).boxed());
            self.work.needs_ready().then_some(step)
        };
        let mut methods = vec![
            Method {
                name: "ours",
                ready: ready(Side::Ours),
                once: Box::new(|| self.work.ours(context, target).boxed()),
            },
            Method {
                name: "raw",
                ready: ready(Side::Raw),
                once: Box::new(|| self.work.raw(context, target).boxed()),
            },
        ];
        match self.preset {
            Preset::Compat | Preset::AgentCli if context.cli == DockerCli::Installed => {
                methods.push(Method {
                    name: "docker CLI",
                    ready: ready(Side::Cli),
                    once: Box::new(|| self.work.docker_cli(context, target).boxed()),
                });
            }
            Preset::Agent if self.work == Work::True => methods.push(Method {
                name: "host spawn",
                ready: None,
                once: Box::new(|| host_spawn(&["true"]).boxed()),
            }),
            Preset::AgentHardened => methods.push(Method {
                name: "compat",
                ready: None,
                once: Box::new(|| self.work.ours(context, &context.agent).boxed()),
            }),
            Preset::Project if self.has_docker_compose(context) => methods.push(Method {
                name: "docker compose",
                ready: ready(Side::Cli),
                once: Box::new(|| self.work.docker_cli(context, target).boxed()),
            }),
            Preset::Compat | Preset::Agent | Preset::AgentCli | Preset::Project => {}
            Preset::Hardened => methods.push(Method {
                name: "compat",
                ready: None,
                once: Box::new(|| self.work.ours(context, &context.compat).boxed()),
            }),
        }
        methods
    }

    fn has_docker_compose(&self, context: &Context<'_>) -> bool {
        self.work != Work::Copies && context.docker_compose.is_some()
    }

    /// What a reader has to know about it. None where that is nothing.
    pub(in crate::cli) fn note(&self, context: &Context<'_>) -> Option<String> {
        match self.work {
            Work::Copies => Some(context.room.note(context)),
            Work::Project(_) => Some(match &context.docker_compose {
                Some(compose) => compose.name(),
                None => MISSING.to_owned(),
            }),
            _ => None,
        }
    }
}
