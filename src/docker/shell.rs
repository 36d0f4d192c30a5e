//! Which shell an image has, found by trying (contract X9).

use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::spec::{ExecErrorType, ExecOptions, ExecReason, SandboxId, StartProblem};

use super::agent::Resident;
use super::{DockerProvider, DockerRaw};

const PROBE: Duration = Duration::from_secs(30);

/// `bash` where `sh` finds it, else `sh` or `/bin/sh`; none where the image has neither. Any other trouble means `sh`.
pub(super) async fn find(
    provider: &DockerProvider,
    container_id: &str,
    agent: &Arc<Resident>,
) -> Result<Option<String>> {
    let id = SandboxId::new(container_id)?;
    let raw = DockerRaw {
        container_id: container_id.to_owned(),
        shell: None,
        agent: Arc::clone(agent),
        admitted: None,
        _taken: None,
    };
    // A sandbox may have a PATH without the directory of its shell.
    for sh in ["sh", "/bin/sh"] {
        let options = ExecOptions::new([sh, "-c", "command -v bash"]).with_timeout(PROBE);
        // No slot: a new sandbox never waits behind the commands of others.
        let result = provider.run_unslotted(&id, &raw, options).await?;
        return Ok(Some(match (result.error_type, result.reason) {
            (None, _) if result.return_code == 0 => "bash".to_owned(),
            (Some(ExecErrorType::Start), Some(ExecReason::Start(StartProblem::NotFound))) => continue,
            _ => sh.to_owned(),
        }));
    }
    Ok(None)
}
