//! A sandbox that reaches only what a list allows: an internal network with one gateway in it, and what can be reached
//! from there, tried out. An internal network alone does not isolate from the engine's machine; network `none` does.
//!
//! ```sh
//! cargo run --example egress_allow_list
//! ```
//!
//! Every line is a claim that is tried; the exit code is 0 only when all are right. Nothing outside of the engine's
//! machine is needed: what is allowed and what is forbidden are sandboxes, too.
//!
//! | option | default |
//! |---|---|
//! | `--image REF` | `gym-sandbox/debian:test`; it needs `python3`, and must be there: nothing is pulled |
//! | `--engine-elsewhere` | leaves out what is said of the engine's machine: this program listens on it |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

mod claims;
#[path = "../common/mod.rs"]
mod common;
mod scene;

use std::process::ExitCode;

use claims::Claims;
use common::{Arguments, Failure, ended, unknown};
use scene::Scene;

struct Options {
    image: String,
    engine_elsewhere: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    ended(async { run(&Options::read()?).await }.await)
}

async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let mut scene = Scene::new(&options.image).await?;
    let tried = try_all(&mut scene, options).await;
    // Also after a failure: the network would stay.
    let removed = scene.remove().await;
    let claims = tried?;
    removed?;
    Ok(claims.verdict())
}

async fn try_all(scene: &mut Scene, options: &Options) -> Result<Claims, Failure> {
    let allowed = scene.server("allowed").await?;
    let forbidden = scene.server("forbidden").await?;
    let gateway = scene.gateway(&allowed).await?;
    let worker = scene.worker("inside").await?;
    let neighbour = scene.neighbour().await?;
    let alone = scene.alone().await?;

    let mut claims = Claims::default();
    let through = Some(gateway.as_str());
    claims.reached(
        "the gateway, to what is on its list",
        scene.fetch(worker, &allowed, through).await?.is_some(),
    );
    claims.refused(
        "the gateway, to what is not",
        scene.fetch(worker, &forbidden, through).await?.is_some(),
    );
    claims.refused(
        "what is on the list, past the gateway",
        scene.fetch(worker, &allowed, None).await?.is_some(),
    );
    claims.refused(
        "what is not on it, past the gateway",
        scene.fetch(worker, &forbidden, None).await?.is_some(),
    );
    claims.reached(
        "another sandbox of the internal network",
        scene.fetch(worker, &neighbour, None).await?.is_some(),
    );
    if options.engine_elsewhere {
        println!("left out: the engine's machine, on which this program does not run");
    } else {
        let host = scene.service_of_the_host().await?;
        claims.reached(
            "a service of the engine's machine (!)",
            scene.fetch(worker, &host, None).await?.is_some(),
        );
        claims.refused(
            "the same through the gateway",
            scene.fetch(worker, &host, through).await?.is_some(),
        );
        claims.refused(
            "the same with network `none`",
            scene.fetch(alone, &host, None).await?.is_some(),
        );
    }
    claims.refused(
        "the gateway with network `none`",
        scene.fetch(alone, &gateway, None).await?.is_some(),
    );
    Ok(claims)
}

impl Options {
    fn read() -> Result<Self, Failure> {
        let mut options = Self {
            image: "gym-sandbox/debian:test".to_owned(),
            engine_elsewhere: false,
        };
        let mut arguments = Arguments::of_process();
        while let Some(option) = arguments.option() {
            match option.as_str() {
                "--image" => options.image = arguments.value(&option)?,
                "--engine-elsewhere" => options.engine_elsewhere = true,
                _ => return Err(unknown(&option, "--image and --engine-elsewhere")),
            }
        }
        Ok(options)
    }
}
