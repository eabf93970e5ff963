// SPDX-License-Identifier: Apache-2.0
//! What a user may do with the files that the module needs.

use super::finding::Finding;
use super::user::{Obstacle, User, What};
use crate::configured::TokenSection;
use crate::encoding::word;
use crate::places;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

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

/// What a service's user may do with the file of its PIN.
pub(super) fn of_pin(user: &User, path: &Path) -> Finding {
    let (group, file) = (&user.group, word(path.display()));
    let how = format!("chgrp {group} {file}; chmod 640 {file}");
    readable(user, path, "the file with the PIN", &how)
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
    if obstacle.what == What::Unseen {
        return unseen(user, path, &obstacle);
    }
    let (group, directory) = (&user.group, word(parent.display()));
    let share = || {
        format!(
            "group = \"{group}\" in its [[token]] section, for a token that is to be made; for this one also: \
             chgrp -R {group} {directory}; chmod 2770 {directory}; chmod g+rw {}*",
            word(path.display())
        )
    };
    Finding::error(
        format!("{} may not use {}: {obstacle}", user.name, path.display()),
        obstacle.fix(user).unwrap_or_else(share),
    )
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
