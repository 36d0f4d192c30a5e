//! Builds the agent's program with one call of rustc and hands its bytes to the library.
//!
//! Not with a nested cargo: that waits for ever on the lock of a shared target folder, takes over flags that silently
//! make the program dynamic, and needs a Cargo.toml in a folder that `cargo package` would then leave out.

use std::env;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fingerprint::Fingerprint;

#[path = "guest/protocol/fingerprint.rs"]
#[allow(dead_code, missing_docs, unreachable_pub)]
mod fingerprint;

/// What an engine calls the architectures that ELF numbers so.
const MACHINES: [(u16, &str); 7] = [
    (3, "386"),
    (21, "ppc64le"),
    (22, "s390x"),
    (40, "arm"),
    (62, "amd64"),
    (183, "arm64"),
    (243, "riscv64"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=guest");
    println!("cargo::rerun-if-env-changed=GYM_SANDBOX_AGENT");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let program = match env::var_os("GYM_SANDBOX_AGENT").filter(|file| !file.is_empty()) {
        Some(file) => {
            let file = PathBuf::from(file);
            println!("cargo::rerun-if-changed={}", file.display());
            Some(file)
        }
        None => build(&out)?,
    };
    let (list, fingerprint, architecture) = match program {
        Some(program) => {
            let bytes = fs::read(&program)
                .map_err(|error| format!("cannot read the agent `{}`: {error}", program.display()))?;
            let architecture = architecture(&bytes)
                .ok_or_else(|| format!("`{}` is no program for Linux", program.display()))?;
            let copy = out.join("agent");
            fs::write(&copy, &bytes)?;
            let hex = Fingerprint::hex(Fingerprint::of(&bytes));
            (
                format!(
                    "Some(include_bytes!({:?}))",
                    copy.to_str().ok_or("the path of the target folder is no text")?
                ),
                hex,
                architecture,
            )
        }
        None => ("None".to_owned(), String::new(), ""),
    };
    fs::write(out.join("binary.rs"), list)?;
    println!("cargo::rustc-env=GYM_SANDBOX_AGENT_FINGERPRINT={fingerprint}");
    println!("cargo::rustc-env=GYM_SANDBOX_AGENT_ARCHITECTURE={architecture}");
    Ok(())
}

/// Builds the program, None where this machine can't build any such program.
fn build(out: &Path) -> Result<Option<PathBuf>, Box<dyn Error>> {
    let target = env::var("TARGET")?;
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(without(&format!("the target `{target}` is not Linux")));
    }
    let probe = out.join("probe.rs");
    fs::write(&probe, "fn main() {}\n")?;
    let tried = rustc(&probe, &out.join("probe"), &target)?;
    if !tried.status.success() {
        let text = String::from_utf8_lossy(&tried.stderr);
        let cause = text
            .lines()
            .find(|line| line.contains("error"))
            .unwrap_or("rustc fails")
            .to_owned();
        return Ok(without(&format!(
            "no static program can be linked for `{target}`: {cause}"
        )));
    }
    let source = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("guest/main.rs");
    let program = out.join("gym-sandbox-agent");
    let built = rustc(&source, &program, &target)?;
    if !built.status.success() {
        // This machine can build static programs, so it is the source that is broken.
        std::io::stderr().write_all(&built.stderr)?;
        return Err("the agent's program does not compile, see above".into());
    }
    Ok(Some(program))
}

fn without(cause: &str) -> Option<PathBuf> {
    println!(
        "cargo::warning=gym-sandbox is built without its resident agent: {cause}; set GYM_SANDBOX_AGENT to a program built elsewhere (docs/agent.md)"
    );
    None
}

/// One source gives one file, whatever the folder: paths are remapped, and nothing of the caller's flags comes in.
fn rustc(source: &Path, program: &Path, target: &str) -> Result<Output, Box<dyn Error>> {
    let mut command = Command::new(env::var_os("RUSTC").ok_or("cargo names no rustc")?);
    command
        .arg(source)
        .args([
            "--edition=2024",
            "--crate-type=bin",
            "--crate-name=gym_sandbox_agent",
            "--target",
            target,
        ])
        .args([
            "-C",
            "opt-level=z",
            "-C",
            "lto=fat",
            "-C",
            "codegen-units=1",
            "-C",
            "panic=abort",
        ])
        .args([
            "-C",
            "strip=symbols",
            "-C",
            "debuginfo=0",
            "-C",
            "target-feature=+crt-static",
        ])
        .args([
            "-C",
            "relocation-model=static",
            "-C",
            "overflow-checks=off",
            "--cap-lints=allow",
        ])
        .args(["-C", "link-arg=-Wl,--build-id=none"])
        .arg("--remap-path-prefix")
        .arg(format!("{}=/agent", env::var("CARGO_MANIFEST_DIR")?))
        .arg("--remap-path-prefix")
        .arg(format!("{}=/out", env::var("OUT_DIR")?))
        .arg("-o")
        .arg(program)
        .env_remove("RUSTFLAGS");
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut flag = std::ffi::OsString::from("linker=");
        flag.push(linker);
        command.arg("-C").arg(flag);
    }
    Ok(command.output()?)
}

fn architecture(program: &[u8]) -> Option<&'static str> {
    let head: &[u8; 20] = program.first_chunk()?;
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let bytes = [head[18], head[19]];
    let machine = if head[5] == 2 {
        u16::from_be_bytes(bytes)
    } else {
        u16::from_le_bytes(bytes)
    };
    MACHINES
        .iter()
        .find(|(number, _)| *number == machine)
        .map(|(_, name)| *name)
}
