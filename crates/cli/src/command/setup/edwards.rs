// SPDX-License-Identifier: Apache-2.0
//! Keys on Edwards and Montgomery curves: not every program takes them from a token, and an engine of OpenSSL's finds no key of
//! a token that has one.

use super::program::{Bridge, Program};
use crate::app::App;
use crate::command::engine::{finds_keys as engine, is_edwards};
use crate::failure::Result;
use crate::host::{Host, Token};
use crate::key::Key;
use crate::output::warn;
use crate::uri::Uri;

/// Refuses a token in which the program would find no key, and warns of a key that it would not take.
pub(super) fn check(program: &Program, host: &Host, token: &Token, key: &Key) -> Result<()> {
    match (program.bridge, program.without_ed25519()) {
        (Bridge::Engine, _) => engine(host, token, Some(key)),
        (_, Some(which)) if is_edwards(key) => {
            let uri = key.uri(&token.uri());
            warn(format!("{which} takes no {} key from a token: {uri}", key.kind));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The same before there is a key, for a token that is there.
pub(super) fn beside(app: &App, token: &Uri) -> Result<()> {
    let host = app.host(token)?;
    host.candidates(token)?.iter().try_for_each(|token| engine(host, token, None))
}
