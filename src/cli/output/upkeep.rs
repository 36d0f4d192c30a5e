//! How lists and sweeps are shown to a person. Pure.

use std::fmt::Write;

use gym_sandbox::docker::WaitingCreate;
use gym_sandbox::{SandboxSummary, SweptObject};
use serde::Serialize;

use super::table;

/// So much of an owner's id tells owners apart.
const OWNER_LETTERS: usize = 12;

/// The status of what waits for memory.
const QUEUED: &str = "queued";

/// One element of the list.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::cli) enum Listed<'a> {
    There(&'a SandboxSummary),
    Waiting {
        status: &'static str,
        #[serde(flatten)]
        waiting: &'a WaitingCreate,
    },
}

/// Sandboxes, and after them those that wait to be made.
pub(in crate::cli) fn listed<'a>(
    sandboxes: &'a [SandboxSummary],
    waiting: &'a [WaitingCreate],
) -> Vec<Listed<'a>> {
    let waiting = waiting.iter().map(|waiting| Listed::Waiting {
        status: QUEUED,
        waiting,
    });
    sandboxes.iter().map(Listed::There).chain(waiting).collect()
}

/// A table of sandboxes, with a head, and of those that wait to be made.
pub(in crate::cli) fn sandboxes(sandboxes: &[SandboxSummary], waiting: &[WaitingCreate]) -> String {
    let head = ["ID", "IMAGE", "STATUS", "AGE", "OWNER", "PROJECT"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(sandboxes.iter().map(|sandbox| {
        let owner = sandbox.owner.as_deref().unwrap_or_default();
        vec![
            sandbox.sandbox_id.to_string(),
            sandbox.image.clone().unwrap_or_default(),
            sandbox.status.to_string(),
            sandbox.age_s.map(age).unwrap_or_default(),
            format!("{} {}", short(owner), sandbox.owner_state),
            sandbox.project.clone().unwrap_or_default(),
        ]
    }));
    rows.extend(waiting.iter().map(|waiting| {
        vec![
            waiting.sandbox_id.to_string(),
            String::new(),
            format!("{QUEUED} {}", waiting.position),
            age(waiting.waited_s),
            format!("{} {}", short(&waiting.owner), waiting.owner_state),
            waiting.project.clone().unwrap_or_default(),
        ]
    }));
    table(&rows)
}

/// One line an object.
pub(in crate::cli) fn swept(objects: &[SweptObject]) -> String {
    let mut text = String::new();
    for object in objects {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {} ({})", object.kind, object.name, object.why);
    }
    text
}

/// The end of an owner's id, which is random; the beginning is the same for all of one machine.
fn short(owner: &str) -> &str {
    owner
        .char_indices()
        .rev()
        .nth(OWNER_LETTERS - 1)
        .map_or(owner, |(start, _)| &owner[start..])
}

/// The largest unit that has a whole number of them.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use gym_sandbox::{ObjectKind, OwnerState, SandboxId, SandboxStatus};

    use super::*;

    #[test]
    fn a_list_says_whose_each_sandbox_is_and_whether_its_owner_lives() {
        let id = SandboxId::new("gym-sandbox-1").unwrap();
        let mut sandbox = SandboxSummary::new(id, SandboxStatus::Running, OwnerState::Dead);
        sandbox.image = Some("i".to_owned());
        sandbox.age_s = Some(3700);
        sandbox.owner = Some("0123456789ab-0123456789abcdef".to_owned());
        assert_eq!(
            sandboxes(&[sandbox], &[]),
            "ID             IMAGE  STATUS   AGE  OWNER              PROJECT\n\
             gym-sandbox-1  i      running  1h   456789abcdef dead\n"
        );
    }

    #[test]
    fn each_thing_that_was_removed_has_its_line() {
        let object = SweptObject::new(ObjectKind::Volume, "v", None, "its lease has ended");
        assert_eq!(swept(&[object]), "volume v (its lease has ended)\n");
    }

    #[test]
    fn ages_have_one_unit_and_short_owners_stay() {
        assert_eq!(
            [0, 59, 60, 3599, 86_399, 86_400].map(age),
            ["0s", "59s", "1m", "59m", "23h", "1d"]
        );
        assert_eq!(
            (short("abc"), short(""), short("0123456789abc")),
            ("abc", "", "123456789abc")
        );
    }
}
