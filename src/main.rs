//! The `gym-sandbox` command.
fn main() {}
