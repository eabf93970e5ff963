// SPDX-License-Identifier: Apache-2.0
//! The connections to the server, on a thread of their own: one for reading, on which changes are told, and one for
//! transactions. They are made anew when they are lost; callers never wait for more than one attempt.

use crate::address::Address;
use crate::tls::Tls;
use metaslot_keystore::Error;
use metaslot_memory::Secret;
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Row, Socket, Statement};

/// How long a statement may take here: the server ends it before.
const STATEMENT: Duration = Duration::from_secs(15);
/// How long it may take to be connected, through all hosts.
const CONNECT: Duration = Duration::from_secs(15);
/// How often it is looked whether the connection still is one.
const LOOK: Duration = Duration::from_secs(5);
/// How long to wait after an attempt that failed, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// So many statements are kept prepared on a connection.
const MAX_PREPARED: usize = 64;
/// No generation.
const NONE: u64 = u64::MAX;

/// What every connection begins with, whatever the database's defaults are: no other schema's tables are taken for ours, a
/// transaction that has waited for the lock of a row sees what was written meanwhile, and what is acknowledged is on the disk. A
/// machine that is cut off within a transaction keeps others waiting for the row, but not for so long that they fail.
const BEGIN: &str = "
    SET search_path = pg_catalog;
    SET default_transaction_isolation = 'read committed';
    SET statement_timeout = '10s';
    SET lock_timeout = '9s';
    SET idle_in_transaction_session_timeout = '5s';
    SET idle_session_timeout = 0;
    SELECT set_config('synchronous_commit', 'on', false)
     WHERE current_setting('synchronous_commit') = 'off'";

/// What the reading one has beside that: its statements take rows by their keys whatever the values are, and to plan one anew for
/// each takes longer than it does.
const PLAN_ONCE: &str = "SET plan_cache_mode = force_generic_plan";

/// A password, when it is needed.
pub type Password = Arc<dyn Fn() -> Result<Secret, metaslot_ck::Error> + Send + Sync>;

/// The way to the database.
pub(crate) struct Link {
    inner: Arc<Inner>,
    running: Mutex<Option<Running>>,
}

struct Inner {
    address: Address,
    config: Mutex<Option<tokio_postgres::Config>>,
    password: Option<Password>,
    /// For how long what is known goes on being used.
    away: Duration,
    state: Mutex<State>,
    changed: Condvar,
    /// Goes up by two with each change that is heard of; [`NONE`] where nothing is known.
    shown: AtomicU64,
}

#[derive(Default)]
struct State {
    lines: Option<Arc<Lines>>,
    /// When the database has said last what its generation is.
    heard: Option<Awake>,
    /// Whether something older than that generation was used since, as there was no database.
    bridged: bool,
    /// Whether an attempt has failed since.
    failed: Option<String>,
    generation: u64,
    /// What the database had.
    seen: Option<i64>,
}

/// A moment, on a clock that goes on while the machine sleeps.
#[derive(Clone, Copy)]
struct Awake(Duration);

impl Awake {
    fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        Self(now.try_into().unwrap_or_default())
    }

    fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

struct Running {
    handle: Handle,
    stop: Arc<Notify>,
    thread: JoinHandle<()>,
}

/// Both connections.
pub(crate) struct Lines {
    pub(crate) reader: Line,
    pub(crate) writer: Line,
    /// Held while a PIN is tried: the server's lock of that is the connection's.
    pub(crate) trying: Mutex<()>,
    /// Held from the beginning of a transaction to its end.
    pub(crate) turn: Mutex<()>,
    /// Whether a transaction was begun that may be open still: a call that panicked has left it.
    pub(crate) begun: AtomicBool,
    /// Whether the server has warned since this was taken back.
    warned: AtomicBool,
    /// A change was told.
    told: Notify,
    /// One of them has ended.
    broken: Notify,
    /// Whether they do not answer, or what is open on them is not known: nothing waits for them any more.
    given_up: watch::Sender<bool>,
}

impl Lines {
    fn new(reader: Client, writer: Client) -> Self {
        Self {
            reader: Line::new(reader, Mutex::default()),
            writer: Line::new(writer, Mutex::default()),
            trying: Mutex::new(()),
            turn: Mutex::new(()),
            begun: AtomicBool::new(false),
            warned: AtomicBool::new(false),
            told: Notify::new(),
            broken: Notify::new(),
            given_up: watch::Sender::new(false),
        }
    }

    fn give_up(&self) {
        self.given_up.send_replace(true);
        self.broken.notify_one();
    }

    fn is_given_up(&self) -> bool {
        *self.given_up.borrow()
    }
}

/// Ends once the connections are given up.
async fn given_up(mut told: watch::Receiver<bool>) {
    // So they are where no caller has them any more.
    told.wait_for(|is_so| *is_so).await.ok();
}

/// One connection, with what is prepared on it.
pub(crate) struct Line {
    client: Client,
    prepared: Mutex<HashMap<String, Statement>>,
}

type Answer<T> = Result<T, tokio_postgres::Error>;
type Sent<'a> = Pin<Box<dyn Future<Output = Answer<Vec<Row>>> + 'a>>;
type Value<'a> = &'a (dyn ToSql + Sync);
/// A parameter that is kept until it is sent.
pub(crate) type Kept = Box<dyn ToSql + Sync>;

/// What is sent with the next statement; without parameters, not even none, it is not prepared.
struct Step {
    sql: String,
    with: Option<Vec<Kept>>,
}

impl Line {
    const fn new(client: Client, prepared: Mutex<HashMap<String, Statement>>) -> Self {
        Self { client, prepared }
    }

    async fn statement(&self, sql: &str) -> Answer<Statement> {
        if let Some(known) = lock(&self.prepared).get(sql) {
            return Ok(known.clone());
        }
        let made = self.client.prepare(sql).await?;
        let mut prepared = lock(&self.prepared);
        if prepared.len() < MAX_PREPARED {
            prepared.insert(sql.to_owned(), made.clone());
        }
        Ok(made)
    }

    pub(crate) async fn query(&self, sql: &str, with: &[&(dyn ToSql + Sync)]) -> Answer<Vec<Row>> {
        let statement = self.statement(sql).await?;
        self.client.query(&statement, with).await
    }

    /// The same in one round trip with what goes before it. The first error is given: the server does nothing after it, in a
    /// transaction.
    async fn query_after(
        &self,
        before: &[Step],
        sql: &str,
        with: &[&(dyn ToSql + Sync)],
    ) -> Answer<Vec<Row>> {
        let statement = self.statement(sql).await?;
        self.all(before, Box::pin(self.client.query(&statement, with))).await
    }

    /// Several statements without parameters, as [`Self::query_after`].
    async fn run_after(&self, before: &[Step], sql: &str) -> Answer<()> {
        let last = async { self.run(sql).await.map(|()| Vec::new()) };
        self.all(before, Box::pin(last)).await.map(drop)
    }

    async fn step(&self, step: &Step, statement: Option<&Statement>) -> Answer<Vec<Row>> {
        let with: Vec<_> = step.with.iter().flatten().map(|one| &**one as Value<'_>).collect();
        match statement {
            Some(statement) => self.client.query(statement, &with).await,
            None => self.run(&step.sql).await.map(|()| Vec::new()),
        }
    }

    async fn all(&self, before: &[Step], last: Sent<'_>) -> Answer<Vec<Row>> {
        let mut statements = Vec::with_capacity(before.len());
        for Step { sql, with } in before {
            let is_query = with.is_some();
            statements.push(if is_query { Some(self.statement(sql).await?) } else { None });
        }
        let both = before.iter().zip(&statements);
        let mut sent: Vec<Sent<'_>> = Vec::with_capacity(before.len() + 1);
        sent.extend(
            both.map(|(step, made)| -> Sent<'_> { Box::pin(self.step(step, made.as_ref())) }),
        );
        sent.push(last);
        let mut answers: Vec<Option<Answer<Vec<Row>>>> = sent.iter().map(|_| None).collect();
        // Each is sent when it is looked at first, which is in their order.
        poll_fn(|cx| {
            for (one, answer) in sent.iter_mut().zip(&mut answers) {
                if answer.is_none()
                    && let Poll::Ready(ready) = one.as_mut().poll(cx)
                {
                    *answer = Some(ready);
                }
            }
            if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let mut rows = Vec::new();
        for answer in answers.into_iter().flatten() {
            rows = answer?;
        }
        Ok(rows)
    }

    /// Several statements without parameters.
    pub(crate) async fn run(&self, sql: &str) -> Answer<()> {
        self.client.batch_execute(sql).await
    }
}

/// What a call has of the link while it lasts.
pub(crate) struct Open<'a> {
    link: &'a Link,
    handle: Handle,
    pub(crate) lines: Arc<Lines>,
    later: RefCell<Vec<Step>>,
}

impl Open<'_> {
    /// Waits for an answer.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = Answer<T>>) -> Result<T, Error> {
        let told = self.lines.given_up.subscribe();
        let is_given_up = self.lines.is_given_up();
        let done = self.handle.block_on(async {
            if is_given_up {
                return None;
            }
            tokio::select! {
                biased;
                done = timeout(STATEMENT, work) => done.ok(),
                () = given_up(told) => None,
            }
        });
        match done {
            Some(answer) => answer.map_err(|error| {
                // What the server has not said itself says nothing of what it has done.
                if is_over(&error) || error.code().is_none() {
                    self.give_up();
                }
                self.link.said(&error)
            }),
            None => {
                self.give_up();
                Err(self.link.away("the database does not answer"))
            }
        }
    }

    /// What the token is called in the database.
    pub(crate) fn name(&self) -> &str {
        &self.link.inner.address.token
    }

    /// What it is called in errors.
    pub(crate) fn place(&self) -> &Path {
        self.link.place()
    }

    /// Both connections are given up: it is not known what is open on them.
    pub(crate) fn give_up(&self) {
        self.lines.give_up();
    }

    /// Whether they are: whether a transaction was committed may not be known.
    pub(crate) fn is_given_up(&self) -> bool {
        self.lines.is_given_up()
    }

    /// One statement on the reading connection.
    pub(crate) fn read(&self, sql: &str, with: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        self.wait(self.lines.reader.query(sql, with))
    }

    /// One statement on the connection for transactions; the caller has its turn.
    pub(crate) fn write(&self, sql: &str, with: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let before = self.later.take();
        self.wait(self.lines.writer.query_after(&before, sql, with))
    }

    /// Several statements there.
    pub(crate) fn run(&self, sql: &str) -> Result<(), Error> {
        let before = self.later.take();
        self.wait(self.lines.writer.run_after(&before, sql))
    }

    /// Ends the transaction there, which is acknowledged only where every standby has it that is to: a server that gives up waiting for
    /// one (it does so after `statement_timeout`, too) says that it has committed, and warns. Nothing else warns there.
    pub(crate) fn commit(&self) -> Result<(), Error> {
        let warned = &self.lines.warned;
        warned.store(false, Ordering::Relaxed);
        self.run("COMMIT")?;
        if warned.load(Ordering::Relaxed) {
            self.give_up();
            return Err(self.link.away("no standby has taken the change in time"));
        }
        Ok(())
    }

    /// A statement there whose answer only says whether it was done: it goes with the next one, in one round trip.
    pub(crate) fn later(&self, sql: &str, with: Vec<Kept>) {
        self.later.borrow_mut().push(Step { sql: sql.to_owned(), with: Some(with) });
    }

    /// The same of several statements without parameters.
    pub(crate) fn run_later(&self, sql: &str) {
        self.later.borrow_mut().push(Step { sql: sql.to_owned(), with: None });
    }

    /// Gives up what was to go with the next one.
    pub(crate) fn forget(&self) {
        self.later.take();
    }
}

/// Every link that was made: see [`restart`].
static LINKS: Mutex<Vec<Weak<Link>>> = Mutex::new(Vec::new());

/// Ends the threads of all stores. The next call begins them anew, with whatever fence its own thread has.
pub fn restart() {
    let links: Vec<_> = lock(&LINKS).iter().filter_map(Weak::upgrade).collect();
    links.iter().for_each(|link| link.stop());
}

impl Link {
    pub(crate) fn new(address: Address, password: Option<Password>, away: Duration) -> Arc<Self> {
        let inner = Inner {
            address,
            config: Mutex::new(None),
            password,
            away,
            state: Mutex::default(),
            changed: Condvar::new(),
            shown: AtomicU64::new(NONE),
        };
        let link = Arc::new(Self { inner: Arc::new(inner), running: Mutex::new(None) });
        let mut links = lock(&LINKS);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(&link));
        drop(links);
        link
    }

    /// What the token is called in errors.
    pub(crate) fn place(&self) -> &Path {
        Path::new(self.inner.address.as_str())
    }

    /// Both connections, as soon as they are there.
    ///
    /// # Errors
    /// That they are not, and why, once an attempt has failed.
    pub(crate) fn open(&self) -> Result<Open<'_>, Error> {
        let handle = self.handle()?;
        let mut state = lock(&self.inner.state);
        let end = Instant::now() + CONNECT;
        loop {
            if let Some(lines) = &state.lines {
                let (lines, later) = (Arc::clone(lines), RefCell::default());
                return Ok(Open { link: self, handle, lines, later });
            }
            if let Some(why) = &state.failed {
                return Err(self.inner.away(&state, why));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.inner.away(&state, "it does not answer"));
            }
            let waited = self.inner.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The thread, begun where it is not there.
    fn handle(&self) -> Result<Handle, Error> {
        let mut running = lock(&self.running);
        if let Some(running) = &*running {
            return Ok(running.handle.clone());
        }
        let cannot = |error: std::io::Error| self.away(&error.to_string());
        if lock(&self.inner.config).is_none() {
            let config = self.inner.address.looked_up().map_err(|why| self.away(&why))?;
            *lock(&self.inner.config) = Some(config);
        }
        let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let (handle, stop) = (runtime.handle().clone(), Arc::new(Notify::new()));
        let (inner, told) = (Arc::clone(&self.inner), Arc::clone(&stop));
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = keep(&inner) => {}
                    () = told.notified() => {}
                }
            });
        };
        let thread = thread::Builder::new().name(String::from("postgresql")).spawn(work);
        let thread = thread.map_err(cannot)?;
        *running = Some(Running { handle: handle.clone(), stop, thread });
        Ok(handle)
    }

    fn stop(&self) {
        let Some(running) = lock(&self.running).take() else { return };
        running.stop.notify_one();
        // It has nothing to say.
        running.thread.join().ok();
        self.inner.ended();
    }

    /// Counts the changes that were heard of; `None` where none may be relied on.
    pub(crate) fn generation(&self) -> Option<u64> {
        Some(self.inner.shown.load(Ordering::Acquire)).filter(|number| *number != NONE)
    }

    /// Takes over what the database has now.
    pub(crate) fn heard(&self, generation: i64) {
        self.inner.heard(Some(generation));
    }

    /// Whether the database is away, and what was read before may be used in its place. It is read again once the database is
    /// back, whether or not that tells of a change.
    pub(crate) fn bridge(&self) -> bool {
        let mut state = lock(&self.inner.state);
        let is_away = state.lines.as_ref().is_none_or(|lines| lines.is_given_up());
        let may = is_away && self.inner.may_bridge(&state);
        state.bridged |= may;
        may
    }

    fn away(&self, why: &str) -> Error {
        self.inner.away(&lock(&self.inner.state), why)
    }

    /// What an answer of the database means here.
    pub(crate) fn said(&self, error: &tokio_postgres::Error) -> Error {
        let path = self.place().to_owned();
        let Some(code) = error.code() else {
            return self.away(&sentence(error));
        };
        let reason = sentence(error);
        match *code {
            SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME => {
                Error::Uninitialized { path }
            }
            SqlState::INSUFFICIENT_PRIVILEGE | SqlState::READ_ONLY_SQL_TRANSACTION => {
                Error::WriteProtected { path, reason }
            }
            SqlState::DISK_FULL => Error::Full { path },
            SqlState::OUT_OF_MEMORY => Error::Memory,
            SqlState::LOCK_NOT_AVAILABLE => {
                let reason = String::from("another process has had it for nine seconds");
                Error::File { path, action: "lock", reason }
            }
            _ => Error::Database { path, reason },
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("address", &self.inner.address.as_str())
            .finish_non_exhaustive()
    }
}

/// Whether it is an error of a connection that ends with it.
fn is_over(error: &tokio_postgres::Error) -> bool {
    let shut = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];
    error.is_closed() || error.code().is_some_and(|code| shut.contains(code))
}

/// An error with what is behind it.
fn sentence(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let mut text = error.to_string();
    let mut behind = std::error::Error::source(error);
    while let Some(error) = behind {
        text = format!("{text}: {error}");
        behind = error.source();
    }
    text
}

impl Inner {
    /// That there is no database, which may never have been there.
    fn away(&self, state: &State, why: &str) -> Error {
        let what = if state.heard.is_some() { "is away" } else { "cannot be reached" };
        let path = PathBuf::from(self.address.as_str());
        Error::Database { path, reason: format!("the database {what}: {why}") }
    }

    fn may_bridge(&self, state: &State) -> bool {
        state.heard.is_some_and(|heard| heard.elapsed() < self.away)
    }

    /// Says what can be relied on, once the state has changed or time has passed. With connections that is what was heard not longer ago
    /// than a look at them may take: otherwise the machine has slept, and what it missed is not heard of yet.
    fn show(&self, state: &State) {
        let is_heard = |longest| state.heard.is_some_and(|heard| heard.elapsed() <= longest);
        let is_open = state.lines.is_some() && is_heard(self.away.max(2 * LOOK));
        let known = is_open || self.may_bridge(state);
        let number = if known { state.generation } else { NONE };
        self.shown.store(number, Ordering::Release);
        self.changed.notify_all();
    }

    fn heard(&self, generation: Option<i64>) {
        let mut state = lock(&self.state);
        state.heard = Some(Awake::now());
        if state.seen != generation {
            state.seen = generation;
            state.generation += 2;
        }
        self.show(&state);
    }

    /// Whether a notification, the generation and the token's name, is of a change that is not known. Every role that may
    /// connect can tell one, also one that is to come: what counts is the token's row.
    fn is_news(&self, payload: &str) -> bool {
        let Some((generation, name)) = payload.split_once(' ') else { return false };
        name == self.address.token && generation.parse().ok() != lock(&self.state).seen
    }

    /// Whether it was heard not long ago what the generation is.
    fn is_sure(&self) -> bool {
        lock(&self.state).heard.is_some_and(|heard| heard.elapsed() < 3 * LOOK)
    }

    fn opened(&self, lines: Arc<Lines>) {
        let mut state = lock(&self.state);
        (state.lines, state.failed) = (Some(lines), None);
        if std::mem::take(&mut state.bridged) {
            state.generation += 2;
        }
        self.show(&state);
    }

    /// There are no connections any more; with a reason, an attempt has failed.
    fn lost(&self, failed: Option<String>) {
        let mut state = lock(&self.state);
        (state.lines, state.failed) = (None, failed);
        self.show(&state);
    }

    /// No thread hears of changes any more, or sees that `away` is over.
    fn ended(&self) {
        let mut state = lock(&self.state);
        (state.lines, state.heard, state.failed) = (None, None, None);
        self.show(&state);
    }
}

/// Connects, and again when that is lost.
async fn keep(inner: &Arc<Inner>) {
    let mut pause = PAUSES.0;
    let mut forgets: JoinSet<()>;
    loop {
        match timeout(CONNECT, connect(inner)).await {
            Ok(Ok(lines)) => {
                pause = PAUSES.0;
                inner.opened(Arc::clone(&lines));
                tokio::select! {
                    () = watch(inner, &lines) => lines.give_up(),
                    () = lines.broken.notified() => {}
                }
                inner.lost(None);
                // The one before it ends.
                forgets = JoinSet::new();
                forgets.spawn(forget(Arc::clone(inner)));
                continue;
            }
            Ok(Err(why)) => inner.lost(Some(why)),
            Err(_) => inner.lost(Some(String::from("it does not answer"))),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Takes back what may no longer be relied on, however long it takes to be connected.
async fn forget(inner: Arc<Inner>) {
    loop {
        // Timers stand still while the machine sleeps.
        sleep(inner.away.min(Duration::from_secs(1))).await;
        inner.show(&lock(&inner.state));
    }
}

/// Looks at the generation when a change is told, and from time to time, as long as there is an answer.
async fn watch(inner: &Inner, lines: &Lines) {
    loop {
        timeout(LOOK, lines.told.notified()).await.unwrap_or_default();
        inner.show(&lock(&inner.state));
        match timeout(LOOK, look(inner, &lines.reader)).await {
            Ok(Ok(())) => {}
            // That it cannot say it now is no change; where it goes on so there may have been one.
            Ok(Err(error)) if error.code().is_some() && !is_over(&error) && inner.is_sure() => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

/// What the database has as its generation now.
async fn look(inner: &Inner, line: &Line) -> Answer<()> {
    let sql = "SELECT generation FROM metaslot.token WHERE name = $1";
    let none = [
        SqlState::UNDEFINED_TABLE,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    match line.query(sql, &[&inner.address.token]).await {
        Ok(rows) => {
            inner.heard(rows.first().map(|row| row.try_get(0)).transpose()?);
            Ok(())
        }
        // There is no token yet, or it is not for this role.
        Err(error) if error.code().is_some_and(|code| none.contains(code)) => {
            inner.heard(None);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

async fn connect(inner: &Arc<Inner>) -> Result<Arc<Lines>, String> {
    let config = lock(&inner.config).clone();
    let mut config = config.ok_or_else(|| String::from("its hosts are not known"))?;
    if let Some(password) = &inner.password {
        let secret = password().map_err(|_| String::from("its password cannot be read"))?;
        config.password(secret.expose());
    }
    let tls = Tls::of(&inner.address)?;
    let said = |error: tokio_postgres::Error| sentence(&error);
    let (reader, told) = config.connect(tls.clone()).await.map_err(said)?;
    let (writer, rest) = config.connect(tls).await.map_err(said)?;
    let lines = Arc::new(Lines::new(reader, writer));
    tokio::spawn(drive(told, Arc::clone(inner), Arc::downgrade(&lines)));
    tokio::spawn(drive(rest, Arc::clone(inner), Arc::downgrade(&lines)));
    lines.reader.run(BEGIN).await.map_err(said)?;
    lines.reader.run(PLAN_ONCE).await.map_err(said)?;
    lines.writer.run(BEGIN).await.map_err(said)?;
    lines.reader.run("LISTEN metaslot").await.map_err(said)?;
    // What was said while no connection listened.
    look(inner, &lines.reader).await.map_err(said)?;
    Ok(lines)
}

/// Moves what goes over a connection, until it ends or is given up: a server that does not answer would keep it.
async fn drive<S>(mut connection: Connection<Socket, S>, inner: Arc<Inner>, lines: Weak<Lines>)
where
    S: tokio_postgres::tls::TlsStream + Unpin,
{
    let Some(end) = lines.upgrade().map(|lines| lines.given_up.subscribe()) else { return };
    let carry = async {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            let Some(lines) = lines.upgrade() else { continue };
            match message {
                AsyncMessage::Notification(told) if inner.is_news(told.payload()) => {
                    lines.told.notify_one();
                }
                // Before the answer that it belongs to is given on.
                AsyncMessage::Notice(said) if *said.code() == SqlState::WARNING => {
                    lines.warned.store(true, Ordering::Relaxed);
                }
                _ => {}
            }
        }
    };
    tokio::select! {
        () = carry => {}
        () = given_up(end) => {}
    }
    if let Some(lines) = lines.upgrade() {
        // Before those who wait for an answer hear that there is none.
        lines.give_up();
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;
    use tokio_postgres::NoTls;

    /// Of a server that says nothing after its greeting.
    async fn client() -> Client {
        let (near, mut far) = UnixStream::pair().expect("two sockets");
        far.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").expect("there is room");
        near.set_nonblocking(true).expect("it is a socket");
        let near = tokio::net::UnixStream::from_std(near).expect("there is a runtime");
        let mut config = tokio_postgres::Config::new();
        config.user("user").connect_raw(near, NoTls).await.expect("it greets").0
    }

    #[test]
    fn what_was_heard_before_the_machine_slept_is_relied_on_when_it_is_heard_again() {
        let away = Duration::from_secs(20);
        let address = "postgresql://user@localhost/database?token=test".parse();
        let link = Link::new(address.expect("it is one"), None, away);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let lines = runtime.block_on(async { Lines::new(client().await, client().await) });
        link.heard(1);
        link.inner.opened(Arc::new(lines));
        let known = link.generation();
        assert!(known.is_some());
        let before = Awake::now().0.saturating_sub(away + Duration::from_secs(1));
        lock(&link.inner.state).heard = Some(Awake(before));
        // Whatever else shows it: what forgets, say, after the connection was lost once.
        for _ in 0..2 {
            link.inner.show(&lock(&link.inner.state));
            assert_eq!(link.generation(), None);
        }
        link.heard(1);
        assert_eq!(link.generation(), known);
    }
}
