//! How a sandbox is handed to somebody else: what is needed to reach it. Data only; holds no secrets.

use serde::{Deserialize, Serialize};

use super::SandboxDescriptor;

/// A connection to a sandbox by the provider that made it (contract 1.6).
///
/// Unknown fields are refused, but for those of the descriptor, which are its provider's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectSandboxConnection {
    kind: Direct,
    descriptor: SandboxDescriptor,
    provider_config_ref: String,
}

/// The only kind of connection there is until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direct {
    Direct,
}

impl DirectSandboxConnection {
    /// Makes one from the descriptor of a sandbox and the name of the configuration block of its provider, see
    /// [`resolve_provider_config`](crate::provider::resolve_provider_config).
    pub fn new(descriptor: SandboxDescriptor, provider_config_ref: impl Into<String>) -> Self {
        Self {
            kind: Direct::Direct,
            descriptor,
            provider_config_ref: provider_config_ref.into(),
        }
    }

    /// What the provider needs to find the sandbox.
    pub fn descriptor(&self) -> &SandboxDescriptor {
        &self.descriptor
    }

    /// The name of the configuration block of the provider.
    pub fn provider_config_ref(&self) -> &str {
        &self.provider_config_ref
    }
}

/// What a borrower of a sandbox is given (contract 1.6): how to reach it, and where to work in it.
///
/// The owner keeps the sandbox: it stops it. A borrower connects, works and disconnects; disconnecting leaves the
/// sandbox as it is.
///
/// ```no_run
/// use gym_sandbox::provider::{create_provider, resolve_provider_config};
/// use gym_sandbox::{AsyncSandbox, ConnectOptions, ExecOptions, Mapping, SandboxAccess};
/// # async fn example(access: SandboxAccess, configs: Mapping) -> gym_sandbox::Result<()> {
/// let connection = access.connection();
/// let config = resolve_provider_config(&connection.provider_config_ref().into(), Some(&configs))?;
/// let options = ConnectOptions::new().with_owned_provider();
/// let sandbox = AsyncSandbox::connect_with(create_provider(&config)?, connection.descriptor(), &options).await?;
/// sandbox.exec_with(ExecOptions::new("make test").with_cwd(access.workdir())).await?;
/// sandbox.disconnect().await
/// # }
/// ```
///
/// ```
/// # fn main() -> Result<(), serde_json::Error> {
/// let text = r#"{"connection": {"kind": "direct", "descriptor": {"sandbox_id": "a"}, "provider_config_ref": "docker"},
///                "workdir": "/work"}"#;
/// let access: gym_sandbox::SandboxAccess = serde_json::from_str(text)?;
/// assert_eq!(access.workdir(), "/work");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxAccess {
    connection: DirectSandboxConnection,
    workdir: String,
}

impl SandboxAccess {
    /// Makes one.
    pub fn new(connection: DirectSandboxConnection, workdir: impl Into<String>) -> Self {
        Self {
            connection,
            workdir: workdir.into(),
        }
    }

    /// How to reach the sandbox.
    pub fn connection(&self) -> &DirectSandboxConnection {
        &self.connection
    }

    /// Where to work in it.
    pub fn workdir(&self) -> &str {
        &self.workdir
    }
}
