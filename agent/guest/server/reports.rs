//! What runners report of their commands, as events for the clients.

use super::Server;
use super::command::Phase;
use super::lost::LostTree;
use crate::link::Report;
use crate::protocol::{AgentMessage, Exit};

impl Server {
    pub(super) fn hear_runner(&mut self, number: u64) {
        use std::io::{ErrorKind, Read};
        loop {
            let Some(command) = self.commands.get_mut(&number) else {
                return;
            };
            let Some(link) = &mut command.link else { return };
            let mut bytes = [0; 4096];
            match link.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => command.records.push(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
            while let Some(report) = self
                .commands
                .get_mut(&number)
                .and_then(|command| command.records.report())
            {
                self.note_report(number, report);
            }
        }
        self.lose_runner(number);
    }

    fn note_report(&mut self, number: u64, report: Report) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        match report {
            Report::Started(pid) => {
                command.phase = Phase::Running;
                self.tell_of(number, &AgentMessage::Started(pid));
                self.feed(number, false);
            }
            Report::Failed(stage, errno) => {
                let message = AgentMessage::StartFailed {
                    stage,
                    errno,
                    subject: command.subject(stage),
                };
                self.tell_of(number, &message);
                // A kill that came meanwhile is answered as one of a channel that is gone.
                self.answer_kills(number, 0, false);
                self.forget(number);
            }
            Report::Exited {
                status,
                user_us,
                system_us,
            } => {
                let killer = u8::try_from(status & 0x7f).unwrap_or(0);
                let code = u8::try_from((status >> 8) & 0xff).unwrap_or(0);
                self.note_exit(
                    number,
                    (killer == 0).then_some(code),
                    (killer != 0).then_some(killer),
                    [user_us, system_us],
                );
            }
            Report::Survivor(pid) => command.survivors.push(pid),
            Report::Killed(killed) => self.answer_kills(number, killed, false),
            Report::Empty => {
                command.is_empty = true;
                command.link = None;
                self.answer_kills(number, 0, false);
            }
        }
    }

    fn note_exit(&mut self, number: u64, code: Option<u8>, signal: Option<u8>, times: [u64; 2]) {
        let was_killed = code == Some(137) || signal == Some(9);
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        let oom_kills = if was_killed {
            self.oom_kills.since(command.began)
        } else {
            0
        };
        command.phase = Phase::Exited;
        command.deadline = None;
        for output in &mut command.outputs {
            output.expect_drain();
        }
        let [user_us, system_us] = times;
        let exit = Exit {
            code,
            signal,
            cause: command.cause,
            oom_kills,
            user_us,
            system_us,
        };
        if let Some(session) = &mut command.session {
            session.note_exit(exit);
        }
        self.tell_of(number, &AgentMessage::Exited(exit));
        // What it wrote at its very end is told in the same turn, so that a short command needs one write.
        for index in 0..2 {
            self.read_output(number, index);
        }
    }

    /// The runner is gone. Without a word of the tree's end it was killed itself: what it watched over is looked for.
    fn lose_runner(&mut self, number: u64) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        command.link = None;
        if command.is_empty {
            return;
        }
        command.is_empty = true;
        command.is_lost = true;
        let was_starting = command.phase == Phase::Starting;
        let had_exited = command.phase == Phase::Exited;
        let tree = LostTree::new(number, &command.marker);
        if was_starting {
            self.tell_of(number, &AgentMessage::Started(0));
        }
        if !had_exited {
            self.note_exit(number, None, None, [0, 0]);
        }
        self.lost.push(tree);
    }

    /// Answers a kill of a command whose runner is gone, as nobody else does: of one that has only output left there is
    /// nothing to kill, and what one has left that has killed its runner is not known.
    pub(super) fn answer_without_runner(&mut self, number: u64) {
        let Some(command) = self.commands.get(&number) else {
            return;
        };
        let is_lost = command.is_lost;
        if command.is_empty && !self.lost.iter().any(|tree| tree.command == number) {
            self.answer_kills(number, 0, is_lost);
        }
    }

    /// Tells everybody who waits for a kill of this command what came of it.
    pub(super) fn answer_kills(&mut self, number: u64, killed: u32, is_unsure: bool) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        command.kill_answer_at = None;
        let survivors = std::mem::take(&mut command.survivors);
        for cause in std::mem::take(&mut command.kills) {
            let survivors = survivors.clone();
            self.tell_of(
                number,
                &AgentMessage::Killed {
                    cause,
                    killed,
                    survivors,
                    is_unsure,
                },
            );
        }
    }
}
