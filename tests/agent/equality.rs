//! A command sees the same sandbox whichever way it is run (design.md, "The resident agent").

use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{ExecOptions, ExecPath, SandboxSpec};

use super::{Kept, common, docker};

/// What a command can see of itself. Own numbers and times are left out; the marker's value differs from command to
/// command, and commands of the agent are the first that the kernel kills for want of memory.
const SEEN: &str = r#"
(cd /proc/$$/fd; echo descriptors *)
echo env; env | sed 's/^\(GYM_SANDBOX_EXEC=\).*/\1/' | sort
echo id; id
echo umask; umask
echo limits; ulimit -a
echo status; grep -E '^(Cap|Seccomp:|NoNewPrivs|Sig(Blk|Ign|Cgt)|Shd|Groups|Uid|Gid)' /proc/self/status | grep -v '^SigQ'
echo cgroup; cat /proc/self/cgroup
echo cwd; pwd
echo session; [ "$(cut -d' ' -f6 /proc/$$/stat)" = $$ ] && echo leader
echo terminal; cut -d' ' -f7 /proc/$$/stat
"#;

async fn seen(policy: ExecPathPolicy, spec: &SandboxSpec, user: Option<&str>) -> Option<String> {
    let test = docker(policy).await?;
    let sandbox = Kept::new(&test, spec.clone()).await;
    let mut options = ExecOptions::new(["sh", "-c", SEEN]).with_env("ADDED", "a b");
    options.user = user.map(Into::into);
    let result = sandbox.exec(options).await;
    assert!(result.is_success(), "{result:?}");
    let expected = if policy == ExecPathPolicy::Agent {
        ExecPath::Agent
    } else {
        ExecPath::Engine
    };
    assert_eq!(result.exec_path, expected, "{:?}", sandbox.raw().engine_reason());
    let container = sandbox.raw().container_id.clone();
    sandbox.close().await;
    let hostname = &container[..12];
    Some(
        result
            .stdout()
            .unwrap()
            .replace(&container, "ID")
            .replace(hostname, "HOST"),
    )
}

async fn assert_equal(spec: SandboxSpec, user: Option<&str>) {
    let Some(by_engine) = seen(ExecPathPolicy::Engine, &spec, user).await else {
        return;
    };
    let by_agent = seen(ExecPathPolicy::Agent, &spec, user).await.unwrap();
    let differing: Vec<_> = by_engine
        .lines()
        .zip(by_agent.lines())
        .filter(|(engine, agent)| engine != agent)
        .collect();
    assert!(
        by_engine == by_agent,
        "{:?} {user:?}: {differing:#?}",
        spec.image()
    );
}

#[tokio::test]
async fn busybox() {
    assert_equal(SandboxSpec::new(common::BUSYBOX), None).await;
    assert_equal(SandboxSpec::new(common::BUSYBOX), Some("nobody")).await;
    assert_equal(SandboxSpec::new(common::BUSYBOX), Some("1234:77")).await;
}

#[tokio::test]
async fn debian() {
    assert_equal(SandboxSpec::new(common::DEBIAN), None).await;
    assert_equal(SandboxSpec::new(common::DEBIAN), Some("nobody")).await;
}

#[tokio::test]
async fn images_with_a_user() {
    assert_equal(SandboxSpec::new("gym-sandbox/user:test"), None).await;
    assert_equal(SandboxSpec::new("gym-sandbox/debian-user:test"), None).await;
}

#[tokio::test]
async fn a_hardened_sandbox() {
    assert_equal(common::busybox().with_provider_option("preset", "hardened"), None).await;
}

#[tokio::test]
async fn a_directory_variables_and_no_network() {
    let spec = common::busybox()
        .with_workdir("/usr")
        .with_env("HOME", "/elsewhere")
        .with_env("A", "1")
        .with_provider_option("network", "none")
        .with_provider_option("read_only", true);
    assert_equal(spec, None).await;
}
