//! Runtime requirements of a sandbox: given when its container is made, and checked afterwards.

use async_trait::async_trait;
use bollard::models::HostConfig;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::{RuntimeRequirementsProvider, SandboxHandle, policy_error};
use crate::spec::container::ContainerSpec;
use crate::spec::{Mapping, RuntimeRequirements};

use super::status::Looked;
use super::{DockerProvider, DockerRaw, PROVIDER};

#[async_trait]
impl RuntimeRequirementsProvider for DockerProvider {
    fn validate_runtime_requirements(&self, requirements: &RuntimeRequirements) -> Result<Mapping> {
        let options = options(requirements)?;
        // The policy judges what the options ask for, whatever image it will be.
        let mut container = ContainerSpec::new("image");
        container.cap_add.clone_from(&requirements.cap_add);
        container.limits.shm_bytes = requirements.shm_size;
        self.config()
            .effective_policy()
            .check(&container)
            .map_err(|refused| policy_error(Operation::Configure, &refused))?;
        Ok(options)
    }

    async fn configure_runtime(
        &self,
        handle: &SandboxHandle,
        requirements: &RuntimeRequirements,
    ) -> Result<()> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Configure)?;
        let named = |error: Error| error.with_sandbox(handle.sandbox_id());
        options(requirements).map_err(named)?;
        let looked = self.look(&raw.container_id).await.map_err(|failure| {
            named(failure.into_error(
                Operation::Configure,
                "the engine did not describe the sandbox",
                ErrorKind::Internal,
            ))
        })?;
        match looked {
            Looked::There(inspected) => {
                check(&inspected.host_config.unwrap_or_default(), requirements).map_err(named)
            }
            Looked::Gone => Err(named(Error::new(
                ErrorKind::Sandbox(SandboxReason::Removed),
                Operation::Configure,
                "the sandbox does not exist any more",
            ))),
        }
    }
}

/// The provider options of a spec that ask for the requirements.
fn options(requirements: &RuntimeRequirements) -> Result<Mapping> {
    for name in &requirements.cap_add {
        let plain = plain(name);
        let valid = !plain.is_empty()
            && plain
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        if !valid {
            return Err(Error::invalid(
                Operation::Configure,
                format!("`{}` is no capability", name.escape_debug()),
            ));
        }
    }
    if let Some(bytes) = requirements.shm_size
        && (bytes == 0 || i64::try_from(bytes).is_err())
    {
        return Err(Error::invalid(
            Operation::Configure,
            format!("{bytes} bytes are no size of shared memory"),
        ));
    }
    let mut options = Mapping::new();
    if !requirements.cap_add.is_empty() {
        options.insert("cap_add".to_owned(), requirements.cap_add.clone().into());
    }
    if let Some(bytes) = requirements.shm_size {
        options.insert("shm_size".to_owned(), bytes.into());
    }
    Ok(options)
}

/// Compares what was asked for with what the engine says of the container.
fn check(config: &HostConfig, requirements: &RuntimeRequirements) -> Result<()> {
    let added: Vec<String> = config.cap_add.iter().flatten().map(|name| plain(name)).collect();
    let has_all = config.privileged == Some(true) || added.iter().any(|name| name == "ALL");
    let mut missing: Vec<String> = requirements
        .cap_add
        .iter()
        .map(|name| plain(name))
        .filter(|name| !has_all && !added.contains(name))
        .map(|name| format!("capability `{name}`"))
        .collect();
    let size = config.shm_size.and_then(|bytes| u64::try_from(bytes).ok());
    if let Some(wanted) = requirements.shm_size
        && size != Some(wanted)
    {
        missing.push(format!(
            "{wanted} bytes of shared memory (it has {})",
            size.map_or_else(|| "the default".to_owned(), |bytes| bytes.to_string())
        ));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Conflict,
        Operation::Configure,
        format!("the sandbox was made without {}", missing.join(", ")),
    )
    .with_hint("make it with the provider options that `validate_runtime_requirements` gives: they can't be added later"))
}

/// `cap_net_raw` and `NET_RAW` are the same.
fn plain(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn needs(capabilities: &[&str], shm_size: Option<u64>) -> RuntimeRequirements {
        let mut needs = RuntimeRequirements::new();
        needs.cap_add = capabilities.iter().map(|&name| name.to_owned()).collect();
        needs.shm_size = shm_size;
        needs
    }

    #[test]
    fn requirements_become_provider_options() {
        let options = |capabilities: &[&str], size| options(&needs(capabilities, size)).unwrap();
        assert_eq!(options(&[], None), Mapping::new());
        assert_eq!(
            json!(options(&["NET_RAW", "cap_chown"], Some(1 << 20))),
            json!({"cap_add": ["NET_RAW", "cap_chown"], "shm_size": 1_048_576})
        );
    }

    #[test]
    fn what_is_no_capability_or_size_is_refused() {
        for requirements in [
            needs(&[""], None),
            needs(&["NET RAW"], None),
            needs(&["CAP_"], None),
            needs(&["NET_RAW", "é"], None),
            needs(&[], Some(0)),
            needs(&[], Some(u64::MAX)),
        ] {
            let error = options(&requirements).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{requirements:?}");
        }
    }

    #[test]
    fn what_the_container_was_made_without_is_named() {
        let config = |value| serde_json::from_value::<HostConfig>(value).unwrap();
        let with = config(json!({"CapAdd": ["CAP_NET_RAW"], "ShmSize": 1024}));
        check(&with, &needs(&["net_raw"], Some(1024))).unwrap();
        check(&with, &needs(&[], None)).unwrap();
        check(&config(json!({"CapAdd": ["ALL"]})), &needs(&["NET_RAW"], None)).unwrap();
        check(&config(json!({"Privileged": true})), &needs(&["NET_RAW"], None)).unwrap();
        let error = check(&with, &needs(&["NET_RAW", "SYS_TIME"], Some(2048))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let text = error.to_string();
        assert!(
            text.contains("`SYS_TIME`") && text.contains("2048") && text.contains("1024"),
            "{text}"
        );
        assert!(!text.contains("NET_RAW"), "{text}");
    }
}
