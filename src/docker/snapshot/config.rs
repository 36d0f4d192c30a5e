//! What a snapshot's image says of itself: the configuration of the image that the sandbox was made from, and labels.
//! Pure.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{ContainerConfig, ImageConfig, ImageInspect};
use serde_json::{Value, json};

use super::super::owner::{self, LABEL};

/// The repository of all snapshots. Nothing of that name is ever pulled or pushed.
pub(super) const REPOSITORY: &str = "gym-sandbox-snapshot";

/// What the history of a snapshot's image says of its making.
pub(super) const MADE_BY: &str = "gym-sandbox snapshot";

/// The labels of a snapshot: those of the base image, the caller's, and ours (contract D17).
pub(super) fn labels(
    base: &ImageConfig,
    given: &BTreeMap<String, String>,
    tag: &str,
    created: &str,
) -> HashMap<String, String> {
    let owner = owner::owner();
    let mut labels: HashMap<String, String> = base
        .labels
        .iter()
        .flatten()
        // A base that is a snapshot itself has labels of ours, which are not this one's.
        .filter(|(name, _)| *name != LABEL && !name.starts_with(&format!("{LABEL}.")))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    labels.extend(given.clone());
    for (suffix, value) in [
        ("", "1"),
        (".owner", &owner.id),
        (".run", &owner.run),
        (".created", created),
        (".kind", "snapshot"),
        (".snapshot", tag),
    ] {
        labels.insert(format!("{LABEL}{suffix}"), value.to_owned());
    }
    labels
}

/// The configuration that the commit call is given. The engine fills what is empty in it from the container, which is
/// why this is not the last word.
pub(super) fn for_commit(
    base: &ImageConfig,
    labels: HashMap<String, String>,
    container: &ContainerConfig,
) -> ContainerConfig {
    let mut labels = labels;
    // A label of the sandbox that is not named here would stay: its end is not that of the snapshot.
    for name in container.labels.iter().flatten().map(|(name, _)| name) {
        if name.starts_with(LABEL) {
            labels.entry(name.clone()).or_default();
        }
    }
    ContainerConfig {
        user: base.user.clone(),
        env: Some(env_for_commit(
            base.env.as_deref().unwrap_or_default(),
            container.env.as_deref().unwrap_or_default(),
        )),
        cmd: base.cmd.clone(),
        entrypoint: Some(base.entrypoint.clone().unwrap_or_default()),
        working_dir: base.working_dir.clone(),
        healthcheck: base.healthcheck.clone(),
        volumes: base.volumes.clone(),
        exposed_ports: base.exposed_ports.clone(),
        stop_signal: base.stop_signal.clone(),
        shell: base.shell.clone(),
        labels: Some(labels),
        ..ContainerConfig::default()
    }
}

/// The search path that engines give a container without one.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The environment of the base image. A variable of the sandbox that is not named here would stay with its value, which
/// may be a secret; there is no way to say that one is to be gone.
fn env_for_commit(base: &[String], container: &[String]) -> Vec<String> {
    fn name(variable: &str) -> &str {
        variable.split('=').next().unwrap_or(variable)
    }
    let mut env = base.to_vec();
    for variable in container {
        let name_of_it = name(variable);
        if env.iter().all(|kept| name(kept) != name_of_it) {
            env.push(match name_of_it {
                "PATH" => PATH.to_owned(),
                other => format!("{other}="),
            });
        }
    }
    env
}

/// The image's own description with exactly the base's configuration, as an archive that loads it over layers that the
/// engine has: file names and contents.
pub(super) fn archive(
    committed: &ImageInspect,
    base: &ImageConfig,
    labels: HashMap<String, String>,
    tag: &str,
    created: &str,
) -> Option<[(String, Vec<u8>); 2]> {
    let layers = committed.root_fs.as_ref()?.layers.clone()?;
    let mut config = base.clone();
    config.labels = Some(labels);
    let mut config = serde_json::to_value(config).ok()?;
    if let Value::Object(fields) = &mut config {
        fields.retain(|_, value| !value.is_null());
    }
    let history: Vec<Value> = (0..layers.len())
        .map(|_| json!({"created": created, "created_by": MADE_BY}))
        .collect();
    let mut image = json!({
        "architecture": committed.architecture,
        "os": committed.os,
        "created": created,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": layers},
        "history": history,
    });
    if let Some(variant) = committed.variant.as_ref().filter(|variant| !variant.is_empty()) {
        image["variant"] = json!(variant);
    }
    let names: Vec<String> = (0..layers.len())
        .map(|number| format!("layer{number}/layer.tar"))
        .collect();
    let manifest = json!([{
        "Config": "config.json",
        "RepoTags": [format!("{REPOSITORY}:{tag}")],
        "Layers": names,
    }]);
    Some([
        ("config.json".to_owned(), image.to_string().into_bytes()),
        ("manifest.json".to_owned(), manifest.to_string().into_bytes()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_base_and_the_caller_stay_and_ours_are_new() {
        let base = ImageConfig {
            labels: Some(HashMap::from([
                ("theirs".to_owned(), "1".to_owned()),
                ("gym-sandbox.snapshot".to_owned(), "old".to_owned()),
                ("gym-sandbox.expires".to_owned(), "old".to_owned()),
            ])),
            ..ImageConfig::default()
        };
        let given = BTreeMap::from([("mine".to_owned(), "2".to_owned())]);
        let labels = labels(&base, &given, "tag", "now");
        assert_eq!(labels["theirs"], "1");
        assert_eq!(labels["mine"], "2");
        assert_eq!(labels["gym-sandbox.snapshot"], "tag");
        assert_eq!(labels["gym-sandbox.kind"], "snapshot");
        assert!(!labels.contains_key("gym-sandbox.expires"));
    }

    #[test]
    fn nothing_of_the_sandbox_is_in_the_description() {
        let base = ImageConfig {
            cmd: Some(vec!["sh".to_owned()]),
            user: Some("1:1".to_owned()),
            exposed_ports: Some(vec!["80/tcp".to_owned()]),
            ..ImageConfig::default()
        };
        let committed = ImageInspect {
            os: Some("linux".to_owned()),
            architecture: Some("amd64".to_owned()),
            root_fs: Some(bollard::models::ImageInspectRootFs {
                typ: "layers".to_owned(),
                layers: Some(vec!["sha256:a".to_owned(), "sha256:b".to_owned()]),
            }),
            ..ImageInspect::default()
        };
        let [(_, config), (_, manifest)] =
            archive(&committed, &base, HashMap::new(), "t", "2026-01-01T00:00:00Z").unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        assert_eq!(
            config["config"],
            json!({"Cmd": ["sh"], "User": "1:1", "ExposedPorts": {"80/tcp": {}}, "Labels": {}})
        );
        assert_eq!(config["rootfs"]["diff_ids"], json!(["sha256:a", "sha256:b"]));
        assert_eq!(config["history"].as_array().unwrap().len(), 2);
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest[0]["RepoTags"], json!(["gym-sandbox-snapshot:t"]));
        assert_eq!(manifest[0]["Layers"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_commit_keeps_no_value_of_the_sandboxs_environment() {
        let text = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            env_for_commit(
                &text(&["A=1", "EMPTY"]),
                &text(&["A=2", "SECRET=x=y", "PATH=/x", "EMPTY=z"])
            ),
            text(&["A=1", "EMPTY", "SECRET=", PATH])
        );
        assert_eq!(
            env_for_commit(&text(&["PATH=/base"]), &text(&["PATH=/x"])),
            text(&["PATH=/base"])
        );
    }

    #[test]
    fn a_commit_names_every_label_of_the_sandbox_and_has_no_keepalive() {
        let container = ContainerConfig {
            labels: Some(HashMap::from([(
                "gym-sandbox.expires".to_owned(),
                "soon".to_owned(),
            )])),
            ..ContainerConfig::default()
        };
        let commit = for_commit(&ImageConfig::default(), HashMap::new(), &container);
        assert_eq!(commit.labels.unwrap()["gym-sandbox.expires"], "");
        assert_eq!(commit.env, Some(Vec::new()));
        assert_eq!(commit.entrypoint, Some(Vec::new()));
    }
}
