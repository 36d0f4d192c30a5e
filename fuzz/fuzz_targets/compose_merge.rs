//! Any two texts as Compose files, one over the other.
#![no_main]

#[allow(dead_code, reason = "each target uses one of the functions")]
mod compose_functions;

libfuzzer_sys::fuzz_target!(|text: &str| compose_functions::merge(text));
