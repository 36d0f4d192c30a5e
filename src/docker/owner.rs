//! Whose a sandbox is: labels that any later client can read (contract D17).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::error::{Error, Operation, Result};

/// Every object of ours carries this label.
pub(super) const LABEL: &str = "gym-sandbox";

/// The owner: one id per process. The run: `GYM_SANDBOX_RUN` where the caller sets it, else the owner, so that all
/// processes of one run can be found together.
pub(super) struct Owner {
    pub(super) id: String,
    pub(super) run: String,
}

pub(super) fn owner() -> &'static Owner {
    static OWNER: OnceLock<Owner> = OnceLock::new();
    OWNER.get_or_init(|| {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let run = std::env::var("GYM_SANDBOX_RUN")
            .ok()
            .filter(|run| !run.trim().is_empty())
            .unwrap_or_else(|| id.clone());
        Owner { id, run }
    })
}

/// Refuses labels of the caller that would pass for ours.
pub(super) fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<()> {
    match metadata.keys().find(|key| key.starts_with(LABEL)) {
        Some(key) => Err(Error::invalid(
            Operation::Create,
            format!("the metadata key `{}` is reserved", key.escape_debug()),
        )
        .with_hint("keys that start with `gym-sandbox` are the library's own")),
        None => Ok(()),
    }
}
