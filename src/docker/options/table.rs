//! What a flag is, and what flags do to a container: the words of the table in `flags.rs`.

use crate::spec::container::{HealthcheckSpec, LogSpec, MountSpec};

use super::builder::Builder;
use super::values::pair;

pub(super) type Outcome = Result<(), String>;

/// What a flag takes, and what it does to a container in the making or to another target.
pub(super) enum Takes<B: 'static = Builder> {
    /// A value.
    Value(fn(&mut B, &str) -> Outcome),
    /// Nothing, or `=true` or `=false`.
    Switch(fn(&mut B, bool)),
    /// It is not for sandboxes; why, and what is instead.
    Nothing(&'static str),
}

/// How a provider option is written in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A text or a number.
    One,
    /// A boolean.
    Switch,
    /// A list of texts.
    Many,
    /// A text or a list of texts.
    OneOrMany,
    /// A map, or a list of texts in which name and value stand to each other as here.
    Pairs(char),
    /// A list of maps.
    Maps,
}

/// One flag.
pub(super) struct Flag<B: 'static = Builder> {
    /// The long name, without dashes.
    pub(super) long: &'static str,
    /// Other names: long ones, or one letter.
    pub(super) aliases: &'static [&'static str],
    /// The provider option.
    pub(super) option: Option<(&'static str, Shape)>,
    pub(super) takes: Takes<B>,
}

pub(super) const fn value(long: &'static str, set: fn(&mut Builder, &str) -> Outcome) -> Flag {
    value_of(long, set)
}

pub(super) const fn switch(long: &'static str, set: fn(&mut Builder, bool)) -> Flag {
    switch_of(long, set)
}

pub(super) const fn value_of<B>(long: &'static str, set: fn(&mut B, &str) -> Outcome) -> Flag<B> {
    Flag {
        long,
        aliases: &[],
        option: None,
        takes: Takes::Value(set),
    }
}

pub(super) const fn switch_of<B>(long: &'static str, set: fn(&mut B, bool)) -> Flag<B> {
    Flag {
        long,
        aliases: &[],
        option: None,
        takes: Takes::Switch(set),
    }
}

pub(super) const fn nothing<B>(
    long: &'static str,
    aliases: &'static [&'static str],
    why: &'static str,
) -> Flag<B> {
    Flag {
        long,
        aliases,
        option: None,
        takes: Takes::Nothing(why),
    }
}

impl<B> Flag<B> {
    pub(super) const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(super) const fn option(mut self, name: &'static str, shape: Shape) -> Self {
        self.option = Some((name, shape));
        self
    }
}

pub(super) fn text(target: &mut Option<String>, value: &str) -> Outcome {
    if value.is_empty() {
        return Err("it is empty".to_owned());
    }
    *target = Some(value.to_owned());
    Ok(())
}

pub(super) fn set<T>(target: &mut Option<T>, value: Result<T, String>) -> Outcome {
    *target = Some(value?);
    Ok(())
}

pub(super) fn push(target: &mut Vec<String>, value: &str) -> Outcome {
    if value.is_empty() {
        return Err("it is empty".to_owned());
    }
    target.push(value.to_owned());
    Ok(())
}

pub(super) fn insert(target: &mut std::collections::BTreeMap<String, String>, value: &str) -> Outcome {
    let (name, value) = pair(value)?;
    target.insert(name, value);
    Ok(())
}

pub(super) fn health(builder: &mut Builder) -> &mut HealthcheckSpec {
    builder.container.healthcheck.get_or_insert_default()
}

pub(super) fn log(builder: &mut Builder) -> &mut LogSpec {
    builder.container.logging.get_or_insert_default()
}

pub(super) fn mount(builder: &mut Builder, mount: Result<MountSpec, String>) -> Outcome {
    builder.container.mounts.push(mount?);
    Ok(())
}

/// What all commands of a sandbox have unless they say it themselves, from the flags of `docker exec`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::docker) struct ExecDefaults {
    /// Variables.
    pub(in crate::docker) env: Vec<(String, String)>,
    /// The user.
    pub(in crate::docker) user: Option<String>,
    /// The working directory.
    pub(in crate::docker) workdir: Option<String>,
    /// All privileges: such commands go by the engine.
    pub(in crate::docker) privileged: bool,
}
