#!/usr/bin/env bash
# Shows the library at work: rollouts in sandboxes, and in copies of a project of several services, on a machine that it
# makes ready first. Arguments go to the first example; the exit code is that of the first that failed.
set -euo pipefail

PROGRAM=demo.sh
SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$SCRIPTS")
# shellcheck source=lib/common.sh
. "$SCRIPTS/lib/common.sh"
# shellcheck source=lib/rust.sh
. "$SCRIPTS/lib/rust.sh"

# shellcheck disable=SC2119  # our arguments are the example's, not components
need_rust
if DOCKER_HOST=$("$SCRIPTS/engine.sh" up); then
    export DOCKER_HOST
elif have python3 && have git; then
    say "no engine can be had here (see above): the demo runs on this machine, WITHOUT ISOLATION"
    export ROLLOUT_PROVIDER=local
else
    die "the demo needs an engine, or python3 and git to run without one, and neither can be had here (see above)"
fi
cd "$ROOT"
say "building the examples"
cargo build --quiet --release --example rollout --example compose_rollout
cargo run --quiet --release --example rollout -- "$@"
if [[ ${ROLLOUT_PROVIDER:-docker} == local ]]; then
    say "projects of several services need an engine: that part is left out"
else
    cargo run --quiet --release --example compose_rollout
fi
