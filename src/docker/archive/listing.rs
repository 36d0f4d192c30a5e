//! What archives and the sandbox's programs say of files, as data. None of it is believed: what can't be read is None.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::spec::{FileEntry, FileKind, FileOwner, FileStat};

use super::entry::{Entry, Kind};
use super::stat::time_of;

pub(super) fn stat_of(entry: &Entry) -> FileStat {
    let kind = match entry.kind {
        Kind::File | Kind::HardLink => FileKind::File,
        Kind::Directory => FileKind::Directory,
        Kind::Symlink => FileKind::Symlink,
        Kind::Special => FileKind::Special,
    };
    let mut stat = FileStat::new(kind);
    stat.size_bytes = if kind == FileKind::File { entry.size } else { 0 };
    stat.mode = entry.mode;
    stat.mtime = time_of(entry.mtime);
    stat.owner = FileOwner::new(entry.uid, entry.gid);
    stat.link_target =
        (kind == FileKind::Symlink).then(|| PathBuf::from(OsString::from_vec(entry.link.clone())));
    stat
}

/// Reads `mode size time uid gid` at the begin of a text, the mode in hex with the file's type.
fn parse_numbers(text: &[u8]) -> Option<(FileStat, &[u8])> {
    let mut rest = text;
    let mut word = || {
        let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\n'))?;
        let word = std::str::from_utf8(&rest[..end]).ok()?;
        rest = &rest[end + 1..];
        Some(word)
    };
    let raw_mode = u32::from_str_radix(word()?, 16).ok()?;
    let size: u64 = word()?.parse().ok()?;
    let mtime: i64 = word()?.parse().ok()?;
    let (uid, gid) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let kind = match raw_mode >> 12 {
        0o10 => FileKind::File,
        0o4 => FileKind::Directory,
        0o12 => FileKind::Symlink,
        _ => FileKind::Special,
    };
    let mut stat = FileStat::new(kind);
    stat.size_bytes = if kind == FileKind::File { size } else { 0 };
    stat.mode = raw_mode & 0o7777;
    stat.mtime = time_of(u64::try_from(mtime).unwrap_or_default());
    stat.owner = FileOwner::new(uid, gid);
    Some((stat, rest))
}

pub(super) fn parse_stat(printed: &[u8]) -> Option<FileStat> {
    let (mut stat, rest) = parse_numbers(printed)?;
    if stat.kind == FileKind::Symlink {
        stat.link_target = Some(PathBuf::from(OsString::from_vec(rest.to_vec())));
    }
    Some(stat)
}

/// Reads names, links as pairs and lines of numbers, as `list.sh` prints them.
pub(super) fn parse_list(printed: &[u8]) -> Option<Vec<FileEntry>> {
    let mut parts = printed.splitn(usize::MAX, |&byte| byte == 0);
    let mut used = 0;
    let mut next = || {
        let part = parts.next()?;
        used += part.len() + 1;
        Some(part)
    };
    let mut names = Vec::new();
    loop {
        match next()? {
            b"" => break,
            name => names.push(name),
        }
    }
    let mut links = HashMap::new();
    loop {
        match next()? {
            b"" => break,
            name => links.insert(name, next()?),
        };
    }
    let mut numbers = printed.get(used..)?;
    let mut entries = Vec::new();
    for name in names {
        let Some((mut stat, rest)) = parse_numbers(numbers) else {
            continue;
        };
        let Some(rest) = rest.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"\n")) else {
            continue;
        };
        numbers = rest;
        let name_alone = name.strip_prefix(b"./").unwrap_or(name);
        if matches!(name_alone, b"." | b"..") {
            continue;
        }
        let target = links
            .get(name)
            .map(|target| PathBuf::from(OsString::from_vec(target.to_vec())));
        stat.link_target = target.filter(|_| stat.kind == FileKind::Symlink);
        entries.push(FileEntry::new(OsString::from_vec(name_alone.to_vec()), stat));
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_with_odd_names_is_read_and_a_broken_one_is_not() {
        let printed = b"./*\0./a\nb\0./l\0./.\0./..\0./.h\0\0./l\0/to\0\0\
            81a4 3 10 1 2 ./a\nb\na1ff 3 11 0 0 ./l\n41ed 4096 9 0 0 ./.\n41ed 1 9 0 0 ./..\n89ed 0 12 5 6 ./.h\n";
        let entries = parse_list(printed).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| entry.name.to_string_lossy()).collect();
        assert_eq!(names, ["a\nb", "l", ".h"]);
        assert_eq!(entries[1].stat.link_target, Some("/to".into()));
        assert_eq!(
            (entries[2].stat.mode, entries[2].stat.owner),
            (0o4755, FileOwner::new(5, 6))
        );
        assert_eq!(entries[0].stat.size_bytes, 3);
        assert!(parse_list(b"no end").is_none());
        assert!(parse_stat(b"garbage\n").is_none());
        assert_eq!(
            parse_stat(b"a1ff 3 11 0 0\nto\n x").unwrap().link_target,
            Some("to\n x".into())
        );
    }
}
