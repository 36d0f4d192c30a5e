# shellcheck shell=bash
# Owns: messages, retries and Debian packages for the scripts beside it.
# Must not know: what an engine or an image is.

# dockerd, iptables and debootstrap live in sbin, which a plain user's and a cron job's PATH leave out.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf '%s: %s\n' "${PROGRAM:-gym-sandbox}" "$*" >&2; }

die() {
    say "error: $1"
    shift
    local line
    for line in "$@"; do printf '    %s\n' "$line" >&2; done
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

is_root() { [[ $(id -u) == 0 ]]; }

# Debian and what is made from it: the only systems whose packages these scripts know by name.
is_debian() { have apt-get && have dpkg && [[ -r /etc/os-release ]] && grep -Eq '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release; }

# retry TRIES PAUSE_S COMMAND..: for what asks a network, never for what would fail the same way again.
retry() {
    local tries=$1 pause=$2 try
    shift 2
    for ((try = 1; ; try++)); do
        "$@" && return 0
        ((try < tries)) || return 1
        say "try $try of $tries failed: $1 ${2:-}; once more in ${pause} s"
        sleep "$pause"
    done
}

apt() {
    # The lock wait is for machines that update themselves right after they started.
    # Only the end is shown: without a network there is a line for each package, all the same.
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 \
        -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 "$@" </dev/null 2>&1 9>&- | tail -n 3 >&2
}

APT_LISTS_ARE_FRESH=
apt_update() {
    [[ -z $APT_LISTS_ARE_FRESH ]] || return 0
    retry 3 5 apt update || return 1
    APT_LISTS_ARE_FRESH=yes
}

# install_packages WHY PACKAGE..: installs them, or says who has to do what.
install_packages() {
    local why=$1
    shift
    is_debian || die "$why: missing here, and this is not Debian or Ubuntu" \
        "install what your system has for these Debian packages: $*"
    is_root || die "$why: missing here, and only root may install it" \
        "run: sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
    say "$why: installing $*"
    apt_update || die "$why: apt-get update fails, is there a network?" "needed: $*"
    retry 3 5 apt install -y --no-install-recommends "$@" \
        || die "$why: apt-get install fails, is there a network?" "needed: $*"
}

# try_packages WHY PACKAGE..: installs what can be done without, and says so where it can't be had.
try_packages() {
    local why=$1
    shift
    is_debian && is_root || return 1
    say "$why: installing $*"
    apt_update && apt install -y --no-install-recommends "$@" && return 0
    say "$why: $* can't be had, going on without"
    return 1
}
