# shellcheck shell=bash
# Owns: a second address for the engine in use, TCP with mutual TLS on 127.0.0.1, and its certificates.
# Must not know: what kind of engine is behind it.
#
# A proxy rather than a second dockerd: that one would need a network namespace of its own, since a dockerd
# without a bridge removes docker0 of the dockerd beside it.

TLS=$CACHE/tls

# tls_authority FOLDER NAME
tls_authority() {
    mkdir -p "$1"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$2" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
        -keyout "$1/ca-key.pem" -out "$1/ca.pem" 2>/dev/null
}

# tls_certificate FOLDER NAME USE: NAME.pem and NAME-key.pem, signed by the folder's authority.
tls_certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
        -keyout "$1/$2-key.pem" -out "$1/$2.csr" 2>/dev/null
    openssl x509 -req -in "$1/$2.csr" -CA "$1/ca.pem" -CAkey "$1/ca-key.pem" -CAcreateserial -days 30 -out "$1/$2.pem" \
        -extfile <(printf '%s\n' 'basicConstraints=CA:FALSE' 'keyUsage=digitalSignature' "extendedKeyUsage=$3" \
            'subjectAltName=IP:127.0.0.1,DNS:localhost') 2>/dev/null
    rm -f "$1/$2.csr"
}

# tls_client FOLDER: the client's three files under the names that DOCKER_CERT_PATH stands for.
tls_client() {
    tls_certificate "$1" client clientAuth
    mkdir -p "$1/client"
    cp "$1/ca.pem" "$1/client/ca.pem"
    mv "$1/client.pem" "$1/client/cert.pem"
    mv "$1/client-key.pem" "$1/client/key.pem"
}

tls_certificates() {
    # A day of use is left, or all are made anew: an old file would fail in the middle of a run.
    ! openssl x509 -in "$TLS/server.pem" -checkend 86400 -noout >/dev/null 2>&1 || return 0
    say "making certificates in $TLS"
    rm -rf "$TLS"
    (
        umask 077
        tls_authority "$TLS" gym-sandbox-test
        tls_certificate "$TLS" server serverAuth
        tls_client "$TLS"
        # What the proxy must refuse: a client of another authority, which trusts the right server.
        tls_authority "$TLS/stranger" gym-sandbox-stranger
        tls_client "$TLS/stranger"
        cp "$TLS/ca.pem" "$TLS/stranger/client/ca.pem"
        rm -f "$TLS"/*.srl "$TLS"/stranger/*.srl
    )
}

tls_answers() {
    [[ $(curl --silent --noproxy '*' --max-time 5 --cacert "$TLS/client/ca.pem" --cert "$TLS/client/cert.pem" \
        --key "$TLS/client/key.pem" "https://127.0.0.1:$1/_ping") == OK ]]
}

tls_up() {
    local port first=${GYM_SANDBOX_TLS_PORT:-2476} pid deadline
    [[ $ENGINE_HOST == unix://* ]] || die "the engine is not on a unix socket, it may have TLS of its own: $ENGINE_HOST"
    if ! have openssl || ! have socat; then install_packages "a TLS proxy" socat openssl; fi
    mkdir -p "$CACHE"
    take_lock
    tls_certificates
    if process_is_ours "$TLS/proxy" && tls_answers "$(cat "$TLS/port")"; then
        tls_print "$(cat "$TLS/port")"
        return
    fi
    tls_down
    for ((port = first; port < first + 20; port++)); do
        # -t: when one side has said all (an exec's stdin is closed), the other may still talk for long.
        setsid socat -t 86400 "OPENSSL-LISTEN:$port,bind=127.0.0.1,reuseaddr,fork,backlog=128,cert=$TLS/server.pem,key=$TLS/server-key.pem,cafile=$TLS/ca.pem,verify=1" \
            "UNIX-CONNECT:${ENGINE_HOST#unix://}" >"$TLS/log" 2>&1 </dev/null 9>&- &
        pid=$!
        process_remember "$pid" "$TLS/proxy" 2>/dev/null || continue
        printf '%s\n' "$port" >"$TLS/port"
        deadline=$((SECONDS + 5))
        while process_is_ours "$TLS/proxy" && ((SECONDS < deadline)); do
            if tls_answers "$port"; then
                tls_print "$port"
                return
            fi
            sleep 0.1
        done
        tls_down
    done
    die "no TLS proxy can be started on 127.0.0.1, ports $first to $((port - 1))" "$(tail -n 5 "$TLS/log")"
}

tls_print() {
    printf 'export DOCKER_HOST=tcp://127.0.0.1:%s DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=%q\n' "$1" "$TLS/client"
}

tls_down() {
    local pid _
    if process_is_ours "$TLS/proxy"; then
        read -r pid _ <"$TLS/proxy"
        say "ending the TLS proxy ($pid)"
        # The whole group: each open connection is a process of its own.
        kill -- "-$pid"
    fi
    rm -f "$TLS/proxy" "$TLS/port"
}
