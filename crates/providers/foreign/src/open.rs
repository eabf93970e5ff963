// SPDX-License-Identifier: Apache-2.0
//! From a configured module to its tokens.

use crate::config::{Around, Config};
use crate::loaded::{Loaded, find};
use crate::store::ForeignStore;
use crate::token::Token;
use metaslot_ck::SlotId;
use metaslot_memory::PerProcess;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The tokens that were ever open in this process.
static KNOWN: PerProcess<Mutex<Vec<&'static Token>>> = PerProcess::new(|_| Mutex::default());

/// As [`crate::open`].
pub(crate) fn open(config: &Config, around: Around) -> Result<Vec<ForeignStore>, String> {
    let module = find(config)?;
    if !module.is_used() {
        module.initialize().map_err(|failure| format!("does not start: {failure}"))?;
    }
    let slots = module.library.slots(true).and_then(|there| {
        let all = module.library.slots(false)?;
        Ok(all.into_iter().map(|slot| (slot, there.contains(&slot))).collect::<Vec<_>>())
    });
    let opened = slots.map_err(|failure| format!("does not say its slots: {failure}")).map(|all| {
        // Two slots of one number would be two logins of one token.
        let mut seen = BTreeSet::new();
        let slots = all.into_iter().filter(|(slot, _)| seen.insert(slot.0));
        let tokens = slots.filter_map(|slot| token(module, slot, config, around));
        tokens.map(ForeignStore::new).collect::<Vec<_>>()
    });
    match opened {
        Ok(tokens) if !tokens.is_empty() => Ok(tokens),
        failed => {
            if !module.is_used() {
                module.finalize();
            }
            failed.and(Err(String::from("has no slot")))
        }
    }
}

/// The token in a slot. What is known of an earlier initialisation is used again: it is never freed.
fn token(
    module: &'static Loaded,
    (slot, there): (SlotId, bool),
    config: &Config,
    around: Around,
) -> Option<&'static Token> {
    let named = module.library.mechanisms(slot).ok().or_else(|| (!there).then(Vec::new))?;
    let wanted = |mechanism: &_| !config.without.contains(mechanism);
    let mechanisms: Vec<_> = named.into_iter().filter(wanted).collect();
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
