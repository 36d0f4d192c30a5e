//! What the classic builder says, as events, and what of it is kept: the step, its last output, the images it made.

use std::collections::VecDeque;
use std::fmt;

use bollard::models::BuildInfo;

use crate::spec::ImageEvent;

/// How much of the output of a step is kept for an error.
const LAST_LINES: usize = 20;
const LAST_BYTES: usize = 16 * 1024;

/// The largest number of images that are kept in mind; a Dockerfile has 127 steps at most that make one.
const MOST_IMAGES: usize = 1024;

/// A step of a build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) number: u32,
    pub(super) total: u32,
    pub(super) text: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.text.chars().take(200).collect();
        write!(f, "step {}/{} `{text}`", self.number, self.total)
    }
}

/// Where the image of a step comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Unknown,
    Cache,
    /// A container of the step is gone, so its image is none that was there.
    Container,
}

/// What is kept of the messages so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) step: Option<Step>,
    /// Short ids of images that steps seem to have made, oldest first. The output of a step can say anything: each is
    /// looked at before it is believed.
    pub(super) made: Vec<String>,
    /// The id of the image.
    pub(super) built: Option<String>,
    /// What the next step is made on, by its short id.
    pub(super) parent: Option<String>,
    /// The container of the step.
    pub(super) container: Option<String>,
    /// The step has not said its image yet: the engine may be making it.
    pub(super) unfinished: bool,
    /// The engine has said the end of the build, good or bad: nothing is in the making.
    pub(super) ended: bool,
    origin: Origin,
    last: VecDeque<String>,
    last_bytes: usize,
    line: String,
}

impl Log {
    /// Takes in a message and says what to tell of it.
    pub(super) fn note(&mut self, message: BuildInfo) -> Option<ImageEvent> {
        if let Some(id) = message.aux.and_then(|aux| aux.id) {
            self.built = Some(id);
            return None;
        }
        if let Some(status) = message.status {
            let pulled = bollard::models::CreateImageInfo {
                id: message.id,
                status: Some(status),
                progress_detail: message.progress_detail,
                ..bollard::models::CreateImageInfo::default()
            };
            return super::super::progress::event_of(pulled);
        }
        let text = message.stream?;
        if let Some(step) = step_of(&text) {
            self.last.clear();
            (self.last_bytes, self.origin) = (0, Origin::Unknown);
            (self.container, self.unfinished) = (None, true);
            self.line.clear();
            self.step = Some(step.clone());
            return Some(ImageEvent::Step {
                number: step.number,
                total: step.total,
                text: step.text,
            });
        }
        match text.trim_end().strip_prefix(" ---> ") {
            // A step that runs can print this, too.
            Some("Using cache") if self.container.is_none() => {
                self.origin = Origin::Cache;
                return Some(ImageEvent::Status("using the cache".to_owned()));
            }
            Some(id) if is_short_id(id) => {
                // One with triggers has run them.
                let is_base = self.origin == Origin::Unknown
                    && self.step.as_ref().is_some_and(|step| is_from(&step.text));
                (self.parent, self.unfinished) = (Some(id.to_owned()), false);
                if self.origin != Origin::Cache && !is_base && self.made.len() < MOST_IMAGES {
                    self.made.push(id.to_owned());
                }
                return None;
            }
            Some(running) => {
                if let Some(container) = running.strip_prefix("Running in ").filter(|id| is_short_id(id)) {
                    // What comes later may be the step's output.
                    self.container.get_or_insert_with(|| container.to_owned());
                    return None;
                }
            }
            None => {}
        }
        if text.starts_with("Removing intermediate container ") {
            self.origin = Origin::Container;
            return None;
        }
        self.keep(&text);
        Some(ImageEvent::Output(text))
    }

    /// Keeps the last lines.
    fn keep(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let room = LAST_BYTES.saturating_sub(self.line.len());
            self.line.extend(piece.trim_end_matches('\n').chars().take(room));
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.last_bytes += line.len();
                self.last.push_back(line);
            }
            while self.last.len() > LAST_LINES || self.last_bytes > LAST_BYTES {
                let gone = self.last.pop_front();
                self.last_bytes -= gone.map_or(0, |line| line.len());
            }
        }
    }

    pub(super) fn last_lines(&self) -> Vec<String> {
        let unended = (!self.line.is_empty()).then(|| self.line.clone());
        self.last.iter().cloned().chain(unended).collect()
    }
}

/// Says whether an instruction is a `FROM`.
pub(super) fn is_from(text: &str) -> bool {
    text.get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("FROM "))
}

fn is_short_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `Step 1/3 : FROM a`
fn step_of(text: &str) -> Option<Step> {
    let (numbers, instruction) = text.strip_prefix("Step ")?.split_once(" : ")?;
    let (number, total) = numbers.split_once('/')?;
    Some(Step {
        number: number.parse().ok()?,
        total: total.parse().ok()?,
        text: instruction.trim_end().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(text: &str) -> BuildInfo {
        BuildInfo {
            stream: Some(text.to_owned()),
            ..BuildInfo::default()
        }
    }

    #[test]
    fn steps_output_and_images_are_told_apart() {
        let mut log = Log::default();
        for text in [
            "Step 1/4 : FROM a\n",
            " ---> aaaaaaaaaaaa\n",
            "Step 2/4 : ENV x=y\n",
            " ---> Using cache\n",
            " ---> bbbbbbbbbbbb\n",
            "Step 3/4 : RUN one\n",
            " ---> Running in cccccccccccc\n",
            "lost\n",
            "Removing intermediate container cccccccccccc\n",
            " ---> dddddddddddd\n",
        ] {
            log.note(stream(text));
        }
        assert_eq!(log.made, ["dddddddddddd"], "not the base and not the cache");
        let event = log.note(stream("Step 4/4 : RUN two\n"));
        assert_eq!(
            event,
            Some(ImageEvent::Step {
                number: 4,
                total: 4,
                text: "RUN two".to_owned()
            })
        );
        assert_eq!(
            log.note(stream("half ")),
            Some(ImageEvent::Output("half ".to_owned()))
        );
        log.note(stream("line\nlast"));
        assert_eq!(log.last_lines(), ["half line", "last"]);
        assert_eq!(log.step.unwrap().to_string(), "step 4/4 `RUN two`");
    }

    #[test]
    fn a_step_can_not_hide_its_image_by_its_output() {
        for lie in [" ---> Using cache\n", "Step 2/9 : FROM a\n"] {
            let mut log = Log::default();
            for text in [
                "Step 1/2 : FROM a\n",
                " ---> aaaaaaaaaaaa\n",
                "Step 2/2 : RUN lie\n",
                " ---> Running in cccccccccccc\n",
                lie,
                " ---> Running in ffffffffffff\n",
            ] {
                log.note(stream(text));
            }
            assert!(log.unfinished);
            log.note(stream("Removing intermediate container cccccccccccc\n"));
            log.note(stream(" ---> dddddddddddd\n"));
            assert_eq!(log.made, ["dddddddddddd"], "{lie}");
            assert!(!log.unfinished);
        }
    }

    #[test]
    fn what_is_kept_of_the_output_is_bounded() {
        let mut log = Log::default();
        for number in 0..10_000 {
            log.note(stream(&format!("{number}\n")));
        }
        assert_eq!(log.last_lines().len(), LAST_LINES);
        assert_eq!(log.last_lines().last().unwrap(), "9999");
        for _ in 0..100 {
            log.note(stream(&"x".repeat(10_000)));
        }
        assert!(log.line.len() <= LAST_BYTES);
    }
}
