//! How the command is linked. The library needs nothing of this.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A position-independent program of this size applies thousands of relocations, and so copies 150 pages, before its
    // first line: about half of the time of a `compose config`. docs/performance.md has the figures.
    let is_gnu_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
        && std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if is_gnu_linux && std::env::var_os("CARGO_FEATURE_CLI").is_some() {
        println!("cargo::rustc-link-arg-bin=gym-sandbox=-no-pie");
    }
}
