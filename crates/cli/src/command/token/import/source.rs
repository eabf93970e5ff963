// SPDX-License-Identifier: Apache-2.0
//! The other module's token, opened and read.

use super::object::{self, Object};
use crate::command::arguments::token_uri;
use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::pin::{self, Role, Source as PinSource};
use crate::uri::Uri;
use metaslot_ck::*;
use metaslot_client::{Access, Session, Template, User};
use std::path::PathBuf;

/// Which token, and what opens it.
#[derive(clap::Args, Debug)]
pub(super) struct OtherToken {
    /// The other module's file
    #[arg(long, value_name = "MODULE")]
    from: PathBuf,
    /// Its token: a label or a PKCS#11 URI [default: the only one there is]
    #[arg(long, value_name = "LABEL|URI")]
    from_token: Option<String>,
    /// The place of that token's user PIN: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, alias = "from-pin-source", value_name = "SOURCE")]
    pin_source_from: Option<String>,
    /// What the module wants to be initialised with, as NSS does
    #[arg(long, value_name = "TEXT")]
    from_parameters: Option<String>,
}

/// The token, with its user logged in where it wants that.
pub(super) struct Source {
    token: Token,
    session: Option<Session>,
    /// The last to go: it ends the module.
    host: Host,
}

impl Drop for Source {
    fn drop(&mut self) {
        // Before the module ends.
        self.session = None;
    }
}

impl Source {
    pub(super) fn open(args: &OtherToken) -> Result<Self> {
        let host = Host::beside(&args.from, args.from_parameters.as_deref())?;
        let uri = args.from_token.as_deref().map(token_uri).transpose()?.unwrap_or_default();
        let token = host.token(&uri).map_err(|failure| match args.from_token {
            None => failure.hint("--from-token names one of its tokens"),
            Some(_) => failure,
        });
        let path = host.module().path().display().to_string();
        let token = token.map_err(|failure| failure.context(path))?;
        let session = host.module().open_session(token.slot, Access::ReadOnly)?;
        let source = Self { token, session: Some(session), host };
        source.log_in(args, &uri)?;
        Ok(source)
    }

    fn log_in(&self, args: &OtherToken, uri: &Uri) -> Result<()> {
        let token = &self.token;
        if !token.has(CKF_LOGIN_REQUIRED) {
            return Ok(());
        }
        let done = if token.has(CKF_PROTECTED_AUTHENTICATION_PATH) {
            self.session()?.login_protected(User::User)
        } else {
            let pin = self.pin(args, uri)?;
            self.session()?.login(User::User, pin.expose())
        };
        match done {
            Err(error) if error.code != Error::USER_ALREADY_LOGGED_IN => {
                let failure = self.host.login_failure(token, Role::User, error);
                Err(failure.context(format!("the other token, '{}'", token.info.label)))
            }
            _ => Ok(()),
        }
    }

    /// What is set for our own token's PIN is not meant for this one.
    fn pin(&self, args: &OtherToken, uri: &Uri) -> Result<metaslot_memory::Secret> {
        if let Some(value) = &uri.pin_value {
            return Ok(metaslot_memory::Secret::copy_of(value.expose()));
        }
        let named = args.pin_source_from.as_deref().or(uri.pin_source.as_deref());
        let source = named.map(PinSource::parse).transpose()?;
        if source.is_none() && !pin::is_interactive() {
            let message =
                format!("no user PIN of {} given, and no terminal to ask on", self.token.name());
            return Err(Failure::pin(message)
                .hint("name the place of that token's PIN: --pin-source-from FILE"));
        }
        pin::existing(Role::User, &self.token.info.label, None, source.as_ref())
    }

    pub(super) fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(|| Failure::failed("the other token is closed"))
    }

    /// Every object of the token.
    pub(super) fn objects(&self) -> Result<Vec<Object>> {
        let session = self.session()?;
        let handles = session.find(&Template::new().token(true))?;
        let mut objects: Vec<Object> = handles
            .into_iter()
            .map(|handle| Object::read(session, handle))
            .collect::<Result<_>>()?;
        object::name(&mut objects);
        // What belongs together stands together.
        objects.sort_by(|one, other| one.place().cmp(&other.place()));
        Ok(objects)
    }

    /// Whether the token can do an operation of `flags` by a mechanism.
    pub(super) fn offers(&self, mechanism: CK_MECHANISM_TYPE, flags: CK_FLAGS) -> bool {
        let info = self.host.module().mechanism_info(self.token.slot, mechanism);
        info.is_ok_and(|info| info.flags & flags == flags)
    }

    pub(super) fn path(&self) -> String {
        self.host.module().path().display().to_string()
    }

    pub(super) fn token(&self) -> String {
        self.token.uri().to_string()
    }
}
