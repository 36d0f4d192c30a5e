# shellcheck shell=bash
# Owns: finding an engine, asking it over HTTP, and the one dockerd that these scripts may start and end.
# Must not know: which images the tests want.
#
# The engine is asked with curl, not with the docker command: a machine may have an engine without a client,
# and a client too new or too old for it.

ENGINE_HOST=
ENGINE_CURL=()
ENGINE_BASE=
ENGINE_REASONS=()

# Where the pid and the log of our own engine are. /run is emptied at boot, as pids are.
engine_state_folder() {
    if [[ -n ${GYM_SANDBOX_ENGINE_STATE:-} ]]; then
        printf '%s\n' "$GYM_SANDBOX_ENGINE_STATE"
    elif is_root; then
        printf '%s\n' /run/gym-sandbox-engine
    else
        printf '%s\n' "${XDG_RUNTIME_DIR:-$CACHE}/gym-sandbox-engine"
    fi
}

# Sets how to ask HOST; fails where curl can't.
engine_use() {
    local host=$1 scheme=http certificates=${DOCKER_CERT_PATH:-${HOME:-/root}/.docker}
    ENGINE_CURL=(curl --silent --show-error --noproxy '*')
    case $host in
    unix://*)
        ENGINE_CURL+=(--unix-socket "${host#unix://}")
        ENGINE_BASE=http://localhost
        ;;
    tcp://* | http://* | https://*)
        if [[ -n ${DOCKER_TLS_VERIFY:-} || $host == https://* ]]; then
            scheme=https
            ENGINE_CURL+=(--cacert "$certificates/ca.pem" --cert "$certificates/cert.pem" --key "$certificates/key.pem")
        fi
        ENGINE_BASE=$scheme://${host#*://}
        ENGINE_BASE=${ENGINE_BASE%/}
        ;;
    *) return 1 ;;
    esac
    ENGINE_HOST=$host
}

# engine_api METHOD PATH [CURL ARG..]: the answer's body; fails on a status of 400 and above, with the body on stderr.
engine_api() {
    local method=$1 path=$2 body
    shift 2
    if ! body=$("${ENGINE_CURL[@]}" --fail-with-body -X "$method" "$@" "$ENGINE_BASE$path"); then
        say "the engine refuses $method $path: $body"
        return 1
    fi
    printf '%s\n' "$body"
}

# Byte by byte: curl can't add a query of its own to an upload.
url_encode() {
    local LC_ALL=C text=$1 i byte
    for ((i = 0; i < ${#text}; i++)); do
        byte=${text:i:1}
        case $byte in
        [a-zA-Z0-9._~/-]) printf '%s' "$byte" ;;
        *) printf '%%%02X' "'$byte" ;;
        esac
    done
}

# engine_list PATH QUERY FILTERS: GET with the filters as JSON.
engine_list() { engine_api GET "$1?$2&filters=$(url_encode "$3")" --max-time 30; }

engine_answers() {
    local answer
    answer=$("${ENGINE_CURL[@]}" --fail --max-time 5 "$ENGINE_BASE/_ping" 2>&1) && [[ $answer == OK ]] && return 0
    ENGINE_REASONS+=("$ENGINE_HOST: ${answer:-no answer}")
    return 1
}

engine_candidates() {
    if [[ -n ${GYM_SANDBOX_ENGINE_SOCKET:-} ]]; then
        printf 'unix://%s\n' "$GYM_SANDBOX_ENGINE_SOCKET"
        return
    elif [[ -n ${DOCKER_HOST:-} ]]; then
        printf '%s\n' "$DOCKER_HOST"
        return
    fi
    if have docker; then docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null || true; fi
    printf 'unix://%s\n' /var/run/docker.sock
    [[ -z ${XDG_RUNTIME_DIR:-} ]] || printf 'unix://%s\n' "$XDG_RUNTIME_DIR/docker.sock"
    [[ -z ${HOME:-} ]] || printf 'unix://%s\n' "$HOME/.docker/run/docker.sock"
}

# Sets ENGINE_HOST to the first engine that answers.
engine_find() {
    local host seen=' '
    ENGINE_REASONS=()
    have curl || { ENGINE_REASONS+=("curl is missing, it is what asks an engine"); return 1; }
    while read -r host; do
        [[ -n $host && $seen != *" $host "* ]] || continue
        seen+="$host "
        if [[ $host == unix://* && ! -S ${host#unix://} ]]; then
            ENGINE_REASONS+=("$host: there is no such socket")
        elif [[ $host == unix://* && ! -w ${host#unix://} ]]; then
            ENGINE_REASONS+=("$host: you may not use it (be root, or in the group of the socket)")
        elif ! engine_use "$host"; then
            ENGINE_REASONS+=("$host: these scripts speak unix:// and tcp:// only (forward an ssh engine's socket)")
        elif engine_answers; then
            return 0
        fi
    done < <(engine_candidates)
    ENGINE_HOST=
    return 1
}

# Field 22 of stat, counted after the name, which may hold spaces: with it a reused pid is told from the old one.
process_start_time() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    read -r -a stat <<<"${stat##*) }"
    printf '%s\n' "${stat[19]}"
}

# process_is_ours FILE: FILE holds "PID START_TIME" of a process that still runs.
process_is_ours() {
    local pid start
    [[ -r $1 ]] && read -r pid start <"$1" || return 1
    [[ $pid =~ ^[0-9]+$ && $(process_start_time "$pid") == "$start" ]]
}

process_remember() { printf '%s %s\n' "$1" "$(process_start_time "$1")" >"$2"; }

# Starts an engine where none was found, and installs one first where there is none to start.
engine_start() {
    local systemd=
    if [[ -n ${DOCKER_HOST:-} && -z ${GYM_SANDBOX_ENGINE_SOCKET:-} ]]; then
        die "DOCKER_HOST is set and that engine does not answer" "${ENGINE_REASONS[@]}" \
            "start that engine, or unset DOCKER_HOST"
    fi
    [[ $(uname -s) == Linux ]] || die "no engine answers, and one can be installed on Linux only" \
        "${ENGINE_REASONS[@]}" "start yours (Docker Desktop, Colima, ..) and run this again"
    if ! is_root; then
        die "no engine answers, and only root may start one" "${ENGINE_REASONS[@]}" \
            "run: sudo scripts/engine.sh up, or set DOCKER_HOST to an engine that you may use"
    fi
    if ! have curl; then
        install_packages "curl" curl ca-certificates
        # There may be an engine that could only not be asked.
        ! engine_find || return 0
    fi
    if ! have dockerd; then
        # iptables is said by name for releases on which docker.io only recommends it.
        install_packages "an engine" docker.io iptables ca-certificates
    fi
    engine_may_map_users
    [[ $(cat /proc/1/comm 2>/dev/null) == systemd && -z ${GYM_SANDBOX_ENGINE_SOCKET:-} ]] && systemd=yes
    mkdir -p "$STATE"
    if [[ -n $systemd ]]; then engine_start_unit; else engine_start_daemon; fi
}

# engine_may_map_users: makes the user and the ranges of ids of which engines with user namespaces take their sandboxes'
# users. One test starts such an engine; it is skipped without.
engine_may_map_users() {
    local file from=100000
    ! grep -qs '^dockremap:' /etc/subuid || return 0
    have useradd && have usermod && [[ -e /etc/subuid && -e /etc/subgid ]] || return 0
    # Behind all ranges that are given out.
    for file in /etc/subuid /etc/subgid; do
        from=$(awk -F: -v from="$from" '$2 + $3 > from { from = $2 + $3 } END { print from }' "$file")
    done
    getent passwd dockremap >/dev/null || useradd --system --user-group --no-create-home --shell /usr/sbin/nologin dockremap || return 0
    usermod --add-subuids "$from-$((from + 65535))" --add-subgids "$from-$((from + 65535))" dockremap \
        || say "no ids can be given to dockremap, going on without"
}

engine_start_unit() {
    say "starting docker.service"
    systemctl start docker.service || die "systemctl start docker.service fails" "$(journalctl -u docker.service -n 20 --no-pager 2>&1)"
    : >"$STATE/unit"
    engine_wait "" || die "docker.service runs but does not answer" "${ENGINE_REASONS[@]}" "$(journalctl -u docker.service -n 20 --no-pager 2>&1)"
}

# engine_may_have_crun ARGUMENTS: installs crun where it can be had. A second runtime is what the tests of choosing one
# need; they are skipped without it. An engine whose runtimes are configured does not start with another as an argument.
engine_may_have_crun() {
    [[ $1 != *--add-runtime* ]] || return 1
    ! grep -qs '"runtimes"' /etc/docker/daemon.json || return 1
    have crun || try_packages "a second runtime, which some tests choose" crun || return 1
    crun_works && return 0
    say "crun does not work on this machine, going on without"
    return 1
}

# crun refuses machines with both versions of cgroups where the second has controllers (seen with 1.8.1). An engine that
# has a runtime which can't be used is none for the tests, so it is tried with an empty root, and only that text counts.
crun_works() {
    local bundle said
    bundle=$(mktemp -d) || return 1
    mkdir "$bundle/rootfs"
    said=$(cd "$bundle" && crun spec && timeout 10 crun run "gym-sandbox-trial-$$" 2>&1 </dev/null) || true
    rm -rf "$bundle"
    [[ $said != *cgroup* ]]
}

# forget_pid FILE NAME: removes a pid file that an engine which was killed has left. dockerd takes any process that
# has its pid by now for the old engine, and does not start.
forget_pid() {
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 0
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) != "$2" ]] || return 0
    rm -f "$1"
}

engine_start_daemon() {
    local socket=${GYM_SANDBOX_ENGINE_SOCKET:-/var/run/docker.sock} log=$STATE/dockerd.log pid
    local pid_file=/var/run/docker.pid exec_root=/var/run/docker
    local -a arguments=(--host "unix://$socket") more=()
    if engine_find; then
        # The package's own start script may just have done it.
        say "the package has started the engine"
        return
    fi
    if [[ -n ${GYM_SANDBOX_ENGINE_SOCKET:-} ]]; then
        # A second engine shares nothing with the machine's own. It still needs a network namespace of its own.
        pid_file=$STATE/docker.pid
        exec_root=$STATE/exec
        arguments+=(--data-root "$STATE/data" --exec-root "$exec_root" --pidfile "$pid_file")
    fi
    forget_pid "$pid_file" dockerd
    forget_pid "$exec_root/containerd/containerd.pid" containerd
    read -r -a more <<<"${GYM_SANDBOX_ENGINE_ARGS:-}"
    if engine_may_have_crun "${more[*]}"; then arguments+=(--add-runtime "crun=$(command -v crun)"); fi
    say "starting dockerd, its log is $log"
    # In a session of its own, so that a Ctrl-C here does not end it, and without our lock, which it would hold for ever.
    setsid dockerd "${arguments[@]}" "${more[@]}" >"$log" 2>&1 </dev/null 9>&- &
    pid=$!
    process_remember "$pid" "$STATE/dockerd"
    if ! engine_wait "$STATE/dockerd"; then
        ! process_is_ours "$STATE/dockerd" || kill "$pid"
        rm -f "$STATE/dockerd"
        die "dockerd does not answer; the end of its log:" "${ENGINE_REASONS[@]}" "$(tail -n 20 "$log")"
    fi
}

# engine_wait FILE: until an engine answers, 60 s at most, or the process in FILE has ended.
engine_wait() {
    local deadline=$((SECONDS + 60))
    until engine_find; do
        ((SECONDS < deadline)) || return 1
        [[ -z $1 ]] || process_is_ours "$1" || return 1
        sleep 0.1
    done
}

# Ends the engine that engine_start started, and no other.
engine_stop() {
    local pid _ deadline=$((SECONDS + 60))
    if [[ -e $STATE/unit ]]; then
        say "stopping docker.service"
        systemctl stop docker.service docker.socket || die "systemctl stop docker.service fails"
        rm -f "$STATE/unit"
    elif process_is_ours "$STATE/dockerd"; then
        read -r pid _ <"$STATE/dockerd"
        say "stopping dockerd ($pid)"
        kill "$pid"
        while process_is_ours "$STATE/dockerd"; do
            ((SECONDS < deadline)) || die "dockerd ($pid) does not end" "its log is $STATE/dockerd.log"
            sleep 0.1
        done
        rm -f "$STATE/dockerd"
    else
        rm -f "$STATE/dockerd"
        say "no engine here was started by this script: nothing to stop"
    fi
}
