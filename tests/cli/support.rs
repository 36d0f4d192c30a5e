//! Runs the command under a deadline and asks the engine, not the command, what there is.

use std::collections::HashMap;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

pub(crate) const BUSYBOX: &str = "gym-sandbox/busybox:test";

/// No call of the command in these tests takes nearly as long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);

/// One call of the command, with a run of its own by which the engine knows what it made.
pub(crate) struct Call {
    pub(crate) command: Command,
    pub(crate) run: String,
    input: Vec<u8>,
}

/// What came of a call.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Call {
    pub(crate) fn new(arguments: &[&str]) -> Self {
        let run = format!("cli-test-{}", uuid::Uuid::new_v4().simple());
        let mut command = Command::new(env!("CARGO_BIN_EXE_gym-sandbox"));
        command
            .args(arguments)
            .env("GYM_SANDBOX_RUN", &run)
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Self {
            command,
            run,
            input: Vec::new(),
        }
    }

    /// `run` in busybox with these further arguments.
    pub(crate) fn run(arguments: &[&str]) -> Self {
        Self::new(&[&["run", "--image", BUSYBOX], arguments].concat())
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn input(mut self, input: &[u8]) -> Self {
        self.input = input.to_vec();
        self
    }

    /// Runs it to its end.
    pub(crate) async fn answer(self) -> Answer {
        self.answer_within(DEADLINE).await
    }

    /// Runs it to its end, which may take longer than that of other calls.
    pub(crate) async fn answer_within(mut self, deadline: Duration) -> Answer {
        let mut child = self.command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = std::mem::take(&mut self.input);
        let feed = tokio::spawn(async move {
            // A command that does not read its input ends without it.
            let _ = stdin.write_all(&input).await;
        });
        let output = tokio::time::timeout(deadline, child.wait_with_output())
            .await
            .expect("the command ends")
            .unwrap();
        feed.abort();
        Answer {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: output.stderr,
        }
    }

    /// Runs it to its end and looks that nothing of it is left.
    pub(crate) async fn clean_answer(self) -> Answer {
        let run = self.run.clone();
        let answer = self.answer().await;
        assert_nothing_left(&run).await;
        answer
    }
}

impl Answer {
    pub(crate) fn text(&self) -> (Option<i32>, String, String) {
        (self.code, self.stdout(), self.stderr())
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }
}

/// What a test expects: exit code, standard output, standard error.
pub(crate) fn expected(code: i32, stdout: &str, stderr: &str) -> (Option<i32>, String, String) {
    (Some(code), stdout.to_owned(), stderr.to_owned())
}

/// The engine. None, with a word about it, where there is none and that is allowed.
pub(crate) async fn engine() -> Option<Docker> {
    let reached = async { Docker::connect_with_defaults()?.negotiate_version().await };
    match reached.await {
        Ok(docker) => Some(docker),
        Err(error) if std::env::var_os("SANDBOX_REQUIRE_DOCKER").is_some() => {
            panic!("no engine answers: {error}")
        }
        Err(error) => {
            eprintln!("skipped, no engine answers: {error}");
            None
        }
    }
}

/// The containers of a run, whatever their state.
pub(crate) async fn containers(docker: &Docker, run: &str) -> Vec<ContainerSummary> {
    let filters = HashMap::from([("label", vec![format!("gym-sandbox.run={run}")])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    docker.list_containers(Some(options)).await.unwrap()
}

/// Fails when the run has left a container, and removes it.
pub(crate) async fn assert_nothing_left(run: &str) {
    let docker = engine().await.unwrap();
    let left = containers(&docker, run).await;
    for container in &left {
        remove(&docker, container.id.as_deref().unwrap()).await;
    }
    assert!(left.is_empty(), "left on the engine: {left:?}");
}

pub(crate) async fn remove(docker: &Docker, id: &str) {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    docker.remove_container(id, Some(options)).await.unwrap();
}

/// Asks again until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "not in {DEADLINE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends a signal to a call of the command.
pub(crate) async fn send(child: &Child, signal: &str) {
    let pid = child.id().expect("it runs").to_string();
    assert!(
        Command::new("kill")
            .args(["-s", signal, &pid])
            .status()
            .await
            .unwrap()
            .success()
    );
}

pub(crate) async fn ended(child: &mut Child) -> ExitStatus {
    tokio::time::timeout(DEADLINE, child.wait())
        .await
        .expect("the command ends")
        .unwrap()
}

/// Ends a test early where there is no engine.
macro_rules! engine_or_skip {
    () => {
        match $crate::support::engine().await {
            Some(docker) => docker,
            None => return,
        }
    };
}
pub(crate) use engine_or_skip;
