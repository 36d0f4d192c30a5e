#!/usr/bin/env bash
# Makes the root file system of gym-sandbox/debian:test: build.sh OUT.tar
set -euo pipefail
SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../lib/common.sh
. "$SCRIPTS/lib/common.sh"
PROGRAM=images/debian
OUT=$1
# python3-minimal would do for a script, but has no unittest.
PACKAGES=bash,procps,python3,git

is_root || die "only root may make a Debian root file system" "run: sudo scripts/engine.sh images"
if ! have debootstrap; then
    keyring=()
    # Others than Debian itself do not have the keys that its packages are signed with.
    grep -q '^ID=debian' /etc/os-release || keyring=(debian-archive-keyring)
    install_packages "debootstrap" debootstrap "${keyring[@]}"
fi
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
root=$WORK/root

bootstrap() {
    # What an earlier try has left would be taken for an unpacked system.
    rm -rf "$root"
    debootstrap --variant=minbase --include="$PACKAGES" bookworm "$root" ${GYM_SANDBOX_DEBIAN_MIRROR:+"$GYM_SANDBOX_DEBIAN_MIRROR"} \
        >"$WORK/log" 2>&1 </dev/null || { tail -n 5 "$WORK/log" >&2; return 1; }
}
retry 3 5 bootstrap || die "debootstrap fails, is there a network?" "set GYM_SANDBOX_DEBIAN_MIRROR for a mirror of your own"

# What no test reads. The compiled Python modules stay: without them each start of python3 takes longer.
rm -rf "$root"/usr/share/{doc,info,lintian,locale,man} "$root"/var/cache/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
# debootstrap copies these two from this machine.
rm -f "$root"/etc/{hostname,resolv.conf}
tar -C "$root" --numeric-owner --sort=name --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -cf "$OUT" .
