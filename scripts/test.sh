#!/usr/bin/env bash
# Runs all tests on a machine that it makes ready first, and checks that they left nothing on the engine.
# docs/development.md says which environment variables are read.
set -euo pipefail

PROGRAM=test.sh
SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$SCRIPTS")
# shellcheck source=lib/common.sh
. "$SCRIPTS/lib/common.sh"
# shellcheck source=lib/rust.sh
. "$SCRIPTS/lib/rust.sh"

# Several times what it takes, so that a slow machine comes to its end.
LIMIT_S=7200
case ${1:-} in
--long)
    export GYM_SANDBOX_LONG=1
    LIMIT_S=14400
    shift
    ;;
-h | --help)
    say "usage: scripts/test.sh [--long] [argument of cargo test..]"
    exit 2
    ;;
esac
LIMIT_S=${GYM_SANDBOX_TEST_LIMIT:-$LIMIT_S}

# A test that was skipped for want of an engine would look like a passed one.
export SANDBOX_REQUIRE_DOCKER=1

# The lease of a process that has ended is not counted: an empty volume that says nothing but until when it lived, and that
# any sweep removes (docs/leaks.md). What it made is counted.
leftovers() { "$SCRIPTS/engine.sh" leftovers | sed '/^volume gym-sandbox-lease-/d' | sort; }

# Sets LEFT to what is there now and was not before the tests; fails when the engine is gone.
# Cleaning up goes on for a moment after the last test has ended, on a busy machine for a longer one.
find_left() {
    local deadline=$((SECONDS + 120)) now
    while true; do
        now=$(leftovers) || return 1
        LEFT=$(comm -13 <(printf '%s\n' "$BEFORE") <(printf '%s\n' "$now"))
        if [[ -z $LEFT ]] || ((SECONDS >= deadline)); then return 0; fi
        sleep 0.5
    done
}

# cargo's own status; the output goes to the log, too, for the sums below.
run_tests() {
    local -a limit=(timeout --kill-after=30 "$LIMIT_S")
    # Else timeout would be a process group of its own, which a Ctrl-C does not reach.
    [[ ! -t 0 ]] || limit+=(--foreground)
    have timeout || limit=()
    "${limit[@]}" cargo test --workspace --all-features --no-fail-fast "$@" 2>&1 | tee "$LOG"
    return "${PIPESTATUS[0]}"
}

# "N passed, N failed, N skipped" of all test programs together.
sums() {
    awk '/^test result: / { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1); if ($i ~ /^ignored/) s += $(i-1) } }
        END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$LOG"
}

# shellcheck disable=SC2119  # our arguments are cargo test's, not components
need_rust
DOCKER_HOST=$("$SCRIPTS/engine.sh" up)
export DOCKER_HOST
cd "$ROOT"
mkdir -p target
LOG=$(mktemp target/test-log.XXXXXX)
trap 'rm -f "$LOG"' EXIT
BEFORE=$(leftovers)
[[ -z $BEFORE ]] || say "already on the engine, and not looked at below: ${BEFORE//$'\n'/, }"

status=0
problems=()
run_tests "$@" || status=$?
case $status in
0) ;;
124 | 137) problems+=("the tests did not end in $LIMIT_S s") ;;
*) problems+=("cargo test failed (exit code $status)") ;;
esac
# With arguments only some tests are wanted.
if (($# == 0)); then
    "$SCRIPTS/consumer.sh" || problems+=("a program outside of the workspace can't use the packages")
fi
LEFT=
find_left || problems+=("the engine does not answer any more")
LEFT=${LEFT//$'\n'/, }
if [[ -n $LEFT && ${GYM_SANDBOX_LEFTOVERS:-fail} == warn ]]; then
    say "left on the engine: $LEFT"
elif [[ -n $LEFT ]]; then
    problems+=("left on the engine: $LEFT")
fi

SUMS=$(sums)
if (($# == 0)) && [[ $SUMS == "0 passed, 0 failed"* ]]; then problems+=("no test ran"); fi

printf '\ntests: %s\n' "$SUMS"
if ((${#problems[@]} > 0)); then die "the tests did not pass" "${problems[@]}"; fi
say "the tests passed and left nothing on the engine, in $((SECONDS / 60)) min $((SECONDS % 60)) s"
