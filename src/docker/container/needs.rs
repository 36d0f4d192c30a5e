//! What of a request an engine must be new enough for. Older engines drop unknown fields silently (engine-facts S7, S8).

use crate::error::{Operation, Result};

use super::super::connect::ApiVersion;

/// The features of a request that not every engine has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::docker) struct Needs(Vec<(ApiVersion, &'static str)>);

impl Needs {
    /// Notes a feature.
    pub(super) fn require(&mut self, at_least: ApiVersion, what: &'static str) {
        self.0.push((at_least, what));
    }

    /// Refuses the first feature that is too new for an engine.
    pub(super) fn check(&self, api: ApiVersion) -> Result<()> {
        self.0
            .iter()
            .try_for_each(|(at_least, what)| api.require(*at_least, Operation::Create, what))
    }
}
