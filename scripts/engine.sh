#!/usr/bin/env bash
# Makes this machine ready for the tests: an engine that answers, and the test images on it.
# docs/development.md says what is in the images and which environment variables are read.
set -euo pipefail

usage() {
    cat >&2 <<'END'
usage: scripts/engine.sh up         find an engine (or install and start one), make the test images; prints DOCKER_HOST
       scripts/engine.sh find       only print the DOCKER_HOST of the engine that answers
       scripts/engine.sh images     make the test images on the engine that answers
       scripts/engine.sh status     what is there; exit 1 when something is missing
       scripts/engine.sh leftovers  names of all that the library left on the engine
       scripts/engine.sh down       end the engine that `up` started, never another
       scripts/engine.sh tls up|down  a second address for the engine: TCP with mutual TLS, on 127.0.0.1
END
    exit 2
}

PROGRAM=engine.sh
SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${GYM_SANDBOX_CACHE:-$(dirname "$SCRIPTS")/target/engine}
# shellcheck source=lib/common.sh
. "$SCRIPTS/lib/common.sh"
# shellcheck source=lib/engine.sh
. "$SCRIPTS/lib/engine.sh"
# shellcheck source=lib/images.sh
. "$SCRIPTS/lib/images.sh"
# shellcheck source=lib/registry.sh
. "$SCRIPTS/lib/registry.sh"
# shellcheck source=lib/tls.sh
. "$SCRIPTS/lib/tls.sh"
STATE=$(engine_state_folder)

# Two runs at once would start two engines, or make the same image twice. Held until this script ends.
take_lock() {
    # Who can't write there can start no engine either, and images are made twice at worst.
    mkdir -p "$STATE" 2>/dev/null || return 0
    have flock || return 0
    exec 9>"$STATE/lock"
    flock -w 900 9 || die "another scripts/engine.sh has been at work for 15 minutes" "its lock is $STATE/lock"
}

need_engine() { engine_find || die "no engine answers" "${ENGINE_REASONS[@]}" "run: scripts/engine.sh up"; }

verb_up() {
    local missing
    if ! engine_find; then
        take_lock
        engine_find || engine_start
    fi
    missing=$(images_missing)
    if [[ -n $missing ]]; then
        [[ -e /dev/fd/9 ]] || take_lock
        images_make
    fi
    if ! have docker-registry; then
        [[ -e /dev/fd/9 ]] || take_lock
        registry_provide
    fi
    say "ready: $ENGINE_HOST"
    printf '%s\n' "$ENGINE_HOST"
}

verb_images() {
    need_engine
    take_lock
    images_make
    say "all ${#IMAGES[@]} test images are there"
}

verb_status() {
    local missing version
    engine_find || die "no engine answers" "${ENGINE_REASONS[@]}"
    version=$(engine_api GET /version --max-time 10 | sed -E 's/.*"Version":"([^"]*)","ApiVersion":"([^"]*)".*/version \1, API \2/' || true)
    printf 'engine: %s\n' "$ENGINE_HOST"
    [[ $version != version* ]] || printf 'engine: %s\n' "$version"
    if [[ -e $STATE/unit ]] || process_is_ours "$STATE/dockerd"; then
        printf 'engine: started by this script\n'
    else
        printf 'engine: not started by this script\n'
    fi
    missing=$(images_missing)
    if [[ -n $missing ]]; then
        printf 'missing images: gym-sandbox/%s:test\n' "${missing//$'\n'/:test, gym-sandbox/}"
        return 1
    fi
    printf 'images: all %s are there\n' "${#IMAGES[@]}"
}

# Volumes of kind "shared" are kept on purpose: they are the library's cache, and belong to no sandbox.
verb_leftovers() {
    need_engine
    local all='{"label":["gym-sandbox"]}' shared='{"label":["gym-sandbox","gym-sandbox.kind=shared"]}'
    engine_list /containers/json all=1 "$all" | names_in Names container
    engine_list /networks "" "$all" | names_in Name network
    comm -23 <(engine_list /volumes "" "$all" | names_in Name volume | sort) \
        <(engine_list /volumes "" "$shared" | names_in Name volume | sort)
    # By id: one that has lost its name is left, too.
    engine_list /images/json all=1 "$all" | names_in Id image
}

# names_in KEY WORD: the values of KEY in a list's JSON, WORD before each.
names_in() {
    (grep -Eo "\"$1\":\\[?\"[^\"]*\"" || true) | sed -E "s|^\"$1\":\\[?\"/?(.*)\"\$|$2 \\1|"
}

case ${1:-}:${2:-} in
up:) verb_up ;;
find:) need_engine && printf '%s\n' "$ENGINE_HOST" ;;
images:) verb_images ;;
status:) verb_status ;;
leftovers:) verb_leftovers ;;
down:) engine_stop ;;
tls:up) need_engine && tls_up ;;
tls:down) tls_down ;;
*) usage ;;
esac
