//! What the agent knows of its sandbox from its own start: that is what commands get. Read once, changed never.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use crate::protocol::MARKER;
use crate::sys::{self, Limit};

/// How much more likely than the agent a command is to be killed for want of memory.
const MORE_LIKELY: i32 = 100;

/// The surroundings that commands are given.
#[derive(Debug)]
pub(crate) struct Context {
    /// The sandbox's environment, `NAME=value`.
    pub(crate) environment: Vec<Vec<u8>>,
    /// The sandbox's working directory.
    pub(crate) directory: Vec<u8>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    /// The limit of descriptors that the agent was started with.
    pub(crate) descriptor_limit: Limit,
    /// What a command writes to its `oom_score_adj`.
    pub(crate) oom_score: String,
}

impl Context {
    /// Looks at this process as it was started. `keep_home`: the container's configuration has `HOME`, it was not added
    /// by its runtime from the passwd file.
    pub(crate) fn read(keep_home: bool) -> Self {
        let (uid, gid) = sys::own_user();
        let left_out = |name: &OsString| name == MARKER || (name == "HOME" && !keep_home);
        let environment = std::env::vars_os()
            .filter(|(name, _)| !left_out(name))
            .map(|(name, value)| {
                let mut entry = name.into_vec();
                entry.push(b'=');
                entry.extend(value.into_vec());
                entry
            });
        let own_score = fs::read_to_string("/proc/self/oom_score_adj").ok();
        let own_score: i32 = own_score.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Self {
            environment: environment.collect(),
            directory: std::env::current_dir()
                .map_or_else(|_| b"/".to_vec(), |path| path.into_os_string().into_vec()),
            uid,
            gid,
            groups: sys::own_groups(),
            descriptor_limit: sys::descriptor_limit(),
            oom_score: (own_score + MORE_LIKELY).min(1000).to_string(),
        }
    }
}
