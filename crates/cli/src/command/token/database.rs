// SPDX-License-Identifier: Apache-2.0
//! Tokens in a PostgreSQL database, which `metaslotd` serves: they are made and copied here without a module.

use super::examine::{Findings, lines};
use super::init::{Order, check_label};
use crate::app::App;
use crate::command::arguments::At;
use crate::failure::{Failure, Result};
use crate::output::Report;
use crate::pin::{self, Role, Source};
use crate::uri::Uri;
use metaslot_ck::Error;
use metaslot_client::{Identity, PinStatus};
use metaslot_memory::Secret;
use metaslot_postgres::{Address, Config, Password, PostgresStore, ROLES};
use metaslot_spi::detail;
use metaslot_spi::store::{self, Examination, Examined, Identities, Remark, Store};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

const COPY_EXAMPLES: &str = "\
Examples:
  metaslot token copy web.token 'postgresql://owner@db/vault?token=web'
  metaslot token copy 'postgresql://keys@db/vault?token=web' web.token";

/// What begins a URL of a database.
const SCHEME: &str = "postgresql://";

/// Arguments of `token copy`.
#[derive(clap::Args, Debug)]
#[command(after_help = COPY_EXAMPLES)]
pub(crate) struct Args {
    /// The token: a file that 'metaslot token backup' has made, or 'postgresql://...'
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// Where it goes, and where none is: 'postgresql://...', or a file for 'metaslot token restore'
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// Use the SO PIN
    #[arg(long, conflicts_with = "pin_source")]
    so: bool,
    /// The user PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pin_source: Option<String>,
    /// The SO PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE", requires = "so")]
    so_pin_source: Option<String>,
    /// The place of the password of the database's role
    #[arg(long, value_name = "SOURCE")]
    password_source: Option<String>,
    /// The file that the daemons' configuration names as 'pepper'
    #[arg(long, value_name = "FILE")]
    pepper: Option<PathBuf>,
}

/// Makes a token where none is, and the tables where these are not there.
pub(super) fn init(app: &App, at: At<'_>, order: &Order<'_>) -> Result<()> {
    let label = check_label(order.label)?;
    let store = open(at)?;
    if let Some(there) = Some(store.token().map_err(refused)?).filter(|row| row.initialized) {
        let message = format!("there is token '{}' already", there.label);
        return Err(Failure::failed(message)
            .hint("with another name behind 'token=' in the URL it is another one"));
    }
    let none = Uri::default();
    let chosen = |role, option| -> Result<Secret> {
        let pin = pin::chosen(role, label, Source::find(role, option, &none)?.as_ref())?;
        match (4..=255).contains(&pin.len()) {
            true => Ok(pin),
            false => Err(Failure::pin(format!("the {} must have 4 to 255 bytes", role.words()))),
        }
    };
    let (so, user) = (chosen(Role::So, order.so_pin)?, chosen(Role::User, order.pin)?);
    store.initialize(so.expose(), label).map_err(refused)?;
    let opened = store.login(store::Role::So, so.expose());
    if let Err(error) = opened.and_then(|()| store.init_pin(user.expose())) {
        let failure = refused(error);
        // It is half made. Nothing can be done about another failure.
        let remove = Examination::Remove(label);
        store.examine(store::Role::So, so.expose(), remove, &mut |_| true).ok();
        return Err(failure);
    }
    store.logout();
    let row = store.token().map_err(refused)?;
    app.output.print(&Report {
        text: format!(
            "initialised token '{label}' in {}\nroles for daemons, to be made once, by a superuser or an owner with CREATEROLE, in the database of this schema:\n{ROLES}",
            at.url
        ),
        json: json!({
            "store": at.url,
            "label": label,
            "serial": row.serial,
            "roles": ROLES,
        }),
        uris: vec![],
    })
}

/// What the officer does with the identities of a token in a database.
pub(super) fn identities(
    at: At<'_>,
    so_pin: &Secret,
    asked: Identities<'_>,
) -> Result<Vec<Identity>> {
    let store = open(at)?;
    let mut all = Vec::new();
    let asked = Examination::Identities(asked);
    let done = store.examine(store::Role::So, so_pin.expose(), asked, &mut |remark| {
        if let Remark::Identity(name, pin) = remark {
            let (failures, left) = (pin.failures.into(), pin.left.into());
            let pin = PinStatus { failures, left, retry_at: pin.retry_at };
            all.push(Identity { name: name.as_str().to_owned(), pin });
        }
        true
    });
    done.map(|_| all).map_err(refused)
}

/// Copies a token into a database, or out of one.
pub(super) fn copy(app: &App, args: &Args) -> Result<()> {
    let is_url = |place: &PathBuf| place.to_str().is_some_and(|place| place.starts_with(SCHEME));
    let (url, file, is_out) = match (is_url(&args.from), is_url(&args.to)) {
        (true, false) => (&args.from, &args.to, true),
        (false, true) => (&args.to, &args.from, false),
        _ => {
            let what = "one of the two is a URL 'postgresql://...', and the other a file";
            return Err(Failure::usage(what)
                .hint("'metaslot token backup' and 'restore' copy from file to file"));
        }
    };
    if !is_out {
        refuse_used(file)?;
    }
    let url = url.to_str().unwrap_or_default();
    if !args.so {
        pin::only_as_user()?;
    }
    let role = if args.so { Role::So } else { Role::User };
    let option = if args.so { &args.so_pin_source } else { &args.pin_source };
    let source = Source::find(role, option.as_deref(), &Uri::default())?;
    let pin = pin::existing(role, &args.from.display().to_string(), None, source.as_ref())?;
    let (password, pepper) = (args.password_source.as_deref(), args.pepper.as_deref());
    let store = open(At { url, password, pepper })?;
    let path = absolute(file).map_err(|error| Failure::io("cannot find the file", &error))?;
    let what = if is_out { Examination::Backup(&path) } else { Examination::Restore(&path) };
    let seen = copied(app, &store, (role, &pin), what)?;
    let to = args.to.display().to_string();
    app.output.print(&Report {
        text: format!("{} objects copied into {to}\n", seen.rows),
        json: json!({"from": args.from.display().to_string(), "to": to, "objects": seen.rows}),
        uris: vec![to],
    })
}

/// What a store has in its log is not in its file.
fn refuse_used(file: &Path) -> Result<()> {
    let mut log = OsString::from(file);
    log.push("-wal");
    match Path::new(&log).exists() {
        false => Ok(()),
        true => {
            let what = format!("{} is the store of a token, which may be in use", file.display());
            Err(Failure::failed(what).hint("'metaslot token backup' makes a file that is whole"))
        }
    }
}

/// Copies, and says what stands in the way.
fn copied(
    app: &App,
    store: &PostgresStore,
    (role, pin): (Role, &Secret),
    what: Examination<'_>,
) -> Result<Examined> {
    let role = if role == Role::So { store::Role::So } else { store::Role::User };
    let mut findings = Findings::new();
    let seen = store.examine(role, pin.expose(), what, &mut |remark| {
        match remark {
            Remark::Progress { done, total } => app.output.progress(done, total, "objects"),
            Remark::Finding { id, what } => findings.push((id, what.to_owned())),
            Remark::Identity(..) => {}
        }
        true
    });
    let seen = seen.map_err(refused)?;
    if findings.is_empty() {
        return Ok(seen);
    }
    app.output.note(lines(&findings).trim_end());
    Err(Failure::failed("the token is not as it should be; no copy was made"))
}

fn open(At { url, password, pepper }: At<'_>) -> Result<PostgresStore> {
    let wrong = |wrong| Failure::usage(format!("the URL of the token's database: {wrong}"));
    let address: Address = url.parse().map_err(wrong)?;
    let password = password.map(|source| Source::parse(source)?.read()).transpose()?;
    let password = password
        .map(|password| -> Password { Arc::new(move || Ok(Secret::copy_of(password.expose()))) });
    let pepper = pepper.map(Path::to_owned);
    Ok(PostgresStore::new(Config { password, pepper, ..Config::new(address) }))
}

fn refused(error: Error) -> Failure {
    let reason = detail::with(str::to_owned);
    match error {
        Error::PIN_INCORRECT | Error::PIN_LOCKED | Error::USER_PIN_NOT_INITIALIZED => {
            Failure::pin(reason)
        }
        _ => Failure::failed(reason),
    }
}
