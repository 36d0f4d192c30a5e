//! The resident agent: runs the commands of one sandbox from within.

#[expect(
    dead_code,
    unreachable_pub,
    reason = "the library shows all of the same source"
)]
mod protocol;

fn main() {}
