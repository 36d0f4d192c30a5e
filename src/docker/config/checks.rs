//! What a configuration may not say (contract C19), and what it means for others.

use std::net::IpAddr;
use std::time::Duration;

use crate::error::{Error, Operation, Result};
use crate::provider::{Policy, policy_error};
use crate::spec::container::ContainerSpec;

use super::super::options::{ExecDefaults, check_run_arguments, exec_defaults, network_of};
use super::{CreateConfig, DockerConfig};

impl DockerConfig {
    /// Checks all values (contract C19).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming the first setting that is wrong.
    pub fn check(&self) -> Result<()> {
        let checks = [
            (
                self.create.start_timeout != Some(Duration::ZERO),
                "create.start_timeout_s must be over 0",
            ),
            (
                self.create.pids_limit.is_none_or(|limit| limit > 0),
                "create.pids_limit must be over 0",
            ),
            (
                !self.create.keepalive_shell.is_empty(),
                "create.keepalive_shell can't be empty",
            ),
            (
                self.create.publish_address().is_ok(),
                "create.publish_host must be an IP address such as 127.0.0.1",
            ),
            (
                self.create.network.as_deref() != Some(""),
                "create.network can't be empty",
            ),
            (
                self.exec.default_timeout != Some(Duration::ZERO),
                "exec.default_timeout_s must be over 0",
            ),
            (self.exec.concurrency >= 1, "exec.concurrency must be at least 1"),
            (
                self.exec.exec_shell.as_deref() != Some(""),
                "exec.exec_shell can't be empty",
            ),
            (
                self.probe.command.is_none() || !self.probe.timeout.is_zero(),
                "probe.timeout_s must be over 0",
            ),
            (
                self.probe.deadline != Some(Duration::ZERO),
                "probe.deadline_s must be over 0",
            ),
            (
                self.probe.stable_count >= 1,
                "probe.stable_count must be at least 1",
            ),
            (
                self.lanes.create != Some(0) && self.lanes.transfer >= 1 && self.lanes.pull >= 1,
                "every lane must have at least 1 slot",
            ),
        ];
        if let Some((_, problem)) = checks
            .iter()
            .chain(&self.lease.checks())
            .find(|(holds, _)| !holds)
        {
            return Err(Error::invalid(Operation::Configure, *problem));
        }
        self.admission.check()?;
        self.shared_storage.check(&self.policy)?;
        self.pull.check()?;
        check_run_arguments("create.extra_run_args", &self.create.extra_run_args)?;
        if self.exec_defaults()?.privileged {
            self.policy
                .check_privileged_command()
                .map_err(|refused| policy_error(Operation::Configure, &refused))?;
        }
        let container = ContainerSpec {
            network: network_of(self.create.network.as_deref()),
            ..ContainerSpec::default()
        };
        self.policy
            .check(&container)
            .map_err(|refused| policy_error(Operation::Configure, &refused))
    }

    /// What `exec.extra_exec_args` says.
    pub(in crate::docker) fn exec_defaults(&self) -> Result<ExecDefaults> {
        exec_defaults("exec.extra_exec_args", &self.exec.extra_exec_args)
    }

    /// The policy, and what the create options of the same configuration say already: who writes one writes the other.
    pub(in crate::docker) fn effective_policy(&self) -> Policy {
        let mut policy = self.policy.clone();
        policy
            .allow_security_options
            .extend_from_slice(&self.create.security_opt);
        policy
    }
}

impl CreateConfig {
    /// The address on which ports are published.
    pub(in crate::docker) fn publish_address(&self) -> Result<IpAddr> {
        self.publish_host.parse().map_err(|_| {
            Error::invalid(
                Operation::Configure,
                "create.publish_host must be an IP address such as 127.0.0.1",
            )
        })
    }
}
