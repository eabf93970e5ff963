// SPDX-License-Identifier: Apache-2.0
//! What the functions of all operations without a key of a token have in common. They are called often: nothing is done that is not
//! necessary, and what calls the module looks for a larger stack where that is needed.

use super::{Home, kept, made};
use crate::abi::{Algorithm, Answer, Context, Params, Table, caught_here};
use crate::bulk::{Owner, Work};
use crate::failure::Result;
use crate::provider::{Offer, Provider};
use metaslot_ck::{CK_MECHANISM_TYPE, CKM_AES_KEY_WRAP, CKM_AES_KEY_WRAP_KWP};
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// What every algorithm of these says of itself: a program may prefer them, and not what is done with keys.
pub(super) const PROPERTIES: &CStr = c"provider=metaslot,metaslot.bulk=yes";

/// An algorithm, and the mechanism that the token has to have for it.
pub(super) struct Row {
    pub(super) needs: CK_MECHANISM_TYPE,
    pub(super) algorithm: Algorithm,
}

pub(super) fn new<T>(home: Home, new: impl FnOnce(Owner) -> T) -> Context<T> {
    match home.lent() {
        Some(provider) => Context::made(|| new(provider)),
        None => Context::null(),
    }
}

pub(super) extern "C" fn free<T>(context: Context<T>) {
    caught_here((), || drop(context.take()));
}

pub(super) fn copy<T: Work>(context: Context<T>, copy: impl FnOnce(&T) -> Result<T>) -> Context<T> {
    let Some(context) = context.get() else { return Context::null() };
    made(context.provider(), || copy(context))
}

/// What an algorithm says of itself, all of it numbers.
pub(super) fn said(mut params: Params, say: impl Fn(&[u8]) -> Option<usize>) -> c_int {
    let known = |name: &[u8], _| Some(Answer::size(say(name)?));
    caught_here(0, || c_int::from(params.answer(known)))
}

/// Something done with a context.
pub(super) fn with<T: Work>(
    mut context: Context<T>,
    call: impl FnOnce(&mut T) -> Result<()>,
) -> c_int {
    let Some(context) = context.get_mut() else { return 0 };
    caught_here(0, || {
        let done = call(context);
        answered(context, done)
    })
}

/// The same with one that threads share.
pub(super) fn shared<T: Work>(context: Context<T>, call: impl FnOnce(&T) -> Result<()>) -> c_int {
    let Some(context) = context.get() else { return 0 };
    caught_here(0, || answered(context, call(context)))
}

#[inline]
fn answered<T: Work>(context: &T, done: Result<()>) -> c_int {
    match done {
        Ok(()) => 1,
        Err(failure) => {
            context.provider().raise(&failure);
            0
        }
    }
}

pub(super) extern "C" fn set<T: Work>(context: Context<T>, params: Params) -> c_int {
    with(context, |context| context.set(&params))
}

pub(super) extern "C" fn get<T: Work>(context: Context<T>, mut params: Params) -> c_int {
    caught_here(0, || {
        let Some(context) = context.get() else { return 0 };
        c_int::from(params.answer(|name, _| context.answer(name)))
    })
}

/// Those of the rows that the token has.
pub(super) fn offered(
    provider: &Arc<Provider>,
    rows: &mut dyn Iterator<Item = Row>,
) -> Table<Algorithm> {
    let has: &dyn Fn(&Row) -> bool = match provider.offer() {
        Offer::Nothing => return Table::null(),
        Offer::All => &|_| true,
        // A module may wrap by it, and encrypt nothing.
        Offer::Of(token) => &move |row| {
            let wraps = matches!(row.needs, CKM_AES_KEY_WRAP | CKM_AES_KEY_WRAP_KWP);
            token.has(row.needs) && (!wraps || token.encrypts(row.needs))
        },
    };
    let mut offered: Vec<_> = rows.filter(has).map(|row| row.algorithm).collect();
    offered.push(Algorithm::END);
    kept(offered)
}
