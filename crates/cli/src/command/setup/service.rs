// SPDX-License-Identifier: Apache-2.0
//! Root's services give up root's rights: whether the user who then uses the key may use its token.

use super::program::Program;
use crate::app::App;
use crate::command::doctor;
use crate::configured::Configuration;
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::uri::Uri;
use metaslot_ck::CKF_TOKEN_INITIALIZED;

/// Refuses a service without its user, whose the new token would be.
pub(super) fn is_there(program: &Program, user: &str) -> Result<()> {
    if !rustix::process::geteuid().is_root() || doctor::is_user(user) {
        return Ok(());
    }
    let what = format!("there is no user {user}, who uses the key in {}", program.name);
    Err(Failure::failed(what).hint(format!("apt-get install {} makes it", program.package)))
}

/// Refuses a token of ours that is closed to that user, before root writes anything for the service.
pub(super) fn may_use(program: &Program, app: &App, token: &Token) -> Result<()> {
    program.user().map_or(Ok(()), |user| user_may_use(program, user, app, token))
}

/// The same for another user.
pub(super) fn user_may_use(program: &Program, user: &str, app: &App, token: &Token) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let module = app.host(&Uri::default())?.module();
    if !module.is_metaslot() || token.is_others() {
        return Ok(());
    }
    let section = Configuration::read().described(&module.slot_info(token.slot)?.description);
    match section.and_then(|section| doctor::closed(user, &section)) {
        Some((why, fix)) => {
            let name = program.name;
            Err(Failure::failed(format!("{name} could not use the key: {why}")).hint(fix))
        }
        None => Ok(()),
    }
}

/// The same for the token that is to be made, in the first free slot.
pub(super) fn may_use_new(program: &Program, app: &App) -> Result<()> {
    let all = app.host(&Uri::default())?.tokens()?;
    let is_free = |token: &&Token| !token.has(CKF_TOKEN_INITIALIZED) && token.problem.is_none();
    let free = all.iter().find(is_free);
    free.map_or(Ok(()), |free| may_use(program, app, free))
}
