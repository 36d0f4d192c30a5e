//! Ending a session that was made here. The agent keeps sessions whose connection is lost, so that it is also done over
//! another connection, and where nobody waits for it, in the background (contract Z5, Z11, Z12).

use std::sync::Arc;
use std::time::Duration;

use gym_sandbox_agent::protocol::{AttachRequest, ClientMessage};
use tokio::time::Instant;

use crate::provider::Reaper;

use super::super::DockerProvider;
use super::ending;
use super::mailbox::News;
use super::patience::{Told, Waited, until_paused, until_resumed};
use super::resident::{Resident, Route};
use super::terminal_pump::{Line, NotJoined};

/// How long the agent may take to kill what is closed.
const KILL_MS: u32 = 10_000;

/// How long it may take to say so: as long, and the time of any answer.
const LIMIT: Duration = Duration::from_secs(30);

/// The pauses before another connection is made for a lost one: the agent has to notice the loss, too.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// How long a session whose connection was lost under a paused sandbox is kept in mind until that is resumed.
const RESUME: Duration = Duration::from_secs(60);

const EBUSY: i32 = 16;

/// Where a session lives.
#[derive(Clone)]
pub(super) struct Home {
    pub(super) provider: DockerProvider,
    pub(super) container_id: String,
    pub(super) resident: Arc<Resident>,
}

/// A session that is to be ended. Dropped before it has been, the rest is done in the background.
pub(super) struct Closing {
    home: Home,
    name: String,
    line: Line,
    is_told: bool,
    is_armed: bool,
}

impl Closing {
    pub(super) fn new(home: Home, name: String, line: Line) -> Self {
        Self {
            home,
            name,
            line,
            is_told: false,
            is_armed: true,
        }
    }

    /// The session lives on.
    pub(super) fn disarm(mut self) {
        self.is_armed = false;
    }

    /// Ends the session, and waits until the agent has killed what it ran. In a paused sandbox that is left to the
    /// background.
    pub(super) async fn run(mut self) {
        self.tell();
        let until = Instant::now() + LIMIT;
        let waited = told(&self.home, &self.line).answer(until).await;
        if waited == Waited::Paused {
            return;
        }
        if is_lost(&self.line) {
            tokio::select! {
                () = finish(&self.home, &self.name, self.line.clone()) => {}
                () = until_paused(&self.home.provider, &self.home.container_id) => return,
            }
        } else {
            self.line.link.forget(self.line.channel);
        }
        self.is_armed = false;
    }

    fn tell(&mut self) {
        if !self.is_told {
            self.line.push(&ClientMessage::CloseSession(KILL_MS));
            self.is_told = true;
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        self.tell();
        let (home, name, line) = (self.home.clone(), self.name.clone(), self.line.clone());
        let reaper = self.home.provider.reaper().clone();
        reaper.submit("close a dropped terminal", async move {
            finish(&home, &name, line).await;
        });
    }
}

/// Waits for the end of a session that the agent was told to close, and tells it again when that was lost.
async fn finish(home: &Home, name: &str, line: Line) {
    let mut line = Some(line);
    let resumed_until = Instant::now() + RESUME;
    let mut pauses = PAUSES.iter();
    while let Some(pause) = pauses.next() {
        if let Some(line) = line.take()
            && !until_lost(home, &line).await
        {
            return;
        }
        Reaper::aside(tokio::time::sleep(*pause)).await;
        let connection = match home.resident.route(&home.provider, &home.container_id).await {
            Route::Agent(connection) => connection,
            // The sandbox does not run, and the session with it.
            Route::Ended(result) if ending::is_end(&result) => return,
            // Nobody waits for a resume that may never come. After it the agent has all its tries.
            Route::Ended(result) if ending::is_pause(&result) && Instant::now() < resumed_until => {
                let (provider, id) = (&home.provider, &home.container_id);
                Reaper::unawaited(until_resumed(provider, id, Some(resumed_until))).await;
                pauses = PAUSES.iter();
                continue;
            }
            // The engine is away for the moment.
            Route::Ended(_) => continue,
            // There is nobody any more who could be told.
            Route::Engine => break,
        };
        let request = AttachRequest {
            name: name.as_bytes().to_vec(),
            // Who has taken it over meanwhile keeps it.
            takeover: false,
            stdout_since: u64::MAX,
            stderr_since: u64::MAX,
            stdout_credit: 0,
            stderr_credit: 0,
        };
        match Line::attach(connection, request).await {
            Ok(joined) => {
                joined.push(&ClientMessage::CloseSession(KILL_MS));
                line = Some(joined);
            }
            Err(NotJoined::Refused(EBUSY) | NotJoined::Lost(_)) => {}
            Err(NotJoined::Refused(_)) => return,
        }
    }
    if let Some(line) = line
        && !until_lost(home, &line).await
    {
        return;
    }
    tracing::warn!(session = name, "a closed terminal session may live on");
}

/// Waits until the agent has killed what it was told to close. Says whether the connection was lost before.
async fn until_lost(home: &Home, line: &Line) -> bool {
    // One that has not answered in time does it all the same.
    let _in_time = told(home, line).answer_in_background(LIMIT).await;
    let is_lost = is_lost(line);
    line.link.forget(line.channel);
    is_lost
}

fn told<'a>(home: &'a Home, line: &'a Line) -> Told<'a> {
    Told {
        provider: &home.provider,
        container_id: &home.container_id,
        mailbox: &line.mailbox,
        is_answer: |news| is_done(news) || news.lost.is_some(),
    }
}

fn is_done(news: &News) -> bool {
    news.killed.is_some() || news.start_failed.is_some() || news.evicted
}

fn is_lost(line: &Line) -> bool {
    let news = line.mailbox.news();
    !is_done(&news) && news.lost.is_some()
}
