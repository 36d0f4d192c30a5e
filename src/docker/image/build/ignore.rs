//! What a `.dockerignore` leaves out, by the docker command's rules. Pure.
//!
//! Patterns are cleaned paths of the context in which `*` is anything but `/`, `**` any number of directories, `?` one
//! character and `[..]` a class. The last pattern that matches a path, or one of its parents, decides; one that starts
//! with `!` takes in again. A directory that is left out is still looked into where a `!` pattern names something in it.

/// No path is longer.
const LONGEST_PATTERN: usize = 4096;

/// The patterns of one file, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ignore {
    patterns: Vec<Pattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    takes_in: bool,
    text: String,
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    One(char),
    /// `?`
    Any,
    /// `*`
    Star,
    /// `**` and what follows: any number of directories, also none.
    Directories,
    /// `**` at the end: anything.
    Rest,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// What becomes of an entry of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Sent,
    LeftOut,
    /// A directory that is left out but may hold something that is not.
    LookedInto,
}

impl Ignore {
    /// Reads the file. The error names the line with a pattern that is none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut ignore = Self::default();
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            if line.starts_with('#') {
                continue;
            }
            ignore.push(line).map_err(|problem| {
                let shown: String = line.trim().chars().take(200).collect();
                format!("line {}: `{}` {problem}", number + 1, shown.escape_debug())
            })?;
        }
        Ok(ignore)
    }

    fn push(&mut self, line: &str) -> Result<(), &'static str> {
        let line = line.trim();
        let (takes_in, rest) = match line.strip_prefix('!') {
            Some(rest) => (true, rest.trim()),
            None => (false, line),
        };
        if rest.len() > LONGEST_PATTERN {
            return Err("is too long");
        }
        if rest.is_empty() {
            return if takes_in { Err("takes in nothing") } else { Ok(()) };
        }
        let cleaned = clean(rest);
        let text = if cleaned.len() > 1 {
            cleaned.trim_start_matches('/').to_owned()
        } else {
            cleaned
        };
        self.patterns.push(Pattern {
            takes_in,
            tokens: tokens(&text)?,
            text,
        });
        Ok(())
    }

    /// Takes in what is always sent: the Dockerfile, and the file itself, which the engine reads again.
    pub(super) fn always_send(&mut self, path: &str) {
        if self.leaves_out(path) {
            let text = clean(path);
            let tokens = text.chars().map(Token::One).collect();
            self.patterns.push(Pattern {
                takes_in: true,
                text,
                tokens,
            });
        }
    }

    /// Decides about one entry, whose parents are sent or looked into.
    pub(super) fn verdict(&self, path: &str, is_directory: bool) -> Verdict {
        if !self.leaves_out(path) {
            return Verdict::Sent;
        }
        let inside = format!("{path}/");
        let wanted =
            |pattern: &Pattern| pattern.takes_in && format!("{}/", pattern.text).starts_with(&inside);
        if is_directory && self.patterns.iter().any(wanted) {
            Verdict::LookedInto
        } else {
            Verdict::LeftOut
        }
    }

    fn leaves_out(&self, path: &str) -> bool {
        let path: Vec<char> = path.chars().collect();
        let deciding = self
            .patterns
            .iter()
            .rev()
            .find(|pattern| matches(&pattern.tokens, &path));
        deciding.is_some_and(|pattern| !pattern.takes_in)
    }
}

fn tokens(pattern: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens = Vec::new();
    let mut left = pattern.chars().peekable();
    while let Some(next) = left.next() {
        tokens.push(match next {
            '*' if left.next_if_eq(&'*').is_some() => {
                let _slash = left.next_if_eq(&'/');
                if left.peek().is_none() {
                    Token::Rest
                } else {
                    Token::Directories
                }
            }
            '*' => Token::Star,
            '?' => Token::Any,
            '\\' => Token::One(left.next().ok_or("ends with an escape")?),
            '[' => class(&mut left).ok_or("has a class without an end")?,
            other => Token::One(other),
        });
    }
    Ok(tokens)
}

fn class(left: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Token> {
    let negated = left.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        let low = match left.next()? {
            ']' if !ranges.is_empty() => return Some(Token::Class { negated, ranges }),
            '\\' => left.next()?,
            low => low,
        };
        let mut high = low;
        if left.next_if_eq(&'-').is_some() {
            high = match left.next()? {
                '\\' => left.next()?,
                ']' => {
                    ranges.extend([(low, low), ('-', '-')]);
                    return Some(Token::Class { negated, ranges });
                }
                high => high,
            };
        }
        ranges.push((low, high));
    }
}

/// Whether the tokens are the whole path or one of its parents. Each set of places in the path is kept, so that no
/// pattern takes long: a token costs one walk over the path at most.
fn matches(tokens: &[Token], path: &[char]) -> bool {
    let mut places = vec![false; path.len() + 1];
    let mut next = places.clone();
    places[0] = true;
    for token in tokens {
        next.fill(false);
        // Whether a run that began at an earlier place is still going on.
        let mut running = false;
        for (place, &reached) in places.iter().enumerate() {
            let here = path.get(place).copied();
            let steps = match token {
                Token::One(one) => reached && here == Some(*one),
                Token::Any => reached && here.is_some_and(|here| here != '/'),
                Token::Class { negated, ranges } => {
                    let within = |here: char| ranges.iter().any(|&(low, high)| (low..=high).contains(&here));
                    reached && here.is_some_and(|here| within(here) != *negated)
                }
                Token::Star => {
                    running |= reached;
                    next[place] |= running;
                    running &= here != Some('/');
                    false
                }
                Token::Directories => {
                    running |= reached;
                    next[place] |= reached;
                    running && here == Some('/')
                }
                Token::Rest => {
                    running |= reached;
                    next[place] |= running;
                    false
                }
            };
            if steps {
                next[place + 1] = true;
            }
        }
        if !next.contains(&true) {
            return false;
        }
        std::mem::swap(&mut places, &mut next);
    }
    let is_end = |place: usize| place == path.len() || place > 0 && path[place] == '/';
    (0..places.len()).any(|place| places[place] && is_end(place))
}

/// The shortest path that names the same, as the docker command makes it.
pub(super) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_that_matches_a_path_or_a_parent_decides() {
        for (file, path, left_out) in [
            ("", "a", false),
            ("a", "a", true),
            ("a", "a/b/c", true),
            ("a", "b/a", false),
            ("/a", "a", true),
            ("./a/", "a", true),
            ("a/../b", "b", true),
            ("  a  ", "a", true),
            ("# a", "a", false),
            (" # a", "# a", true),
            ("*.md", "x.md", true),
            ("*.md", "d/x.md", false),
            ("*", "d/x.md", true),
            ("*/*.md", "d/x.md", true),
            ("*/temp*", "d/temporary", true),
            ("*/temp*", "d/e/temporary", false),
            ("*/*/temp*", "d/e/temporary", true),
            ("temp?", "tempa", true),
            ("temp?", "temp", false),
            ("temp?", "temp/", false),
            ("**", "a/b", true),
            ("**/x.go", "x.go", true),
            ("**/x.go", "a/b/x.go", true),
            ("**/x.go", "a/b/yx.go", false),
            ("a/**", "a/b/c", true),
            ("a/**", "a", false),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("a/**/b", "ab", false),
            ("**/*.pyc", "p/q.pyc", true),
            ("[a-c]1", "b1", true),
            ("[^a-c]1", "b1", false),
            ("[^a-c]1", "d1", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a.b", "axb", false),
            ("(a|b)+", "(a|b)+", true),
            ("*.md\n!README.md", "README.md", false),
            ("*.md\n!README.md", "x.md", true),
            ("!README.md\n*.md", "README.md", true),
            ("*\n!src", "src/a", false),
            ("*\n!src\nsrc/*.o", "src/a.o", true),
            ("d\n!d/keep", "d/keep", false),
            ("d\n! d/keep", "d/keep", false),
            ("d\n!d/keep", "d/other", true),
            (".git", ".git/HEAD", true),
            ("ü?", "üä", true),
            ("\u{feff}a", "a", true),
        ] {
            assert_eq!(
                Ignore::parse(file).unwrap().leaves_out(path),
                left_out,
                "{file:?} {path}"
            );
        }
    }

    #[test]
    fn a_directory_is_looked_into_where_something_in_it_may_be_taken_in() {
        let ignore = Ignore::parse("d\n*.x\n!d/e/keep").unwrap();
        assert_eq!(ignore.verdict("d", true), Verdict::LookedInto);
        assert_eq!(ignore.verdict("d/e", true), Verdict::LookedInto);
        assert_eq!(ignore.verdict("d/e/keep", false), Verdict::Sent);
        assert_eq!(ignore.verdict("d/f", true), Verdict::LeftOut);
        assert_eq!(ignore.verdict("a.x", true), Verdict::LeftOut);
        assert_eq!(ignore.verdict("a", true), Verdict::Sent);
    }

    #[test]
    fn the_dockerfile_is_always_sent() {
        let mut ignore = Ignore::parse("**").unwrap();
        ignore.always_send("sub/Dockerfile");
        ignore.always_send(".dockerignore");
        assert_eq!(ignore.verdict("sub", true), Verdict::LookedInto);
        assert_eq!(ignore.verdict("sub/Dockerfile", false), Verdict::Sent);
        assert_eq!(ignore.verdict(".dockerignore", false), Verdict::Sent);
        assert_eq!(ignore.verdict("sub/other", false), Verdict::LeftOut);
    }

    #[test]
    fn what_is_no_pattern_is_named_with_its_line() {
        for (file, line) in [("a\n[b", "line 2"), ("!", "line 1"), ("a\\", "line 1")] {
            let error = Ignore::parse(file).unwrap_err();
            assert!(error.contains(line), "{error}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let ignore = Ignore::parse(&"**/*a*".repeat(30)).unwrap();
        assert!(!ignore.leaves_out(&"b/".repeat(300)));
        let ignore = Ignore::parse(&"*a".repeat(2000)).unwrap();
        assert!(!ignore.leaves_out(&"a".repeat(1999)));
        assert!(ignore.leaves_out(&format!("{}/b", "a".repeat(2000))));
        let error = Ignore::parse(&"*a".repeat(3000)).unwrap_err();
        assert!(error.contains("too long") && error.len() < 300, "{error}");
    }
}
