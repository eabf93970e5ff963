// SPDX-License-Identifier: Apache-2.0
//! From a configured module to its tokens.

use crate::config::{Around, Config};
use crate::loaded::{Loaded, find};
use crate::store::ForeignStore;
use crate::token::{NO_SLOT, Token};
use metaslot_ck::SlotId;
use metaslot_client::Error as Failure;
use metaslot_memory::PerProcess;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

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
            let late = token(module, (NO_SLOT, false), config, around);
            return (late.map(ForeignStore::new).into_iter().collect(), Some(reason));
        }
    };
    // Two slots of one number would be two logins of one token.
    let mut seen = BTreeSet::from([NO_SLOT.0]);
    let slots = slots.into_iter().filter(|(slot, _)| seen.insert(slot.0));
    let tokens = slots.filter_map(|slot| token(module, slot, config, around));
    let tokens: Vec<_> = tokens.map(ForeignStore::new).collect();
    let none = tokens.is_empty().then(|| String::from("has no slot"));
    if !module.is_used() {
        module.finalize();
    }
    (tokens, none)
}

/// The slots of a module, and whether there is a token in each.
fn slots(module: &Loaded) -> Result<Vec<(SlotId, bool)>, String> {
    if !module.is_used() {
        module.initialize().map_err(|failure| format!("does not start: {failure}"))?;
    }
    let both = || {
        let there = module.library.slots(true)?;
        Ok((there, module.library.slots(false)?))
    };
    let (there, all) =
        both().map_err(|failure: Failure| format!("does not say its slots: {failure}"))?;
    Ok(all.into_iter().map(|slot| (slot, there.contains(&slot))).collect())
}

/// The token in a slot. What is known of an earlier initialisation is used again: it is never freed.
fn token(
    module: &'static Loaded,
    (slot, there): (SlotId, bool),
    config: &Config,
    around: Around,
) -> Option<&'static Token> {
    let mechanisms = module.library.mechanisms(slot).ok().or_else(|| (!there).then(Vec::new))?;
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
    Some(token)
}
