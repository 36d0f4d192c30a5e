//! A service's program: launched beside what keeps its sandbox alive, by a command without a time limit; its relay; its
//! end; what it printed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::Capability;
use crate::sandbox::AsyncSandbox;
use crate::spec::container::HealthProbe;
use crate::spec::{ExecOptions, ExecResult, ExecTimeout, OutputCap};

use super::super::failure::{MOST_BYTES, in_service, service_failure};
use super::super::health::pause;
use super::super::service::SETTLE;
use super::start::GenericStart;
use super::{GenericCrew, checked, run_short, script};

const RUN: &str = include_str!("run.sh");

/// The folder that [`RUN`] writes to, for whatever user.
const FOLDER: &str = r#"mkdir -p "$1" && chmod 1777 "$1""#;

/// Prints what the program has printed last: `$1` is its folder, `$2` how many bytes. Of one that has ended all of it is
/// waited for, shortly.
const LOG: &str = r#"i=0
while [ -f "$1/exit" ] && [ ! -f "$1/drained" ] && [ "$i" -lt 20 ]; do
  i=$((i + 1))
  sleep 0.05 || sleep 1
done
cat "$1/log.before" "$1/log" 2>/dev/null | tail -c "$2""#;

/// The script says only why it cannot run; what the program prints goes to files.
const SAID: OutputCap = OutputCap::Bytes(16 * 1024);

/// How long the command of a program may last after the program, at most.
const DRAINED: Duration = Duration::from_secs(10);

/// The longest pause between two looks for a file in a sandbox.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With this code.
    Exited(i32),
    /// It did not begin, or it is not known how it ended, and why.
    Lost(String),
}

impl Ended {
    fn of(result: &ExecResult) -> Self {
        match &result.message {
            Some(why) if result.error_type.is_some() => Self::Lost(why.clone()),
            _ => Self::Exited(result.return_code),
        }
    }

    pub(super) fn is_success(&self) -> bool {
        *self == Self::Exited(0)
    }

    /// In words: "it ... before it was healthy".
    pub(super) fn told(&self) -> String {
        match self {
            Self::Exited(code) => format!("exited with {code}"),
            Self::Lost(why) => format!("was lost ({why})"),
        }
    }
}

/// How the programs and relays of all services ended, by the places of the services.
#[derive(Debug)]
pub(super) struct Ends {
    programs: watch::Sender<Vec<Option<Ended>>>,
    relays: watch::Sender<Vec<Option<Arc<Error>>>>,
}

impl Ends {
    pub(super) fn new(services: usize) -> Self {
        Self {
            programs: watch::Sender::new(vec![None; services]),
            relays: watch::Sender::new(vec![None; services]),
        }
    }

    /// Waits until the program of a service ends.
    pub(super) async fn of(&self, service: usize) -> Ended {
        let (_, ended) = self
            .first(|place, ended| (place == service).then(|| ended.clone()))
            .await;
        ended
    }

    /// Waits until a program has ended in a way that is looked for.
    pub(super) async fn first<T>(&self, wanted: impl Fn(usize, &Ended) -> Option<T>) -> (usize, T) {
        let mut programs = self.programs.subscribe();
        loop {
            let found = programs
                .borrow_and_update()
                .iter()
                .enumerate()
                .find_map(|(place, ended)| Some((place, wanted(place, ended.as_ref()?)?)));
            if let Some(found) = found {
                return found;
            }
            if programs.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    fn note(&self, service: usize, ended: Ended) {
        self.programs
            .send_modify(|programs| programs[service] = Some(ended));
    }

    /// Waits until the relay of a service ends, which it must not.
    async fn of_relay(&self, service: usize) -> Error {
        let mut relays = self.relays.subscribe();
        let ended = relays.wait_for(|relays| relays[service].is_some()).await;
        let cause = ended.ok().and_then(|relays| relays[service].clone());
        relay_ended(cause)
    }

    /// The first relay that has ended, which none may (contract 4.5).
    pub(super) fn check_relays(&self) -> Result<(), (usize, Error)> {
        let relays = self.relays.borrow();
        let ended = relays
            .iter()
            .enumerate()
            .find_map(|(service, cause)| Some((service, cause.clone()?)));
        ended.map_or(Ok(()), |(service, cause)| {
            Err((service, relay_ended(Some(cause))))
        })
    }
}

fn relay_ended(cause: Option<Arc<Error>>) -> Error {
    let error = Error::new(
        ErrorKind::NotReady,
        Operation::ComposeUp,
        "the relay to the service whose network it shares has ended",
    );
    match cause {
        Some(cause) => error.with_source(cause),
        None => error,
    }
}

impl GenericStart<'_> {
    /// Starts the program of a service, and what it needs before; returns when it has begun.
    pub(super) async fn launch(&self, service: usize, addresses: &[IpAddr]) -> Result<()> {
        let crew = self.crew;
        let sandbox = crew.sandbox(service)?;
        let folder = crew.folder(service);
        let name = &crew.plan.services[service].name;
        let prepared = async {
            let what = "the folder of its program could not be made";
            run_short(&sandbox, what, script(FOLDER, &[&folder])).await?;
            self.start_relay(service, &sandbox, addresses).await
        };
        prepared.await.map_err(|error| in_service(name, error))?;
        let options = crew.program(service, &folder, addresses);
        let ends = Arc::clone(&self.ends);
        let program = Arc::clone(&sandbox);
        let task = tokio::spawn(async move {
            let ended = match run(&program, options).await {
                Ok(result) => Ended::of(&result),
                Err(error) => Ended::Lost(error.to_string()),
            };
            ends.note(service, ended);
        });
        crew.made().programs.insert(service, task.abort_handle());
        crew.keep(task);
        let started = format!("{folder}/started");
        tokio::select! {
            seen = wait_for_file(&sandbox, &started) => seen.map_err(|error| in_service(name, error)),
            ended = self.ends.of(service) => {
                // One that ends quickly has begun as well.
                if has_file(&sandbox, &started).await.unwrap_or(false) {
                    return Ok(());
                }
                Err(crew.failed(service, &format!("did not begin: it {}", ended.told())).await)
            }
        }
    }

    /// Has the ports of the other service on this one's loopback address, in place of its network.
    async fn start_relay(
        &self,
        service: usize,
        sandbox: &Arc<AsyncSandbox>,
        addresses: &[IpAddr],
    ) -> Result<()> {
        let crew = self.crew;
        let Some(relay) = crew.plan.services[service].relay.clone() else {
            return Ok(());
        };
        let ready = format!("{}/relay", crew.folder(service));
        let handle = sandbox.handle().ok_or_else(|| gone(crew, service))?;
        let (provider, ends) = (Arc::clone(&crew.provider), Arc::clone(&self.ends));
        let (target, file) = (addresses[relay.target], ready.clone());
        crew.keep(tokio::spawn(async move {
            let cause = match provider.as_port_forwarding() {
                None => Error::unsupported(
                    Operation::Forward,
                    provider.name(),
                    Capability::PortForwarding.as_str(),
                ),
                Some(forwarding) => match forwarding
                    .forward_ports(&handle, target, &relay.ports, &file)
                    .await
                {
                    Ok(()) => Error::new(ErrorKind::Internal, Operation::Forward, "it ended by itself"),
                    Err(error) => error,
                },
            };
            ends.relays
                .send_modify(|relays| relays[service] = Some(Arc::new(cause)));
        }));
        tokio::select! {
            seen = wait_for_file(sandbox, &ready) => seen,
            ended = self.ends.of_relay(service) => Err(ended),
        }
    }
}

impl GenericStart<'_> {
    /// Gives a program that ends at once the time to do so, and says whether it has. How it ended is known when its command
    /// has, a little after the program wrote down its code.
    pub(super) async fn ended_at_once(&self, service: usize) -> Result<Option<Ended>> {
        if let Ok(ended) = tokio::time::timeout(SETTLE, self.ends.of(service)).await {
            return Ok(Some(ended));
        }
        let sandbox = self.crew.sandbox(service)?;
        let exit = format!("{}/exit", self.crew.folder(service));
        let name = &self.crew.plan.services[service].name;
        if !has_file(&sandbox, &exit)
            .await
            .map_err(|error| in_service(name, error))?
        {
            return Ok(None);
        }
        Ok(tokio::time::timeout(DRAINED, self.ends.of(service)).await.ok())
    }
}

impl GenericCrew {
    /// The command that is the service's program.
    fn program(&self, service: usize, folder: &str, addresses: &[IpAddr]) -> ExecOptions {
        let mut argv = ["sh", "-c", RUN, "compose", folder].map(str::to_owned).to_vec();
        argv.extend(self.plan.services[service].argv.iter().cloned());
        let mut options = self
            .as_service(service, ExecOptions::new(argv), addresses)
            .with_output_cap(SAID);
        options.timeout = ExecTimeout::Never;
        options
    }

    /// A command as the service's program: its user, and the addresses of others in its variables.
    pub(super) fn as_service(
        &self,
        service: usize,
        mut options: ExecOptions,
        addresses: &[IpAddr],
    ) -> ExecOptions {
        let service = &self.plan.services[service];
        for (name, url) in &service.resolved {
            options = options.with_env(name, url.with_address(addresses[url.service]));
        }
        match &service.user {
            Some(user) => options.with_user(user.as_str()),
            None => options,
        }
    }

    fn keep(&self, task: tokio::task::JoinHandle<()>) {
        self.made().tasks.push(task);
    }

    /// The error of a service that failed, with the end of what its program printed.
    pub(super) async fn failed(&self, service: usize, what: &str) -> Error {
        self.failed_with(service, what, None).await
    }

    /// The same of one that is not healthy, with what its last probe has come to.
    pub(super) async fn failed_with(&self, service: usize, what: &str, probe: Option<&HealthProbe>) -> Error {
        let printed = match self.printed(service).await {
            Ok(printed) => printed,
            Err(error) => {
                tracing::debug!(%error, "the output of a service cannot be read");
                String::new()
            }
        };
        service_failure(&self.plan.services[service].name, what, printed.trim_end(), probe)
    }

    async fn printed(&self, service: usize) -> Result<String> {
        let sandbox = self.sandbox(service)?;
        let bytes = MOST_BYTES.to_string();
        let options = script(LOG, &[&self.folder(service), &bytes]);
        let result = run_short(&sandbox, "its output could not be read", options).await?;
        Ok(result.stdout().unwrap_or_default())
    }

    /// How a program ended whose command was lost: the file that it wrote tells.
    pub(super) async fn exit_code(&self, service: usize, ended: Ended) -> Ended {
        if let Ended::Exited(_) = ended {
            return ended;
        }
        let Ok(sandbox) = self.sandbox(service) else {
            return ended;
        };
        let file = format!("{}/exit", self.folder(service));
        let code = match sandbox.exec_with(script(r#"cat "$1""#, &[&file])).await {
            Ok(result) if result.is_success() => result.stdout().and_then(|code| code.trim().parse().ok()),
            _ => None,
        };
        code.map_or(ended, Ended::Exited)
    }
}

/// Runs a command that may last as long as its sandbox. A spawned one holds no place among the ordinary commands.
async fn run(sandbox: &AsyncSandbox, options: ExecOptions) -> Result<ExecResult> {
    if sandbox.supports(Capability::Spawn) {
        sandbox.spawn(options).await?.wait().await
    } else {
        sandbox.exec_with(options).await
    }
}

async fn has_file(sandbox: &AsyncSandbox, path: &str) -> Result<bool> {
    let result = sandbox.exec_with(script(r#"[ -f "$1" ]"#, &[path])).await?;
    if result.error_type.is_none() {
        return Ok(result.return_code == 0);
    }
    checked("its sandbox runs no commands", result).map(|_| false)
}

/// Looks for a file until it is there.
async fn wait_for_file(sandbox: &AsyncSandbox, path: &str) -> Result<()> {
    let began = tokio::time::Instant::now();
    while !has_file(sandbox, path).await? {
        tokio::time::sleep(pause(began.elapsed(), LONGEST_PAUSE)).await;
    }
    Ok(())
}

fn gone(crew: &GenericCrew, service: usize) -> Error {
    let text = format!(
        "the sandbox of service `{}` is gone",
        crew.plan.services[service].name
    );
    Error::new(ErrorKind::NotFound, Operation::ComposeUp, text)
}
