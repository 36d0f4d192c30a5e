//! `completions`: the script that completes this command in a shell.

use gym_sandbox::Result;

use crate::cli::exit;
use crate::cli::output;
use crate::cli::session::blocking;

/// Prints it.
///
/// # Errors
/// It could not be written.
pub(in crate::cli) async fn run(script: Vec<u8>) -> Result<u8> {
    blocking(move || output::data(&script)).await?;
    Ok(exit::SUCCESS)
}
