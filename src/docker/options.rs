//! The provider options of a spec that the Docker provider knows, and how they and the presets change the create
//! configuration (contract C13, D9, D10).

use serde::Deserialize;

use crate::error::{Error, Operation, Result};
use crate::provider::check_provider_options;
use crate::spec::container::{EndpointSpec, NetworkAttachment};
use crate::spec::{Mapping, PullPolicy, SandboxSpec, Value};

use super::agent::ExecPathPolicy;
use super::config::{CreateConfig, Preset};
use super::image::ImageReference;
use super::snapshot;

/// What one sandbox asks for beyond the neutral spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Options {
    pull_policy: Option<PullPolicy>,
    platform: Option<String>,
    preset: Option<Preset>,
    network: Option<String>,
    read_only: Option<bool>,
    use_init: Option<bool>,
    cap_drop: Option<Vec<String>>,
    security_opt: Option<Vec<String>>,
    pids_limit: Option<i64>,
    exec_path: Option<ExecPathPolicy>,
    snapshot_id: Option<String>,
}

const ALLOWED: [&str; 11] = [
    "pull_policy",
    "platform",
    "preset",
    "network",
    "read_only",
    "use_init",
    "cap_drop",
    "security_opt",
    "pids_limit",
    "exec_path",
    crate::spec::SNAPSHOT_OPTION,
];

/// The create options of one sandbox, after defaults, preset and the spec's own have been laid over each other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Effective {
    pub(super) pull_policy: PullPolicy,
    pub(super) platform: Option<String>,
    pub(super) network: NetworkAttachment,
    pub(super) read_only: bool,
    pub(super) use_init: bool,
    pub(super) cap_drop: Vec<String>,
    pub(super) security_opt: Vec<String>,
    pub(super) pids_limit: Option<i64>,
    pub(super) memory_mib: Option<u64>,
    pub(super) log_cap: bool,
    pub(super) exec_path: ExecPathPolicy,
    /// The image of a snapshot, instead of the spec's.
    pub(super) snapshot: Option<ImageReference>,
}

/// Memory of a `hardened` sandbox whose spec names none.
const HARDENED_MEMORY_MIB: u64 = 2048;
const HARDENED_PIDS: i64 = 512;

pub(super) fn effective(
    config: &CreateConfig,
    exec_path: ExecPathPolicy,
    spec: &SandboxSpec,
) -> Result<Effective> {
    let options = read(spec.provider_options())?;
    let hardened = options.preset.unwrap_or(config.preset) == Preset::Hardened;
    let mut cap_drop = options.cap_drop.unwrap_or_else(|| config.cap_drop.clone());
    let mut security_opt = options
        .security_opt
        .unwrap_or_else(|| config.security_opt.clone());
    let mut pids_limit = options.pids_limit.or(config.pids_limit);
    let mut memory_mib = spec.resources().memory_mib;
    if hardened {
        if !cap_drop
            .iter()
            .any(|capability| capability.eq_ignore_ascii_case("all"))
        {
            cap_drop.push("ALL".to_owned());
        }
        if !security_opt
            .iter()
            .any(|option| option.starts_with("no-new-privileges"))
        {
            security_opt.push("no-new-privileges".to_owned());
        }
        pids_limit = pids_limit.or(Some(HARDENED_PIDS));
        memory_mib = memory_mib.or(Some(HARDENED_MEMORY_MIB));
    }
    let snapshot = options
        .snapshot_id
        .map(|id| snapshot::reference(Operation::Create, &id))
        .transpose()?;
    let pull_policy = match snapshot {
        // No registry has it.
        Some(_) => PullPolicy::Never,
        None => options.pull_policy.unwrap_or(config.pull_policy),
    };
    Ok(Effective {
        pull_policy,
        snapshot,
        platform: options.platform,
        network: network_of(options.network.as_deref().or(config.network.as_deref())),
        read_only: options.read_only.unwrap_or(config.read_only),
        use_init: options.use_init.unwrap_or(config.use_init),
        cap_drop,
        security_opt,
        pids_limit,
        memory_mib,
        log_cap: hardened,
        exec_path: options.exec_path.unwrap_or(exec_path),
    })
}

fn read(options: &Mapping) -> Result<Options> {
    check_provider_options(Operation::Create, "provider options", options, &ALLOWED)?;
    // One after the other, so that the error names the option: serde's does not.
    for (key, value) in options {
        let only = Mapping::from_iter([(key.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<Options>(Value::Object(only)) {
            return Err(Error::invalid(
                Operation::Create,
                format!("the provider option `{key}` has a wrong value: {error}"),
            ));
        }
    }
    let options: Options = serde_json::from_value(Value::Object(options.clone())).map_err(|error| {
        Error::invalid(
            Operation::Create,
            format!("a provider option has a wrong value: {error}"),
        )
    })?;
    let checks = [
        (
            options.pids_limit.is_none_or(|limit| limit > 0),
            "the provider option `pids_limit` must be over 0",
        ),
        (
            options.network.as_deref() != Some(""),
            "the provider option `network` can't be empty",
        ),
        (
            options.platform.as_deref() != Some(""),
            "the provider option `platform` can't be empty",
        ),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(Error::invalid(Operation::Create, *problem)),
        None => Ok(options),
    }
}

/// Reads the network of a sandbox as `docker run --network` does.
pub(super) fn network_of(network: Option<&str>) -> NetworkAttachment {
    match network {
        None | Some("default" | "bridge") => NetworkAttachment::Default,
        Some("none") => NetworkAttachment::None,
        Some("host") => NetworkAttachment::Host,
        Some(network) => match network.strip_prefix("container:") {
            Some(container) => NetworkAttachment::Container(container.to_owned()),
            None => NetworkAttachment::Networks(vec![EndpointSpec::new(network)]),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn d10_an_unknown_option_is_refused_by_name() {
        let spec = SandboxSpec::new("a").with_provider_option("privilged", true);
        let error = effective(&CreateConfig::default(), ExecPathPolicy::Engine, &spec).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("`privilged`"), "{error}");
        assert!(error.hint().unwrap().contains("pull_policy"));
    }

    #[test]
    fn the_spec_wins_over_the_configuration_and_the_preset_fills_the_rest() {
        let config = CreateConfig {
            pids_limit: Some(7),
            network: Some("net".into()),
            ..CreateConfig::default()
        };
        let spec = SandboxSpec::new("a")
            .with_provider_option("preset", "hardened")
            .with_provider_option("network", "none");
        let effective = effective(&config, ExecPathPolicy::Engine, &spec).unwrap();
        assert_eq!(effective.network, NetworkAttachment::None);
        assert_eq!(effective.pids_limit, Some(7));
        assert_eq!(effective.cap_drop, ["ALL"]);
        assert_eq!(effective.security_opt, ["no-new-privileges"]);
        assert_eq!(effective.memory_mib, Some(HARDENED_MEMORY_MIB));
        assert!(effective.log_cap);
    }

    #[test]
    fn compat_adds_nothing() {
        let effective = effective(
            &CreateConfig::default(),
            ExecPathPolicy::Engine,
            &SandboxSpec::new("a"),
        )
        .unwrap();
        assert!(effective.cap_drop.is_empty() && effective.security_opt.is_empty() && !effective.log_cap);
        assert_eq!((effective.pids_limit, effective.memory_mib), (None, None));
    }

    #[test]
    fn values_of_a_wrong_kind_are_refused() {
        for (key, value) in [
            ("pull_policy", Value::from("sometimes")),
            ("preset", Value::from("soft")),
            ("pids_limit", Value::from(0)),
            ("cap_drop", Value::from("ALL")),
            ("network", Value::from("")),
        ] {
            let spec = SandboxSpec::new("a").with_provider_option(key, value);
            let error = effective(&CreateConfig::default(), ExecPathPolicy::Engine, &spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{key}");
            assert!(error.to_string().contains(&format!("`{key}`")), "{error}");
        }
    }
}
