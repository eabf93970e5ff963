// SPDX-License-Identifier: Apache-2.0
//! Where clients of other machines connect. A peer that is not authenticated yet costs little: the number of handshakes and the
//! time of each are bounded.

use super::server::Rule;
use super::{Far, Server};
use crate::manager::say;
use crate::process::{Want, spawn};
use crate::socket::{AGAIN, DYING};
use metaslot_wiring::config::ListenConfig;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// A handshake may take so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many handshakes there are at a time, and how many of one address.
const STRANGERS: (usize, usize) = (256, 64);
/// How many lines about refused peers are said in one second.
const LINES: usize = 20;

/// Serves authenticated peers by Unix sockets, each on a thread of its own.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Whether there is something for peers with these names.
    fn knows(&self, names: &[String]) -> bool;
    /// Begins.
    ///
    /// # Errors
    /// Why it is not served.
    fn begin(&self, names: Vec<String>, stream: UnixStream) -> io::Result<()>;
}

/// An open port, and what is shown there.
pub(crate) struct Listener {
    listener: TcpListener,
    shown: RwLock<Arc<Server>>,
    strangers: Strangers,
    lines: Mutex<Lines>,
}

/// Waits for the port of a daemon that is being killed.
fn bound(address: SocketAddr) -> io::Result<TcpListener> {
    let until = Instant::now() + DYING;
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                thread::sleep(AGAIN);
            }
            bound => return bound,
        }
    }
}

impl Listener {
    /// Opens it.
    ///
    /// # Errors
    /// Which file or address cannot be used, and why.
    pub(crate) fn new(config: &ListenConfig) -> Result<Arc<Self>, String> {
        let shown = Server::of(config)?;
        shown.lack().into_iter().for_each(say);
        let shown = RwLock::new(Arc::new(shown));
        let listener = bound(config.address);
        let listener = listener.map_err(|error| format!("{}: {error}", config.address))?;
        let (strangers, lines) = (Strangers::default(), Mutex::default());
        Ok(Arc::new(Self { listener, shown, strangers, lines }))
    }

    /// Where it is: another port than the configured one where that is 0.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What is shown to those who connect from now on.
    pub(crate) fn show(&self, server: Server) {
        server.lack().into_iter().for_each(say);
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(server);
    }

    /// Takes connections, for as long as the process lives.
    pub(crate) fn listen(self: &Arc<Self>, serve: &Arc<impl Serve>) {
        let mut want = Want::default();
        loop {
            let (tcp, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    want.wait(&error);
                    continue;
                }
            };
            let (listener, serve) = (Arc::clone(self), Arc::clone(serve));
            if let Some(stranger) = self.strangers.admit(from.ip()) {
                let work = move || listener.meet(tcp, from, stranger, &serve);
                spawn("far", work).ok();
            }
        }
    }

    /// One connection, from its first byte to its last.
    fn meet(&self, tcp: TcpStream, from: SocketAddr, stranger: Stranger, serve: &Arc<impl Serve>) {
        let known = Arc::clone(serve);
        let rule: Rule = Arc::new(move |names: &[String]| known.knows(names));
        let server = Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner));
        let (connection, names) = match server.connection(rule) {
            Ok(made) => made,
            Err(error) => return self.say(from, &[], &error),
        };
        let far = match Far::made(connection, tcp, Instant::now() + PATIENCE) {
            Ok(far) => far,
            Err(trouble) => return self.say(from, &names.shown(), &trouble),
        };
        let names = names.shown();
        let near = UnixStream::pair().and_then(|(near, other)| {
            serve.begin(names.clone(), other)?;
            Ok(near)
        });
        match near {
            Ok(near) => {
                drop(stranger);
                drop(far.carry(&near, || ()));
            }
            // It counts until it has ended, as one that is not authenticated.
            Err(error) => {
                self.say(from, &names, &error);
                far.refuse();
            }
        }
    }

    /// Why somebody is not served.
    fn say(&self, from: SocketAddr, names: &[String], why: &dyn Display) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left_out) = lines.one_more(Instant::now()) {
            let named = if names.is_empty() { String::new() } else { format!(", {names:?}") };
            let more =
                if left_out > 0 { format!("; {left_out} more before") } else { String::new() };
            say(&format!("refused {from}{named}: {why}{more}"));
        }
    }
}

/// Peers that are not authenticated yet, by their addresses.
#[derive(Debug, Default)]
struct Strangers(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One of them, for as long as it is one.
#[derive(Debug)]
struct Stranger {
    all: Arc<Mutex<HashMap<IpAddr, usize>>>,
    from: IpAddr,
}

impl Strangers {
    /// One more; none where there are enough.
    fn admit(&self, from: IpAddr) -> Option<Stranger> {
        let from = network(from);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.get(&from).copied().unwrap_or(0);
        if own >= STRANGERS.1 || all.values().sum::<usize>() >= STRANGERS.0 {
            return None;
        }
        all.insert(from, own + 1);
        Some(Stranger { all: Arc::clone(&self.0), from })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.remove(&self.from).unwrap_or(0);
        if own > 1 {
            all.insert(self.from, own - 1);
        }
    }
}

/// Of IPv6 one machine has as many addresses as it likes, of one network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !0 << 64).into(),
        address => address,
    }
}

/// How many lines were said lately.
#[derive(Debug)]
struct Lines {
    since: Instant,
    said: usize,
    left_out: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self { since: Instant::now(), said: 0, left_out: 0 }
    }
}

impl Lines {
    /// Whether one more is said, and how many were not before it.
    fn one_more(&mut self, now: Instant) -> Option<usize> {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            (self.since, self.said) = (now, 0);
        }
        if self.said == LINES {
            self.left_out += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_strangers_at_a_time_and_of_one_network() {
        let all = Strangers::default();
        let address =
            |network: u16, host: u16| Ipv6Addr::new(1, 2, 3, network, 0, 0, 0, host).into();
        let of = |network: u16| {
            let come = (0..).map_while(|host| all.admit(address(network, host)));
            come.collect::<Vec<_>>()
        };
        let mut first = of(0);
        assert_eq!(first.len(), STRANGERS.1);
        let more: Vec<_> = (1..10).map(of).collect();
        assert_eq!(more.iter().map(Vec::len).sum::<usize>(), STRANGERS.0 - STRANGERS.1);
        first.truncate(1);
        assert_eq!(of(0).len(), STRANGERS.1 - 1);
        drop((first, more));
        assert!(all.0.lock().expect("no panic").is_empty());
        assert_eq!(
            network("::ffff:192.0.2.1".parse().expect("it is one")).to_string(),
            "192.0.2.1"
        );
    }

    #[test]
    fn a_port_that_is_being_closed_is_waited_for() {
        let dying = TcpListener::bind("127.0.0.1:0").expect("one is free");
        let address = dying.local_addr().expect("it has one");
        let ends = thread::spawn(move || {
            thread::sleep(DYING / 10);
            drop(dying);
        });
        let taken = bound(address).expect("it is free soon");
        ends.join().expect("it ends");
        let refused = bound(address).expect_err("it is in use, and stays so");
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        drop(taken);
    }

    #[test]
    fn lines_are_said_and_those_left_out_are_counted() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        let said = (0..30).filter_map(|_| lines.one_more(now)).count();
        assert_eq!((said, lines.one_more(now + Duration::from_secs(2))), (LINES, Some(10)));
    }
}
