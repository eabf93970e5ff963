// SPDX-License-Identifier: Apache-2.0
//! Forks. What SQLite knows of open files is the process's: a child that inherits it believes that it
//! holds its parent's locks. So before a fork every connection of the process is closed, whichever
//! store it is of, and none is opened until the fork is over.
//!
//! Some forks come unannounced: those made without the C library's knowledge, or in a signal handler
//! that came into a call, where waiting for the call would be for ever. What is open then is inherited;
//! the child neither uses nor closes it, and no store opens in it.
//!
//! Anyone who opens a database that no process has open makes the index of its log anew: a server's children would do so for each
//! connection, while their parent, who has used it, has it closed. So a process keeps a lock on the index of what it had open, on
//! a descriptor of its own that its children share. It is closed when no connection is open: closing it gives up
//! all locks that the process has on the file, SQLite's as well.

use crate::descriptors::Open;
use crate::error::{Error, Result};
use crate::files::Inode;
use metaslot_memory::{PerProcess, share_byte};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, fstat, open};
use std::fmt::Debug;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

static PROCESS: PerProcess<Process> = PerProcess::new(Process::new);

/// What this process has open.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Whether a connection was open when this process was forked.
    inherited: bool,
    connections: AtomicUsize,
    stores: Mutex<Stores>,
    indexes: Mutex<Vec<Index>>,
}

/// The index of a log that this process keeps in use.
#[derive(Debug)]
struct Index {
    inode: Inode,
    /// None where the parent has opened it: this process has inherited it.
    file: Option<Open>,
}

/// The byte of a log's index on which SQLite has a lock as long as it has the index open (`UNIX_SHM_DMS` of `os_unix.c`).
const IN_USE: i64 = 128;

#[derive(Debug, Default)]
struct Stores {
    /// How many forks are under way.
    forks: u32,
    known: Vec<Weak<dyn Connections>>,
}

/// A store's connections, as a fork sees them.
pub(crate) trait Connections: Send + Sync + Debug {
    /// Closes them until [`Self::after_fork`].
    fn before_fork(&self);
    /// In the parent.
    fn after_fork(&self);
    /// Which database was opened last.
    fn database(&self) -> Option<Inode>;
}

/// Closes everything until [`after`], and waits for anyone who uses it. The calling thread is not inside
/// a call of a store.
pub fn before() {
    let mut stores = Process::current().lock();
    stores.forks += 1;
    stores.known.iter().filter_map(Weak::upgrade).for_each(|store| store.before_fork());
}

/// In the parent, after the fork.
pub fn after() {
    let mut stores = Process::current().lock();
    stores.forks = stores.forks.saturating_sub(1);
    stores.known.iter().filter_map(Weak::upgrade).for_each(|store| store.after_fork());
}

/// Closes everything once, because files have been replaced: for as long as one connection to a database is
/// open, SQLite has all others use the files that this one has.
pub(crate) fn close() {
    before();
    Process::current().let_go();
    after();
}

/// Closes once what is open of one database: SQLite keeps a lock that it could not give up until the last connection goes. Those of other
/// stores stay open.
pub(crate) fn close_database(database: Option<Inode>) {
    let stores = Process::current().lock();
    let known = stores.known.iter().filter_map(Weak::upgrade);
    let those: Vec<_> = known.filter(|store| store.database() == database).collect();
    drop(stores);
    those.iter().for_each(|store| store.before_fork());
    those.iter().for_each(|store| store.after_fork());
}

impl Process {
    fn new(parents: Option<&'static Self>) -> Self {
        let open =
            |parent: &Self| parent.inherited || parent.connections.load(Ordering::SeqCst) > 0;
        // The parent may have it locked.
        let inherited = |parent: &Self| {
            let known = parent.indexes.try_lock();
            let known = known.iter().flat_map(|known| known.iter());
            known.map(|index| Index { inode: index.inode, file: None }).collect()
        };
        let indexes = Mutex::new(parents.map(inherited).unwrap_or_default());
        Self { inherited: parents.is_some_and(open), indexes, ..Self::default() }
    }

    /// Keeps the index of a log in use that a connection has open, until [`Self::let_go`]. Where that cannot be done, the next
    /// process makes it anew.
    pub(crate) fn keep(&self, index: &Path, inode: Inode) {
        let mut indexes = self.indexes();
        if indexes.iter().any(|known| known.inode == inode && !known.is_lost()) {
            return;
        }
        // A user who may not write the index may have one that was not compared with the log, and keeps none. A child that
        // gives up its rights cannot write by what it inherits.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = accessat(CWD, index, Access::WRITE_OK, AtFlags::EACCESS)
            .and_then(|()| open(index, flags, Mode::empty()));
        // Closed now, it would take SQLite's locks with it, if it is the file that SQLite has open.
        if let Ok(file) = file.and_then(Open::new) {
            file.file().map(|file| share_byte(file, IN_USE)).unwrap_or_default();
            indexes.push(Index { inode: file.inode, file: Some(file) });
        }
    }

    /// By which numbers it keeps them.
    pub(crate) fn kept(&self) -> Vec<RawFd> {
        let number = |index: &Index| Some(index.file.as_ref()?.file().ok()?.as_raw_fd());
        self.indexes().iter().filter_map(number).collect()
    }

    /// Gives up all indexes, unless a connection is open.
    pub(crate) fn let_go(&self) {
        let mut indexes = self.indexes();
        if self.connections.load(Ordering::SeqCst) == 0 {
            indexes.clear();
        }
    }

    fn indexes(&self) -> MutexGuard<'_, Vec<Index>> {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current() -> &'static Self {
        PROCESS.get()
    }

    /// Whether this is the calling process, and not one that it comes from.
    pub(crate) fn is_current(&self) -> bool {
        ptr::eq(self, Self::current())
    }

    /// Has forks close the connections that `make` gives; it is told how many forks are under way.
    pub(crate) fn know<C: Connections + 'static>(&self, make: impl FnOnce(u32) -> C) -> Arc<C> {
        let mut stores = self.lock();
        stores.known.retain(|store| store.strong_count() > 0);
        let store = Arc::new(make(stores.forks));
        let known: Arc<dyn Connections> = Arc::<C>::clone(&store);
        stores.known.push(Arc::downgrade(&known));
        store
    }

    fn lock(&self) -> MutexGuard<'_, Stores> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    /// Whether the host has closed it.
    fn is_lost(&self) -> bool {
        self.file.as_ref().is_some_and(Open::is_lost)
    }

    /// Whether it has no name any more: nobody opens it again.
    fn is_removed(&self) -> bool {
        let stat = self.file.as_ref().and_then(|file| fstat(file.file().ok()?).ok());
        stat.is_some_and(|stat| stat.st_nlink == 0)
    }
}

/// Counts one connection, from before it is opened until after it is closed.
#[derive(Debug)]
pub(crate) struct Counted(&'static Process);

impl Counted {
    /// # Errors
    /// [`Error::Inherited`]
    pub(crate) fn new(database: &Path) -> Result<Self> {
        let process = Process::current();
        if process.inherited {
            return Err(Error::Inherited { path: database.to_owned() });
        }
        // Not while indexes are let go.
        let mut indexes = process.indexes();
        if process.connections.fetch_add(1, Ordering::SeqCst) == 0 {
            indexes.retain(|index| !index.is_removed());
        }
        Ok(Self(process))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kdf::{Cost, Kdf};
    use crate::{Config, SqliteStore};
    use metaslot_spi::store::Store;
    use std::fs;

    fn is_open(path: &Path) -> bool {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
        descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|file| file == path)
    }

    #[test]
    fn a_lock_that_is_not_to_be_had_closes_its_own_database_only() {
        let places = ["one", "other"].map(|name| {
            let name = format!("metaslot-keystore-{}-lock-of-{name}", std::process::id());
            std::env::temp_dir().join(name)
        });
        let files = places.each_ref().map(|place| place.join("db"));
        let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });
        let [one, other, again] =
            [0, 1, 0].map(|at| SqliteStore::new(Config { kdf, ..Config::new(files[at].clone()) }));
        one.initialize(b"12345678", "one").unwrap();
        other.initialize(b"12345678", "other").unwrap();
        for store in [&one, &other, &again] {
            store.gate.read(|_| Ok(())).unwrap();
        }
        let failed = one.gate.write(|_| Err::<(), _>(Error::file(&files[0], "lock", "in vain")));
        failed.unwrap_err();
        assert_eq!(files.each_ref().map(|file| is_open(file)), [false, true]);
        again.gate.read(|_| Ok(())).unwrap();
        assert!(is_open(&files[0]));
        drop((one, other, again));
        places.iter().for_each(|place| fs::remove_dir_all(place).unwrap());
    }
}
