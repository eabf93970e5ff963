// SPDX-License-Identifier: Apache-2.0
//! What every command has at hand: the output and, once it is asked for, the module.

use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::output::Output;
use crate::pin::{self, Role, Source};
use crate::uri::Uri;
use clap::Args;
use metaslot_ck as ck;
use metaslot_client::{Access, Session, User};
use metaslot_memory::Secret;
use metaslot_spi::store::Name;
use std::cell::OnceCell;
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// The PKCS#11 module [default: $METASLOT_MODULE, or libmetaslot.so beside this command or
    /// installed]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) module: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, global = true, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Print URIs only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// One run of the command.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) output: Output,
    module: Option<PathBuf>,
    host: OnceCell<Host>,
}

impl App {
    pub(crate) fn new(common: Common) -> Self {
        let output = Output { json: common.json, quiet: common.quiet };
        let named = || env::var_os("METASLOT_MODULE").filter(|path| !path.is_empty());
        let module = common.module.or_else(|| named().map(PathBuf::from));
        Self { output, module, host: OnceCell::new() }
    }

    /// The module that the user named, if any.
    pub(crate) fn named_module(&self) -> Option<&Path> {
        self.module.as_deref()
    }

    /// The module, loaded when it is first asked for. A URI may name another.
    pub(crate) fn host(&self, uri: &Uri) -> Result<&Host> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let host = Host::load(self.module.as_deref(), uri)?;
        Ok(self.host.get_or_init(|| host))
    }

    /// The one token that a URI names.
    pub(crate) fn token(&self, uri: &Uri) -> Result<Token> {
        self.host(uri)?.token(uri)
    }

    /// The one token that a URI names, or that shows the key that it names.
    pub(crate) fn token_with(&self, uri: &Uri) -> Result<Token> {
        self.host(uri)?.token_with(uri)
    }

    /// A session whose user is logged in, and the PIN that did it. Where a token has keys for this process without a PIN, as
    /// `metaslotd` gives them to a service, they are used without one, unless one is given.
    pub(crate) fn log_in(&self, login: &Login<'_>, access: Access) -> Result<(Session, Secret)> {
        let host = self.host(login.uri)?;
        let session = host.module().open_session(login.token.slot, access)?;
        let source = login.source()?;
        let is_user = login.identity.is_none();
        let reads = source.is_none() && !login.is_named && access == Access::ReadOnly;
        if reads && !login.token.has(ck::CKF_LOGIN_REQUIRED) {
            return Ok((session, Secret::zeroed(0)));
        }
        if is_user && !login.token.has(ck::CKF_USER_PIN_INITIALIZED) {
            if !login.token.has(ck::CKF_LOGIN_REQUIRED) {
                return Ok((session, Secret::zeroed(0)));
            }
            return Err(Failure::pin(format!("{} has no user PIN yet", login.token.name()))
                .hint("set one as security officer: metaslot token pin --reset"));
        }
        let token = &login.token;
        let (pin, logged_in) = if let Some(name) = login.identity {
            let pin = token.identity_pin(name, source.as_ref())?;
            let logged_in = session.login_user(name.as_str(), pin.expose());
            (pin, logged_in)
        } else {
            let pin = token.pin(Role::User, source.as_ref())?;
            let logged_in = session.login(User::User, pin.expose());
            (pin, logged_in)
        };
        match (logged_in, login.identity) {
            (Ok(()), _) => Ok((session, pin)),
            (Err(error), _) if error.code == ck::Error::USER_ALREADY_LOGGED_IN => {
                Ok((session, pin))
            }
            (Err(error), Some(name)) => Err(Host::identity_failure(token, name, error)),
            (Err(error), None) => Err(host.login_failure(token, Role::User, error)),
        }
    }

    /// A session whose security officer is logged in, on the token that a URI names.
    pub(crate) fn log_in_officer(
        &self,
        uri: &Uri,
        option: Option<&str>,
    ) -> Result<(Session, Token)> {
        let token = self.token(uri)?;
        let host = self.host(uri)?;
        let source = Source::find(Role::So, option, uri)?;
        let pin = token.pin(Role::So, source.as_ref())?;
        let session = host.module().open_session(token.slot, Access::ReadWrite)?;
        match session.login(User::SecurityOfficer, pin.expose()) {
            Ok(()) => Ok((session, token)),
            Err(error) => Err(host.login_failure(&token, Role::So, error)),
        }
    }

    /// A session with the user logged in where a PIN is to be had, else without: then `false`.
    pub(crate) fn log_in_if_possible(
        &self,
        login: &Login<'_>,
        access: Access,
    ) -> Result<(Session, bool)> {
        let asks = pin::is_interactive() && login.token.has(ck::CKF_LOGIN_REQUIRED);
        let silent = login.source()?.is_none() && !asks;
        let is_user = login.identity.is_none();
        let has_none = is_user && !login.token.has(ck::CKF_USER_PIN_INITIALIZED);
        if silent && !login.is_named || has_none {
            let session = self.host(login.uri)?.module().open_session(login.token.slot, access)?;
            return Ok((session, false));
        }
        Ok((self.log_in(login, access)?.0, true))
    }

    /// Tells the user.
    pub(crate) fn report(&self, failure: &Failure) -> ExitCode {
        self.output.failure(failure);
        failure.exit()
    }
}

/// Which token, as whom, and where the PIN may be: an option, the URI, the environment, in this order.
#[derive(Clone, Debug)]
pub(crate) struct Login<'a> {
    pub(crate) token: Token,
    pub(crate) uri: &'a Uri,
    pub(crate) option: Option<&'a str>,
    /// `None` for the user without a name.
    pub(crate) identity: Option<Name>,
    /// The command line names the identity: then there is no doing without its login.
    pub(crate) is_named: bool,
}

impl<'a> Login<'a> {
    /// By the options of a command, or the variables.
    pub(crate) fn by(
        token: Token,
        uri: &'a Uri,
        option: Option<&'a str>,
        identity: Option<&str>,
    ) -> Result<Self> {
        let is_named = identity.is_some();
        Ok(Self { token, uri, option, identity: pin::identity(identity)?, is_named })
    }

    fn source(&self) -> Result<Option<Source>> {
        Source::find(Role::User, self.option, self.uri)
    }
}
