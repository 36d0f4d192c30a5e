//! `compose logs`: what the services of a project printed, each line after the name of its service.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{BoxStream, select_all};
use futures::{Stream, StreamExt};
use gym_sandbox::compose::{ProjectService, compose_services};
use gym_sandbox::{
    Error, ErrorKind, LogLine, LogOptions, LogStream, Operation, Ports, Result, SandboxProvider,
};
use serde::Serialize;

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::ComposeLogsRequest;
use crate::cli::session::{Outcome, blocking, until_interrupted};

use super::compose_look::provider;
use super::compose_up::no_project;

/// How many lines that are there already are written at once: a long log is read as fast as it comes.
const AT_ONCE: usize = 64;

/// What `--json` prints of each line, one object a line.
#[derive(Serialize)]
struct Line {
    service: String,
    container: String,
    stream: LogStream,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    text: String,
    complete: bool,
}

/// Prints the lines: of one container after the other, or with `--follow` as they come. A service whose log can't be read, and
/// that nobody has asked for by its name, costs a remark.
///
/// # Errors
/// There is no such project or service, or a log can't be read or written.
pub(in crate::cli) async fn run(request: ComposeLogsRequest) -> Result<u8> {
    let provider = provider(request.config.clone())?;
    let work = async {
        let mut services = compose_services(&*provider, &request.name).await?;
        if services.is_empty() {
            return Err(no_project(&request.name));
        }
        for name in &request.services {
            if !services.iter().any(|service| service.service == *name) {
                return Err(no_service(&request.name, name, &services));
            }
        }
        services.retain(|service| request.services.is_empty() || request.services.contains(&service.service));
        print(&provider, &services, &request).await
    };
    match Box::pin(until_interrupted(work)).await? {
        Outcome::Ended(()) => Ok(exit::SUCCESS),
        Outcome::Interrupted(interrupt) => Ok(interrupt.exit_code()),
    }
}

fn no_service(project: &str, service: &str, services: &[ProjectService]) -> Error {
    let mut names: Vec<&str> = services.iter().map(|service| service.service.as_str()).collect();
    names.dedup();
    Error::new(
        ErrorKind::NotFound,
        Operation::Compose,
        format!(
            "project `{project}` has no service `{}`; it has {}",
            service.escape_debug(),
            names.join(", ")
        ),
    )
}

async fn print(
    provider: &Arc<dyn SandboxProvider>,
    services: &[ProjectService],
    request: &ComposeLogsRequest,
) -> Result<()> {
    let mut page = Page {
        titles: titles(services),
        services,
        format: request.format,
        open: None,
    };
    let mut logs = Vec::new();
    for (index, service) in services.iter().enumerate() {
        let lines = lines(provider, service, &request.lines).await?;
        let is_asked_for = request.services.contains(&service.service);
        let lines = lines.filter_map(move |line| async move {
            match line {
                Err(error) if error.kind() == ErrorKind::Unsupported && !is_asked_for => {
                    output::note(&error.to_string());
                    None
                }
                line => Some((index, line)),
            }
        });
        if request.lines.follow {
            logs.push(lines.boxed());
        } else {
            page.print_all(lines.boxed()).await?;
        }
    }
    page.print_all(select_all(logs)).await?;
    page.end().await
}

async fn lines(
    provider: &Arc<dyn SandboxProvider>,
    service: &ProjectService,
    options: &LogOptions,
) -> Result<BoxStream<'static, Result<LogLine>>> {
    let missing = |what| Error::unsupported(Operation::Logs, provider.name(), what);
    let containers = provider.as_containers().ok_or_else(|| missing("containers"))?;
    let logs = provider.as_logs().ok_or_else(|| missing("logs"))?;
    let handle = containers
        .container_handle(&service.container.id, &Ports::default())
        .await?;
    logs.logs(&handle, options).await
}

/// The name of each container's service, with its number where there are several.
fn titles(services: &[ProjectService]) -> Vec<String> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for service in services {
        *count.entry(&service.service).or_default() += 1;
    }
    let number = |service: &ProjectService| {
        let labels = &service.container.labels;
        labels.get("com.docker.compose.container-number").cloned()
    };
    services
        .iter()
        .map(|service| match number(service) {
            Some(number) if count[service.service.as_str()] > 1 => format!("{}-{number}", service.service),
            _ => service.service.clone(),
        })
        .collect()
}

/// What is printed, line by line.
struct Page<'a> {
    titles: Vec<String>,
    services: &'a [ProjectService],
    format: Format,
    /// Whose line is not at its end yet.
    open: Option<usize>,
}

impl Page<'_> {
    async fn print_all(
        &mut self,
        lines: impl Stream<Item = (usize, Result<LogLine>)> + Send + Unpin,
    ) -> Result<()> {
        let mut chunks = lines.ready_chunks(AT_ONCE);
        while let Some(chunk) = chunks.next().await {
            let mut bytes = Vec::new();
            let put = chunk
                .into_iter()
                .try_for_each(|(index, line)| self.put(&mut bytes, index, line?));
            // What came before a failure is printed.
            blocking(move || output::data(&bytes)).await?;
            put?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &mut Vec<u8>, index: usize, line: LogLine) -> Result<()> {
        if matches!(self.format, Format::Json) {
            let service = &self.services[index];
            let line = Line {
                service: service.service.clone(),
                container: service.container.name.clone(),
                stream: line.stream,
                text: line.text().into_owned(),
                complete: line.is_complete,
                timestamp: line.timestamp,
            };
            let written = serde_json::to_writer(&mut *bytes, &line);
            bytes.push(b'\n');
            return written.map_err(|error| {
                Error::new(ErrorKind::Internal, Operation::Logs, "a line has no JSON form").with_source(error)
            });
        }
        if self.open != Some(index) {
            if self.open.is_some() {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(format!("{} | ", self.titles[index]).as_bytes());
            if let Some(time) = &line.timestamp {
                bytes.extend_from_slice(format!("{time} ").as_bytes());
            }
        }
        bytes.extend_from_slice(&line.bytes);
        if line.is_complete {
            bytes.push(b'\n');
        }
        self.open = (!line.is_complete).then_some(index);
        Ok(())
    }

    /// Ends a last line that has no end of its own.
    async fn end(self) -> Result<()> {
        match self.open {
            Some(_) => blocking(|| output::data(b"\n")).await,
            None => Ok(()),
        }
    }
}
