// SPDX-License-Identifier: Apache-2.0
//! From a configured module to its tokens.

use crate::config::{Around, Config};
use crate::isolated::ABSENCE;
use crate::loaded::{Loaded, find};
use crate::store::ForeignStore;
use crate::token::{NO_SLOT, Token};
use metaslot_ck::{CK_MECHANISM_TYPE, SlotId};
use metaslot_client::Result as Called;
use metaslot_memory::PerProcess;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The tokens that were ever open in this process.
static KNOWN: PerProcess<Mutex<Vec<&'static Token>>> = PerProcess::new(|_| Mutex::default());

/// The slots that the module has at this moment, in its order, and why there are none. Of a module that does not start, one for
/// what it has when it does: it is tried again.
pub type Opened = (Vec<ForeignStore>, Option<String>);

/// As [`crate::open`].
pub(crate) fn open(config: &Config, around: Around) -> Opened {
    let module = match find(config) {
        Ok(module) => module,
        Err(reason) => return (Vec::new(), Some(reason)),
    };
    let slots = match slots(module) {
        Ok(slots) => slots,
        Err(reason) => {
            let late = token(module, (NO_SLOT, Vec::new()), config, around);
            return (vec![ForeignStore::new(late)], Some(reason));
        }
    };
    // Two slots of one number would be two logins of one token.
    let mut seen = BTreeSet::from([NO_SLOT.0]);
    let slots = slots.into_iter().filter(|(slot, _)| seen.insert(slot.0));
    let tokens = slots.map(|slot| token(module, slot, config, around));
    let tokens: Vec<_> = tokens.map(ForeignStore::new).collect();
    let none = tokens.is_empty().then(|| String::from("has no slot"));
    if !module.is_used() {
        module.finalize();
    }
    (tokens, none)
}

/// A slot, and what its token does.
type Slot = (SlotId, Vec<CK_MECHANISM_TYPE>);

/// The slots of a module. A server may go while it says them, and is asked again.
fn slots(module: &Loaded) -> Result<Vec<Slot>, String> {
    let begin = Instant::now();
    let mut begins = !module.is_used();
    loop {
        let begun = if begins { module.initialize() } else { Ok(()) };
        match begun.and_then(|()| all(module)) {
            Err(failure) if module.may_return(failure) && begin.elapsed() < ABSENCE => {
                begins = true;
            }
            Err(failure) if begun.is_err() => return Err(module.does_not_start(failure)),
            Err(failure) => return Err(format!("does not say its slots: {failure}")),
            Ok(slots) => return Ok(slots),
        }
    }
}

fn all(module: &Loaded) -> Called<Vec<Slot>> {
    let there = module.library.slots(true)?;
    let slot = |slot| match module.library.mechanisms(slot) {
        Err(failure) if module.may_return(failure) => Some(Err(failure)),
        Err(_) => (!there.contains(&slot)).then_some(Ok((slot, Vec::new()))),
        Ok(mechanisms) => Some(Ok((slot, mechanisms))),
    };
    module.library.slots(false)?.into_iter().filter_map(slot).collect()
}

/// The token in a slot. What is known of an earlier initialisation is used again: it is never freed.
fn token(
    module: &'static Loaded,
    (slot, mechanisms): Slot,
    config: &Config,
    around: Around,
) -> &'static Token {
    let mut known = KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
    let same = |token: &&&'static Token| token.is(module, slot, config, &mechanisms);
    // A thread that never came back may have left a login there.
    let found = known.iter().find(same).copied().inspect(|token| token.close());
    let token = found.unwrap_or_else(|| {
        let new = Token::leaked(module, slot, config, mechanisms, around);
        known.push(new);
        new
    });
    module.enter();
    token
}
