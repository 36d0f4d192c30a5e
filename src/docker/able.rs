//! Whether an engine can give what it would only drop or fail on late: quotas, graphics cards, limits (contract D27).

use bollard::models::{GenericResourcesInner, SystemInfo};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{SandboxResources, SandboxSpec};

use super::config::OnWarning;
use super::failure::{QUICK, call};
use super::{DockerProvider, PROVIDER};

/// Storage drivers with a quota for each container; some of them only on some file systems, which the engine says itself.
const DRIVERS_WITH_QUOTAS: [&str; 7] = [
    "overlay2",
    "btrfs",
    "zfs",
    "devicemapper",
    "windowsfilter",
    "vfs",
    "overlay",
];

/// Names of engine labels that tell the kind of its graphics cards.
const GPU_LABELS: [&str; 3] = ["gpu_type", "gpu-type", "gpu.type"];

impl DockerProvider {
    /// Refuses what the engine is known not to have. Asks it only where something of the kind is wanted.
    pub(super) async fn check_able(&self, spec: &SandboxSpec) -> Result<()> {
        let resources = spec.resources();
        if resources.disk_gib.is_none() && resources.gpu_type.is_none() {
            return Ok(());
        }
        let engine = self.engine().await?;
        let info = call(QUICK, engine.client.info()).await.map_err(|failure| {
            failure.into_error(
                Operation::Create,
                "the engine does not say what it has",
                ErrorKind::Unavailable,
            )
        })?;
        let problem = resources.disk_gib.and_then(|_| no_quota(&info)).or_else(|| {
            resources
                .gpu_type
                .as_deref()
                .and_then(|wanted| no_such_gpu(&info, wanted))
        });
        match problem {
            Some(problem) => Err(Error::new(ErrorKind::Unsupported, Operation::Create, problem)),
            None => Ok(()),
        }
    }
}

fn no_quota(info: &SystemInfo) -> Option<String> {
    let driver = info.driver.as_deref().unwrap_or_default();
    (!DRIVERS_WITH_QUOTAS.contains(&driver)).then(|| {
        format!("the resource `disk_gib` needs a storage driver with quotas, and the engine's is `{driver}`")
    })
}

fn no_such_gpu(info: &SystemInfo, wanted: &str) -> Option<String> {
    let reported = reported_gpus(info);
    let wanted_low = wanted.to_lowercase();
    if !wanted.is_empty()
        && reported
            .iter()
            .any(|kind| kind.to_lowercase().contains(&wanted_low))
    {
        return None;
    }
    let has = if reported.is_empty() {
        "it reports none".to_owned()
    } else {
        format!("it reports {}", reported.join(", "))
    };
    Some(format!(
        "the engine has no card of the resource `gpu_type` `{}`: {has}",
        wanted.escape_debug()
    ))
}

/// What an engine says of its graphics cards.
fn reported_gpus(info: &SystemInfo) -> Vec<String> {
    let labels = info.labels.iter().flatten().filter_map(|label| {
        let (name, value) = label.split_once('=')?;
        GPU_LABELS
            .contains(&name.to_lowercase().as_str())
            .then(|| value.to_owned())
    });
    let resources = info.generic_resources.iter().flatten().filter_map(|resource| {
        let GenericResourcesInner {
            named_resource_spec,
            discrete_resource_spec,
        } = resource;
        let named = named_resource_spec
            .as_ref()
            .and_then(|named| Some((named.kind.clone()?, named.value.clone().unwrap_or_default())));
        let counted = discrete_resource_spec
            .as_ref()
            .and_then(|counted| Some((counted.kind.clone()?, String::new())));
        let (kind, value) = named.or(counted)?;
        kind.to_lowercase()
            .contains("gpu")
            .then(|| format!("{kind} {value}").trim().to_owned())
    });
    let devices = info.discovered_devices.iter().flatten().filter_map(|device| {
        let id = device.id.clone()?;
        id.to_lowercase().contains("gpu").then_some(id)
    });
    labels.chain(resources).chain(devices).collect()
}

/// Words of warnings that say that a limit is not there (Moby's `verifyPlatformContainerResources` and its like).
const DROPPED: [&str; 3] = ["discarded", "limit is not supported", "ignored"];

/// The error that warnings of a create are, if any.
pub(super) fn warned(on_warning: OnWarning, warnings: &[String]) -> Option<Error> {
    let fails = |warning: &&String| match on_warning {
        OnWarning::Warn => false,
        OnWarning::Fail => true,
        OnWarning::Limits => {
            let text = warning.to_lowercase();
            DROPPED.iter().any(|word| text.contains(word))
        }
    };
    let warning = warnings.iter().find(fails)?;
    Some(
        Error::new(
            ErrorKind::Unsupported,
            Operation::Create,
            format!(
                "provider `{PROVIDER}` can't give all that was asked for: {}",
                warning.trim()
            ),
        )
        .with_hint("`create.on_warning: warn` only logs what the engine warns about"),
    )
}

/// Words of engines for a runtime that they don't know (Moby before 23, after, and podman).
const NO_RUNTIME: [&str; 3] = [
    "unknown runtime specified",
    "unknown or invalid runtime name",
    "default oci runtime",
];

/// What an engine's refusal means, where it is about something that it does not have.
pub(super) fn unable(resources: &SandboxResources, runtime: Option<&str>, text: &str) -> Option<Error> {
    let lower = text.to_lowercase();
    if let Some(runtime) = runtime.filter(|_| NO_RUNTIME.iter().any(|words| lower.contains(words))) {
        let message = format!("the engine has no runtime `{}`: {text}", runtime.escape_debug());
        return Some(
            Error::new(ErrorKind::Unsupported, Operation::Create, message)
                .with_hint("`gym-sandbox doctor` lists the runtimes that the engine knows"),
        );
    }
    let what = if lower.contains("storage-opt") || lower.contains("storageopt") {
        resources
            .disk_gib
            .map_or("the option `storage_opt`", |_| "the resource `disk_gib`")
    } else if lower.contains("could not select device driver") {
        let asks = resources.gpu.is_some() || resources.gpu_type.is_some();
        if asks {
            "the resource `gpu`"
        } else {
            "the option `gpus`"
        }
    } else {
        return None;
    };
    Some(Error::new(
        ErrorKind::Unsupported,
        Operation::Create,
        format!("the engine can't give {what}: {text}"),
    ))
}

#[cfg(test)]
mod tests {
    use bollard::models::GenericResourcesInnerNamedResourceSpec;

    use super::*;

    #[test]
    fn d27_a_kind_of_card_is_matched_against_what_the_engine_reports() {
        let none = SystemInfo::default();
        assert!(no_such_gpu(&none, "a100").unwrap().contains("`gpu_type` `a100`"));
        let labelled = SystemInfo {
            labels: Some(vec!["gpu_type=NVIDIA A100-SXM4".into(), "a100=no".into()]),
            ..SystemInfo::default()
        };
        assert_eq!(no_such_gpu(&labelled, "a100"), None);
        assert!(no_such_gpu(&labelled, "h100").unwrap().contains("A100-SXM4"));
        assert!(no_such_gpu(&labelled, "").is_some());
        let generic = SystemInfo {
            generic_resources: Some(vec![GenericResourcesInner {
                named_resource_spec: Some(GenericResourcesInnerNamedResourceSpec {
                    kind: Some("NVIDIA-GPU-T4".into()),
                    value: Some("UUID".into()),
                }),
                discrete_resource_spec: None,
            }]),
            ..SystemInfo::default()
        };
        assert_eq!(no_such_gpu(&generic, "t4"), None);
    }

    #[test]
    fn d27_disk_needs_a_driver_with_quotas() {
        let with = |driver: &str| SystemInfo {
            driver: Some(driver.into()),
            ..SystemInfo::default()
        };
        assert_eq!(no_quota(&with("overlay2")), None);
        assert!(no_quota(&with("overlayfs")).unwrap().contains("`disk_gib`"));
    }

    #[test]
    fn d27_warnings_that_a_limit_is_dropped_fail() {
        let dropped = "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded.";
        let other = "Image mount is an experimental feature";
        let swap = "Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap.";
        for (on_warning, text, fails) in [
            (OnWarning::Limits, dropped, true),
            (OnWarning::Limits, other, false),
            (OnWarning::Limits, swap, false),
            (OnWarning::Fail, other, true),
            (OnWarning::Warn, dropped, false),
        ] {
            let error = warned(on_warning, &[text.to_owned()]);
            assert_eq!(error.is_some(), fails, "{on_warning:?} {text}");
        }
        assert!(warned(OnWarning::Fail, &[]).is_none());
    }

    #[test]
    fn d27_a_refusal_names_what_was_asked_for() {
        let disk = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
        let gpu = "could not select device driver \"\" with capabilities: [[gpu]]";
        let resources = |change: fn(&mut SandboxResources)| {
            let mut resources = SandboxResources::default();
            change(&mut resources);
            resources
        };
        let error = unable(&resources(|r| r.disk_gib = Some(1)), None, disk).unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("`disk_gib`"));
        assert!(
            unable(&resources(|r| r.gpu = Some(1)), None, gpu)
                .unwrap()
                .to_string()
                .contains("`gpu`")
        );
        let nothing = SandboxResources::default();
        for (text, option) in [(disk, "`storage_opt`"), (gpu, "`gpus`")] {
            let error = unable(&nothing, None, text).unwrap();
            assert!(error.to_string().contains(option), "{error}");
        }
        assert!(unable(&nothing, Some("crun"), "other").is_none());
        for text in [
            "Unknown runtime specified crun",
            "unknown or invalid runtime name: crun",
            "default OCI runtime \"crun\" not found: invalid argument",
        ] {
            let error = unable(&nothing, Some("crun"), text).unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("no runtime `crun`"), "{error}");
            assert!(unable(&nothing, None, text).is_none());
        }
    }
}
