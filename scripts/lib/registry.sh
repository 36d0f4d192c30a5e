# shellcheck shell=bash
# Owns: having the program of an image registry, which tests start themselves on 127.0.0.1.
# Must not know: engines and images.

# Installs it where that can be done; elsewhere the tests that need it say so.
registry_provide() {
    if have docker-registry; then return 0; fi
    if ! is_root || ! have apt-get; then
        say "docker-registry is missing; the tests of pulls will say so"
        return 0
    fi
    # The package starts a registry of its own at once, which nobody asked for here.
    (RUNLEVEL=1 install_packages "a registry for the tests" docker-registry) \
        || say "going on without docker-registry; the tests of pulls will say so"
    # systemd starts it whatever the run level.
    if [[ -d /run/systemd/system ]]; then
        systemctl disable --now docker-registry >/dev/null 2>&1 || true
    fi
}
