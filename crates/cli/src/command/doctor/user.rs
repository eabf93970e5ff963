// SPDX-License-Identifier: Apache-2.0
//! A user of the system, and what file modes let that user do. Access lists are not looked at.

use super::finding::cannot;
use crate::encoding::word;
use std::fmt;
use std::fs;
use std::io;
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

/// What stands between a user and a file.
#[derive(Debug)]
pub(super) struct Obstacle {
    pub(super) place: PathBuf,
    pub(super) what: What,
    text: String,
}

/// What kind of obstacle it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum What {
    /// A directory that the user may not go through.
    OnTheWay,
    /// The mode of the file itself.
    Itself,
    Missing,
    /// Who asks may not look.
    Unseen,
}

impl Obstacle {
    /// What helps, where it is not the file itself.
    pub(super) fn fix(&self, user: &User) -> Option<String> {
        let (place, group) = (word(self.place.display()), &user.group);
        match self.what {
            What::OnTheWay => Some(match shared_by(&self.place) {
                Some(theirs) => format!("{}; or chmod a+x {place}", user.joining(&theirs)),
                None => format!(
                    "chmod a+x {place}; or for that group only: chgrp {group} {place}; chmod g+x {place}"
                ),
            }),
            What::Unseen => Some(String::from("it is about the rights of who asks: ask as root")),
            What::Itself | What::Missing => None,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
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

    /// Who asks.
    pub(super) fn asking() -> Option<Self> {
        Self::of_status(&fs::read_to_string("/proc/self/status").ok()?)
    }

    /// Whether the user is of a group, by its name or number.
    pub(super) fn is_of(&self, group: &str) -> bool {
        let groups = fs::read_to_string("/etc/group").unwrap_or_default();
        self.groups.iter().any(|of| group_name(&groups, *of) == group || of.to_string() == group)
    }

    /// What makes the user one of a group.
    pub(super) fn joining(&self, group: &str) -> String {
        format!("join the group: adduser {} {}", word(&self.name), word(group))
    }

    /// What stands between the user and a file or directory, for these of its bits: 4 reads, 2 writes, 1 enters. The first of
    /// several.
    pub(super) fn obstacle(&self, path: &Path, wanted: u32) -> Option<Obstacle> {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        let ways = above.into_iter().map(|directory| (directory, 0o1)).chain([(path, wanted)]);
        ways.filter(|(place, _)| !place.as_os_str().is_empty()).find_map(|(place, wanted)| {
            let obstacle = |what, text| Some(Obstacle { place: place.to_owned(), what, text });
            let file = match place.metadata() {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return obstacle(What::Unseen, cannot(place, &error));
                }
                Err(error) => return obstacle(What::Missing, cannot(place, &error)),
            };
            let has = self.bits(file.uid(), file.gid(), file.mode());
            if has & wanted == wanted {
                return None;
            }
            let owner = format!("of user {} and group {}", file.uid(), file.gid());
            let text = format!("{} has mode {:o} {owner}", place.display(), file.mode() & 0o7777);
            obstacle(if place == path { What::Itself } else { What::OnTheWay }, text)
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

/// The group of a file that is not its owner's own: others use the file by it.
pub(super) fn shared_by(path: &Path) -> Option<String> {
    let file = path.metadata().ok()?;
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let owner = User::of(&file.uid().to_string(), &users, &groups);
    let is_own = owner.is_some_and(|owner| owner.groups.first() == Some(&file.gid()));
    (!is_own).then(|| group_name(&groups, file.gid()))
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
    use std::os::unix::fs::PermissionsExt;

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
    fn the_first_closed_directory_is_the_obstacle() {
        let home = std::env::temp_dir().join(format!("metaslot-doctor-{}", std::process::id()));
        let (closed, store) = (home.join("closed"), home.join("closed/store"));
        fs::create_dir_all(&store).expect("directories can be made");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        mode(&store, 0o700);
        mode(&closed, 0o700);
        let mut user = User::of("www-data", USERS, GROUPS).expect("it is there");
        // Nobody's number.
        (user.number, user.groups) = (u32::MAX - 1, vec![u32::MAX - 1]);
        let file = store.join("token.db");
        let first = user.obstacle(&file, 0o6).expect("it is closed");
        assert_eq!((&first.place, first.what), (&closed, What::OnTheWay));
        let fix = first.fix(&user).expect("there is one");
        assert!(fix.starts_with(&format!("chmod a+x {}; or", closed.display())), "{fix}");
        mode(&closed, 0o711);
        assert_eq!(user.obstacle(&file, 0o6).map(|next| next.place), Some(store.clone()));
        assert_eq!(user.obstacle(&store, 0o7).map(|next| next.what), Some(What::Itself));
        mode(&store, 0o711);
        assert_eq!(user.obstacle(&file, 0o6).map(|next| next.what), Some(What::Missing));
        fs::remove_dir_all(home).expect("it can be removed");
    }

    #[test]
    fn a_group_that_is_not_the_owners_own_shares_a_file() {
        // Of root and its group, as on every system; and of root and the group that may read hashes of passwords.
        assert_eq!(shared_by(Path::new("/etc/passwd")), None);
        let shadow = Path::new("/etc/shadow").metadata().expect("it is there");
        let is_shared = shadow.gid() != 0;
        assert_eq!(shared_by(Path::new("/etc/shadow")).is_some(), is_shared);
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
