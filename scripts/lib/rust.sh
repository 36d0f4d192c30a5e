# shellcheck shell=bash
# Owns: whether this machine can build the project.
# Must not know: what is done with the build.

# need_rust [COMPONENT..]: dies with what to do when the toolchain is missing, too old, or lacks a component.
need_rust() {
    local wanted version component
    have cargo || PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")
    if ! have cargo || ! have rustc; then
        die "the Rust toolchain is missing: cargo and rustc $wanted or newer are needed" \
            "install them with rustup (rustup toolchain install stable), or from your system's packages where they are new enough"
    fi
    version=$(cd "$ROOT" && rustc --version | cut -d' ' -f2)
    if [[ $(printf '%s\n' "$wanted" "$version" | sort -V | head -n 1) != "$wanted" ]]; then
        die "rustc is $version, $wanted or newer is needed" "run: rustup update stable"
    fi
    for component in "$@"; do
        (cd "$ROOT" && cargo "$component" --version) >/dev/null 2>&1 \
            || die "cargo $component is missing" "run: rustup component add ${component/#fmt/rustfmt}"
    done
    # rustc links with it, and some dependencies are compiled with it.
    have cc || install_packages "a C compiler" gcc libc6-dev
}
