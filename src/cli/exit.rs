//! The exit codes of the command and what they mean. `docs/cli.md` has the same table.

use gym_sandbox::{ExecErrorType, ExecResult};

/// Everything went well.
pub(super) const SUCCESS: u8 = 0;
/// Something failed that has no code of its own.
pub(super) const FAILURE: u8 = 1;
/// The arguments are wrong; nothing was done.
pub(super) const USAGE: u8 = 2;
/// The command ran out of time.
const TIMEOUT: u8 = 124;
/// There is no sandbox to run in, or it was lost.
pub(super) const SANDBOX: u8 = 125;

/// The code for a command's result: the command's own, or what stands for having none.
pub(super) fn of_result(result: &ExecResult) -> u8 {
    match result.error_type {
        None | Some(ExecErrorType::Start) => low_byte(result.return_code),
        Some(ExecErrorType::Timeout) => TIMEOUT,
        Some(_) => SANDBOX,
    }
}

/// What the system keeps of an exit code. A code that loses everything by it stays a failure.
pub(super) fn low_byte(code: i32) -> u8 {
    match u8::try_from(code & 0xff) {
        Ok(0) if code != 0 => FAILURE,
        Ok(byte) => byte,
        Err(_) => FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use gym_sandbox::{ExecPath, SandboxReason, StartProblem};

    use super::*;

    #[test]
    fn every_kind_of_result_has_its_code() {
        let table = [
            (ExecResult::new(0, ExecPath::Engine), 0),
            (ExecResult::new(7, ExecPath::Engine), 7),
            (ExecResult::new(255, ExecPath::Engine), 255),
            // Contract X3: the library's code for a timeout is 125, the process's is 124.
            (ExecResult::timed_out("late", ExecPath::Engine), 124),
            (
                ExecResult::sandbox_failure(SandboxReason::Removed, "gone", ExecPath::Engine),
                125,
            ),
            (
                ExecResult::start_failure(StartProblem::NotFound, "no", ExecPath::Engine),
                127,
            ),
            (
                ExecResult::start_failure(StartProblem::Cwd, "no", ExecPath::Engine),
                126,
            ),
        ];
        for (result, code) in table {
            assert_eq!(of_result(&result), code, "{result:?}");
        }
    }

    #[test]
    fn a_code_of_more_than_one_byte_never_becomes_success() {
        assert_eq!(low_byte(256), 1);
        assert_eq!(low_byte(-1), 255);
    }
}
