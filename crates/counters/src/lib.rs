// SPDX-License-Identifier: Apache-2.0
//! What happened, in a page that other programs can read while it happens.
//!
//! Writing is a plain load and store in a shard of the calling thread's own: no lock, no system
//! call, no string, no allocation. The page is a file under the runtime directory where there is
//! one, and memory of this process otherwise; the code is the same. `docs/format-counters.md` has
//! the layout. Nothing here draws conclusions: [`read`] gives the numbers, programs show them.
#![forbid(unsafe_code)]

pub mod clients;
mod directory;
mod ended;
mod event;
pub mod layout;
mod page;
mod raw;
pub mod read;
mod record;
mod shard;

pub use event::Event;
pub use page::{Around, directories, path};
pub use record::{
    Subject, Watch, begin, call, event, events, failed_over, name_mechanisms, name_provider,
    operation, outside, routed, set,
};
pub use shard::leave_thread;

use std::io;
use std::path::PathBuf;

/// Makes this process's page in the first of `directories` that is there, unless it has one, and
/// begins to count. Nothing is made where no directory is; counting then goes on privately. What a thread asks
/// of the file system later, at its first count, it asks inside `around`.
///
/// # Errors
/// What the file system says; counting goes on privately.
pub fn open(directories: impl Iterator<Item = PathBuf>, around: Around) -> io::Result<()> {
    page::open(directories, around, record::forget_rows)
}

/// In a forked child that begins anew: the parent's page is the parent's, and so are the shards of
/// its threads.
pub fn forked() {
    page::forked();
    shard::forget_threads();
    record::forget_rows();
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_SHA256, CKR_ARGUMENTS_BAD, CKR_OK, Function};
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;
    use std::{fs, process, thread};

    #[test]
    fn a_reader_sees_what_threads_counted() {
        let directory = std::env::temp_dir().join(format!("metaslot-counters-{}", process::id()));
        call(Function::Digest, CKR_OK);
        fs::create_dir(&directory).expect("a directory can be made");
        fs::write(directory.join("1-1.counters"), "").expect("a page of a dead process");
        let directories = [directory.join("missing"), directory.clone()];
        open(directories.into_iter(), |work| work()).expect("a page can be made");
        assert!(!directory.join("missing").exists(), "no directory is made");
        name_mechanisms(|_| CKM_SHA256);
        name_provider(1, "awslc");

        let count = || {
            for _ in 0..1000 {
                call(Function::Digest, CKR_OK);
                operation(Subject::new(1, 5), 100, true, begin());
            }
            call(Function::Digest, CKR_ARGUMENTS_BAD);
            event(Event::Login);
            leave_thread();
        };
        thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(count);
            }
        });

        let blocks = fs::metadata(path().expect("there is a page")).expect("it is there").blocks();
        let one_thread = (layout::HEADER + layout::SHARD) * 8;
        assert!(blocks * 512 > one_thread as u64, "a hole kills where the disk is full");
        let page = read::process(path().expect("there is a page")).expect("it reads");
        assert_eq!(page.pid, process::id());
        assert_eq!(page.calls, [(Function::Digest, read::Calls { calls: 40_040, errors: 40 })]);
        assert_eq!(page.codes, [(Function::Digest, CKR_ARGUMENTS_BAD, 40)]);
        assert_eq!(page.events, [(Event::Login, 40)]);
        let [(kind, cell)] = &page.operations[..] else { panic!("one row: {:?}", page.operations) };
        assert_eq!((kind.provider.as_str(), kind.mechanism, kind.size), ("awslc", CKM_SHA256, 1));
        assert_eq!((cell.operations, cell.bytes, cell.errors), (40_000, 4_000_000, 0));
        let timed = cell.buckets.iter().sum::<u64>();
        assert!((300..1_000).contains(&timed), "one in 64 has its time taken: {timed}");
        assert!(!directory.join("1-1.counters").exists(), "pages of the dead are removed");
        let outside = || read::process(path().expect("a page")).expect("it reads").outside;
        assert_eq!(outside(), []);
        record::outside(true);
        assert!(matches!(outside()[..], [time] if time < Duration::from_secs(60)));
        record::outside(false);
        assert_eq!(outside(), []);

        // The module is initialised again, with another provider at that place.
        name_provider(1, "openssl");
        operation(Subject::new(1, 5), 100, true, begin());
        let operations = read::process(path().expect("a page")).expect("it reads").operations;
        let all = operations.iter().map(|(kind, cell)| (kind.provider.as_str(), cell.operations));
        assert_eq!(all.collect::<Vec<_>>(), [("openssl", 1), ("others", 40_000)]);
        fs::remove_dir_all(&directory).expect("the directory goes");
    }

    #[test]
    fn the_book_has_the_layout() {
        let book = include_str!("../../../docs/format-counters.md").replace('\n', " ");
        let names: Vec<_> = Event::ALL.iter().map(|(_, name)| *name).collect();
        assert!(book.replace(" (a level)", "").contains(&names.join(", ")));
        for (number, what) in [
            (layout::SHARDS, "number of shards: "),
            (layout::CODE_COUNT, "511 | "),
            (layout::OUTSIDE, "| "),
            (layout::ROWS, "512– | "),
            (layout::CELL, "5 cells of "),
        ] {
            assert!(book.contains(&format!("{what}{number}")), "{what}{number}");
        }
        assert_eq!((layout::ENDED_HEADER, layout::ENDED_WORDS), (512, 17_920));
        assert_eq!(layout::ENDED_HEADER + layout::ENDED_HALF, 9216);
        assert_eq!(layout::ENDED_MAGIC, 0x444e_4554_4c53_544d);
        assert_eq!((layout::HEADER, layout::CODES, layout::CELLS), (512, 288, 512));
        assert_eq!((layout::SHARD, layout::SIZES, layout::BUCKETS), (8192, 5, 4));
    }
}
