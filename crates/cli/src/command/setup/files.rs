// SPDX-License-Identifier: Apache-2.0
//! The files that `metaslot setup` writes: its own, never another one's.

use super::program::Plan;
use crate::command::target::Target;
use crate::failure::{Failure, Result};
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first line of what this command has written, after the mark of a comment.
pub(super) const OURS: &str = "# Made by 'metaslot setup'; a change here is lost the next time.\n";

/// No file of ours has as many bytes.
const LONGEST: u64 = 64 * 1024;

/// What is in the place of a file.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Before {
    text: String,
    mode: u32,
}

/// Whether every file, and the one that keeps its last version, is ours to write, and what is in them.
pub(super) fn before(directory: &Path, plan: &Plan) -> Result<Vec<Option<Before>>> {
    let one = |(name, _): &(&str, String)| {
        ours(&old(directory, name))?;
        ours(&directory.join(name))
    };
    plan.files.iter().map(one).collect()
}

fn ours(path: &Path) -> Result<Option<Before>> {
    let cannot = |error: &io::Error| Failure::io(format!("cannot read {}", path.display()), error);
    match read(path) {
        Ok(Some(before)) if before.text.starts_with(OURS) => Ok(Some(before)),
        Ok(_) => {
            let message = format!("{} was not made by this command", path.display());
            Err(Failure::failed(message)
                .hint("nothing was written: say another --directory, or move the file away"))
        }
        // A link to nothing is somebody's, too.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(error) => Err(cannot(&error)),
    }
}

/// Of what is no plain file, or longer than any of ours, nothing: a pipe would never end.
fn read(path: &Path) -> io::Result<Option<Before>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > LONGEST {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    let before = |text| Before { text, mode: found.mode() & 0o777 };
    Ok(String::from_utf8(bytes).ok().map(before))
}

fn old(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.old"))
}

/// Refuses files in directories where this user may not write, before anything is made.
pub(super) fn may_be_included(program: &str, plan: &Plan) -> Result<()> {
    let is_closed = |directory: &&Path| {
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, *directory, wanted, AtFlags::EACCESS).is_err()
    };
    let there = plan.included.iter().filter_map(|(path, _)| {
        Path::new(path).ancestors().skip(1).find(|directory| directory.exists())
    });
    match there.into_iter().find(is_closed) {
        Some(directory) => {
            let what = format!("{program} includes files of {}", directory.display());
            Err(Failure::failed(format!("{what}, where this user may not write"))
                .hint("as root; or leave out --enable: what is to be done is said then"))
        }
        None => Ok(()),
    }
}

/// Writes what is not there as it should be, and says what became of each file: all of them, or none.
pub(super) fn apply(directory: &Path, plan: &Plan) -> Result<Vec<&'static str>> {
    let kept = kept(directory, plan)?;
    write(directory, plan).map_err(|failure| taken_back(failure, kept))
}

fn write(directory: &Path, plan: &Plan) -> Result<Vec<&'static str>> {
    let before = before(directory, plan)?;
    let write = |((name, content), before): (&(&str, String), Option<Before>)| {
        let path = directory.join(name);
        let content = format!("{OURS}{content}");
        let mode = match before {
            Some(Before { text, .. }) if text == content => return Ok("unchanged"),
            Some(Before { text, mode }) => {
                save(&old(directory, name), &text, mode)?;
                mode
            }
            None => {
                make_directory(path.parent().unwrap_or(directory))?;
                0o666
            }
        };
        save(&path, &content, mode)?;
        Ok("written")
    };
    plan.files.iter().zip(before).map(write).collect()
}

/// Files as they were.
pub(super) type Kept = Vec<(PathBuf, Option<Before>)>;

/// The files that would be written, and the ones that keep their last versions, as they are.
pub(super) fn kept(directory: &Path, plan: &Plan) -> Result<Kept> {
    let both = |(name, _): &(&str, String)| [directory.join(name), old(directory, name)];
    plan.files.iter().flat_map(both).map(|path| ours(&path).map(|before| (path, before))).collect()
}

/// Makes them so again: each that is not so, whatever becomes of the others. What is new goes first, which takes no room, and what
/// names others before these: if we are killed, nothing is named that is not there.
pub(super) fn put_back(mut kept: Kept) -> Result<()> {
    kept.reverse();
    kept.sort_by_key(|(_, before)| before.is_some());
    let one = |(path, before): (PathBuf, Option<Before>)| match before {
        Some(before) if read(&path).is_ok_and(|now| now.as_ref() == Some(&before)) => Ok(()),
        Some(Before { text, mode }) => save(&path, &text, mode),
        // What another has put there meanwhile is not ours.
        None if read(&path).is_ok_and(|now| now.is_some_and(|now| now.text.starts_with(OURS))) => {
            fs::remove_file(&path)
                .map_err(|error| Failure::io(format!("cannot remove {}", path.display()), &error))
        }
        None => Ok(()),
    };
    let failed: Vec<Failure> = kept.into_iter().filter_map(|file| one(file).err()).collect();
    let words: Vec<&str> = failed.iter().map(Failure::message).collect();
    match words.is_empty() {
        true => Ok(()),
        false => Err(Failure::failed(words.join("; "))),
    }
}

/// The failure, after the files were made as they were before it; where that failed, too, it says which are not.
pub(super) fn taken_back(failure: Failure, kept: Kept) -> Failure {
    match put_back(kept) {
        Ok(()) => failure,
        Err(left) => failure.hint(format!("not all of it was taken back: {}", left.message())),
    }
}

pub(super) fn make_directory(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure::io(format!("cannot make {}", directory.display()), &error))
}

/// A new file has this mode, less the umask.
pub(super) fn save(path: &Path, content: &str, mode: u32) -> Result<()> {
    let mut target = Target::open(Some(path), mode)?;
    target.write(content.as_bytes())?;
    target.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_put_back_keeps_nothing_else_from_it() {
        let place = std::env::temp_dir().join(format!("metaslot-back-{}", std::process::id()));
        make_directory(&place).expect("it is made");
        let path = |name: &str| place.join(name);
        let ours = |more: &str| Before { text: format!("{OURS}{more}"), mode: 0o600 };
        for (name, text) in [("new", ours("").text), ("changed", ours("").text)] {
            fs::write(path(name), text).expect("it is written");
        }
        fs::write(path("theirs"), "not ours").expect("it is written");
        let kept = vec![
            (path("changed/below"), Some(ours("1"))),
            (path("new"), None),
            (path("theirs"), None),
            (path("changed"), Some(ours("2"))),
        ];
        let failed = put_back(kept).expect_err("there is no directory of that name");
        assert!(failed.message().contains("changed/below"), "{}", failed.message());
        assert!(!path("new").exists());
        assert_eq!(read(&path("changed")).expect("it is there"), Some(ours("2")));
        assert_eq!(fs::read(path("theirs")).expect("it is there"), b"not ours");
        fs::remove_dir_all(&place).expect("it goes");
    }
}
