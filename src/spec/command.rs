//! What to run: a line for the sandbox's shell, or a program with its arguments.

use std::fmt;

use crate::error::{Error, Operation, Result};

/// The longest single argument or `NAME=value` that Linux passes to a program, in bytes (contract D5).
pub const MAX_ARGUMENT_BYTES: usize = 131_071;

/// A command (contract D31).
///
/// A string is a line for the sandbox's shell; a list is run as it is and needs no shell.
///
/// ```
/// use gym_sandbox::Command;
/// assert_eq!(Command::from("echo $HOME"), Command::Shell("echo $HOME".into()));
/// assert_eq!(Command::from(["echo", "$HOME"]), Command::Argv(vec!["echo".into(), "$HOME".into()]));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// A line for the sandbox's shell.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

impl Command {
    /// Checks what no program can be started with, before anything is sent.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an empty list, a NUL, or an argument over
    /// [`MAX_ARGUMENT_BYTES`].
    pub fn check(&self, operation: Operation) -> Result<()> {
        let arguments = match self {
            Self::Shell(line) => std::slice::from_ref(line),
            Self::Argv(argv) if argv.is_empty() => {
                return Err(Error::invalid(operation, "the command is an empty list")
                    .with_hint("name a program, or give a shell line as a string"));
            }
            Self::Argv(argv) => argv.as_slice(),
        };
        for (index, argument) in arguments.iter().enumerate() {
            if argument.contains('\0') {
                return Err(Error::invalid(
                    operation,
                    format!("argument {index} of the command holds NUL"),
                ));
            }
            if argument.len() > MAX_ARGUMENT_BYTES {
                return Err(Error::invalid(
                    operation,
                    format!(
                        "argument {index} of the command has {} bytes; Linux passes at most {MAX_ARGUMENT_BYTES} to a program",
                        argument.len()
                    ),
                )
                .with_hint("upload the data as a file, or give it as standard input"));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Command {
    /// Shows the program only: arguments and lines may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(line) => write!(f, "Shell({} bytes)", line.len()),
            Self::Argv(argv) => {
                write!(
                    f,
                    "Argv({:?}, {} arguments)",
                    argv.first().map_or("", String::as_str),
                    argv.len().saturating_sub(1)
                )
            }
        }
    }
}

impl From<&str> for Command {
    fn from(line: &str) -> Self {
        Self::Shell(line.to_owned())
    }
}

impl From<String> for Command {
    fn from(line: String) -> Self {
        Self::Shell(line)
    }
}

impl From<Vec<String>> for Command {
    fn from(argv: Vec<String>) -> Self {
        Self::Argv(argv)
    }
}

impl From<Vec<&str>> for Command {
    fn from(argv: Vec<&str>) -> Self {
        Self::from(argv.as_slice())
    }
}

impl From<&[&str]> for Command {
    fn from(argv: &[&str]) -> Self {
        Self::Argv(argv.iter().map(|&argument| argument.to_owned()).collect())
    }
}

impl<const N: usize> From<[&str; N]> for Command {
    fn from(argv: [&str; N]) -> Self {
        Self::from(argv.as_slice())
    }
}
