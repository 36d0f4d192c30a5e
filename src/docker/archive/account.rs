//! From the user of a container to numbers, as the engine's runtime reads them. Pure: the files come as text.

use crate::spec::FileOwner;

/// Says which of the two files are needed to know the owner.
pub(super) fn needs_files(user: &str) -> bool {
    let user = user.trim();
    if user.is_empty() || matches!(user, "root" | "0" | "0:0" | "root:root" | "root:0" | "0:root") {
        return false;
    }
    !matches!(user.split_once(':'), Some((uid, gid)) if uid.parse::<u32>().is_ok() && gid.parse::<u32>().is_ok())
}

/// The numbers of a `user`, `user:group`, or either as numbers. None when a name is in neither file.
pub(super) fn owner_of(user: &str, passwd: &str, group: &str) -> Option<FileOwner> {
    let user = user.trim();
    let (name, group_name) = match user.split_once(':') {
        Some((name, group_name)) => (name, Some(group_name)),
        None => (user, None),
    };
    let entry = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find_map(|fields| {
            let (uid, gid) = (fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
            let matches = fields[0] == name || name.parse() == Ok::<u32, std::num::ParseIntError>(uid);
            matches.then_some(FileOwner { uid, gid })
        });
    let uid = match (name, entry) {
        ("" | "root", None) => 0,
        (_, Some(entry)) => entry.uid,
        (number, None) => number.parse().ok()?,
    };
    let gid = match group_name.filter(|name| !name.is_empty()) {
        // A number without a line in the file belongs to group 0.
        None => entry.map_or(0, |entry| entry.gid),
        Some("root") => 0,
        Some(name) => group
            .lines()
            .find_map(|line| {
                let mut fields = line.split(':');
                (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
            })
            .or_else(|| name.parse().ok())?,
    };
    Some(FileOwner { uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_become_numbers() {
        let passwd = "root:x:0:0::/:/bin/sh\nbroken\ntester:x:1001:1002::/home/t:/bin/sh\nno:x:y:z\n";
        let group = "root:x:0:\nstaff:x:50:tester\nbad\n";
        for (user, owner) in [
            ("", Some((0, 0))),
            ("root", Some((0, 0))),
            ("0", Some((0, 0))),
            ("1000", Some((1000, 0))),
            ("1001", Some((1001, 1002))),
            ("1000:1000", Some((1000, 1000))),
            ("tester", Some((1001, 1002))),
            ("tester:staff", Some((1001, 50))),
            ("tester:77", Some((1001, 77))),
            ("1001:staff", Some((1001, 50))),
            ("tester:", Some((1001, 1002))),
            ("nobody-here", None),
            ("tester:no-group", None),
        ] {
            let expected = owner.map(|(uid, gid)| FileOwner { uid, gid });
            assert_eq!(owner_of(user, passwd, group), expected, "{user}");
        }
        assert_eq!(owner_of("1000", "", ""), Some(FileOwner { uid: 1000, gid: 0 }));
        assert!(
            !needs_files("1000:1000") && !needs_files("") && needs_files("1000") && needs_files("tester")
        );
    }
}
