//! Finds the paths that a Rust source names: in `use` declarations and in its code, but not in comments and strings.

/// The paths of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    /// Paths inside the crate, from its root, as `["docker", "exec"]`.
    pub(crate) internal: Vec<Vec<String>>,
    /// All others, first the name of a crate (or of something local, which no rule names).
    pub(crate) external: Vec<Vec<String>>,
}

/// Scans a source whose module is the given one, as `["docker", "exec"]` for `src/docker/exec/mod.rs`.
pub(crate) fn paths(module: &[&str], source: &str) -> Paths {
    let tokens = tokens(&without_comments_and_strings(source));
    let mut found = Paths::default();
    let mut modules: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
    // Modules written in the file, with the depth of braces that they began at.
    let mut inline: Vec<usize> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at].as_str();
        let next = tokens.get(at + 1).map_or("", String::as_str);
        match token {
            "mod" if is_name(next) && tokens.get(at + 2).is_some_and(|token| token == "{") => {
                modules.push(next.to_owned());
                inline.push(depth);
                depth += 1;
                at += 3;
                continue;
            }
            // `pub(in path)` says who may see, and uses nothing.
            "pub" if next == "(" && tokens.get(at + 2).is_some_and(|token| token == "in") => {
                at += tokens[at..].iter().position(|token| token == ")").unwrap_or(1);
                continue;
            }
            "{" => depth += 1,
            "}" => {
                depth = usize::saturating_sub(depth, 1);
                if inline.last() == Some(&depth) {
                    inline.pop();
                    modules.pop();
                }
            }
            // `use<'a>` is a bound and no declaration.
            "use" if next != "<" => {
                let end = tokens[at..]
                    .iter()
                    .position(|token| token == ";")
                    .map_or(tokens.len(), |end| at + end);
                let mut tree = &tokens[at + 1..end];
                read_tree(&mut tree, &[], &mut |path| found.add(&modules, path));
                at = end;
                continue;
            }
            _ if is_name(token) && next == "::" && (at == 0 || tokens[at - 1] != "::") => {
                let mut path = vec![token.to_owned()];
                while tokens.get(at + 1).is_some_and(|token| token == "::")
                    && tokens.get(at + 2).is_some_and(|token| is_name(token))
                {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                found.add(&modules, &path);
            }
            _ => {}
        }
        at += 1;
    }
    found
}

impl Paths {
    fn add(&mut self, modules: &[String], path: &[String]) {
        let mut base: Vec<String> = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => modules.to_vec(),
            Some(_) => return self.external.push(path.to_vec()),
            None => return,
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(base.pop()),
                name => base.push(name.to_owned()),
            }
        }
        self.internal.push(base);
    }
}

/// Reads `a::{b, c::*}` and calls back with each whole path.
fn read_tree(tokens: &mut &[String], prefix: &[String], found: &mut impl FnMut(&[String])) {
    let mut path = prefix.to_vec();
    while let Some((token, rest)) = tokens.split_first() {
        match token.as_str() {
            "{" => {
                *tokens = rest;
                while tokens.first().is_some_and(|token| token != "}") {
                    read_tree(tokens, &path, found);
                    if tokens.first().is_some_and(|token| token == ",") {
                        *tokens = &tokens[1..];
                    }
                }
                *tokens = tokens.get(1..).unwrap_or_default();
                return;
            }
            "," | "}" => break,
            "::" => *tokens = rest,
            "as" => *tokens = rest.get(1..).unwrap_or_default(),
            name => {
                path.push(name.to_owned());
                *tokens = rest;
            }
        }
    }
    found(&path);
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::`, and every other character for itself.
fn tokens(source: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() || character == '_' {
            let mut name = String::from(character);
            while let Some(&next) = characters.peek()
                && (next.is_alphanumeric() || next == '_')
            {
                name.push(next);
                characters.next();
            }
            tokens.push(name);
        } else if character == ':' && characters.peek() == Some(&':') {
            characters.next();
            tokens.push("::".to_owned());
        } else if !character.is_whitespace() {
            tokens.push(character.to_string());
        }
    }
    tokens
}

/// Replaces comments by a space and texts by `""`.
pub(crate) fn without_comments_and_strings(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment_length(rest)
        } else if let Some(length) = text_length(rest, kept.chars().next_back()) {
            kept.push_str("\"\"");
            rest = &rest[length..];
            continue;
        } else {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        kept.push(' ');
        rest = &rest[length..];
    }
    kept
}

/// The length of a block comment, which may hold others.
fn comment_length(source: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < source.len() {
        let rest = &source[at..];
        let step = if rest.starts_with("/*") {
            depth += 1;
            2
        } else if rest.starts_with("*/") {
            depth -= 1;
            2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of the text or character that the source starts with, if it does.
fn text_length(source: &str, before: Option<char>) -> Option<usize> {
    let begins_a_word = !before.is_some_and(|before| before.is_alphanumeric() || before == '_');
    if source.starts_with('"') {
        return Some(quoted_length(source, '"'));
    }
    if begins_a_word && source.starts_with('r') {
        let hashes = source[1..]
            .chars()
            .take_while(|&character| character == '#')
            .count();
        if source[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = 2 + hashes;
            return Some(
                source[body..]
                    .find(&end)
                    .map_or(source.len(), |at| body + at + end.len()),
            );
        }
    }
    if let Some(rest) = source.strip_prefix('\'') {
        let mut characters = rest.chars();
        let first = characters.next()?;
        // `'a'` is a character, `'a` a lifetime.
        if first == '\\' || characters.next() == Some('\'') {
            return Some(quoted_length(source, '\''));
        }
    }
    None
}

fn quoted_length(source: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in source.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + character.len_utf8(),
            _ => {}
        }
    }
    source.len()
}
