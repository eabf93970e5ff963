// SPDX-License-Identifier: Apache-2.0
//! To open files by their names while others may replace them.

use crate::error::{Error, Result};
use crate::files::{Inodes, Looked};
use std::path::Path;

/// So often a store is opened whose files are replaced meanwhile.
pub(crate) const OPENINGS: usize = 4;

/// What `open` opens, and what has the names of its files: the same before and after, else other files may be open than
/// those that are found now.
pub(crate) fn open_unmoved<T>(
    path: &Path,
    is_frozen: impl Fn() -> bool,
    mut look: impl FnMut() -> Looked<Inodes>,
    mut open: impl FnMut() -> Result<T>,
) -> Result<(T, Inodes)> {
    let mut look = || look().unwrap_or_default();
    for opening in 1..=OPENINGS {
        let before = look();
        let opened = open()?;
        // Logs that SQLite has made, because they were missing, may be gone again as well: it has those that nobody else finds. One that
        // has no log, however often one looks, has no index.
        let [_, log, index] = before;
        let is_whole = log.is_some() && index.is_some();
        let has_none = log.is_none() && index.is_none() && (is_frozen() || opening == OPENINGS);
        if (is_whole || has_none) && look() == before {
            return Ok((opened, before));
        }
    }
    Err(Error::file(path, "open", "its files are replaced again and again"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use std::fs;

    #[test]
    fn a_store_whose_files_are_replaced_while_it_is_opened_is_opened_again() {
        let directory = std::env::temp_dir().join(format!("metaslot-gate-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let files = Files::new(&directory.join("token.db"));
        let spare = |at: u32| directory.join(format!("spare-{at}"));
        fs::write(&files.database, "0").unwrap();
        // Until it has been opened so often, another file takes the name after each opening.
        let open = |replaced: u32, taken: u32| {
            let mut opened = 0;
            let found = open_unmoved(
                &files.database,
                || false,
                || files.inodes(),
                || {
                    let content = fs::read_to_string(&files.database).unwrap();
                    opened += 1;
                    if opened <= replaced {
                        fs::write(spare(opened), format!("{replaced}/{opened}")).unwrap();
                        fs::rename(spare(opened), &files.database).unwrap();
                    }
                    // As SQLite does.
                    fs::write(directory.join("token.db-wal"), "").unwrap();
                    fs::write(directory.join("token.db-shm"), "").unwrap();
                    // Somebody takes it away.
                    if opened <= taken {
                        fs::remove_file(directory.join("token.db-shm")).unwrap();
                    }
                    Ok(content)
                },
            );
            found.map(|(content, found)| (content, found == files.inodes().unwrap(), opened))
        };
        assert_eq!(open(0, 0).unwrap(), ("0".to_owned(), true, 2), "the log was made");
        assert_eq!(open(0, 0).unwrap(), ("0".to_owned(), true, 1));
        assert_eq!(open(0, 2).unwrap(), ("0".to_owned(), true, 4), "it is gone, and gone again");
        assert_eq!(open(2, 0).unwrap(), ("2/2".to_owned(), true, 3));
        assert!(matches!(open(0, u32::MAX), Err(Error::File { .. })));
        assert!(matches!(open(u32::MAX, 0), Err(Error::File { .. })));
        fs::remove_dir_all(&directory).unwrap();
    }
}
