//! Flags as `docker run` takes them, in both spellings (contract D9): `--shm-size 1g` and `--shm-size=1g`, `-m 1g`, `-m=1g`
//! and `-m1g`.

use crate::error::{Error, Operation, Result};

use super::table::{Flag, Takes};
use super::values;

/// Reads arguments into a target. `origin` is the option they come from.
pub(super) fn apply<B>(
    target: &mut B,
    flags: &'static [Flag<B>],
    origin: &str,
    arguments: &[String],
) -> Result<()> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (flag, inline) = find(flags, origin, argument)?;
        let name = format!("`{}` of `{origin}`", shown(flag.long));
        match flag.takes {
            Takes::Nothing(why) => {
                return Err(
                    Error::invalid(Operation::Create, format!("{name} is not for sandboxes: {why}"))
                        .with_hint("docs/options.md lists the flags"),
                );
            }
            Takes::Switch(set) => {
                let on = values::switch(inline.unwrap_or_default()).map_err(|why| wrong(&name, &why))?;
                set(target, on);
            }
            Takes::Value(set) => {
                let value = match inline {
                    Some(value) => value,
                    None => rest.next().map(String::as_str).ok_or_else(|| {
                        Error::invalid(Operation::Create, format!("{name} has no value"))
                            .with_hint("the value is the next argument, or follows `=`")
                    })?,
                };
                set(target, value).map_err(|why| wrong(&name, &why))?;
            }
        }
    }
    Ok(())
}

pub(super) fn wrong(name: &str, why: &str) -> Error {
    Error::invalid(
        Operation::Create,
        format!("{name} has a wrong value: {}", why.escape_debug()),
    )
}

fn shown(long: &str) -> String {
    format!("--{long}")
}

/// The flag of an argument, and what stands in the same argument as its value.
fn find<'a, B>(
    flags: &'static [Flag<B>],
    origin: &str,
    argument: &'a str,
) -> Result<(&'static Flag<B>, Option<&'a str>)> {
    if let Some(long) = argument.strip_prefix("--") {
        let (name, inline) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let known =
            |flag: &&'static Flag<B>| flag.long == name || (name.len() > 1 && flag.aliases.contains(&name));
        if let Some(flag) = flags.iter().find(known) {
            return Ok((flag, inline));
        }
        return Err(unknown(origin, argument));
    }
    let letter = argument
        .strip_prefix('-')
        .and_then(|short| short.chars().next().map(|first| (first, short)));
    let Some((first, short)) = letter else {
        return Err(Error::invalid(
            Operation::Create,
            format!(
                "`{}` of `{origin}` is not a flag",
                name_of(argument).escape_debug()
            ),
        )
        .with_hint("the image and the command are in the spec; a flag begins with `--`"));
    };
    let mut bytes = [0; 4];
    let name: &str = first.encode_utf8(&mut bytes);
    let Some(flag) = flags.iter().find(|flag| flag.aliases.contains(&name)) else {
        return Err(unknown(origin, argument));
    };
    let after = &short[first.len_utf8()..];
    let inline = match after.strip_prefix('=') {
        Some(value) => Some(value),
        None => (!after.is_empty()).then_some(after),
    };
    Ok((flag, inline))
}

/// An argument without what stands behind `=`, which may be a secret.
fn name_of(argument: &str) -> &str {
    argument.split('=').next().unwrap_or_default()
}

fn unknown(origin: &str, argument: &str) -> Error {
    let error = Error::invalid(
        Operation::Create,
        format!(
            "unknown flag `{}` in `{origin}`",
            name_of(argument).escape_debug()
        ),
    );
    if argument.contains(' ') {
        error
            .with_hint("a text is one argument and is not split at spaces: give a list, each argument a text")
    } else {
        error.with_hint("docs/options.md lists the flags")
    }
}
