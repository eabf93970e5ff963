// SPDX-License-Identifier: Apache-2.0
//! The tokens that are served, and to whom: a client is a connection, known by the process at its other end, or by its certificate.

use crate::allowance::{Allowance, Allowances};
use crate::ask;
use crate::failure::Failure;
use crate::granted::Granted;
use crate::manager::{self, say};
use crate::remote;
use crate::rights::Rights;
use crate::shared::{Own, Shared, from_now};
use metaslot_ck::Error;
use metaslot_counters::clients::{Clients, Seat, User, Who};
use metaslot_engine::{CACHED, Config as EngineConfig, Engine, Policy, SlotConfig};
use metaslot_router::Routes;
use metaslot_spi::detail;
use metaslot_spi::provider::Provider;
use metaslot_wiring::audit::Log;
use metaslot_wiring::config::{ClientConfig, Config, DaemonConfig, OwnLogin, Peer};
use metaslot_wiring::{Parts, peer};
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::thread;
use std::time::Duration;

/// Longer than a program is stopped that is not stopped for good.
const PATIENCE: Duration = Duration::from_secs(30);

/// So often it is looked whether a pause is over.
const LOOK: Duration = Duration::from_secs(1);
/// For a service manager that waits for the start.
const STARTS_LATER: &str =
    "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=Waiting for the pause after wrong PINs";

/// The tokens that are served, and to whom.
#[derive(Debug)]
pub struct Tokens {
    all: Vec<Token>,
    absent: Vec<(String, String)>,
    providers: &'static [&'static dyn Provider],
    /// What one client's operations tell of providers counts for all.
    routes: Arc<Routes>,
    allowances: Allowances,
    /// Where it is counted what they do.
    counted: Clients,
    given: RwLock<Given>,
    /// Those that have rights without a PIN.
    connected: Mutex<Vec<Weak<Granted>>>,
}

/// What may change while clients are served.
#[derive(Debug)]
struct Given {
    clients: Vec<ClientConfig>,
    log: Option<Arc<Log>>,
}

/// Who may be served.
#[derive(Debug)]
pub struct Admitted {
    peer: Peer,
    allowance: Allowance,
    /// Its connection.
    stream: Arc<UnixStream>,
}

/// One client.
#[derive(Debug)]
pub struct Client {
    /// What its calls are made to.
    pub engine: Engine,
    /// Where they are told.
    pub log: Option<Log>,
    /// What it and its user's other processes may take.
    pub allowance: Allowance,
    /// Where it is counted what it does.
    pub seat: Seat,
    /// For how long it may stop in the middle of a message.
    pub patience: Duration,
    /// What it has without a PIN; `None` for nothing, or for what is not taken away.
    pub granted: Option<Arc<Granted>>,
}

impl Client {
    /// Whether what it has without a PIN was taken away, so that nothing it asks is answered any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.granted.as_ref().is_some_and(|granted| granted.has_ended())
    }
}

#[derive(Debug)]
struct Token {
    description: String,
    policy: Policy,
    shared: Arc<Shared>,
}

impl Tokens {
    /// Opens those whose PIN the configuration knows.
    ///
    /// # Errors
    /// What cannot be as the configuration has it; which token is not opened, and why.
    pub fn of(config: Config) -> Result<Self, Failure> {
        let parts = Parts::with(config.for_clients(), Some(remote::open))?;
        let Parts { slots, absent, providers, settings, mut daemon, logins, .. } = parts;
        daemon.clients.iter_mut().for_each(ClientConfig::settle);
        let slots = slots.into_iter().zip(logins);
        let tokens = slots.map(|(slot, login)| Token::opened(slot, login.as_ref()));
        let all = tokens.collect::<Result<_, _>>()?;
        let allowances = Allowances::new(daemon.connections, daemon.memory);
        Ok(Self {
            all,
            absent,
            providers,
            routes: Arc::new(Routes::new(providers, settings)),
            allowances,
            // Where there is no space, nothing is counted.
            counted: Clients::open().unwrap_or_default(),
            given: RwLock::new(Given { clients: daemon.clients, log: None }),
            connected: Mutex::default(),
        })
    }

    /// Who is at the other end of a connection.
    ///
    /// # Errors
    /// Where the kernel does not say, or the process's user has enough connections.
    pub fn admit(&self, stream: &Arc<UnixStream>) -> io::Result<Admitted> {
        let process = peer(stream)?;
        let allowance = self.allowances.admit(process.user);
        let peer = Peer::Process(process);
        let allowance = allowance.ok_or_else(|| {
            self.counted.refused(&self.who(&peer));
            io::ErrorKind::QuotaExceeded
        })?;
        Ok(Admitted { peer, allowance, stream: Arc::clone(stream) })
    }

    /// Who has proved to have these names, and is served by this connection.
    ///
    /// # Errors
    /// Where no section names it, or there are enough connections of its name.
    pub fn admit_named(
        &self,
        mut names: Vec<String>,
        stream: &Arc<UnixStream>,
    ) -> io::Result<Admitted> {
        let name = self
            .name_of(&names)
            .ok_or_else(|| io::Error::other("no [[client]] names it any more"))?;
        let allowance = self.allowances.admit_named(&name);
        // What it is called in the audit log.
        names.insert(0, name);
        let peer = Peer::Named(names);
        let allowance = allowance.ok_or_else(|| {
            self.counted.refused(&self.who(&peer));
            io::Error::new(io::ErrorKind::QuotaExceeded, "its name has enough connections")
        })?;
        Ok(Admitted { peer, allowance, stream: Arc::clone(stream) })
    }

    /// The first of a certificate's names that a section has.
    #[must_use]
    pub fn name_of(&self, names: &[String]) -> Option<String> {
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        given.clients.iter().find_map(|client| client.named(names)).map(str::to_owned)
    }

    /// What it is served by.
    #[must_use]
    pub fn client(&self, admitted: Admitted) -> Client {
        let Admitted { peer, allowance, stream } = admitted;
        let (log, granted) = self.granted(&peer, &stream);
        let engine = self.engine_of(granted.as_ref(), matches!(peer, Peer::Process(_)), &stream);
        let seat = self.counted.seat(&self.who(&peer));
        Client { engine, log, allowance, seat, patience: PATIENCE, granted }
    }

    /// Where it is told what a peer does, and what it has without a PIN: a change that takes that away ends it from now on. No store is
    /// asked meanwhile, for which a change, and with it every other client that comes, would wait.
    fn granted(
        &self,
        peer: &Peer,
        stream: &Arc<UnixStream>,
    ) -> (Option<Log>, Option<Arc<Granted>>) {
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        let log = given.log.as_ref().map(|log| log.of_client(peer));
        let its = |one: &ClientConfig| one.is(peer).map(|is| is.then(|| one.clone())).transpose();
        let Ok(sections) = given.clients.iter().filter_map(its).collect::<io::Result<Vec<_>>>()
        else {
            // It is not known what it has, and would be without that until it ends: it is to connect again.
            stream.shutdown(Shutdown::Both).ok();
            return (log, None);
        };
        if sections.is_empty() {
            if let Peer::Named(_) = peer {
                // Its name was taken away since.
                stream.shutdown(Shutdown::Both).ok();
            }
            return (log, None);
        }
        let granted = Arc::new(Granted::of(sections, Arc::clone(stream)));
        let mut connected = self.connected();
        connected.retain(|one| one.strong_count() > 0);
        connected.push(Arc::downgrade(&granted));
        (log, Some(granted))
    }

    /// Who a client is, where that is counted.
    fn who(&self, peer: &Peer) -> Who {
        match peer {
            _ if !self.counted.is_open() => Who::default(),
            Peer::Process(process) => {
                let (program, service) = process.names();
                let user = User::Local(process.user);
                Who { user, process: process.id.unwrap_or(0), program, service }
            }
            Peer::Named(names) => {
                let service = names.first().cloned().unwrap_or_default();
                Who { user: User::Remote, service, ..Who::default() }
            }
        }
    }

    fn connected(&self) -> MutexGuard<'_, Vec<Weak<Granted>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells an audit log what clients do that come from now on.
    pub fn log(&self, log: Option<Log>) {
        let log = log.map(Arc::new);
        self.all.iter().for_each(|token| token.shared.log(log.clone()));
        self.given.write().unwrap_or_else(PoisonError::into_inner).log = log;
    }

    /// Tells it which tokens the daemon has opened.
    ///
    /// # Errors
    /// Where they must not be open without a line.
    pub fn tell_opened(&self) -> io::Result<()> {
        self.all.iter().try_for_each(|token| token.shared.tell_opened())
    }

    /// Who has how much, and what, from now on. Who has something that is not given any more loses its connection.
    pub fn change(&self, daemon: &DaemonConfig) {
        let mut clients = daemon.clients.clone();
        clients.iter_mut().for_each(ClientConfig::settle);
        self.allowances.change(daemon.connections, daemon.memory);
        let mut given = self.given.write().unwrap_or_else(PoisonError::into_inner);
        given.clients = clients;
        for one in self.connected().iter().filter_map(Weak::upgrade) {
            if !one.sections.iter().all(|section| given.clients.contains(section)) {
                one.end();
            }
        }
    }

    /// What the sections of clients name that is not there, so that they give nothing of it as long as that lasts.
    #[must_use]
    pub fn unmet(&self) -> Vec<String> {
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        given.clients.iter().flat_map(|client| self.unmet_by(client)).collect()
    }

    fn unmet_by(&self, client: &ClientConfig) -> Vec<String> {
        let label = &client.token;
        let users = client.unknown_users().map(|user| format!("there is no user {user:?}"));
        let is_meant =
            |token: &&Token| token.shared.token().is_ok_and(|token| token.label == *label);
        let all = Vec::from_iter(self.all.iter().filter(is_meant));
        let mut open = all.iter().filter(|token| token.shared.has_pin()).peekable();
        let tokens = if all.is_empty() {
            vec![format!("there is no token {label:?}")]
        } else if open.peek().is_none() {
            vec![format!(
                "services have nothing of {label:?}: it is no [[token]] with a pin-source"
            )]
        } else {
            let open = Vec::from_iter(open);
            let mut keys = Vec::from_iter(client.keys.iter().flatten());
            // What a store does not say is not said to be missing.
            let has = |key: &str| open.iter().any(|token| token.shared.has(key).unwrap_or(true));
            keys.retain(|key| !has(key));
            keys.iter().map(|key| format!("the token {label:?} has no object {key:?}")).collect()
        };
        users.chain(tokens).map(|lack| format!("[[client]]: {lack}")).collect()
    }

    /// What there is for a client that has been given so much. One of another machine is shown the tokens that its sections name: to the
    /// others it brings no PIN.
    fn engine_of(
        &self,
        granted: Option<&Arc<Granted>>,
        is_near: bool,
        connection: &Arc<UnixStream>,
    ) -> Engine {
        let sections = granted.map_or(&[][..], |granted| &granted.sections);
        let shown = |token: &&Token| is_near || token.is_named_by(sections);
        let slot = |token: &Token| token.slot(granted, Arc::clone(connection));
        let slots = self.all.iter().filter(shown).map(slot).collect();
        let config = EngineConfig { slots, providers: self.providers };
        Engine::with(config, CACHED, Arc::clone(&self.routes)).without(self.absent.clone())
    }
}

impl Token {
    fn opened(slot: SlotConfig, login: Option<&OwnLogin>) -> Result<Self, Failure> {
        let SlotConfig { description, store, policy } = slot;
        let refused = |error: Error| {
            let reason = detail::with(str::to_owned);
            let colon = if reason.is_empty() { "" } else { ": " };
            let whose = login.and_then(|login| login.identity);
            let by = whose.map_or_else(String::new, |name| format!(" as identity {name:?}"));
            let reason = format!(
                "the token in {description:?} is not opened{by}: {}{colon}{reason}",
                name(error)
            );
            Failure::of_token(error, reason)
        };
        let own = login.map(|login| {
            let whose = login.identity;
            let pin = whose
                .map_or_else(|| String::from("user PIN"), |it| format!("PIN of identity {it:?}"));
            let pin = ask::secret(&login.pin, &format!("{pin} of the token in {description:?}"))?;
            Ok(Own { identity: whose, pin })
        });
        let own = own.transpose().map_err(refused)?;
        let shared = Shared::new(store, own);
        if login.is_some() {
            open_in_turn(&shared, &description).map_err(refused)?;
        }
        Ok(Self { description, policy, shared: Arc::new(shared) })
    }

    fn is_named_by(&self, sections: &[ClientConfig]) -> bool {
        let label = self.shared.token().ok().map(|token| token.label);
        label.is_some_and(|label| sections.iter().any(|section| section.token == label))
    }

    /// What sections give of it, without a PIN.
    fn rights(&self, sections: &[ClientConfig]) -> Option<Rights> {
        let label = self.shared.token().ok()?.label;
        Rights::of(&label, sections.iter())
    }

    fn slot(&self, granted: Option<&Arc<Granted>>, connection: Arc<UnixStream>) -> SlotConfig {
        let rights = granted.and_then(|granted| self.rights(&granted.sections));
        if let Some(granted) = granted.filter(|_| rights.is_some()) {
            self.shared.serves(granted);
        }
        let store = Box::new(self.shared.view(rights, Some(connection)));
        SlotConfig { description: self.description.clone(), store, policy: self.policy }
    }
}

/// Opens it once the pause is over that wrong PINs of before have made, starts that were killed while they tried theirs among them: a
/// start that fails for its PIN is not repeated.
fn open_in_turn(shared: &Shared, description: &str) -> Result<(), Error> {
    let (mut is_told, mut was_over) = (false, false);
    loop {
        let opened = shared.open();
        if opened != Err(Error::PIN_LOCKED) {
            if is_told {
                // A status stays until there is another.
                manager::tell("STATUS=");
            }
            return opened;
        }
        // By now it may be over; a PIN that is locked stays so.
        let retry_at = shared.retry_at()?;
        if retry_at == 0 && was_over {
            return opened;
        }
        was_over = retry_at == 0;
        if retry_at > 0 && !is_told {
            say(&format!(
                "waits for the token in {description:?}: no PIN is taken for {}, after wrong ones",
                from_now(retry_at)
            ));
            is_told = true;
        }
        if is_told {
            manager::tell(STARTS_LATER);
        }
        thread::sleep(LOOK);
    }
}

fn name(error: Error) -> String {
    let code = error.rv();
    metaslot_ck::rv_name(code).map_or_else(|| format!("0x{code:x}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::Result;
    use metaslot_memory::Secret;
    use metaslot_spi::store::{
        Change, Examination, Examined, Found, ObjectRow, PinState, Remark, Role, Scope, Store,
        Term, TokenRow,
    };
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::thread;

    /// A store that has nothing but its token's row.
    struct Bare<F>(F);

    const AWAY: Error = Error::DEVICE_ERROR;

    impl<F: Fn() -> Result<TokenRow> + Send + Sync> Store for Bare<F> {
        fn token(&self) -> Result<TokenRow> {
            self.0()
        }

        fn initialize(&self, _: &[u8], _: &str) -> Result<()> {
            Err(AWAY)
        }

        fn login(&self, _: Role, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn check_pin(&self, _: Role, _: &[u8]) -> Result<()> {
            Err(AWAY)
        }

        fn logout(&self) {}

        fn keeps_login(&self) -> bool {
            false
        }

        fn init_pin(&self, _: &[u8]) -> Result<()> {
            Err(AWAY)
        }

        fn set_pin(&self, _: Role, _: &[u8], _: &[u8]) -> Result<()> {
            Err(AWAY)
        }

        fn write(&self, _: Vec<Change>) -> Result<Vec<u64>> {
            Err(AWAY)
        }

        fn read(&self, _: u64) -> Result<Option<ObjectRow>> {
            Err(AWAY)
        }

        fn secrets(&self, _: u64, _: u64) -> Result<Secret> {
            Err(AWAY)
        }

        fn search(&self, _: &[Term], _: Scope, _: u64, _: usize) -> Result<Vec<Found>> {
            Err(AWAY)
        }

        fn examine(
            &self,
            _: Role,
            _: &[u8],
            _: Examination<'_>,
            _: &mut dyn FnMut(Remark<'_>) -> bool,
        ) -> Result<Examined> {
            Err(AWAY)
        }

        fn restored(&self) -> Result<u64> {
            Err(AWAY)
        }

        fn generation(&self) -> Option<u64> {
            None
        }
    }

    #[test]
    fn a_start_for_which_the_pause_ends_while_it_looks_goes_on() {
        let looks = AtomicU32::new(0);
        let row = move || {
            let retry_at = u64::from(looks.fetch_add(1, Ordering::Relaxed) == 0);
            let user = PinState { failures: 3, left: 7, retry_at, ..PinState::default() };
            Ok(TokenRow { initialized: true, user, ..TokenRow::default() })
        };
        let own = Own { identity: None, pin: Secret::copy_of(b"a PIN") };
        let shared = Shared::new(Box::new(Bare(row)), Some(own));
        assert_eq!(open_in_turn(&shared, "here"), Ok(()));
    }

    #[test]
    fn a_client_whose_token_is_away_keeps_no_change_waiting() {
        let ((asked, is_asked), (answer, may)) = (mpsc::channel(), mpsc::channel::<()>());
        let may = Mutex::new(may);
        let slow = move || {
            asked.send(()).expect("it is heard");
            may.lock().expect("no panic").recv().ok();
            Err(AWAY)
        };
        let shared = Arc::new(Shared::new(Box::new(Bare(slow)), None));
        let token = Token { description: String::new(), policy: Policy::DEFAULT, shared };
        let tokens = Tokens {
            all: vec![token],
            absent: Vec::new(),
            providers: &[],
            routes: Arc::new(Routes::new(&[], metaslot_router::Settings::default())),
            allowances: Allowances::new(1, 1),
            counted: Clients::default(),
            given: RwLock::new(Given { clients: Vec::new(), log: None }),
            connected: Mutex::default(),
        };
        let (stream, _far) = UnixStream::pair().expect("two sockets");
        let allowance = tokens.allowances.admit_named("web").expect("it is the first");
        let peer = Peer::Named(vec![String::from("web")]);
        let (done, is_done) = mpsc::channel();
        thread::scope(|scope| {
            let stream = Arc::new(stream);
            scope.spawn(|| tokens.client(Admitted { peer, allowance, stream }));
            is_asked.recv().expect("it asks");
            scope.spawn(|| {
                tokens.log(None);
                done.send(()).expect("it is heard");
            });
            let changed = is_done.recv_timeout(Duration::from_secs(10));
            drop(answer);
            changed.expect("it waited for the store");
        });
    }
}
