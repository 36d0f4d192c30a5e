#!/usr/bin/env bash
# Makes the root file system of gym-sandbox/busybox:test: build.sh OUT.tar
set -euo pipefail
SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../lib/common.sh
. "$SCRIPTS/lib/common.sh"
PROGRAM=images/busybox
OUT=$1
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

is_static() { ! LC_ALL=C ldd "$1" 2>/dev/null | grep -q '=>'; }

static_busybox() {
    if have busybox && is_static "$(command -v busybox)"; then
        command -v busybox
        return
    fi
    is_debian || die "a static busybox is missing" "install your system's package of it"
    # Unpacked, not installed: busybox-static would drive out an installed busybox.
    if is_root; then apt_update || die "apt-get update fails, is there a network?"; fi
    (cd "$WORK" && retry 3 5 apt -o APT::Sandbox::User=root download busybox-static) || die "busybox-static can't be downloaded"
    dpkg-deb -x "$WORK"/busybox-static_*.deb "$WORK/package"
    find "$WORK/package" -name busybox -type f -perm -u+x | head -n 1
}

busybox=$(static_busybox)
root=$WORK/root
mkdir -p "$root"/{bin,etc,home,root,tmp,usr/bin,usr/sbin,sbin,var/tmp}
install -m 755 "$busybox" "$root/bin/busybox"
"$root/bin/busybox" --list-full | while read -r applet; do
    [[ $applet != bin/busybox && $applet != linuxrc ]] || continue
    mkdir -p "$root/$(dirname "$applet")"
    ln -s /bin/busybox "$root/$applet"
done
printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'nobody:x:65534:65534:nobody:/nonexistent:/bin/false' >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' >"$root/etc/group"
chmod 644 "$root"/etc/*
chmod 755 "$root" "$root"/{bin,etc,home,usr,usr/bin,usr/sbin,sbin,var}
chmod 700 "$root/root"
chmod 1777 "$root/tmp" "$root/var/tmp"
tar -C "$root" --owner=0 --group=0 --numeric-owner --sort=name -cf "$OUT" .
