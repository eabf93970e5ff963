// SPDX-License-Identifier: Apache-2.0
//! The tokens that are served, and to whom: a client is a connection, known by the process at its other end.

use crate::allowance::{Allowance, Allowances};
use crate::failure::Failure;
use crate::rights::Rights;
use crate::shared::Shared;
use metaslot_ck::Error;
use metaslot_engine::{Config as EngineConfig, Engine, Policy, SlotConfig};
use metaslot_router::Settings;
use metaslot_spi::detail;
use metaslot_spi::provider::Provider;
use metaslot_wiring::audit::Log;
use metaslot_wiring::config::{ClientConfig, Config, PinSource, Process};
use metaslot_wiring::{Parts, peer};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// Longer than a program is stopped that is not stopped for good.
const PATIENCE: Duration = Duration::from_secs(30);

/// The tokens that are served, and to whom.
#[derive(Debug)]
pub struct Tokens {
    all: Vec<Token>,
    absent: Vec<(String, String)>,
    providers: &'static [&'static dyn Provider],
    settings: Settings,
    clients: Vec<ClientConfig>,
    log: Option<Log>,
    allowances: Allowances,
}

/// A process that may be served.
#[derive(Debug)]
pub struct Admitted {
    process: Process,
    allowance: Allowance,
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
    /// For how long it may stop in the middle of a message.
    pub patience: Duration,
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
        let parts = Parts::of(config.for_clients())?;
        let Parts { slots, absent, providers, settings, mut daemon, pins, .. } = parts;
        daemon.clients.iter_mut().for_each(ClientConfig::settle);
        let tokens =
            slots.into_iter().zip(pins).map(|(slot, source)| Token::opened(slot, source.as_ref()));
        let all = tokens.collect::<Result<_, _>>()?;
        let allowances = Allowances::new(daemon.connections, daemon.memory);
        Ok(Self {
            all,
            absent,
            providers,
            settings,
            clients: daemon.clients,
            log: None,
            allowances,
        })
    }

    /// Who is at the other end of a connection.
    ///
    /// # Errors
    /// Where the kernel does not say, or the process's user has enough connections.
    pub fn admit(&self, stream: &UnixStream) -> io::Result<Admitted> {
        let process = peer(stream)?;
        let allowance = self.allowances.admit(process.user);
        Ok(Admitted { process, allowance: allowance.ok_or(io::ErrorKind::QuotaExceeded)? })
    }

    /// What it is served by.
    #[must_use]
    pub fn client(&self, admitted: Admitted) -> Client {
        let Admitted { process, allowance } = admitted;
        let log = self.log.as_ref().map(|log| log.of_client(process));
        Client { engine: self.engine_of(&process), log, allowance, patience: PATIENCE }
    }

    /// Tells an audit log what clients do.
    #[must_use]
    pub fn logged(self, log: Option<Log>) -> Self {
        Self { log, ..self }
    }

    fn engine_of(&self, process: &Process) -> Engine {
        let slots = self.all.iter().map(|token| token.slot(self.rights(token, process)));
        let config = EngineConfig { slots: slots.collect(), providers: self.providers };
        let engine = Engine::new(config).without(self.absent.clone());
        engine.change_routes(self.settings.clone());
        engine
    }

    /// What the configuration gives to a process of a token, without a PIN.
    fn rights(&self, token: &Token, process: &Process) -> Option<Rights> {
        let label = token.shared.token().ok()?.label;
        Rights::of(&label, self.clients.iter().filter(|one| one.is(process)))
    }
}

impl Token {
    fn opened(slot: SlotConfig, source: Option<&PinSource>) -> Result<Self, Failure> {
        let SlotConfig { description, store, policy } = slot;
        let refused = |error: Error| {
            let reason = detail::with(str::to_owned);
            let colon = if reason.is_empty() { "" } else { ": " };
            let reason = format!(
                "the token in {description:?} is not opened: {}{colon}{reason}",
                name(error)
            );
            Failure::of_token(error, reason)
        };
        let pin = source.map(PinSource::read).transpose().map_err(refused)?;
        let shared = Shared::new(store, pin);
        if source.is_some() {
            shared.open().map_err(refused)?;
        }
        Ok(Self { description, policy, shared: Arc::new(shared) })
    }

    fn slot(&self, rights: Option<Rights>) -> SlotConfig {
        let store = Box::new(self.shared.view(rights));
        SlotConfig { description: self.description.clone(), store, policy: self.policy }
    }
}

fn name(error: Error) -> String {
    let code = error.rv();
    metaslot_ck::rv_name(code).map_or_else(|| format!("0x{code:x}"), str::to_owned)
}
