// SPDX-License-Identifier: Apache-2.0
//! `ksslcfg`: TLS proxies before plain servers, with the syntax of the Solaris command. HAProxy or nginx does TLS; this command
//! writes their configuration, has them check it, and starts them.

mod arguments;
mod create;
mod entry;
mod list;
mod material;
mod service;
mod stage;
mod suites;

pub(crate) use arguments::Args;

use crate::app::App;
use crate::command::setup;
use crate::failure::{Failure, Result};
use crate::output::Report;
use arguments::{Delete, Verb};
use entry::{Entry, Spot};

/// The original's version of this syntax: the one with IPv6.
const VERSION: &str = "Version 2.0";

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    match &args.verb {
        _ if args.version => app.output.line(VERSION),
        Some(Verb::Create(args)) => create::run(app, args),
        Some(Verb::Delete(args)) => delete(app, args),
        Some(Verb::List(args)) => list::run(app, args),
        None => Err(Failure::usage("ksslcfg needs a verb: create, delete, list")
            .hint("'metaslot ksslcfg --help' says what each does")),
    }
}

/// What is not there is deleted already, as in the original.
fn delete(app: &App, args: &Delete) -> Result<()> {
    let spot = Spot::of(&args.place, &args.address)?;
    let none = || app.output.note(&format!("there is no proxy {}", spot.name));
    if !spot.base.exists() {
        none();
        return Ok(());
    }
    setup::own(&spot.base)?;
    let _alone = spot.lock(app)?;
    let Some(entry) = Entry::read(&spot.directory())? else {
        none();
        return Ok(());
    };
    let said = |what: &str| args.verbose.then(|| app.output.note(what));
    said(&format!("stopping {} on port {}", entry.server, entry.port));
    service::stop(&entry)?;
    said(&format!("removing {}", entry.directory.display()));
    let removed = entry.remove();
    service::forget(&entry);
    removed?;
    app.output.print(&Report { json: entry.json(), uris: vec![entry.key], ..Report::default() })
}
