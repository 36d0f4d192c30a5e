//! Where bind mounts lead: the plan compares paths by their text, and links in a project's own folder could lead out of
//! it.

use std::path::Path;

use crate::compose::plan::Plan;
use crate::error::{ErrorKind, Operation, Result};
use crate::provider::{Policy, policy_error};
use crate::spec::container::{ContainerSpec, MountKind};

/// Refuses bind mounts that follow a link to where the policy does not allow them. Blocks while it looks.
///
/// # Errors
/// [`ErrorKind::Unsupported`] naming the service.
pub(super) fn check(plan: &Plan, folder: &Path, policy: &Policy) -> Result<()> {
    let Ok(folder) = folder.canonicalize() else {
        return Ok(());
    };
    let mut policy = policy.clone();
    policy.allow_host_binds.push(folder.display().to_string());
    for service in &plan.services {
        let Some(container) = service.containers.first() else {
            continue;
        };
        let mut led = ContainerSpec::default();
        for mount in &container.spec.mounts {
            let MountKind::Bind { source, .. } = &mount.kind else {
                continue;
            };
            // What is not on this machine cannot be followed: it is another engine's, or is made there.
            let Ok(target) = Path::new(source).canonicalize() else {
                continue;
            };
            if target.as_path() == Path::new(source) {
                continue;
            }
            let mut mount = mount.clone();
            if let MountKind::Bind { source, .. } = &mut mount.kind {
                *source = target.display().to_string();
            }
            led.mounts.push(mount);
        }
        if let Err(violations) = policy.check(&led) {
            let error = policy_error(Operation::Compose, &violations);
            return Err(crate::error::Error::new(
                ErrorKind::Unsupported,
                Operation::Compose,
                format!(
                    "service `{}`: a mount leads out of the project by a link",
                    service.name
                ),
            )
            .with_source(error));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::{ComposeLoader, LoadOptions, PlanOptions, Source};

    #[test]
    fn a_link_out_of_the_project_is_refused_and_one_within_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("data")).unwrap();
        std::os::unix::fs::symlink("data", root.join("within")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
        let plan = |link: &str| {
            let text = format!("services: {{a: {{image: i, volumes: ['./{link}:/x']}}}}");
            let options = LoadOptions::new()
                .with_file(Source::text("compose.yaml", text))
                .with_project_directory(&root)
                .with_project_name("p");
            let loaded = ComposeLoader::new(options).load().unwrap();
            Plan::new(&loaded.project, &PlanOptions::default()).unwrap()
        };
        check(&plan("within"), &root, &Policy::default()).unwrap();
        let error = check(&plan("out"), &root, &Policy::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let policy = Policy {
            allow_host_binds: vec!["/etc".to_owned()],
            ..Policy::default()
        };
        check(&plan("out"), &root, &policy).unwrap();
    }
}
