//! Contract tests of the facade over a scripted provider. The numbers are those of `docs/contract-coverage.md`.

mod calls;
mod cancel;
mod connect;
mod endpoint;
mod pause;
mod scope;
mod services;
mod setup;
mod start;
mod stop;
mod terminals;

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::provider::SandboxProvider;
use crate::provider::tests::scripted::{Call, Scripted};
use crate::spec::SandboxSpec;

use super::AsyncSandbox;

fn spec() -> SandboxSpec {
    SandboxSpec::new("image")
        .with_workdir("/work")
        .with_ports([8000, 8001])
        .expect("the ports are right")
}

fn shared(provider: &Arc<Scripted>) -> AsyncSandbox {
    AsyncSandbox::new(Arc::clone(provider) as Arc<dyn SandboxProvider>).with_spec(spec())
}

fn owning(provider: &Arc<Scripted>) -> AsyncSandbox {
    AsyncSandbox::owning(Arc::clone(provider) as Arc<dyn SandboxProvider>).with_spec(spec())
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().expect("must fail").kind()
}

fn is_create(call: &Call) -> bool {
    matches!(call, Call::Create(_))
}

fn is_upload(call: &Call) -> bool {
    matches!(call, Call::Upload(..))
}

fn is_close(call: &Call) -> bool {
    matches!(call, Call::Close(_))
}
