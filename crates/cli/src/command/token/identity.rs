// SPDX-License-Identifier: Apache-2.0
//! `metaslot token identity`

use super::database;
use crate::app::App;
use crate::command::arguments::{At, StoreArg, TokenArg};
use crate::failure::{Failure, Result};
use crate::host::Host;
use crate::output::{Report, Table};
use crate::pin::{self, Role, Source, identity::name as check, tries};
use crate::uri::Uri;
use clap::Subcommand;
use metaslot_ck::Error;
use metaslot_client::{Access, Identity, IdentityAct};
use metaslot_memory::Secret;
use metaslot_spi::store::{Identities, Name, NewPin};
use serde_json::{Value, json};

const ADD_EXAMPLES: &str = "\
Examples:
  metaslot token identity add nginx --token web
  metaslot token identity add nginx --store 'postgresql://keys@db/vault?token=web'";

/// What helps with a token that is not opened here.
const ELSEWHERE: &str = "of a token that metaslotd holds, name its file in a configuration for METASLOT_CONF, or its database by --store";

/// Verbs for identities.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add an identity, with a PIN of its own
    ///
    /// Takes the SO PIN, as all of these but a change of the PIN by the identity itself.
    Add(AddArgs),
    /// List the identities and how their PINs stand
    List(ListArgs),
    /// Revoke an identity
    ///
    /// Its wrap of the master key is deleted, and its logins end in every process.
    Revoke(RevokeArgs),
    /// Change the PIN of an identity, or give it a new one
    Pin(PinArgs),
}

/// Whose identities, and the officer's PIN.
#[derive(clap::Args, Debug)]
#[command(mut_arg("store", |it| it.conflicts_with("token")))]
struct Of {
    #[command(flatten)]
    token: TokenArg,
    #[command(flatten)]
    store: StoreArg,
    /// The SO PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    so_pin_source: Option<String>,
}

/// Arguments of `token identity add`.
#[derive(clap::Args, Debug)]
#[command(after_help = ADD_EXAMPLES)]
pub(crate) struct AddArgs {
    /// Its name, at most 64 bytes
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    of: Of,
    /// Its PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    new_pin_source: Option<String>,
}

/// Arguments of `token identity list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    of: Of,
}

/// Arguments of `token identity revoke`.
#[derive(clap::Args, Debug)]
pub(crate) struct RevokeArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    of: Of,
}

/// Arguments of `token identity pin`.
#[derive(clap::Args, Debug)]
pub(crate) struct PinArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    of: Of,
    /// As security officer, set a new PIN; this also unlocks it
    #[arg(long, conflicts_with = "pin_source")]
    reset: bool,
    /// The present PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE", conflicts_with_all = ["store", "so_pin_source"])]
    pin_source: Option<String>,
    /// The new PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    new_pin_source: Option<String>,
}

pub(crate) fn run(app: &App, command: &Command) -> Result<()> {
    match command {
        Command::Add(args) => {
            let name = check(&args.name)?;
            let officer = args.of.officer(app)?;
            let new = new_pin(name, args.new_pin_source.as_deref())?;
            officer.ask(Identities::Add(name, NewPin(new.expose())))?;
            done(app, name, &format!("is added to {}", officer.of))
        }
        Command::List(args) => list(app, &args.of.officer(app)?.ask(Identities::List)?),
        Command::Revoke(args) => {
            let name = check(&args.name)?;
            let officer = args.of.officer(app)?;
            officer.ask(Identities::Revoke(name))?;
            done(app, name, &format!("is revoked in {}", officer.of))
        }
        Command::Pin(args) if args.reset || args.of.store.at().is_some() => {
            let name = check(&args.name)?;
            let officer = args.of.officer(app)?;
            let new = new_pin(name, args.new_pin_source.as_deref())?;
            officer.ask(Identities::SetPin(name, NewPin(new.expose())))?;
            done(app, name, "has another PIN")
        }
        Command::Pin(args) => {
            let (name, uri) = (check(&args.name)?, args.of.token.uri()?);
            let token = app.token(&uri)?;
            let source = Source::find(Role::User, args.pin_source.as_deref(), &uri)?;
            let present = token.identity_pin(name, source.as_ref())?;
            change(app, &uri, (name, &present), args.new_pin_source.as_deref())
        }
    }
}

/// By the identity itself.
pub(super) fn change(
    app: &App,
    uri: &Uri,
    (name, present): (Name, &Secret),
    new: Option<&str>,
) -> Result<()> {
    let (token, host) = (app.token(uri)?, app.host(uri)?);
    let new = new_pin(name, new)?;
    let session = host.module().open_session(token.slot, Access::ReadWrite)?;
    let logged_in = session.login_user(name.as_str(), present.expose());
    logged_in.map_err(|error| Host::identity_failure(&token, name, error))?;
    session.set_pin(present.expose(), new.expose())?;
    session.logout()?;
    done(app, name, "has another PIN")
}

fn new_pin(name: Name, source: Option<&str>) -> Result<Secret> {
    let pin = pin::of_identity(name.as_str(), source)?;
    match (4..=255).contains(&pin.len()) {
        true => Ok(pin),
        false => Err(Failure::pin("the PIN of an identity must have 4 to 255 bytes")),
    }
}

fn done(app: &App, name: Name, what: &str) -> Result<()> {
    app.output.print(&Report {
        text: format!("identity '{}' {what}\n", name.as_str()),
        json: json!({"identity": name.as_str()}),
        uris: vec![],
    })
}

fn list(app: &App, all: &[Identity]) -> Result<()> {
    let mut table = Table::new(&["NAME", "STATE"], &[]);
    for identity in all {
        table.push(vec![identity.name.clone(), state(identity)]);
    }
    let json = |identity: &Identity| {
        let Identity { name, pin } = identity;
        json!({
            "name": name,
            "locked": pin.left == 0,
            "failures": pin.failures,
            "tries_left": pin.left,
            "retry_at": pin.retry_at,
        })
    };
    app.output.print(&Report {
        text: table.text(),
        json: json!({"identities": all.iter().map(json).collect::<Vec<Value>>()}),
        uris: vec![],
    })?;
    if all.is_empty() {
        app.output.note("no identities");
    }
    Ok(())
}

fn state(identity: &Identity) -> String {
    match identity.pin.failures {
        0 => "ready".to_owned(),
        _ => tries::exact(identity.pin),
    }
}

/// Who may add and revoke, and where.
struct Officer<'a> {
    app: &'a App,
    place: Place<'a>,
    /// In words.
    of: String,
    pin: Secret,
}

enum Place<'a> {
    Module(Box<Uri>),
    Database(At<'a>),
}

impl Of {
    fn officer<'a>(&'a self, app: &'a App) -> Result<Officer<'a>> {
        let option = self.so_pin_source.as_deref();
        if let Some(at) = self.store.at() {
            let source = Source::find(Role::So, option, &Uri::default())?;
            let pin = pin::existing(Role::So, at.url, None, source.as_ref())?;
            return Ok(Officer { app, place: Place::Database(at), of: at.url.to_owned(), pin });
        }
        let uri = self.token.uri()?;
        let token = app.token(&uri)?;
        let pin = token.pin(Role::So, Source::find(Role::So, option, &uri)?.as_ref())?;
        Ok(Officer { app, place: Place::Module(Box::new(uri)), of: token.name(), pin })
    }
}

impl Officer<'_> {
    fn ask(&self, asked: Identities<'_>) -> Result<Vec<Identity>> {
        let uri = match &self.place {
            Place::Database(at) => return database::identities(*at, &self.pin, asked),
            Place::Module(uri) => uri,
        };
        let (token, host) = (self.app.token(uri)?, self.app.host(uri)?);
        let (act, name, new) = match &asked {
            Identities::List => (IdentityAct::List, None, &[][..]),
            Identities::Add(name, pin) => (IdentityAct::Add, Some(name), pin.0),
            Identities::Revoke(name) => (IdentityAct::Revoke, Some(name), &[][..]),
            Identities::SetPin(name, pin) => (IdentityAct::SetPin, Some(name), pin.0),
        };
        let name = name.map_or("", Name::as_str);
        let done = host.module().identities((token.slot, self.pin.expose()), act, name, new);
        let done = done.ok_or_else(|| Failure::failed("this token has no identities"))?;
        done.map_err(|error| match error.code {
            Error::FUNCTION_NOT_SUPPORTED => Failure::from(error).hint(ELSEWHERE),
            _ => host.login_failure(&token, Role::So, error),
        })
    }
}
