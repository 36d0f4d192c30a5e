//! Whom a command runs as, from the sandbox's passwd and group files, by the rules that runc has for an exec.
//! Changes no user: it only says who it would be.

use std::fs::File;
use std::io::Read;

use crate::sys::errno;

/// A passwd or group file longer than this is not read to its end.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// The largest number runc takes.
const MOST_ID: u32 = i32::MAX.cast_unsigned();

/// A user with its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) home: Vec<u8>,
}

/// The sandbox's own user databases.
#[derive(Debug, Default)]
pub(crate) struct Databases {
    passwd: Vec<u8>,
    group: Vec<u8>,
}

impl Databases {
    /// Reads both files; a missing one has no lines.
    pub(crate) fn read() -> Self {
        let read = |path| {
            let mut bytes = Vec::new();
            if let Ok(file) = File::open(path) {
                // Half a file after an error of the disk is as good as it gets.
                let _ = file.take(MOST_BYTES).read_to_end(&mut bytes);
            }
            bytes
        };
        Self {
            passwd: read("/etc/passwd"),
            group: read("/etc/group"),
        }
    }

    /// The home of a number, `/` where there is no line for it.
    pub(crate) fn home_of(&self, uid: u32) -> Vec<u8> {
        let line = lines(&self.passwd).find(|fields| number(fields, 2) == Some(uid));
        line.map_or_else(|| b"/".to_vec(), |fields| field(&fields, 5).to_vec())
    }

    /// The user for `name`, `uid`, `name:group`, `uid:gid` and so on; the error number if there is none.
    pub(crate) fn find(&self, spec: &[u8]) -> Result<User, i32> {
        let mut parts = spec.splitn(2, |byte| *byte == b':');
        let user = parts.next().unwrap_or_default();
        let group = parts.next().unwrap_or_default();
        let wanted = parse(user);
        let line = lines(&self.passwd).find(|fields| match wanted {
            Some(uid) => number(fields, 2) == Some(uid),
            None => field(fields, 0) == user,
        });
        let mut found = match &line {
            Some(fields) => User {
                uid: number(fields, 2).unwrap_or(0),
                gid: number(fields, 3).unwrap_or(0),
                groups: Vec::new(),
                home: field(fields, 5).to_vec(),
            },
            None => User {
                uid: wanted.filter(|uid| *uid <= MOST_ID).ok_or(errno::EINVAL)?,
                gid: 0,
                groups: Vec::new(),
                home: b"/".to_vec(),
            },
        };
        if !group.is_empty() {
            found.gid = self.group(group)?;
        } else if let Some(fields) = line {
            found.groups = self.groups_of(field(&fields, 0));
        }
        Ok(found)
    }

    fn group(&self, group: &[u8]) -> Result<u32, i32> {
        let wanted = parse(group);
        let line = lines(&self.group).find(|fields| match wanted {
            Some(gid) => number(fields, 2) == Some(gid),
            None => field(fields, 0) == group,
        });
        match line {
            Some(fields) => Ok(number(&fields, 2).unwrap_or(0)),
            None => wanted.filter(|gid| *gid <= MOST_ID).ok_or(errno::EINVAL),
        }
    }

    fn groups_of(&self, name: &[u8]) -> Vec<u32> {
        lines(&self.group)
            .filter(|fields| {
                field(fields, 3)
                    .split(|byte| *byte == b',')
                    .any(|member| member == name)
            })
            .map(|fields| number(&fields, 2).unwrap_or(0))
            .collect()
    }
}

fn lines(file: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    file.split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
        .map(|line| line.split(|byte| *byte == b':').collect())
}

fn field<'a>(fields: &[&'a [u8]], index: usize) -> &'a [u8] {
    fields.get(index).copied().unwrap_or_default()
}

fn number(fields: &[&[u8]], index: usize) -> Option<u32> {
    parse(field(fields, index))
}

fn parse(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn databases() -> Databases {
        Databases {
            passwd: b"root:x:0:0:root:/root:/bin/sh\n\nann:x:1000:100:Ann:/home/ann:/bin/sh\nshort:x:7\n"
                .to_vec(),
            group: b"root:x:0:\nstaff:x:50:ann,bob\nusers:x:100:\nwheel:x:10:root,ann\n".to_vec(),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "so that it compares with what is found")]
    fn user(uid: u32, gid: u32, groups: &[u32], home: &str) -> Result<User, i32> {
        Ok(User {
            uid,
            gid,
            groups: groups.to_vec(),
            home: home.into(),
        })
    }

    #[test]
    fn users_are_found_as_runc_finds_them() {
        let databases = databases();
        let table = [
            ("root", user(0, 0, &[10], "/root")),
            ("0", user(0, 0, &[10], "/root")),
            ("ann", user(1000, 100, &[50, 10], "/home/ann")),
            ("1000", user(1000, 100, &[50, 10], "/home/ann")),
            ("ann:staff", user(1000, 50, &[], "/home/ann")),
            ("1000:5", user(1000, 5, &[], "/home/ann")),
            ("4321", user(4321, 0, &[], "/")),
            ("4321:wheel", user(4321, 10, &[], "/")),
            ("short", user(7, 0, &[], "")),
            ("nobody", Err(errno::EINVAL)),
            ("ann:nobody", Err(errno::EINVAL)),
            ("4294967295", Err(errno::EINVAL)),
            ("-1", Err(errno::EINVAL)),
        ];
        for (spec, expected) in table {
            assert_eq!(databases.find(spec.as_bytes()), expected, "{spec}");
        }
    }

    #[test]
    fn numbers_need_no_files() {
        assert_eq!(Databases::default().find(b"5:6"), user(5, 6, &[], "/"));
        assert_eq!(Databases::default().find(b"ann"), Err(errno::EINVAL));
    }
}
