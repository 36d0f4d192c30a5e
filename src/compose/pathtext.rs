//! File paths as text, joined and cleaned without asking the disk, as Go's `path` does.

/// Removes `.`, `..` and doubled slashes.
pub(crate) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                _ if rooted => {}
                _ => parts.push(".."),
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Joins and cleans; an absolute `path` stays below `base` too, as in Go.
pub(crate) fn join(base: &str, path: &str) -> String {
    match (base.is_empty(), path.is_empty()) {
        (true, true) => String::new(),
        (true, false) => clean(path),
        (false, true) => clean(base),
        (false, false) => clean(&format!("{base}/{path}")),
    }
}

/// Makes a path absolute: kept when it is, else below `base`.
pub(crate) fn absolute(base: &str, path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        join(base, path)
    }
}

/// Returns the folder of a path.
pub(crate) fn folder(path: &str) -> String {
    match path.rfind('/') {
        Some(0) => "/".to_owned(),
        Some(position) => clean(&path[..position]),
        None => ".".to_owned(),
    }
}

/// Tells whether a cleaned `path` is `root` or lies below it.
pub(crate) fn is_within(path: &str, root: &str) -> bool {
    root == "/" || path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

/// Tells whether a path is absolute on Windows: a drive or a share.
pub(crate) fn is_windows_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/');
    let share = path.starts_with(r"\\") && path[2..].contains('\\');
    drive || share
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_clean_as_in_go() {
        for (path, expected) in [
            ("", "."),
            ("/x/../y/", "/y"),
            ("a//b/./c", "a/b/c"),
            ("../a", "../a"),
            ("/..", "/"),
            ("a/..", "."),
            ("../../a/../b", "../../b"),
        ] {
            assert_eq!(clean(path), expected, "{path}");
        }
        assert_eq!(join("/p", "./rel"), "/p/rel");
        assert_eq!(join("/p", "/abs"), "/p/abs");
        assert_eq!(absolute("/p", "/abs/"), "/abs/");
        assert_eq!(folder("/p/compose.yaml"), "/p");
        assert!(is_within("/a/b", "/a") && !is_within("/ab", "/a") && is_within("/a", "/a"));
    }

    proptest! {
        #[test]
        fn cleaning_twice_changes_nothing(path in "[a./]{0,20}") {
            let once = clean(&path);
            prop_assert_eq!(clean(&once), once);
        }
    }
}
