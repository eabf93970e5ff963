// SPDX-License-Identifier: Apache-2.0
//! The program: from its arguments to the last client.

use crate::failure::Failure;
use crate::manager::say;
use crate::passed::Passed;
use crate::process::{Want, keep_memory_to_itself, spawn, take_all_files};
use crate::reload::{Running, to_be_read_again};
use crate::socket::{Socket, group_id};
use crate::tokens::{Client, Tokens};
use crate::{agent, connect, fence, manager, p11kit, remote, socket, tls};
use clap::{Parser, Subcommand};
use metaslot_counters::clients::Count;
use metaslot_memory::give_freed_memory_back;
use metaslot_wiring::audit::Log;
use metaslot_wiring::config::source::Source;
use metaslot_wiring::config::{DaemonConfig, Reach};
use metaslot_wiring::text::words;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Where the configuration is where nothing else is said.
const CONFIGURATION: &str = "/etc/metaslot/metaslotd.toml";

/// Serves the keys of tokens to other processes.
#[derive(Debug, Parser)]
#[command(name = "metaslotd", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// The configuration: its [[token]], [daemon] and [[client]] sections.
    #[arg(long, value_name = "FILE", default_value = CONFIGURATION)]
    config: PathBuf,
    /// Reads the configuration, opens its tokens, and ends.
    #[arg(long)]
    check: bool,
}

/// What it does in the place of that.
#[derive(Debug, Subcommand)]
enum Other {
    Connect(connect::Arguments),
}

/// Runs until it is told to end.
#[must_use]
pub fn run() -> ExitCode {
    // What long messages took would stay with the thread that answered them.
    give_freed_memory_back();
    let arguments = Arguments::parse();
    let ended = match &arguments.other {
        Some(Other::Connect(arguments)) => connect::run(arguments),
        None => serve(&arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("metaslotd: {failure}");
            ExitCode::from(failure.status)
        }
    }
}

fn serve(arguments: &Arguments) -> Result<(), Failure> {
    keep_memory_to_itself();
    take_all_files();
    let mut passed = Passed::take()?;
    let file = std::path::absolute(&arguments.config).map_err(|error| words(&error))?;
    let read = Source::of_file(file.clone()).read();
    let (config, _) = read.map_err(|problem| {
        let is_usual = arguments.config == Path::new(CONFIGURATION) && !file.exists();
        let other = if is_usual { "; --config FILE names another" } else { "" };
        Failure::configuration(format!("{problem}{other}"))
    })?;
    let mut reach = remote::reach(&config)
        .map_err(|wrong| Failure::configuration(format!("{}: {wrong}", file.display())))?;
    reach.read.extend(to_be_read_again(&file));
    let daemon = config.daemon.clone();
    reach
        .read
        .extend(daemon.listen.iter().flat_map(tls::files).flat_map(|file| to_be_read_again(file)));
    let wrong = match (&daemon.socket, &daemon.agent, &daemon.listen) {
        (None, None, None) => Some("neither socket, agent nor listen"),
        (Some(socket), Some(agent), _) if socket == agent => {
            Some("one path for both socket and agent")
        }
        _ => None,
    };
    if let Some(has) = wrong {
        let reason = format!("{}: [daemon] has {has}", file.display());
        return Err(Failure::configuration(reason));
    }
    let group = daemon.group.as_deref().map(group_id).transpose();
    let group = group.map_err(|lack| {
        Failure::configuration(format!("{}: [daemon] group: {lack}", file.display()))
    })?;
    let tokens = Arc::new(Tokens::of(config.clone())?);
    tokens.log(Log::of(&config));
    tokens.unmet().iter().for_each(|lack| say(lack));
    daemon.unreachable().into_iter().for_each(say);
    if arguments.check {
        let shown = daemon.listen.as_ref().map(tls::Server::of).transpose()?;
        shown.iter().filter_map(tls::Server::lack).for_each(say);
        for path in daemon.socket.iter().chain(&daemon.agent) {
            socket::check(path)?;
        }
        fence(&daemon, &reach);
        return Ok(());
    }
    let said = |error: io::Error| words(&error);
    tokens
        .tell_opened()
        .map_err(|error| format!("the audit log cannot be written: {}", words(&error)))?;
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(said)?;
    metaslot_terminal::leave_sigterm_to(&signals);
    let doors: [(_, Door); 2] = [(&daemon.socket, p11kit::serve), (&daemon.agent, agent::serve)];
    let mut open = Vec::new();
    for (path, door) in doors.into_iter().filter_map(|(path, door)| Some((path.as_ref()?, door))) {
        let socket = match passed.at(path) {
            Some(listener) => Socket::passed(listener, path, group)?,
            None => Socket::new(path, group)?,
        };
        open.push((socket, door));
    }
    passed.end()?;
    let listener = daemon.listen.as_ref().map(tls::Listener::new).transpose()?;
    // Threads have the fence of who starts them.
    fence(&daemon, &reach);
    for (socket, door) in &open {
        let listener = socket.listener.try_clone().map_err(said)?;
        listen(listener, *door, Arc::clone(&tokens)).map_err(said)?;
        say(&format!("serves {}", socket.path.display()));
    }
    if let Some(listener) = &listener {
        let (listener, peers) = (Arc::clone(listener), Arc::new(Peers(Arc::clone(&tokens))));
        say(&format!("serves {}", listener.address().map_err(said)?));
        spawn("listener", move || listener.listen(&peers)).map_err(said)?;
    }
    manager::tell("READY=1");
    let sockets = Vec::from_iter(open.iter().map(|(socket, _)| socket));
    let mut running = Running { file, config, reach, tokens, sockets, listener };
    signals.forever().take_while(|signal| *signal == SIGHUP).for_each(|_| running.reload());
    manager::tell("STOPPING=1");
    Ok(())
}

/// Puts the fence up, and says what of it is not there.
fn fence(daemon: &DaemonConfig, reach: &Reach) {
    if !daemon.fence {
        say("not fenced: the configuration says so");
        return;
    }
    let sockets = daemon.socket.iter().chain(&daemon.agent);
    let sockets: Vec<_> = sockets.filter_map(|path| path.parent()).map(PathBuf::from).collect();
    fence::put_up(reach, &sockets).iter().for_each(|lack| say(lack));
    // What connects to databases was begun before, outside.
    metaslot_postgres::restart();
}

/// How a connection ends whose client stops in the middle, or sends what is no message.
const GIVEN_UP: [ErrorKind; 3] =
    [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::InvalidData];

/// Serves one connection, until it ends.
type Door = fn(Arc<UnixStream>, &Client) -> io::Result<()>;

fn listen(listener: UnixListener, door: Door, tokens: Arc<Tokens>) -> io::Result<()> {
    spawn("listener", move || {
        let mut want = Want::default();
        for stream in listener.incoming() {
            match stream.and_then(|stream| begin(stream, door, &tokens)) {
                Err(error) if error.kind() != ErrorKind::QuotaExceeded => want.wait(&error),
                _ => {}
            }
        }
    })
}

/// A thread for each client. One that has no thread is closed, and sees that.
/// So is one whose user has enough.
fn begin(stream: UnixStream, door: Door, tokens: &Arc<Tokens>) -> io::Result<()> {
    let stream = Arc::new(stream);
    let client = tokens.admit(&stream)?;
    let tokens = Arc::clone(tokens);
    spawn("client", move || serve_one(stream, door, &tokens.client(client)))
}

/// Until it ends, and counts how.
fn serve_one(stream: Arc<UnixStream>, door: Door, client: &Client) {
    if let Err(error) = door(stream, client)
        && GIVEN_UP.contains(&error.kind())
    {
        client.seat.add(Count::GivenUp, 1);
    }
}

/// Clients of other machines.
struct Peers(Arc<Tokens>);

impl tls::Serve for Peers {
    fn knows(&self, names: &[String]) -> bool {
        self.0.name_of(names).is_some()
    }

    fn begin(&self, names: Vec<String>, stream: UnixStream) -> io::Result<()> {
        let stream = Arc::new(stream);
        let client = self.0.admit_named(names, &stream)?;
        let tokens = Arc::clone(&self.0);
        spawn("client", move || serve_one(stream, p11kit::serve, &tokens.client(client)))
    }
}
