// SPDX-License-Identifier: Apache-2.0
//! The SQLite connections of a store, one for reading and one for writing, each behind a mutex, and
//! the way around a fork: both are closed before, and the next call afterwards opens them again.

use crate::descriptors::{Descriptors, Fate, Shared};
use crate::error::{Error, Result};
use crate::files::{self, Files, Inode, Inodes, Stamp};
use crate::fork::{self, Connections, Counted, Process};
use crate::format::{APPLICATION, FORMAT, IDENTITIES, OLDEST};
use crate::generation::Generation;
use crate::lock::Lock;
use crate::schema;
use crate::unmoved::{OPENINGS, open_unmoved};
use metaslot_counters::Around;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, FileControl, OpenFlags};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long to wait for a lock of SQLite's own: other writers of ours queue elsewhere, so only a
/// checkpoint, a recovery or a foreign program can hold one.
pub(crate) const BUSY: Duration = Duration::from_secs(10);

/// No row is longer, in bytes: the longest attribute that a caller may give, and some. What a
/// stranger wrote does not fill the memory of anyone who looks at it.
const LONGEST_ROW: i32 = (1 << 28) + (1 << 20);

/// What every connection gets. The cache is small because forked servers multiply it.
const SETTINGS: &str = "
PRAGMA synchronous = FULL;
PRAGMA cache_size = -2048;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA journal_size_limit = 8388608;
";

/// The connections, and what is opened with them.
#[derive(Debug)]
pub(crate) struct Gate {
    configured: Files,
    around: Around,
    process: &'static Process,
    pair: Arc<ConnectionPair>,
    /// The file of the generation, and those that have taken its place.
    pages: [OnceLock<Generation>; PAGES],
    page: AtomicUsize,
    /// The directory when the newest of them had the name.
    page_seen: Mutex<Option<Stamp>>,
}

/// So often the generation's file may be replaced, until every look is one at the store.
const PAGES: usize = 4;

/// Both connections.
#[derive(Debug)]
pub(crate) struct ConnectionPair {
    /// Who only reads does not wait here for a writer's sync.
    reader: GuardedConnection,
    writer: GuardedConnection,
    /// What was opened last.
    database: Mutex<Option<Inode>>,
}

/// One connection behind one mutex.
#[derive(Debug)]
struct GuardedConnection {
    /// How many forks are under way, or wait: no call begins before them.
    forks: AtomicU32,
    state: Mutex<State>,
    reopened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: Option<Database>,
    /// The writer's connection has them, and the directory when they had their names.
    locks: Option<(Locks, Option<Stamp>)>,
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) files: Files,
    pub(crate) writable: bool,
    /// What had the names of its files when they were opened.
    inodes: Inodes,
    descriptors: Descriptors,
    /// As long as it is open, all other connections of this process to the same file have these.
    pub(crate) shared: Option<Arc<Shared>>,
    /// The directory when they had their names still.
    seen: Cell<Option<Stamp>>,
    /// The same of a lock of the writers' queue.
    locked: Cell<Option<(Stamp, Inode)>>,
    /// The generation when they were last looked at.
    looked: Cell<Option<u64>>,
    /// The generation when something of the tree was last remembered.
    remembered: Cell<Option<u64>>,
    /// Its version, and that of its tables, when they were looked at.
    format: Cell<Option<(i64, i64)>>,
    /// The last field: the connection is closed before it.
    _counted: Counted,
}

/// The two lock files, in the order in which they are taken.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    /// One PIN attempt at a time.
    pub(crate) login: Arc<Lock>,
    /// Writers, one after the other.
    pub(crate) queue: Arc<Lock>,
}

impl Locks {
    /// Whether these are the files that have the names: other processes know no others.
    fn have(&self, files: &Files) -> bool {
        !self.login.inode.has_lost(&files.login) && !self.queue.inode.has_lost(&files.queue)
    }

    /// Whether the host has closed one of them.
    fn are_lost(&self) -> bool {
        self.login.is_lost() || self.queue.is_lost()
    }
}

impl Gate {
    pub(crate) fn new(files: Files, around: Around) -> Self {
        files::has_first_root();
        let process = Process::current();
        let pair = process.know(|forks| ConnectionPair {
            reader: GuardedConnection::new(forks),
            writer: GuardedConnection::new(forks),
            database: Mutex::default(),
        });
        Self {
            configured: files,
            around,
            process,
            pair,
            pages: Default::default(),
            page: AtomicUsize::new(0),
            page_seen: Mutex::default(),
        }
    }

    /// Runs `work`, which may write files.
    pub(crate) fn around<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let (mut work, mut done) = (Some(work), Err(Error::Canceled));
        (self.around)(&mut || {
            if let Some(work) = work.take() {
                done = work();
            }
        });
        done
    }

    /// Runs `work`, which only reads, with a connection that is opened if need be. Errors get the
    /// file's name.
    pub(crate) fn read<R>(&self, work: impl FnOnce(&Database) -> Result<R>) -> Result<R> {
        let is_old = |database: &Database| self.has_moved(database) && self.is_replaced(database);
        // What cannot be read may be in other files now.
        let work = |database: &Database| work(database).inspect_err(|_| database.looked.set(None));
        self.with(&self.pair.reader, is_old, work)
    }

    /// The same, in the files that have the names now. A login opens no connection for writing: a server that forks for each
    /// connection would pay for it each time.
    pub(crate) fn look<R>(&self, work: impl FnOnce(&Database) -> Result<R>) -> Result<R> {
        self.with(&self.pair.reader, |database| self.is_replaced(database), work)
    }

    /// Runs `work`, which may write.
    pub(crate) fn write<R>(&self, work: impl FnOnce(&Database) -> Result<R>) -> Result<R> {
        self.with(
            &self.pair.writer,
            |database| self.is_replaced(database),
            |database| {
                database.check_writable()?;
                work(database)
            },
        )
    }

    /// Runs `work`, which opens a connection of its own: no fork happens meanwhile.
    pub(crate) fn apart<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let _state = self.enter(&self.pair.writer)?;
        work()
    }

    fn with<R>(
        &self,
        guarded: &GuardedConnection,
        is_old: impl FnOnce(&Database) -> bool,
        work: impl FnOnce(&Database) -> Result<R>,
    ) -> Result<R> {
        let done = self.with_open(guarded, is_old, work);
        // It may be our own lock, which could not be given up: it goes with the last connection.
        if done.as_ref().is_err_and(Error::is_of_a_lock) {
            fork::close_database(self.pair.database());
        }
        done
    }

    fn with_open<R>(
        &self,
        guarded: &GuardedConnection,
        is_old: impl FnOnce(&Database) -> bool,
        work: impl FnOnce(&Database) -> Result<R>,
    ) -> Result<R> {
        let mut state = self.enter(guarded)?;
        let database = self.database(&mut state)?;
        // The index's is the last: SQLite would set locks by it, and reads are many.
        let fate = match ptr::eq(guarded, &raw const self.pair.reader) {
            true if database.descriptors.fate_of_last() == Fate::Kept => Fate::Kept,
            _ => database.fate(),
        };
        if fate == Fate::Reused {
            return Err(Shared::error(&self.configured.database));
        }
        if fate == Fate::Closed || is_old(database) {
            drop(state);
            fork::close();
            state = self.enter(guarded)?;
        }
        let database = self.database(&mut state)?;
        let done = work(database).map_err(|error| error.at(&self.configured.database));
        // Where there was no memory to end a transaction, or a panic in it, none would begin any more.
        if !database.connection.is_autocommit() {
            state.close();
        }
        done
    }

    /// Whether other files have taken the names of those that a connection has open: what is written
    /// there is lost, and what is read there is old.
    pub(crate) fn is_replaced(&self, database: &Database) -> bool {
        let now = self.configured.stamp();
        if now.is_some() && now == database.seen.get() {
            return false;
        }
        let is_replaced = self.configured.inodes().is_ok_and(|now| now != database.inodes);
        database.seen.set(now.filter(|_| !is_replaced));
        is_replaced
    }

    /// Whether another process may have written since a connection was here last.
    fn has_moved(&self, database: &Database) -> bool {
        let now = self.generation();
        now.is_none_or(|now| now & 1 == 1) || database.looked.replace(now) != now
    }

    /// Closes the connections when their files have been replaced by others of the same names.
    pub(crate) fn follow_replacement(&self) {
        let is_replaced = |guarded: &GuardedConnection| {
            let state = self.enter(guarded);
            state.is_ok_and(|state| {
                state.open.as_ref().is_some_and(|database| self.is_replaced(database))
            })
        };
        if is_replaced(&self.pair.reader) || is_replaced(&self.pair.writer) {
            fork::close();
        }
        let current = self.pages.get(self.page.load(Ordering::Acquire)).and_then(OnceLock::get);
        if current.is_some_and(|page| page.inode.has_lost(&self.configured.generation)) {
            // A store that may only be read has none.
            self.read(|database| self.follow_generation(&database.files)).unwrap_or_default();
        }
    }

    /// Runs `work`, which may write, behind the queue of all writers.
    pub(crate) fn write_in_turn<R>(&self, work: impl FnOnce(&Database) -> Result<R>) -> Result<R> {
        let known = self.enter(&self.pair.writer)?.locks.as_ref().map(|(locks, _)| locks.clone());
        let known = known.filter(|locks| !locks.queue.is_lost());
        let mut locks = known.map_or_else(|| self.locks(), Ok)?;
        let mut work = Some(work);
        for _ in 0..OPENINGS {
            let turn = locks.queue.hold()?;
            // One look at the directory, by which the database was found in its place, tells of the lock, too.
            let mut keeps_lock = false;
            let done = self.write(|database| {
                let work = work.take_if(|_| self.is_locked_by(&locks, database));
                let done = work.map(|work| work(database)).transpose();
                keeps_lock = database.descriptors.index_is_locked();
                done
            });
            // SQLite does not say that it could not give up a lock, for which all others would wait.
            if keeps_lock {
                fork::close_database(self.pair.database());
            }
            if let Some(done) = done? {
                return Ok(done);
            }
            drop(turn);
            locks = self.locks()?;
        }
        let path = &self.configured.queue;
        Err(Error::file(path, "lock", "it is replaced again and again"))
    }

    /// Whether these are the locks that other processes know, too.
    fn is_locked_by(&self, locks: &Locks, database: &Database) -> bool {
        let now = database.seen.get().map(|now| (now, locks.queue.inode));
        if now.is_some() && now == database.locked.get() {
            return true;
        }
        let have = locks.have(&self.configured);
        database.locked.set(now.filter(|_| have));
        have
    }

    /// Closes the connections where the host has closed what is theirs, before anything is opened by their numbers.
    fn leave_closed(&self) -> Result<()> {
        let state = self.enter(&self.pair.writer)?;
        let are_lost = state.locks.as_ref().is_some_and(|(locks, _)| locks.are_lost());
        drop(state);
        let is_closed = |guarded: &GuardedConnection| {
            let open = &guarded.lock().open;
            open.as_ref().is_some_and(|database| database.fate() == Fate::Closed)
        };
        if are_lost && (is_closed(&self.pair.reader) || is_closed(&self.pair.writer)) {
            fork::close();
        }
        Ok(())
    }

    /// The lock files, made where they are missing.
    pub(crate) fn locks(&self) -> Result<Locks> {
        self.leave_closed()?;
        let mut state = self.enter(&self.pair.writer)?;
        let now = self.configured.stamp();
        if let Some((locks, seen)) = &mut state.locks
            && !locks.are_lost()
            && (now.is_some() && now == *seen || locks.have(&self.configured))
        {
            *seen = now;
            return Ok(locks.clone());
        }
        let files = self.configured.resolve()?;
        files.check_directory()?;
        let mode = files.mode(false);
        let login = Lock::open(&files.login, mode)?;
        let queue = Lock::open(&files.queue, mode)?;
        Ok(state.locks.insert((Locks { login, queue }, None)).0.clone())
    }

    /// The generation: a number that was never seen before where there was a change, or may have been.
    pub(crate) fn generation(&self) -> Option<u64> {
        let page = self.page.load(Ordering::Acquire);
        let now = self.pages.get(page)?.get()?.now()?;
        // Another file begins anew.
        Some(now ^ (page as u64) << (u64::BITS - 2))
    }

    /// Runs `commit`, and has every process look at the store afterwards, whichever generation's file it has
    /// found.
    pub(crate) fn announce(
        &self,
        database: &Database,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let before = self.current_page(database)?;
        self.on_page(before, database, |page| page.during(commit))?;
        self.check_place(database)?;
        let after = self.current_page(database)?;
        if after == before && after < PAGES {
            return Ok(());
        }
        self.on_page(after, database, |page| page.during(|| Ok(())))
    }

    /// The same for what ends the store, with no connection open.
    pub(crate) fn announce_end(&self, end: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.pages.get(self.page.load(Ordering::Acquire)).and_then(OnceLock::get) {
            Some(page) => page.during(end),
            None => end(),
        }
    }

    /// Refuses to acknowledge what is in files that were replaced between the last look and the commit: another
    /// process may have made them anew, and knows nothing of it.
    pub(crate) fn check_place(&self, database: &Database) -> Result<()> {
        if database.fate() != Fate::Kept {
            return Err(Shared::error(&self.configured.database));
        }
        if self.is_replaced(database) {
            database.files.forget_index();
            return Err(Error::file(&self.configured.database, "write", "its files were replaced"));
        }
        Ok(())
    }

    /// Which page has the name, as far as the database's last look at the directory goes.
    fn current_page(&self, database: &Database) -> Result<usize> {
        let now = database.seen.get();
        let mut seen = self.page_seen.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_none() || now != *seen {
            self.follow_generation(&database.files)?;
            *seen = now;
        }
        Ok(self.page.load(Ordering::Acquire))
    }

    fn on_page(
        &self,
        at: usize,
        database: &Database,
        work: impl FnOnce(&Generation) -> Result<()>,
    ) -> Result<()> {
        match self.pages.get(at).and_then(OnceLock::get) {
            Some(page) if !page.is_lost() => work(page),
            _ => work(&Generation::open(&database.files)?),
        }
    }

    /// Opens the generation's file where that is not done yet, or another file has its name.
    fn follow_generation(&self, files: &Files) -> Result<()> {
        let at = self.page.load(Ordering::Acquire);
        let Some(place) = self.pages.get(at) else { return Ok(()) };
        match place.get() {
            Some(page) if !page.inode.has_lost(&self.configured.generation) => Ok(()),
            Some(_) => {
                let next =
                    self.page.compare_exchange(at, at + 1, Ordering::AcqRel, Ordering::Acquire);
                next.map_or(Ok(()), |_| self.follow_generation(files))
            }
            None => {
                let page = self.around(|| Generation::open(files))?;
                repair(&page, files);
                // The other connection may have been faster; its page is the same.
                drop(place.set(page));
                Ok(())
            }
        }
    }

    /// The state of a connection, once no fork is under way. In a child of the process whose store this is
    /// it is an error.
    fn enter<'a>(&self, guarded: &'a GuardedConnection) -> Result<MutexGuard<'a, State>> {
        if !self.process.is_current() {
            return Err(Error::Inherited { path: self.configured.database.clone() });
        }
        Ok(guarded.enter())
    }

    fn database<'a>(&self, state: &'a mut State) -> Result<&'a Database> {
        Ok(match &mut state.open {
            Some(database) => database,
            // A reader, too, may have to make the log's index anew.
            closed => closed.insert(self.around(|| self.open())?),
        })
    }

    fn open(&self) -> Result<Database> {
        let files = self.configured.resolve()?;
        let shared = Shared::of(files.inodes().unwrap_or_default()[0]);
        *self.pair.database.lock().unwrap_or_else(PoisonError::into_inner) = shared.database;
        if shared.lost.load(Ordering::SeqCst) {
            return Err(Shared::error(&files.database));
        }
        let mut opened = shared.opened();
        if opened.is_none() {
            files.check_index();
        }
        let first = Descriptors::next();
        let (mut database, found) = open_unmoved(
            &files.database,
            || files.is_frozen(),
            || files.inodes(),
            || Database::open(files.clone()),
        )?;
        // Other connections use the files that the first one opened. What was replaced in between is opened anew.
        if found[0] == shared.database {
            let kept = self.process.kept();
            (database.inodes, database.descriptors) = opened.add(first, found, &kept);
            database.shared = Some(Arc::clone(&shared));
        }
        if let [_, _, Some(index)] = database.inodes {
            self.process.keep(database.files.index(), index);
        }
        drop(opened);
        match self.follow_generation(&database.files) {
            // Anyone who has the page would miss a change that is not announced there.
            Err(error) if database.writable => {
                database.close();
                Err(error)
            }
            _ => Ok(database),
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The connections are those of the process that this one was forked from.
            std::mem::forget(Arc::clone(&self.pair));
            return;
        }
        self.pair.reader.lock().close();
        let mut state = self.pair.writer.lock();
        let database = state.open.as_ref().filter(|database| database.fate() == Fate::Kept);
        if let Some(database) = database.filter(|database| !self.is_replaced(database)) {
            let settle = || {
                database.settle(self);
                Ok(())
            };
            self.around(settle).unwrap_or_default();
        }
        state.close();
        drop(state);
        self.process.let_go();
    }
}

impl Connections for ConnectionPair {
    fn before_fork(&self) {
        for guarded in [&self.writer, &self.reader] {
            guarded.forks.fetch_add(1, Ordering::SeqCst);
            guarded.lock().close();
        }
    }

    fn after_fork(&self) {
        for guarded in [&self.writer, &self.reader] {
            let _state = guarded.lock();
            let fewer = |forks: u32| forks.saturating_sub(1);
            guarded.forks.update(Ordering::SeqCst, Ordering::SeqCst, fewer);
            guarded.reopened.notify_all();
        }
    }

    fn database(&self) -> Option<Inode> {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GuardedConnection {
    fn new(forks: u32) -> Self {
        let forks = AtomicU32::new(forks);
        Self { forks, state: Mutex::default(), reopened: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, once no fork is under way.
    fn enter(&self) -> MutexGuard<'_, State> {
        self.reopened
            .wait_while(self.lock(), |_| self.forks.load(Ordering::SeqCst) > 0)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Closes the connection, or leaves it as it is where the host has files of its own by its numbers.
    fn close(&mut self) {
        match self.open.take() {
            Some(database) if database.fate() == Fate::Reused => std::mem::forget(database),
            Some(database) => database.close(),
            None => {}
        }
    }
}

/// A page that is odd while no process writes was left so by a writer that died.
fn repair(page: &Generation, files: &Files) {
    if page.is_odd()
        && let Ok(queue) = Lock::open(&files.queue, files.mode(false))
        && let Some(_held) = queue.try_hold()
    {
        page.end().unwrap_or_default();
    }
}

impl Database {
    /// Opens an initialised token.
    fn open(files: Files) -> Result<Self> {
        let uninitialized = || Error::Uninitialized { path: files.database.clone() };
        if !files.has_database()? {
            return Err(uninitialized());
        }
        files.check_directory()?;
        let database = Self::connect(files.clone())?;
        database.check_format().map_err(|error| error.at(&files.database))?;
        Ok(database)
    }

    /// Refuses what is no token, or is one of another format. Looks at the tables where they may have been
    /// changed since the last time.
    pub(crate) fn check_format(&self) -> Result<()> {
        let uninitialized = || Error::Uninitialized { path: self.files.database.clone() };
        let format = (self.number("PRAGMA user_version")?, self.number("PRAGMA schema_version")?);
        if self.format.get() == Some(format) {
            return Ok(());
        }
        match format.0 {
            0 if !schema::is_empty(&self.connection)? => {
                return Err(Error::not_token("it has tables, and says that it is of no version"));
            }
            0 => return Err(uninitialized()),
            OLDEST..=IDENTITIES if self.pragma::<i64>("application_id")? == APPLICATION => {
                schema::check(&self.connection, format.0)?;
            }
            OLDEST..=IDENTITIES => {
                return Err(Error::not_token("it is some other program's database"));
            }
            found if found > IDENTITIES => {
                return Err(Error::NewerFormat { path: self.files.database.clone(), found });
            }
            _ => return Err(Error::not_token("an unknown format")),
        }
        self.format.set(Some(format));
        Ok(())
    }

    /// Refuses what only a login makes the current format, or somebody has said to be of an older one: nothing
    /// compares that with an anchor.
    pub(crate) fn check_current(&self) -> Result<()> {
        match self.format.get() {
            Some((FORMAT..=IDENTITIES, _)) => Ok(()),
            _ => Err(Error::tampered("it is of an older format")),
        }
    }

    fn number(&self, pragma: &str) -> Result<i64> {
        Ok(self.connection.prepare_cached(pragma)?.query_row((), |row| row.get(0))?)
    }

    /// A connection with our settings, whatever is in the file.
    pub(crate) fn connect(files: Files) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        files.check_logs()?;
        let counted = Counted::new(&files.database)?;
        let connect = || -> rusqlite::Result<Connection> {
            let connection = match files.is_frozen() {
                // A log that appears is another file than there was, and then this is opened anew.
                true => Connection::open_with_flags(
                    files.immutable(),
                    flags | OpenFlags::SQLITE_OPEN_URI,
                )?,
                false => Connection::open_with_flags(&files.database, flags)?,
            };
            connection.busy_timeout(BUSY)?;
            connection.execute_batch(SETTINGS)?;
            // The log stays and the close is cheap: anyone who opens next may be another user, who
            // could not make the files anew.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            // The store has neither; a program that can write the file could make changes vanish with them.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
            // Without this each new parameter of a search makes SQLite plan it anew.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_ROW)?;
            connection.file_control::<&str>(None, FileControl::PersistWal(&mut 1))?;
            connection.set_prepared_statement_cache_capacity(64);
            Ok(connection)
        };
        let connection = connect().map_err(|error| Error::from(error).at(&files.database))?;
        let read_only = connection.is_readonly("main").unwrap_or(true);
        let writable = !read_only
            && accessat(CWD, &files.database, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
        Ok(Self {
            connection,
            files,
            writable,
            inodes: [None; 3],
            descriptors: Descriptors::default(),
            shared: None,
            seen: Cell::default(),
            locked: Cell::default(),
            looked: Cell::default(),
            remembered: Cell::default(),
            format: Cell::default(),
            _counted: counted,
        })
    }

    /// Closes it while no other of this process is opened: that one would be taken for one that uses the same files.
    fn close(self) {
        let Some(shared) = self.shared.clone() else { return };
        let (mut opened, descriptors) = (shared.opened(), self.descriptors.clone());
        drop(self);
        opened.remove(&descriptors);
    }

    /// What has become of its descriptors.
    fn fate(&self) -> Fate {
        let fate = self.descriptors.fate();
        if let Some(shared) = self.shared.as_ref().filter(|_| fate == Fate::Reused) {
            shared.lost.store(true, Ordering::SeqCst);
        }
        fate
    }

    /// Notes that something of the tree is remembered as it is now.
    pub(crate) fn remember(&self) {
        self.remembered.set(self.looked.get());
    }

    /// Whether that may be worth a look.
    pub(crate) fn may_remember(&self) -> bool {
        self.remembered.get() == self.looked.get()
    }

    /// What `work` reads in one snapshot.
    pub(crate) fn snapshot<R>(&self, work: impl FnOnce(&Connection) -> Result<R>) -> Result<R> {
        /// Ends the transaction, whatever happens in it.
        struct Open<'a>(&'a Connection);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                let ended = self.0.prepare_cached("ROLLBACK").and_then(|mut end| end.execute(()));
                ended.map(drop).unwrap_or_default();
            }
        }
        self.connection.prepare_cached("BEGIN")?.execute(())?;
        let open = Open(&self.connection);
        work(open.0)
    }

    pub(crate) fn pragma<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<T> {
        Ok(self.connection.pragma_query_value(None, name, |row| row.get(0))?)
    }

    /// Refuses where this process may not write.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        Err(Error::WriteProtected {
            path: self.files.database.clone(),
            reason: "this user may only read it".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kdf::{Cost, Kdf};
    use crate::{Config, SqliteStore};
    use metaslot_spi::store::Store;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn a_fork_waits_for_one_call_and_not_for_those_behind_it() {
        let [reader, writer] = [(); 2].map(|()| GuardedConnection::new(0));
        let pair = ConnectionPair { reader, writer, database: Mutex::default() };
        let (order, came) = mpsc::channel();
        let (first, forked) = (pair.writer.enter(), order.clone());
        thread::scope(|scope| {
            scope.spawn(|| {
                drop(pair.writer.enter());
                order.send("a call").expect("it is heard");
            });
            // It waits, as far as that can be had.
            thread::sleep(Duration::from_millis(20));
            scope.spawn(|| {
                pair.before_fork();
                forked.send("the fork").expect("it is heard");
                pair.after_fork();
            });
            while pair.writer.forks.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            drop(first);
        });
        assert_eq!(came.try_iter().collect::<Vec<_>>(), ["the fork", "a call"]);
    }

    #[test]
    fn a_transaction_that_a_call_leaves_open_is_over_with_it() {
        let name = format!("metaslot-keystore-{}-left-open", std::process::id());
        let place = std::env::temp_dir().join(name);
        let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });
        let store = SqliteStore::new(Config { kdf, ..Config::new(place.join("db")) });
        store.initialize(b"12345678", "left open").expect("a token");
        for begin in ["BEGIN", "BEGIN IMMEDIATE"] {
            let begin = |database: &Database| Ok(database.connection.execute_batch(begin)?);
            let snapshot = |database: &Database| database.snapshot(|_| Ok(()));
            store.gate.read(begin).expect("it is open");
            store.gate.read(snapshot).expect("another begins");
            store.gate.write(begin).expect("it is open");
            store.gate.write(snapshot).expect("another begins");
        }
        drop(store);
        std::fs::remove_dir_all(&place).expect("it goes");
    }
}
