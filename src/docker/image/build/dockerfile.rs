//! What of a Dockerfile has to be known before it is sent: what needs BuildKit, and which images it starts from. Pure;
//! everything else is the engine's to judge.

use std::collections::{BTreeMap, BTreeSet};

use super::super::ImageReference;

/// The most images of `FROM` lines that are told: credentials are looked for of each.
const MOST_BASES: usize = 128;

/// The most instructions that are told; the engine makes 127 layers at most.
const MOST_INSTRUCTIONS: usize = 1024;

/// No image reference and no value in one is longer. Arguments that double one another have no end otherwise.
const LONGEST_VALUE: usize = 4096;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// What needs BuildKit, with its line.
    pub(super) buildkit: Vec<Found>,
    /// Images of `FROM` lines, where they can be told.
    pub(super) bases: Vec<String>,
    /// Instructions that make an image, with single spaces.
    pub(super) instructions: Vec<String>,
}

/// Something on a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) line: usize,
    pub(super) what: String,
}

/// Flags of instructions that the classic builder does not have.
const FLAGS: [(&str, &[&str]); 3] = [
    ("RUN", &["mount", "network", "security", "device"]),
    ("COPY", &["link", "chmod", "parents", "exclude"]),
    (
        "ADD",
        &["link", "chmod", "checksum", "keep-git-dir", "exclude", "unpack"],
    ),
];

/// Variables that only BuildKit sets by itself.
const AUTOMATIC: [&str; 8] = [
    "BUILDPLATFORM",
    "BUILDOS",
    "BUILDARCH",
    "BUILDVARIANT",
    "TARGETPLATFORM",
    "TARGETOS",
    "TARGETARCH",
    "TARGETVARIANT",
];

/// Frontends of BuildKit that read what the classic builder reads, and more; what is more is looked for by its name.
const OFFICIAL: [&str; 2] = ["docker/dockerfile", "docker/dockerfile-upstream"];

/// Looks through a Dockerfile.
pub(super) fn scan(text: &str, arguments: &BTreeMap<String, Option<String>>) -> Scan {
    let mut scan = Scan::default();
    let is_given = |name: &str| arguments.get(name).is_some_and(Option::is_some);
    let mut defaults: BTreeMap<String, String> = BTreeMap::new();
    let mut stages: BTreeSet<String> = BTreeSet::new();
    let mut bases: BTreeSet<String> = BTreeSet::new();
    let mut before_from = true;
    let text = text.trim_start_matches('\u{feff}');
    let directives = Directives::read(text);
    if let Some((line, syntax)) = directives.syntax
        && !is_official(&syntax)
    {
        let syntax: String = syntax.chars().take(200).collect();
        scan.buildkit.push(Found {
            line,
            what: format!("`# syntax={}`", syntax.escape_debug()),
        });
    }
    for (line, instruction) in instructions(text, directives.escape) {
        let mut words = words(&instruction);
        // What is done later has the same needs.
        if words
            .first()
            .is_some_and(|word| word.eq_ignore_ascii_case("ONBUILD"))
        {
            words.remove(0);
        }
        let Some(name) = words.first().map(|word| word.to_uppercase()) else {
            continue;
        };
        if !matches!(name.as_str(), "FROM" | "ARG") && scan.instructions.len() < MOST_INSTRUCTIONS {
            scan.instructions.push(words.join(" "));
        }
        let flags: Vec<&str> = words[1..]
            .iter()
            .map_while(|word| word.strip_prefix("--"))
            .collect();
        let rest = &words[1 + flags.len()..];
        let mut found = |what: String| scan.buildkit.push(Found { line, what });
        if let Some((_, known)) = FLAGS.iter().find(|(instruction, _)| *instruction == name) {
            for flag in &flags {
                let flag = flag.split('=').next().unwrap_or(flag);
                if known.contains(&flag) {
                    found(format!("`{name} --{flag}`"));
                }
            }
            if rest.iter().any(|word| is_heredoc(word)) {
                found(format!("a here-document in `{name}`"));
            }
        }
        match name.as_str() {
            "ADD" if rest.iter().any(|word| is_git(word)) => found("`ADD` from git".to_owned()),
            "ARG" => {
                for word in rest {
                    if AUTOMATIC.contains(&word.as_str()) && !is_given(word) {
                        found(format!(
                            "`ARG {word}` without a value (it can be given as a build argument)"
                        ));
                    }
                    if before_from && let Some((name, default)) = word.split_once('=') {
                        let default = substitute(unquoted(default), &defaults, arguments);
                        defaults.insert(name.to_owned(), default.unwrap_or_default());
                    }
                }
            }
            "FROM" => {
                before_from = false;
                for flag in flags {
                    let flag_of = |variable: &&str| {
                        flag.contains(&format!("${variable}")) || flag.contains(&format!("${{{variable}"))
                    };
                    if let Some(variable) = AUTOMATIC.iter().copied().find(flag_of)
                        && !is_given(variable)
                    {
                        found(format!("`${variable}`"));
                    }
                }
                let base = rest
                    .first()
                    .and_then(|image| substitute(image, &defaults, arguments));
                if let Some(base) = base
                    && !stages.contains(&base.to_lowercase())
                    && base != "scratch"
                    && bases.len() < MOST_BASES
                    && bases.insert(base.clone())
                {
                    scan.bases.push(base);
                }
                stages.extend(rest.get(2).map(|name| name.to_lowercase()));
            }
            _ => {}
        }
    }
    scan
}

/// Whether a frontend is one of Docker's own, whatever its version.
fn is_official(syntax: &str) -> bool {
    syntax.parse::<ImageReference>().is_ok_and(|frontend| {
        let name = frontend.repository();
        let name = ["docker.io/", "index.docker.io/"]
            .iter()
            .find_map(|hub| name.strip_prefix(hub))
            .unwrap_or(name);
        OFFICIAL.contains(&name)
    })
}

/// The comments at the very top that mean something.
struct Directives {
    escape: char,
    syntax: Option<(usize, String)>,
}

impl Directives {
    fn read(text: &str) -> Self {
        let mut directives = Self {
            escape: '\\',
            syntax: None,
        };
        for (number, line) in text.lines().enumerate() {
            let Some((name, value)) = line
                .trim()
                .strip_prefix('#')
                .and_then(|comment| comment.split_once('='))
            else {
                break;
            };
            match name.trim().to_lowercase().as_str() {
                "syntax" => directives.syntax = Some((number + 1, value.trim().to_owned())),
                "escape" => directives.escape = value.trim().chars().next().unwrap_or('\\'),
                "check" => {}
                _ => break,
            }
        }
        directives
    }
}

/// Whole instructions with the line that they begin on; comments and continuations are gone.
fn instructions(text: &str, escape: char) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let (part, continues) = match trimmed.strip_suffix(escape) {
            Some(part) => (part, true),
            None => (trimmed, false),
        };
        let (_, whole) = open.get_or_insert_with(|| (number + 1, String::new()));
        whole.push_str(part);
        whole.push(' ');
        if !continues {
            all.extend(open.take());
        }
    }
    all.extend(open);
    all
}

/// Words between spaces; quotes keep one together and stay.
fn words(instruction: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for character in instruction.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            None if matches!(character, '"' | '\'') => quote = Some(character),
            None if character.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            _ => {}
        }
        word.push(character);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// `<<EOF`, `<<-"EOF"`, `3<<EOF`, but not `<<<text` and not the shift of a calculation.
fn is_heredoc(word: &str) -> bool {
    let rest = word.trim_start_matches(|character: char| character.is_ascii_digit());
    let Some(rest) = rest.strip_prefix("<<") else {
        return false;
    };
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    rest.starts_with(|character: char| character.is_ascii_alphabetic() || "_\"'".contains(character))
}

fn is_git(source: &str) -> bool {
    source.starts_with("git@")
        || source.starts_with("git://")
        || source.starts_with("ssh://")
        || (source.starts_with("https://") || source.starts_with("http://"))
            && source
                .split(['#', '?'])
                .next()
                .is_some_and(|url| url.strip_suffix(".git").is_some())
}

fn unquoted(text: &str) -> &str {
    let stripped = |quote| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    stripped('"').or_else(|| stripped('\'')).unwrap_or(text)
}

/// Puts arguments in. None: one has no value, or is written in a way that only the engine knows, or it gets too long.
fn substitute(
    text: &str,
    defaults: &BTreeMap<String, String>,
    arguments: &BTreeMap<String, Option<String>>,
) -> Option<String> {
    let value = |name: &str| {
        let given = arguments.get(name).and_then(Clone::clone);
        defaults
            .get(name)
            .map(|default| given.unwrap_or_else(|| default.clone()))
            .or_else(|| arguments.get(name).and_then(Clone::clone))
    };
    let mut result = String::new();
    let mut left = text;
    while let Some(dollar) = left.find('$') {
        if result.len() > LONGEST_VALUE {
            return None;
        }
        result.push_str(&left[..dollar]);
        left = &left[dollar + 1..];
        if let Some(braced) = left.strip_prefix('{') {
            let (inside, rest) = braced.split_once('}')?;
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (inside, None),
            };
            result.push_str(&value(name).filter(|value| !value.is_empty()).or(default)?);
            left = rest;
        } else {
            let end = left
                .find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
                .unwrap_or(left.len());
            result.push_str(&value(&left[..end])?);
            left = &left[end..];
        }
    }
    result.push_str(left);
    (!result.is_empty() && result.len() <= LONGEST_VALUE).then_some(result)
}

#[cfg(test)]
#[path = "dockerfile_tests.rs"]
mod tests;
