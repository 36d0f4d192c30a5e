//! Reaching an engine.
use std::time::Duration;
use crate::error::Result;
#[derive(Clone, Debug)]
pub(super) struct Engine { pub(super) client: bollard::Docker }
#[derive(Debug,Clone,Copy)]
pub(super) struct EngineTime(i64);
impl EngineTime {
    pub(super) fn epoch_seconds(&self) -> i64 { self.0 }
    pub(super) fn plus(&self, d: Duration) -> Self { Self(self.0 + d.as_secs() as i64) }
    pub(super) fn to_rfc3339(&self) -> String { format!("{}", self.0) }
}
impl Engine {
    pub(super) fn engine_now(&self) -> EngineTime { EngineTime(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64) }
}
pub(super) async fn connect(_host: Option<&str>) -> Result<Engine> {
    Ok(Engine { client: bollard::Docker::connect_with_unix_defaults().unwrap().with_timeout(Duration::from_secs(86400)) })
}
