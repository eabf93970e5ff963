// SPDX-License-Identifier: Apache-2.0
//! The files that `metaslot setup` writes: its own, never another one's.

use super::program::Plan;
use crate::command::target::Target;
use crate::failure::{Failure, Result};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The first line of what this command has written, after the mark of a comment.
pub(super) const OURS: &str = "# Made by 'metaslot setup'; a change here is lost the next time.\n";

/// What is in the place of a file.
#[derive(Debug)]
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
    match fs::read_to_string(path) {
        Ok(text) if text.starts_with(OURS) => {
            let mode = path.metadata().map_err(|error| cannot(&error))?.mode() & 0o777;
            Ok(Some(Before { text, mode }))
        }
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
    write(directory, plan).or_else(|failure| put_back(kept).and(Err(failure)))
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

/// Makes them so again.
pub(super) fn put_back(kept: Kept) -> Result<()> {
    for (path, before) in kept {
        match before {
            Some(Before { text, mode }) => save(&path, &text, mode)?,
            None if path.exists() => fs::remove_file(&path).map_err(|error| {
                Failure::io(format!("cannot remove {}", path.display()), &error)
            })?,
            None => {}
        }
    }
    Ok(())
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
