// SPDX-License-Identifier: Apache-2.0
//! What a user may do with the files that the module needs.

use super::finding::Finding;
use super::user::{Obstacle, User, What, shared_by};
use crate::configured::TokenSection;
use crate::encoding::word;
use crate::places;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn open(path: &Path) -> String {
    format!("chmod a+r {}", word(path.display()))
}

pub(super) fn readable(user: &User, path: &Path, what: &str, how: &str) -> Finding {
    let Some(obstacle) = user.obstacle(path, 0o4) else {
        return Finding::ok(format!("{} may read {}", user.name, path.display()));
    };
    if obstacle.what == What::Unseen {
        return unseen(user, path, &obstacle);
    }
    Finding::error(
        format!("{} may not read {what}, {}: {obstacle}", user.name, path.display()),
        obstacle.fix(user).unwrap_or_else(|| how.to_owned()),
    )
}

/// What a service's user may do with a file that others are not to read.
pub(super) fn secret(user: &User, path: &Path, what: &str) -> Finding {
    let (group, file) = (&user.group, word(path.display()));
    let how = format!("chgrp {group} {file}; chmod 640 {file}");
    readable(user, path, what, &how)
}

/// Nothing is known where who asks may not look.
fn unseen(user: &User, path: &Path, obstacle: &Obstacle) -> Finding {
    Finding::warning(
        format!("what {} may do with {} is not seen: {obstacle}", user.name, path.display()),
        obstacle.fix(user).unwrap_or_default(),
    )
}

/// A store is read and written, and its directory, too: by every login, which counts.
pub(super) fn usable(user: &User, token: &TokenSection) -> Finding {
    let path = &token.path;
    let parent = path.parent().unwrap_or(path);
    let of_file = || user.obstacle(path, 0o6).filter(|obstacle| obstacle.what != What::Missing);
    let Some(obstacle) = user.obstacle(parent, 0o7).or_else(of_file) else {
        return Finding::ok(format!("{} may use {}", user.name, path.display()));
    };
    let is_of_directory = obstacle.what == What::Missing || obstacle.place == parent;
    if is_of_directory && is_to_be_shared(user, token, parent) {
        let (name, path) = (&user.name, path.display());
        return Finding::ok(format!("{name} may use {path} once it is made: it is the group's"));
    }
    if obstacle.what == What::Missing && may_make(user, &obstacle.place) {
        let (name, path) = (&user.name, path.display());
        return Finding::ok(format!("{name} may use {path} once it is made"));
    }
    if obstacle.what == What::Unseen {
        return unseen(user, path, &obstacle);
    }
    Finding::error(
        format!("{} may not use {}: {obstacle}", user.name, path.display()),
        obstacle.fix(user).unwrap_or_else(|| share(user, token, parent)),
    )
}

/// Whether the user, who asks, can make a directory that is not there. Of another one it is not known who makes the token.
fn may_make(user: &User, directory: &Path) -> bool {
    let asks = User::asking().is_some_and(|asking| asking.name == user.name);
    asks && directory.parent().is_some_and(|above| user.obstacle(above, 0o3).is_none())
}

/// Whether the module gives the directory to a group of the user's when it makes the token: one that it makes, or that is empty.
fn is_to_be_shared(user: &User, token: &TokenSection, directory: &Path) -> bool {
    let is_empty = match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    is_empty && token.group.as_ref().is_some_and(|group| user.is_of(group))
}

/// Whether root sees the user use a store that modes close: by access lists, which only the system knows.
pub(super) fn is_opened_by_lists(user: &User, store: &Path) -> bool {
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--reuid", &user.name, "--regid", &user.group, "--init-groups", "test"]);
    let directory = store.parent().unwrap_or(store);
    for (at, (right, path)) in
        [("-r", store), ("-w", store), ("-w", directory), ("-x", directory)].iter().enumerate()
    {
        setpriv.args((at > 0).then_some("-a")).arg(right).arg(path);
    }
    let status = setpriv.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// How a user comes to use a token. One that a group uses stays that group's: it is not taken from those who are in it.
fn share(user: &User, token: &TokenSection, parent: &Path) -> String {
    let (directory, file) = (word(parent.display()), word(token.path.display()));
    let modes = format!("chmod 2770 {directory}; chmod g+rw {file}*");
    let found = shared_by(parent);
    match token.group.clone().or_else(|| found.clone()) {
        Some(group) if !user.is_of(&group) => format!(
            "the token belongs to group {group}: as {}, make one of its own: metaslot token init --new --label NAME; or {}",
            user.name,
            user.joining(&group)
        ),
        Some(group) if found.as_ref() == Some(&group) => modes,
        Some(group) => format!("chgrp -R {} {directory}; {modes}", word(&group)),
        None if !parent.exists() => {
            format!("group = \"{}\" in its [[token]] section, before it is made", user.group)
        }
        None => {
            let group = &user.group;
            format!(
                "group = \"{group}\" in its [[token]] section, for a token that is to be made; for this one also: \
                 chgrp -R {group} {directory}; {modes}"
            )
        }
    }
}

/// What who asks may not do with a file, where that is why it failed: it says nothing of the file.
pub(super) fn denied(path: &Path, wanted: u32, tried: io::Result<()>) -> Option<Finding> {
    tried.err().filter(|error| error.kind() == io::ErrorKind::PermissionDenied)?;
    let user = User::asking()?;
    let why = user.obstacle(path, wanted).map_or_else(String::new, |why| format!(": {why}"));
    Some(Finding::error(
        format!("{}: {} may not use it{why}", path.display(), user.name),
        "it is about rights: ask as root, or as the user of the service",
    ))
}

/// What helps with a configuration that is not taken.
pub(super) fn unread(files: &[PathBuf]) -> String {
    if let Some(named) = places::named().filter(|named| !named.exists()) {
        return format!("write {}, or unset METASLOT_CONF", word(named.display()));
    }
    let denied = |file: &&PathBuf| {
        File::open(file).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    files.iter().find(denied).map_or_else(
        || String::from("docs/configuration.md has its form"),
        |file| {
            let obstacle = User::asking().and_then(|user| user.obstacle(file, 0o4)?.fix(&user));
            obstacle.unwrap_or_else(|| format!("it is about rights: {}", open(file)))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_a_group_stays_with_that_group() {
        let nobody = User::named("nobody").expect("it is on every system");
        let section = |group: Option<&str>| TokenSection {
            path: "/root/token.db".into(),
            group: group.map(str::to_owned),
            ..<_>::default()
        };
        let fix = |section: &TokenSection| share(&nobody, section, Path::new("/root"));
        let private = fix(&section(None));
        assert!(private.contains(&format!("chgrp -R {} /root", nobody.group)), "{private}");
        assert_eq!(
            fix(&section(Some("www-data"))),
            "the token belongs to group www-data: as nobody, make one of its own: metaslot token init --new --label NAME; \
             or join the group: adduser nobody www-data"
        );
        let member = fix(&section(Some(&nobody.group)));
        assert!(member.starts_with(&format!("chgrp -R {} /root; chmod", nobody.group)), "{member}");
    }
}
