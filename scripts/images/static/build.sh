#!/usr/bin/env bash
# Makes the root file system of gym-sandbox/static:test: build.sh OUT.tar
set -euo pipefail
SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../lib/common.sh
. "$SCRIPTS/lib/common.sh"
PROGRAM=images/static
OUT=$1
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

compile() { gcc -static -Os -s -Wall -Wextra -Werror -o "$WORK/static" "$SCRIPTS/images/static/static.c"; }

# gcc alone does not bring the C library's static half, which its own package has.
if ! have gcc || ! echo 'int main(void) { return 0; }' | gcc -static -xc -o "$WORK/probe" - 2>/dev/null; then
    install_packages "a C compiler that links statically" gcc libc6-dev
fi
compile
tar -C "$WORK" --owner=0 --group=0 --numeric-owner --mode=755 -cf "$OUT" static
