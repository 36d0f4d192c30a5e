//! Paths of the engine's machine, compared as text: it may be another machine.

/// The names of sockets with which a container could command an engine.
const SOCKET_NAMES: [&str; 4] = ["docker.sock", "containerd.sock", "podman.sock", "crio.sock"];

/// Where they lie. `/var/run` is taken for `/run`.
const SOCKET_FOLDERS: [&str; 6] = [
    "/run",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/user",
    "/var/run",
];

/// A path without `.`, `..` and double slashes. Links stay: they can't be seen from here.
pub(super) fn resolved(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether a resolved path is a folder, or in it. `/` holds everything.
pub(super) fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a resolved path is an engine's socket, or a folder that holds one.
pub(super) fn reaches_engine(path: &str) -> bool {
    // On nearly every machine `/var/run` is a link to `/run`.
    let path = path
        .strip_prefix("/var/run")
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        .map_or_else(|| path.to_owned(), |rest| format!("/run{rest}"));
    let name = path.rsplit('/').next().unwrap_or_default();
    // Rootless engines have theirs in a folder of the user, below `/run/user`.
    let of_a_user = path
        .strip_prefix("/run/user/")
        .is_some_and(|rest| !rest.contains('/'));
    of_a_user || SOCKET_NAMES.contains(&name) || SOCKET_FOLDERS.iter().any(|folder| is_within(folder, &path))
}
