//! What of a Dockerfile has to be known before it is sent: what needs BuildKit, and which images it starts from. Pure;
//! everything else is the engine's to judge.

use std::collections::BTreeMap;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// What needs BuildKit, with its line.
    pub(super) buildkit: Vec<Found>,
    /// Images of `FROM` lines, where they can be told.
    pub(super) bases: Vec<String>,
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
const AUTOMATIC: [&str; 2] = ["BUILDPLATFORM", "TARGETPLATFORM"];

/// Looks through a Dockerfile.
pub(super) fn scan(text: &str, arguments: &BTreeMap<String, Option<String>>) -> Scan {
    let mut scan = Scan::default();
    let mut defaults: BTreeMap<String, String> = BTreeMap::new();
    let mut stages: Vec<String> = Vec::new();
    let directives = Directives::read(text);
    if let Some((line, syntax)) = directives.syntax {
        scan.buildkit.push(Found {
            line,
            what: format!("`# syntax={syntax}`"),
        });
    }
    for (line, instruction) in instructions(text, directives.escape) {
        let words = words(&instruction);
        let Some(name) = words.first().map(|word| word.to_uppercase()) else {
            continue;
        };
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
            "ARG" if stages.is_empty() => {
                for word in rest {
                    if let Some((name, default)) = word.split_once('=') {
                        let default = substitute(unquoted(default), &defaults, arguments);
                        defaults.insert(name.to_owned(), default.unwrap_or_default());
                    }
                }
            }
            "FROM" => {
                for flag in flags {
                    if let Some(variable) = AUTOMATIC.iter().find(|variable| flag.contains(*variable)) {
                        found(format!("`${variable}`"));
                    }
                }
                let base = rest
                    .first()
                    .and_then(|image| substitute(image, &defaults, arguments));
                if let Some(base) = base
                    && !stages.contains(&base.to_lowercase())
                    && base != "scratch"
                {
                    scan.bases.push(base);
                }
                // A stage without a name counts, too: what follows is not before the first `FROM` any more.
                stages.push(rest.get(2).map(|name| name.to_lowercase()).unwrap_or_default());
            }
            _ => {}
        }
    }
    scan
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
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
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

/// Puts arguments in. None: one has no value, or is written in a way that only the engine knows.
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
    (!result.is_empty()).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buildkit(text: &str) -> Vec<String> {
        scan(text, &BTreeMap::new())
            .buildkit
            .into_iter()
            .map(|found| format!("{} {}", found.line, found.what))
            .collect()
    }

    #[test]
    fn what_needs_buildkit_is_found_with_its_line() {
        for (text, found) in [
            (
                "# syntax=docker/dockerfile:1\nFROM a",
                "1 `# syntax=docker/dockerfile:1`",
            ),
            ("FROM a\nRUN --mount=type=cache,target=/c make", "2 `RUN --mount`"),
            ("FROM a\nrun --network=none true", "2 `RUN --network`"),
            ("FROM a\n\nCOPY --chmod=755 a b", "3 `COPY --chmod`"),
            ("FROM a\nCOPY --from=x --link a b", "2 `COPY --link`"),
            ("FROM a\nADD --checksum=sha256:1 http://a b", "2 `ADD --checksum`"),
            ("FROM a\nADD https://example.org/r.git /r", "2 `ADD` from git"),
            ("FROM a\nRUN <<EOF\nmake\nEOF", "2 a here-document in `RUN`"),
            (
                "FROM a\nRUN cat <<-'EOF' > x\nmake\nEOF",
                "2 a here-document in `RUN`",
            ),
            ("FROM a\nCOPY <<EOF /x\nmake\nEOF", "2 a here-document in `COPY`"),
            ("FROM --platform=$BUILDPLATFORM a", "1 `$BUILDPLATFORM`"),
            (
                "FROM a\nRUN a \\\n # no\n && b\nRUN \\\n --mount=type=secret c",
                "5 `RUN --mount`",
            ),
        ] {
            assert_eq!(buildkit(text), [found], "{text:?}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_not_found() {
        for text in [
            "FROM a\n# syntax=docker/dockerfile:1",
            "# a comment\n# syntax=x\nFROM a",
            "FROM a\nRUN cat <<< text",
            "FROM a\nRUN echo $((1 << 2))",
            "FROM a\nRUN sh -c \"cat <<EOF\"",
            "FROM a\nRUN make --mount=x",
            "FROM --platform=linux/amd64 a",
            "FROM a\nCOPY --from=b --chown=1:1 a b",
            "FROM a\nADD https://example.org/a.tar /a",
        ] {
            assert_eq!(buildkit(text), Vec::<String>::new(), "{text:?}");
        }
    }

    #[test]
    fn base_images_are_told_where_their_arguments_are_known() {
        let given = BTreeMap::from([
            ("TAG".to_owned(), Some("2".to_owned())),
            ("UNSET".to_owned(), None),
        ]);
        for (text, bases) in [
            (
                "FROM a AS one\nFROM one\nFROM reg:5000/b:1",
                vec!["a", "reg:5000/b:1"],
            ),
            ("ARG TAG=1\nFROM a:$TAG", vec!["a:2"]),
            ("ARG BASE=\"b\"\nARG NAME=${BASE}:x\nFROM ${NAME}", vec!["b:x"]),
            ("FROM ${NONE:-c}", vec!["c"]),
            ("ARG UNSET\nFROM a:${UNSET}", vec![]),
            ("FROM scratch", vec![]),
            ("# escape=`\nFROM `\n a", vec!["a"]),
        ] {
            assert_eq!(scan(text, &given).bases, bases, "{text:?}");
        }
    }
}
