#!/usr/bin/env bash
# Uses the packages as a program outside of the workspace does: makes them with `cargo package`, unpacks them, and builds
# and runs tests/consumer against them, with no and with default features. Needs nothing from the network once the
# workspace has been built.
#
# Runs a rollout on this machine without isolation, and a rollout and a Compose project on the engine at DOCKER_HOST, where
# that is set.
set -euo pipefail

PROGRAM=consumer.sh
SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$SCRIPTS")
# shellcheck source=lib/common.sh
. "$SCRIPTS/lib/common.sh"
# shellcheck source=lib/rust.sh
. "$SCRIPTS/lib/rust.sh"

IMAGE=gym-sandbox/busybox:test
LIMIT_S=${GYM_SANDBOX_CONSUMER_LIMIT:-1200}

# shellcheck disable=SC2119  # our arguments are none, not components
need_rust
cd "$ROOT"
PLACE=target/consumer
rm -rf "$PLACE"
mkdir -p "$PLACE"

say "packaging"
cargo package --quiet --workspace --no-verify --allow-dirty --offline --target-dir target
for package in gym-sandbox gym-sandbox-agent; do
    crate=$(find target/package -maxdepth 1 -name "$package-[0-9]*.crate" | sort | tail -n 1)
    mkdir "$PLACE/$package"
    tar -xzf "$crate" -C "$PLACE/$package" --strip-components=1
done
cp -R tests/consumer "$PLACE/app"
# The versions of the workspace, so that nothing is looked up.
cp Cargo.lock "$PLACE/app/Cargo.lock"

# Builds share the workspace's target folder: most of the dependencies are there already.
run() {
    local -a limit=(timeout --kill-after=30 "$LIMIT_S")
    have timeout || limit=()
    "${limit[@]}" cargo run --quiet --offline --manifest-path "$PLACE/app/Cargo.toml" --target-dir target "$@"
}

for features in "" default-features; do
    say "running with ${features:-no features}"
    run --features "$features" -- "local: {shell: /bin/sh}"
    if [[ -n ${DOCKER_HOST:-} ]]; then
        run --features "$features" -- "docker: {}" "$IMAGE"
    fi
done
say "the packages can be used"
