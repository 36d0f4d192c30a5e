//! `compose config` without the rest of the command's arguments. Building the tree of all commands takes longer than reading
//! a Compose file: a fifth of the pages that the process touches. docs/performance.md has the figures.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::{Args, CommandArgs, ComposeArgs, ComposeConfigArgs, GlobalArgs};

#[derive(Debug, Parser)]
#[command(
    name = "gym-sandbox",
    disable_help_flag = true,
    disable_help_subcommand = true
)]
struct ReaderArgs {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: ReaderCommand,
}

#[derive(Debug, Subcommand)]
enum ReaderCommand {
    #[command(subcommand)]
    Compose(ReaderCompose),
}

#[derive(Debug, Subcommand)]
enum ReaderCompose {
    Config(Box<ComposeConfigArgs>),
}

/// Reads these arguments if they are a `compose config` without mistakes. All others are left to the whole tree, which
/// knows what to say about them.
pub(super) fn parse(arguments: &[OsString]) -> Option<Args> {
    let names_it = arguments
        .windows(2)
        .any(|pair| pair[0] == "compose" && pair[1] == "config");
    if !names_it {
        return None;
    }
    let ReaderArgs { global, command } = ReaderArgs::try_parse_from(arguments).ok()?;
    let ReaderCommand::Compose(ReaderCompose::Config(config)) = command;
    Some(Args {
        global,
        command: CommandArgs::Compose(ComposeArgs::Config(config)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(line: &str) -> (Option<String>, Option<String>) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let short = parse(&arguments).map(|args| format!("{args:?}"));
        let whole = Args::try_parse_from(&arguments)
            .map(|args| format!("{args:?}"))
            .ok();
        (short, whole)
    }

    #[test]
    fn a_compose_config_is_read_as_the_whole_tree_reads_it() {
        for line in [
            "gym-sandbox compose config",
            "gym-sandbox compose config -f a.yaml --file b.yaml --format json",
            "gym-sandbox -v --json compose config --env A=1 --env-file .e --env-from-process --profile *",
            "gym-sandbox --provider local compose config --services -vv --host unix:///x",
            "gym-sandbox compose config --images --no-interpolate --strictness strict -p name",
            "gym-sandbox compose config --project-directory=config --allow-outside-paths",
        ] {
            let (short, whole) = both(line);
            assert!(short.is_some(), "{line}");
            assert_eq!(short, whole, "{line}");
        }
    }

    #[test]
    fn what_is_something_else_or_wrong_is_left_to_the_whole_tree() {
        for line in [
            "gym-sandbox compose config --help",
            "gym-sandbox compose config -h",
            "gym-sandbox compose config --no-such-option",
            "gym-sandbox compose config --services --images",
            "gym-sandbox compose help config",
            "gym-sandbox compose plan compose config",
            "gym-sandbox exec id -- gym-sandbox compose config",
            "gym-sandbox --version compose config",
            "gym-sandbox compose",
            "gym-sandbox",
        ] {
            assert_eq!(both(line).0, None, "{line}");
        }
    }
}
