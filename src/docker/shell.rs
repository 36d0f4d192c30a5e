//! Which shell an image has, found by trying (contract X9).

use std::time::Duration;

use crate::error::Result;
use crate::spec::{ExecErrorType, ExecOptions, ExecReason, SandboxId, StartProblem};

use super::{DockerProvider, DockerRaw};

const PROBE: Duration = Duration::from_secs(30);

/// `bash` where `sh` finds it, else `sh`; none where the image has no `sh`. Any other trouble means `sh`.
pub(super) async fn find(provider: &DockerProvider, container_id: &str) -> Result<Option<String>> {
    let id = SandboxId::new(container_id)?;
    let raw = DockerRaw {
        container_id: container_id.to_owned(),
        shell: None,
    };
    let options = ExecOptions::new(["sh", "-c", "command -v bash"]).with_timeout(PROBE);
    let result = provider.run_command(&id, &raw, options).await?;
    Ok(match (result.error_type, result.reason) {
        (None, _) if result.return_code == 0 => Some("bash".to_owned()),
        (Some(ExecErrorType::Start), Some(ExecReason::Start(StartProblem::NotFound))) => None,
        _ => Some("sh".to_owned()),
    })
}
