// SPDX-License-Identifier: Apache-2.0
//! A user of the system, and what file modes let that user do. Access lists are not looked at.

use super::files::cannot;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Somebody.
#[derive(Debug)]
pub(super) struct User {
    pub(super) name: String,
    number: u32,
    groups: Vec<u32>,
    /// The name of the first group.
    pub(super) group: String,
    pub(super) home: PathBuf,
}

impl User {
    /// By name or number, from /etc/passwd and /etc/group.
    pub(super) fn named(name: &str) -> Option<Self> {
        let users = fs::read_to_string("/etc/passwd").ok()?;
        let groups = fs::read_to_string("/etc/group").unwrap_or_default();
        Self::of(name, &users, &groups)
    }

    fn of(name: &str, users: &str, groups: &str) -> Option<Self> {
        let is_it = |fields: &Vec<&str>| fields.len() > 5 && [fields[0], fields[2]].contains(&name);
        let fields = users.lines().map(|line| line.split(':').collect()).find(is_it)?;
        let first: u32 = fields[3].parse().ok()?;
        let member = |line: &str| {
            let group: Vec<&str> = line.split(':').collect();
            let is_in = group.get(3)?.split(',').any(|member| member == fields[0]);
            is_in.then(|| group[2].parse().ok())?
        };
        Some(Self {
            name: fields[0].to_owned(),
            number: fields[2].parse().ok()?,
            groups: [first].into_iter().chain(groups.lines().filter_map(member)).collect(),
            group: group_name(groups, first),
            home: PathBuf::from(fields[5]),
        })
    }

    /// From /proc/PID/status: what the process acts as.
    pub(super) fn of_status(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>()
        };
        let (number, first) = (*field("Uid:")?.get(1)?, *field("Gid:")?.get(1)?);
        let known = Self::named(&number.to_string());
        let groups = fs::read_to_string("/etc/group").unwrap_or_default();
        Some(Self {
            name: known.as_ref().map_or_else(|| format!("user {number}"), |it| it.name.clone()),
            number,
            groups: [first].into_iter().chain(field("Groups:").unwrap_or_default()).collect(),
            group: group_name(&groups, first),
            home: known.map_or_else(PathBuf::new, |it| it.home),
        })
    }

    /// What stands between the user and a file or directory, for these of its bits: 4 reads, 2 writes, 1 enters.
    pub(super) fn obstacle(&self, path: &Path, wanted: u32) -> Option<String> {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        let ways = above.into_iter().map(|directory| (directory, 0o1)).chain([(path, wanted)]);
        ways.filter(|(place, _)| !place.as_os_str().is_empty()).find_map(|(place, wanted)| {
            let file = match place.metadata() {
                Ok(file) => file,
                Err(error) => return Some(cannot(place, &error)),
            };
            let has = self.bits(file.uid(), file.gid(), file.mode());
            (has & wanted != wanted).then(|| {
                let owner = format!("of user {} and group {}", file.uid(), file.gid());
                format!("{} has mode {:o} {owner}", place.display(), file.mode() & 0o7777)
            })
        })
    }

    /// What a mode lets the user do.
    fn bits(&self, owner: u32, group: u32, mode: u32) -> u32 {
        match () {
            () if self.number == 0 => 0o7,
            () if self.number == owner => mode >> 6 & 0o7,
            () if self.groups.contains(&group) => mode >> 3 & 0o7,
            () => mode & 0o7,
        }
    }
}

fn group_name(groups: &str, number: u32) -> String {
    let named = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    };
    groups.lines().find_map(named).unwrap_or_else(|| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0::/root:/bin/sh\nwww-data:x:33:33:www:/var/www:/bin/false\n";
    const GROUPS: &str = "root:x:0:\nwww-data:x:33:\nkeys:x:200:you,www-data\nyou:x:1000:\n";

    #[test]
    fn a_user_has_groups_and_a_home() {
        let user = User::of("www-data", USERS, GROUPS).expect("it is there");
        assert_eq!((user.number, &user.groups[..], &*user.group), (33, &[33, 200][..], "www-data"));
        assert_eq!(user.home, Path::new("/var/www"));
        assert_eq!(User::of("33", USERS, GROUPS).expect("by number").name, "www-data");
        assert!(User::of("www", USERS, GROUPS).is_none());
    }

    #[test]
    fn a_mode_gives_what_the_first_class_has() {
        let user = User::of("www-data", USERS, GROUPS).expect("it is there");
        assert_eq!(user.bits(33, 0, 0o470), 0o4, "the owner's, though others have more");
        assert_eq!(user.bits(0, 200, 0o760), 0o6);
        assert_eq!(user.bits(0, 0, 0o751), 0o1);
        assert_eq!(User::of("root", USERS, GROUPS).expect("root").bits(33, 33, 0), 0o7);
    }

    #[test]
    fn a_process_acts_as_its_effective_user() {
        let user =
            User::of_status("Name:\tx\nUid:\t0\t4711\t0\t0\nGid:\t0\t4712\t0\t0\nGroups:\t5 6 \n");
        let user = user.expect("it is one");
        assert_eq!((user.number, &user.groups[..]), (4711, &[4712, 5, 6][..]));
        assert_eq!(user.name, "user 4711");
    }
}
