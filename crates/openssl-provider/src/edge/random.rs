// SPDX-License-Identifier: Apache-2.0
//! Random bytes (provider-rand(7)).

use super::Home;
use super::work::{self, PROPERTIES, Row, shared};
use crate::abi::numbers::random as number;
use crate::abi::{Algorithm, Context, Dispatch, Input, Kind, Output, Param, Params, Table};
use crate::bulk::random::Random;
use metaslot_ck::CKM_SHA256;
use std::ffi::c_int;

type RandomContext = Context<Random>;

/// Its parent would seed it.
extern "C" fn new(home: Home, _parent: Input, _functions: Input) -> RandomContext {
    work::new(home, |provider| Random::new((*provider).clone()))
}

extern "C" fn instantiate(
    context: RandomContext,
    strength: u32,
    _resistant: c_int,
    _personal: Input,
    _length: usize,
    _params: Params,
) -> c_int {
    shared(context, |random| random.begin(strength))
}

extern "C" fn uninstantiate(context: RandomContext) -> c_int {
    shared(context, |random| {
        random.end();
        Ok(())
    })
}

extern "C" fn generate(
    context: RandomContext,
    mut out: Output,
    length: usize,
    strength: u32,
    _resistant: c_int,
    _more: Input,
    _more_length: usize,
) -> c_int {
    shared(context, |random| random.fill(strength, out.of(length).unwrap_or_default()))
}

/// Nothing here has a state that may not be used by several threads.
extern "C" fn lock(_context: RandomContext) -> c_int {
    1
}

extern "C" fn unlock(_context: RandomContext) {}

extern "C" fn gettable(_context: RandomContext, _home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

static GETTABLE: [Param; 4] = [
    Param::named(c"state", Kind::Integer),
    Param::named(c"strength", Kind::Unsigned),
    Param::named(c"max_request", Kind::Unsigned),
    Param::END,
];

static FUNCTIONS: [Dispatch; 11] = [
    Dispatch::new(number::NEWCTX, new as *const ()),
    Dispatch::new(number::FREECTX, work::free::<Random> as *const ()),
    Dispatch::new(number::INSTANTIATE, instantiate as *const ()),
    Dispatch::new(number::UNINSTANTIATE, uninstantiate as *const ()),
    Dispatch::new(number::GENERATE, generate as *const ()),
    Dispatch::new(number::ENABLE_LOCKING, lock as *const ()),
    Dispatch::new(number::LOCK, lock as *const ()),
    Dispatch::new(number::UNLOCK, unlock as *const ()),
    Dispatch::new(number::GET_CTX_PARAMS, work::get::<Random> as *const ()),
    Dispatch::new(number::GETTABLE_CTX_PARAMS, gettable as *const ()),
    Dispatch::END,
];

/// The token's generator, where it has what else is offered here.
pub(super) fn rows() -> impl Iterator<Item = Row> {
    let algorithm = Algorithm::new(c"METASLOT-RAND", PROPERTIES, &FUNCTIONS);
    [Row { needs: CKM_SHA256, algorithm }].into_iter()
}
