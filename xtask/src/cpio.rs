// SPDX-License-Identifier: Apache-2.0
//! The archive that a kernel unpacks into its memory before it starts `/init` (cpio, "newc").

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive that is being written; directories come by themselves.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    /// A file at an absolute path, which everybody may run.
    pub(crate) fn file(&mut self, path: &str, contents: &[u8]) -> Result<()> {
        if let Some((directory, _)) = path.rsplit_once('/') {
            self.directory(directory)?;
        }
        self.entry(path, PROGRAM, contents)
    }

    /// A directory and those above it.
    pub(crate) fn directory(&mut self, path: &str) -> Result<()> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for directory in ends.map(|end| &path[..end]).filter(|name| !name.is_empty()) {
            if self.directories.insert(directory.to_owned()) {
                self.entry(directory, DIRECTORY, &[])?;
            }
        }
        Ok(())
    }

    /// A file or a directory of this machine with all that is in it, at another place.
    pub(crate) fn copy(&mut self, from: &Path, path: &str) -> Result<()> {
        if !from.is_dir() {
            let contents = fs::read(from).with_context(|| format!("read {}", from.display()))?;
            return self.file(path, &contents);
        }
        self.directory(path)?;
        for entry in fs::read_dir(from).with_context(|| format!("read {}", from.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            self.copy(&entry.path(), &format!("{path}/{}", name.to_string_lossy()))?;
        }
        Ok(())
    }

    /// The whole, with its end.
    pub(crate) fn finished(mut self) -> Result<Vec<u8>> {
        self.entry("TRAILER!!!", 0, &[])?;
        Ok(self.bytes)
    }

    fn entry(&mut self, path: &str, mode: u32, contents: &[u8]) -> Result<()> {
        let name = path.trim_start_matches('/');
        self.entries += 1;
        let length = u32::try_from(contents.len()).context("a file above 4 GiB")?;
        let name_length = u32::try_from(name.len() + 1)?;
        // inode, mode, user, group, links, time, length, device (4), length of the name, sum.
        let fields = [self.entries, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name_length, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(contents);
        self.pad();
        Ok(())
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_each_directory_once_and_an_end() {
        let mut archive = Archive::default();
        archive.file("/a/b/c", b"hello").unwrap();
        archive.file("/a/b/d", b"").unwrap();
        let bytes = archive.finished().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        let entries: Vec<_> = text.split("070701").skip(1).collect();
        let names: Vec<_> = entries.iter().map(|entry| entry[104..].split('\0').next()).collect();
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/b/d", "TRAILER!!!"].map(Some));
        assert_eq!(&entries[2][8..16], "000081ed");
        assert_eq!(&entries[2][48..56], "00000005");
    }
}
