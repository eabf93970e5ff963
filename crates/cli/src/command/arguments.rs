// SPDX-License-Identifier: Apache-2.0
//! Arguments that several commands have.

use crate::app::{App, Login};
use crate::encoding::from_hex;
use crate::failure::{Failure, Result};
use crate::find::{self, Object};
use crate::host::Token;
use crate::output::warn;
use crate::uri::Uri;
use clap::Args;
use metaslot_ck::CKF_LOGIN_REQUIRED;
use metaslot_client::{Access, Session};
use metaslot_memory::Secret;
use std::path::{Path, PathBuf};

/// Which token, when no URI of a key says it.
#[derive(Args, Debug)]
pub(crate) struct TokenArg {
    /// The token: its label or a PKCS#11 URI [default: the only one there is]
    #[arg(long, value_name = "LABEL|URI")]
    token: Option<String>,
}

impl TokenArg {
    /// From an option of another command.
    pub(crate) const fn new(token: Option<String>) -> Self {
        Self { token }
    }

    /// As a URI; a label that looks like nothing else is a label.
    pub(crate) fn uri(&self) -> Result<Uri> {
        self.token.as_deref().map_or_else(|| Ok(Uri::default()), token_uri)
    }

    /// A key on it: a URI, or its label.
    pub(crate) fn key(&self, text: &str) -> Result<Uri> {
        self.of(key_uri(text)?)
    }

    /// The same object, on this token.
    pub(crate) fn of(&self, uri: Uri) -> Result<Uri> {
        let token = self.uri()?;
        if uri.token_part() == Uri::default() {
            return Ok(uri.on(&token));
        }
        match self.token {
            None => Ok(uri),
            Some(_) => Err(Failure::usage("the URI already names the token: drop --token")),
        }
    }
}

/// The same token, without an option: for commands that name nothing else.
#[derive(Args, Debug)]
pub(crate) struct NamedArg {
    /// The token, as --token says it
    #[arg(value_name = "LABEL|URI", conflicts_with = "token")]
    named: Option<String>,
}

impl NamedArg {
    /// What is named here, or by the option.
    pub(crate) fn or(&self, option: Result<Uri>) -> Result<Uri> {
        self.named.as_deref().map_or(option, token_uri)
    }
}

/// A database, and what is needed beside its URL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub(crate) url: &'a str,
    pub(crate) password: Option<&'a str>,
    pub(crate) pepper: Option<&'a Path>,
}

/// A token in a database, and not in a slot.
#[derive(Args, Debug)]
pub(crate) struct StoreArg {
    /// In a PostgreSQL database: 'postgresql://user@host/database?token=NAME'
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The place of the password of the database's role
    #[arg(long, value_name = "SOURCE", requires = "store")]
    password_source: Option<String>,
    /// The file that the daemons' configuration names as 'pepper'
    #[arg(long, value_name = "FILE", requires = "store")]
    pepper: Option<PathBuf>,
}

impl StoreArg {
    /// Where it is, if it is in a database.
    pub(crate) fn at(&self) -> Option<At<'_>> {
        let (password, pepper) = (self.password_source.as_deref(), self.pepper.as_deref());
        Some(At { url: self.store.as_deref()?, password, pepper })
    }
}

/// A label, or a URI.
pub(crate) fn token_uri(text: &str) -> Result<Uri> {
    if is_uri(text) {
        return uri(text);
    }
    Ok(Uri { token: Some(text.to_owned()), ..Uri::default() })
}

/// A key: a URI, or its label.
pub(crate) fn key_uri(text: &str) -> Result<Uri> {
    if is_uri(text) {
        return uri(text);
    }
    Ok(Uri { object: Some(text.to_owned()), ..Uri::default() })
}

fn is_uri(text: &str) -> bool {
    text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("pkcs11:"))
}

fn uri(text: &str) -> Result<Uri> {
    text.parse().map_err(|error| {
        Failure::usage(format!("not a PKCS#11 URI: {error}"))
            .hint("put the URI between quotes: ';' and '?' mean something to the shell")
    })
}

/// `CKA_ID`, as `--id` has it.
pub(crate) fn id(text: &str) -> Result<Vec<u8>> {
    from_hex(text).ok_or_else(|| {
        Failure::usage(format!("the id '{text}' is not bytes in hexadecimal, two digits each"))
            .hint("for example --id 01 or --id 0a1b2c")
    })
}

/// What is said of `--pin-source` where nobody is asked: what is public is seen without a login.
pub(crate) const NO_LOGIN: &str =
    "The user PIN's place: a file, 'file:/path' or '|command' [default: no login]";

/// Where the user's PIN is.
#[derive(Args, Debug)]
pub(crate) struct PinArg {
    /// The user PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pub(crate) pin_source: Option<String>,
    /// Log in as the identity of this name, by its PIN [default: $METASLOT_IDENTITY, or the user]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
}

impl PinArg {
    fn of<'a>(&'a self, token: Token, uri: &'a Uri) -> Result<Login<'a>> {
        Login::by(token, uri, self.pin_source.as_deref(), self.identity.as_deref())
    }

    /// A login on the token that `uri` names, or that shows the key that it names.
    pub(crate) fn login_with<'a>(&'a self, app: &App, uri: &'a Uri) -> Result<Login<'a>> {
        self.of(app.token_with(uri)?, uri)
    }

    /// A login on the token that `uri` names.
    pub(crate) fn login<'a>(&'a self, app: &App, uri: &'a Uri) -> Result<Login<'a>> {
        self.of(app.token(uri)?, uri)
    }

    /// Whether the command line says as whom, or by which PIN.
    const fn is_given(&self) -> bool {
        self.pin_source.is_some() || self.identity.is_some()
    }

    /// Every token that `uri` names. A PIN is one token's, and a wrong one is counted: of several none is logged in to.
    pub(crate) fn every(&self, app: &App, uri: &Uri) -> Result<Listed> {
        let host = app.host(uri)?;
        let tokens = host.every(uri)?;
        let is_given = self.is_given() || uri.pin_source.is_some();
        if tokens.len() == 1 || is_given || uri.pin_value.is_some() {
            let token = host.only(tokens, uri)?;
            let login = self.of(token, uri)?;
            let (session, is_logged_in) = app.log_in_if_possible(&login, Access::ReadOnly)?;
            let sessions = vec![(login.token, session)];
            return Ok(Listed { sessions, failed: host.unreadable(uri)?, is_logged_in });
        }
        every_public(app, uri)
    }
}

/// The same without a login. One that cannot be opened does not hide the others.
pub(crate) fn every_public(app: &App, uri: &Uri) -> Result<Listed> {
    let host = app.host(uri)?;
    let (mut sessions, mut failed) = (Vec::new(), host.unreadable(uri)?);
    for token in host.every(uri)? {
        match host.module().open_session(token.slot, Access::ReadOnly) {
            Ok(session) => sessions.push((token, session)),
            Err(error) => failed.push(Failure::from(error).context(token.name())),
        }
    }
    Ok(Listed { sessions, failed, is_logged_in: false })
}

/// Tokens that something is listed of, each with a session.
#[derive(Debug)]
pub(crate) struct Listed {
    sessions: Vec<(Token, Session)>,
    /// Why others are not among them.
    failed: Vec<Failure>,
    /// Whether what is private is seen.
    is_logged_in: bool,
}

impl Listed {
    /// One that was logged in to.
    pub(crate) fn one(token: Token, session: Session) -> Self {
        Self { sessions: vec![(token, session)], failed: Vec::new(), is_logged_in: true }
    }

    /// What `look` finds in each; where it fails in one of several, the others are shown.
    pub(crate) fn each<T>(
        &mut self,
        look: impl Fn(&Session) -> Result<T>,
    ) -> Result<Vec<(Uri, T)>> {
        let (is_one, mut found) = (self.sessions.len() == 1, Vec::new());
        for (token, session) in &self.sessions {
            match look(session) {
                Ok(it) => found.push((token.uri(), it)),
                Err(failure) if is_one => return Err(failure),
                Err(failure) => self.failed.push(failure.context(token.name())),
            }
        }
        Ok(found)
    }

    /// Says what is not shown, and why.
    pub(crate) fn note(&self, app: &App, what: &str) {
        let advice = match self.sessions.len() {
            1 => "give --pin-source",
            _ => "--token says with which of the tokens",
        };
        let hides = |(token, _): &(Token, Session)| token.has(CKF_LOGIN_REQUIRED);
        let shown = match self.sessions.iter().any(hides) {
            true => format!("{what} not shown"),
            // As of a token that `metaslotd` serves, some keys of which are given to this process.
            false => "only what needs no PIN is shown".to_owned(),
        };
        if !self.is_logged_in {
            app.output.note(&format!("hint: not logged in, so {shown}: {advice}"));
        }
    }

    /// After the others were shown: which were not. The first decides the exit code.
    pub(crate) fn end(self) -> Result<()> {
        let mut failed = self.failed.into_iter();
        let first = failed.next();
        failed.for_each(|failure| warn(failure.message().to_owned()));
        first.map_or(Ok(()), Err)
    }
}

/// A token, and its user's PIN.
#[derive(Args, Debug)]
pub(crate) struct UserArg {
    #[command(flatten)]
    token: TokenArg,
    #[command(flatten)]
    pin: PinArg,
}

/// One object, and the session that shows it.
#[derive(Debug)]
pub(crate) struct Opened<T> {
    pub(crate) session: Session,
    pub(crate) pin: Secret,
    pub(crate) token: Token,
    /// What was asked for.
    pub(crate) asked: Uri,
    pub(crate) it: T,
}

impl<T: Object> Opened<T> {
    /// Its URI.
    pub(crate) fn uri(&self) -> String {
        self.it.uri(&self.token.uri()).to_string()
    }
}

impl UserArg {
    /// The token.
    pub(crate) fn uri(&self) -> Result<Uri> {
        self.token.uri()
    }

    /// Whether the command line says where the PIN is.
    pub(crate) fn names_pin(&self) -> bool {
        self.pin.is_given()
    }

    /// An object on it: a URI, or its label.
    pub(crate) fn key(&self, text: &str) -> Result<Uri> {
        self.token.key(text)
    }

    /// The objects on it that a URI or a label describes; all without one.
    pub(crate) fn keys(&self, text: Option<&str>) -> Result<Uri> {
        self.token.of(text.map(key_uri).transpose()?.unwrap_or_default())
    }

    /// As [`PinArg::every`].
    pub(crate) fn every(&self, app: &App, uri: &Uri) -> Result<Listed> {
        self.pin.every(app, uri)
    }

    /// As [`PinArg::login`].
    pub(crate) fn login<'a>(&'a self, app: &App, uri: &'a Uri) -> Result<Login<'a>> {
        self.pin.login(app, uri)
    }

    /// As [`PinArg::login_with`].
    pub(crate) fn login_with<'a>(&'a self, app: &App, uri: &'a Uri) -> Result<Login<'a>> {
        self.pin.login_with(app, uri)
    }

    /// The one object that a URI or a label describes, after a login on the token that shows it.
    pub(crate) fn open<T: Object>(
        &self,
        app: &App,
        text: &str,
        access: Access,
    ) -> Result<Opened<T>> {
        let asked = self.key(text)?;
        self.opened(app, self.login_with(app, &asked)?, &asked, access)
    }

    /// The same, to delete it: the token must be named where there are several.
    pub(crate) fn open_named<T: Object>(&self, app: &App, text: &str) -> Result<Opened<T>> {
        let asked = self.key(text)?;
        self.opened(app, self.login(app, &asked)?, &asked, Access::ReadWrite)
    }

    fn opened<T: Object>(
        &self,
        app: &App,
        login: Login<'_>,
        asked: &Uri,
        access: Access,
    ) -> Result<Opened<T>> {
        let (session, pin) = app.log_in(&login, access)?;
        let token = login.token;
        let it = find::one(&session, &token.uri(), asked)?;
        Ok(Opened { session, pin, token, asked: asked.clone(), it })
    }
}
