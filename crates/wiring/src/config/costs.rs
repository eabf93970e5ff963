// SPDX-License-Identifier: Apache-2.0
//! The file of costs beside the configuration.

use metaslot_router::cost::{self, Cost};
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where the costs beside a configuration are.
pub(super) fn file(configuration: &Path) -> PathBuf {
    configuration.with_file_name("costs.tsv")
}

/// What the costs beside a configuration say; `None` where there are none. With a file that cannot be used providers keep
/// their order: nothing else depends on it, and `metaslot doctor` complains.
pub(super) fn beside(configuration: &Path) -> Option<Vec<Cost>> {
    let text = plain_text(&file(configuration), cost::MOST_BYTES);
    if text.as_ref().is_err_and(is_absent) {
        return None;
    }
    Some(cost::parse(&text.unwrap_or_default()).unwrap_or_default())
}

/// Whether a file is not there, and not merely unreadable.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The text of a file, or its beginning, which then is longer than `most` bytes. A pipe or a device is refused: to
/// read it could take forever.
pub(super) fn plain_text(file: &Path, most: usize) -> io::Result<String> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    let mut text = String::new();
    file.take(most as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn costs_that_are_no_plain_file_or_too_long_are_none_at_once() {
        let directory = std::env::temp_dir().join(format!("metaslot-costs-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (file, read) = (directory.join("costs.tsv"), || beside(&directory.join("a.toml")));
        assert_eq!(read(), None);
        let one = "# metaslot costs 1\nawslc CKM_SHA256 digest - 1 1 1\n";
        fs::write(&file, one).unwrap();
        assert_eq!(read().map(|costs| costs.len()), Some(1));
        fs::write(&file, format!("{one}{}", "#\n".repeat(cost::MOST_BYTES))).unwrap();
        assert_eq!(read(), Some(Vec::new()));
        fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        assert_eq!(read(), Some(Vec::new()));
        fs::remove_file(&file).unwrap();
        symlink("/dev/zero", &file).unwrap();
        assert_eq!(read(), Some(Vec::new()));
        fs::remove_dir_all(directory).unwrap();
    }
}
