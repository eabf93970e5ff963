// SPDX-License-Identifier: Apache-2.0
//! The files that `metaslot setup` writes: its own, never another one's.

use super::program::Plan;
use crate::command::payload::write_beside;
use crate::failure::{Failure, Result};
use crate::output::{Output, Report};
use std::fs;
use std::io;
use std::path::Path;

/// The first line of what this command has written, after the mark of a comment.
pub(super) const OURS: &str = "# Made by 'metaslot setup'; a change here is lost the next time.\n";

/// Writes what is not there as it should be, and says what became of each file. Before anything is written it is known that
/// every file is ours to write.
pub(super) fn apply(directory: &Path, plan: &Plan) -> Result<Vec<&'static str>> {
    let mut before = Vec::new();
    for (name, _) in &plan.files {
        let path = directory.join(name);
        match fs::read_to_string(&path) {
            Ok(text) if text.starts_with(OURS) => before.push(Some(text)),
            Ok(_) => {
                let message = format!("{} was not made by this command", path.display());
                return Err(Failure::failed(message)
                    .hint("nothing was written: say another --directory, or move the file away"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => before.push(None),
            Err(error) => {
                return Err(Failure::io(format!("cannot read {}", path.display()), &error));
            }
        }
    }
    let write = |((name, content), before): (&(&str, String), Option<String>)| {
        let path = directory.join(name);
        let content = format!("{OURS}{content}");
        match before {
            Some(before) if before == content => return Ok("unchanged"),
            Some(before) => {
                let old = directory.join(format!("{name}.old"));
                save(&old, &before)?;
            }
            None => make_directory(path.parent().unwrap_or(directory))?,
        }
        save(&path, &content)?;
        Ok("written")
    };
    plan.files.iter().zip(before).map(write).collect()
}

pub(super) fn make_directory(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure::io(format!("cannot make {}", directory.display()), &error))
}

pub(super) fn save(path: &Path, content: &str) -> Result<()> {
    let output = Output { json: false, quiet: false };
    write_beside(&output, Some(path), content.as_bytes(), &Report::default())
}
