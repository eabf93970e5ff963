// SPDX-License-Identifier: Apache-2.0
//! `metaslotd connect`: a Unix socket on this machine whose clients are served by a daemon on another one. Each connection is
//! one of TLS there; the socket's owner and group say who may make one.

use crate::Allowances;
use crate::failure::Failure;
use crate::manager::{self, say};
use crate::process::{Want, keep_memory_to_itself, spawn, take_all_files};
use crate::reload::to_be_read_again;
use crate::socket::{Socket, group_id};
use crate::tls::{Client, Far, Trouble, name_of};
use crate::{fence, socket};
use clap::Args;
use metaslot_client::protocol::VERSION;
use metaslot_wiring::config::Reach;
use metaslot_wiring::peer;
use metaslot_wiring::text::words;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// One address may take so long to answer.
const CONNECT: Duration = Duration::from_secs(5);
/// And the daemon so long to show who it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many connections the processes of one user have at a time.
const CONNECTIONS: usize = 512;

/// Brings a daemon of another machine to a socket on this one.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where it listens.
    #[arg(value_name = "HOST:PORT")]
    far: String,
    /// The socket at which clients of this machine connect, an absolute path.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// A group whose members may connect, beside root and this user.
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// This machine's certificate, in PEM: its name is what the daemon there knows it by.
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// That certificate's key, in PEM.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The authorities that vouch for the daemon's certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// The name in the daemon's certificate, where it is not HOST.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Connects once, says whether it is served there, and ends.
    #[arg(long)]
    check: bool,
}

impl Arguments {
    /// The daemon's, as its certificate has it.
    fn name(&self) -> &str {
        let host = self.far.rsplit_once(':').map_or(self.far.as_str(), |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.name.as_deref().unwrap_or(host)
    }

    fn client(&self) -> Result<Client, String> {
        let client = Client::of(&self.certificate, &self.key, &self.ca, self.name())?;
        client.lack().into_iter().for_each(say);
        Ok(client)
    }
}

/// The daemon there, and what was said of it.
struct There {
    called: String,
    addresses: Vec<SocketAddr>,
    client: RwLock<Client>,
    /// Why it was not reached.
    trouble: Mutex<Option<String>>,
    allowances: Allowances,
}

/// Serves until it is told to end.
///
/// # Errors
/// Why it cannot begin.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    keep_memory_to_itself();
    take_all_files();
    let group = arguments.group.as_deref().map(group_id).transpose();
    let group = group.map_err(|lack| Failure::configuration(format!("--group: {lack}")))?;
    if !arguments.socket.is_absolute() {
        let reason = format!("--socket must be an absolute path, not {:?}", arguments.socket);
        return Err(Failure::configuration(reason));
    }
    let there = Arc::new(There::of(arguments)?);
    if arguments.check {
        socket::check(&arguments.socket)?;
        let served = there.reached().and_then(|far| far.greet(VERSION, Instant::now() + PATIENCE));
        served.map_err(|trouble| format!("{}: {trouble}", there.called))?;
        say(&format!("is served by {}", there.called));
        return Ok(());
    }
    let said = |error: io::Error| words(&error);
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(said)?;
    let socket = Socket::new(&arguments.socket, group)?;
    let files = [&arguments.certificate, &arguments.key, &arguments.ca];
    let files = files.map(std::path::absolute).into_iter().filter_map(Result::ok);
    let reach = Reach {
        read: files.flat_map(|file| Vec::from_iter(to_be_read_again(&file))).collect(),
        ports: there.addresses.iter().map(SocketAddr::port).collect(),
        ..Reach::default()
    };
    let sockets = Vec::from_iter(arguments.socket.parent().map(PathBuf::from));
    // Threads have the fence of who starts them.
    fence::put_up(&reach, &sockets).iter().for_each(|lack| say(lack));
    let listener = socket.listener.try_clone().map_err(said)?;
    let served = Arc::clone(&there);
    spawn("listener", move || {
        let mut want = Want::default();
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => served.begin(stream),
                Err(error) => want.wait(&error),
            }
        }
    })
    .map_err(said)?;
    say(&format!("serves {} by {}", socket.path.display(), there.called));
    manager::tell("READY=1");
    for _ in signals.forever().take_while(|signal| *signal == SIGHUP) {
        manager::tell_reloading();
        match there.read_again(arguments) {
            Ok(()) => say("shows the certificate as it is now"),
            Err(reason) => say(&format!("shows the certificate as it was: {reason}")),
        }
        manager::tell("READY=1");
    }
    manager::tell("STOPPING=1");
    Ok(())
}

impl There {
    /// Names are looked up here: later that is out of reach.
    fn of(arguments: &Arguments) -> Result<Self, Failure> {
        let called = arguments.far.clone();
        let port = called.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        port.ok_or_else(|| {
            let hint = "write HOST:PORT, such as vault.example:7443";
            Failure::configuration(format!("{called}: no port; {hint}"))
        })?;
        // What cannot be a name never resolves; an unknown one is looked up again at the next start.
        name_of(arguments.name())
            .map_err(|wrong| Failure::configuration(format!("{called}: {wrong}")))?;
        let addresses = called.to_socket_addrs();
        let addresses = addresses.map_err(|error| format!("{called}: {error}"))?.collect();
        let client = RwLock::new(arguments.client()?);
        let allowances = Allowances::new(CONNECTIONS, 0);
        Ok(Self { called, addresses, client, trouble: Mutex::default(), allowances })
    }

    fn read_again(&self, arguments: &Arguments) -> Result<(), String> {
        let client = arguments.client()?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(())
    }

    /// A thread for each client. One that has none, or whose user has enough connections, is closed, and sees that.
    fn begin(self: &Arc<Self>, stream: UnixStream) {
        let user = peer(&stream).map(|process| process.user);
        let Some(allowance) = user.ok().and_then(|user| self.allowances.admit(user)) else {
            return;
        };
        let there = Arc::clone(self);
        let work = move || {
            let _counts = allowance;
            let carried = there.reached().and_then(|far| far.carry(&stream, || there.say(None)));
            if let Err(trouble) = carried {
                there.say(Some(&trouble));
            }
        };
        spawn("client", work).ok();
    }

    /// A connection to it, by the first of its addresses that answers.
    fn reached(&self) -> Result<Far, Trouble> {
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut failed = io::Error::from(ErrorKind::AddrNotAvailable);
        for address in &self.addresses {
            match TcpStream::connect_timeout(address, CONNECT) {
                Ok(tcp) => return Far::made(client.connection()?, tcp, Instant::now() + PATIENCE),
                Err(error) => failed = error,
            }
        }
        Err(failed.into())
    }

    /// What has changed: clients ask again and again while it is away.
    fn say(&self, trouble: Option<&Trouble>) {
        let trouble = trouble.map(ToString::to_string);
        let mut last = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != trouble {
            let what = trouble.as_deref().unwrap_or("serves again");
            say(&format!("{}: {what}", self.called));
            *last = trouble;
        }
    }
}
