// SPDX-License-Identifier: Apache-2.0
//! The program: from its arguments to the last client.

use crate::p11kit;
use crate::socket::Socket;
use crate::tokens::Tokens;
use clap::Parser;
use metaslot_wiring::Parts;
use metaslot_wiring::config::source::Source;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

/// Where the configuration is where nothing else is said.
const CONFIGURATION: &str = "/etc/metaslot/metaslotd.toml";

/// Serves the keys of tokens to other processes.
#[derive(Debug, Parser)]
#[command(name = "metaslotd", version)]
struct Arguments {
    /// The configuration: its [[token]], [daemon] and [[client]] sections.
    #[arg(long, value_name = "FILE", default_value = CONFIGURATION)]
    config: PathBuf,
    /// Reads the configuration, opens its tokens, and ends.
    #[arg(long)]
    check: bool,
}

/// Runs until it is told to end.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    match serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("metaslotd: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &Arguments) -> Result<(), String> {
    keep_memory_to_itself();
    let file = std::path::absolute(&arguments.config).map_err(|error| error.to_string())?;
    let (config, _) =
        Source::of_file(file.clone()).read().map_err(|problem| problem.to_string())?;
    let parts = Parts::of(config)?;
    let (path, group) = (parts.daemon.socket.clone(), parts.daemon.group.clone());
    let path = path.ok_or_else(|| format!("{}: [daemon] has no socket", file.display()))?;
    let tokens = Tokens::of(parts)?;
    if arguments.check {
        return Ok(());
    }
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|error| error.to_string())?;
    let socket = Socket::new(&path, group.as_deref())?;
    let listener = socket.listener.try_clone().map_err(|error| error.to_string())?;
    let tokens = Arc::new(tokens);
    spawn("listener", move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => begin(stream, &tokens),
                // Without a file to spare, say: until a client has gone.
                Err(_) => thread::sleep(std::time::Duration::from_millis(10)),
            }
        }
    })
    .map_err(|error| error.to_string())?;
    eprintln!("metaslotd: serves {}", shown(&path));
    signals.forever().next();
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A thread for each client. One that has no thread is closed, and sees that.
fn begin(stream: UnixStream, tokens: &Arc<Tokens>) {
    let tokens = Arc::clone(tokens);
    let work = move || {
        if let Ok(engine) = tokens.engine(&stream) {
            p11kit::serve(stream, &engine).ok();
        }
    };
    spawn("client", work).ok();
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(String::from(name)).spawn(work).map(drop)
}

/// No core dump, and no debugger but root's.
fn keep_memory_to_itself() {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok();
}
