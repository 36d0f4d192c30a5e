//! Any text as a file of variables.
#![no_main]

#[allow(dead_code, reason = "each target uses one of the functions")]
mod compose_functions;

libfuzzer_sys::fuzz_target!(|text: &str| compose_functions::env_file(text));
