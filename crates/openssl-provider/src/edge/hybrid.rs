// SPDX-License-Identifier: Apache-2.0
//! Key management of hybrid groups; what libssl is told of them says `tls`. What TLS does with their keys is all: it
//! makes a pair, shows and takes public halves, encapsulates and decapsulates.

use super::context::with;
use super::{Home, PROPERTIES, answer, made};
use crate::abi::numbers::{keymgmt as number, select};
use crate::abi::{
    Algorithm, Answer, Argument, Callback, Context, Dispatch, Given, Kind, Param, Params, Table,
    caught,
};
use crate::failure::Failure;
use crate::hybrid::{GROUPS, Group, HybridKem, HybridKey};
use crate::public::GROUP;
use std::ffi::{CStr, c_int};
use std::sync::Arc;

type KeyContext = Context<Arc<HybridKey>>;

/// What libcrypto calls the public half.
const PUBLIC: &CStr = c"encoded-pub-key";

/// For the operations of `kem`.
pub(super) extern "C" fn begin(
    context: Context<HybridKem>,
    key: KeyContext,
    _params: Params,
) -> c_int {
    with(context, |kem| kem.begin(key.get().cloned()))
}

extern "C" fn new<const N: usize>(home: Home) -> KeyContext {
    with_empty(&home, &GROUPS[N], |key| key)
}

/// What is the same for all groups is there once.
#[inline(never)]
fn with_empty<T>(
    home: &Home,
    group: &'static Group,
    then: impl FnOnce(Arc<HybridKey>) -> T,
) -> Context<T> {
    caught(Context::null(), || match home.get() {
        Some(provider) => {
            let key = HybridKey::public(Arc::clone(provider), group, Vec::new());
            Context::new(then(Arc::new(key)))
        }
        None => Context::null(),
    })
}

extern "C" fn free(key: KeyContext) {
    caught((), || drop(key.take()));
}

extern "C" fn copy(key: KeyContext, _selection: c_int) -> KeyContext {
    caught(Context::null(), || key.get().map_or(Context::null(), |key| Context::new(key.clone())))
}

extern "C" fn has(key: KeyContext, selection: c_int) -> c_int {
    caught(0, || {
        let Some(key) = key.get() else { return 0 };
        let private = selection & select::PRIVATE == 0 || key.private.is_some();
        c_int::from(private && (selection & select::PUBLIC == 0 || !key.public.is_empty()))
    })
}

extern "C" fn matches(one: KeyContext, other: KeyContext, selection: c_int) -> c_int {
    caught(0, || {
        let (Some(one), Some(other)) = (one.get(), other.get()) else { return 0 };
        let keys = selection & (select::PUBLIC | select::PRIVATE) != 0;
        let same = one.group.number == other.group.number;
        c_int::from(same && (!keys || !one.public.is_empty() && one.public == other.public))
    })
}

extern "C" fn get_params(key: KeyContext, mut params: Params) -> c_int {
    caught(0, || {
        let Some(key) = key.get() else { return 0 };
        let security = key.group.security();
        let known = |name: &[u8], _| match name {
            b"bits" | b"security-bits" => Some(Answer::Number(security)),
            b"max-size" => i64::try_from(key.group.lengths().0).ok().map(Answer::Number),
            b"group" => Some(Answer::Constant(key.group.name)),
            b"encoded-pub-key" if !key.public.is_empty() => Some(Answer::Octets(&key.public)),
            _ => None,
        };
        c_int::from(params.answer(known))
    })
}

extern "C" fn gettable(_home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

/// The other side's public half.
extern "C" fn set_params(mut context: KeyContext, params: Params) -> c_int {
    let Some(key) = context.get_mut() else { return 0 };
    let (provider, group) = (Arc::clone(&key.provider), key.group);
    answer(&provider, || {
        let Some(public) = params.find(PUBLIC).and_then(Given::octets) else { return Ok(()) };
        if !group.is_public(public) {
            return Err(Failure::input("the public key has another length"));
        }
        *key = Arc::new(HybridKey::public(Arc::clone(&provider), group, public.to_vec()));
        Ok(())
    })
}

extern "C" fn settable(_home: Home) -> Table<Param> {
    Table::of(&GETTABLE[3..])
}

/// A pair, or, where parameters are all that is asked for, a key without any.
extern "C" fn generator<const N: usize>(
    home: Home,
    selection: c_int,
    _params: Params,
) -> Context<(Arc<HybridKey>, bool)> {
    begun(&home, &GROUPS[N], selection)
}

#[inline(never)]
fn begun(home: &Home, group: &'static Group, selection: c_int) -> Context<(Arc<HybridKey>, bool)> {
    let pair = selection & (select::PUBLIC | select::PRIVATE) != 0;
    with_empty(home, group, |key| (key, pair))
}

/// The name of the group is that of the algorithm.
extern "C" fn generator_set(_generator: Home, _params: Params) -> c_int {
    1
}

extern "C" fn generator_settable(_generator: Home, _home: Home) -> Table<Param> {
    Table::of(&GENERATOR_SETTABLE)
}

extern "C" fn generate(
    generator: Context<(Arc<HybridKey>, bool)>,
    _progress: Callback,
    _argument: Argument,
) -> KeyContext {
    let Some((key, pair)) = generator.get() else { return Context::null() };
    if !*pair {
        return Context::new(Arc::clone(key));
    }
    let provider = Arc::clone(&key.provider);
    made(&key.provider, || HybridKey::generate(provider, key.group).map(Arc::new))
}

extern "C" fn generator_free(generator: Context<(Arc<HybridKey>, bool)>) {
    caught((), || drop(generator.take()));
}

static GETTABLE: [Param; 5] = [
    Param::named(c"bits", Kind::Integer),
    Param::named(c"security-bits", Kind::Integer),
    Param::named(c"max-size", Kind::Integer),
    Param::named(PUBLIC, Kind::Octets),
    Param::END,
];

static GENERATOR_SETTABLE: [Param; 2] = [Param::named(GROUP, Kind::Utf8), Param::END];

const fn functions<const N: usize>() -> [Dispatch; 15] {
    [
        Dispatch::new(number::NEW, new::<N> as *const ()),
        Dispatch::new(number::FREE, free as *const ()),
        Dispatch::new(number::GEN_INIT, generator::<N> as *const ()),
        Dispatch::new(number::GEN_SET_PARAMS, generator_set as *const ()),
        Dispatch::new(number::GEN_SETTABLE_PARAMS, generator_settable as *const ()),
        Dispatch::new(number::GEN, generate as *const ()),
        Dispatch::new(number::GEN_CLEANUP, generator_free as *const ()),
        Dispatch::new(number::DUP, copy as *const ()),
        Dispatch::new(number::HAS, has as *const ()),
        Dispatch::new(number::MATCH, matches as *const ()),
        Dispatch::new(number::GET_PARAMS, get_params as *const ()),
        Dispatch::new(number::GETTABLE_PARAMS, gettable as *const ()),
        Dispatch::new(number::SET_PARAMS, set_params as *const ()),
        Dispatch::new(number::SETTABLE_PARAMS, settable as *const ()),
        Dispatch::END,
    ]
}

static FUNCTIONS: [[Dispatch; 15]; 3] = [functions::<0>(), functions::<1>(), functions::<2>()];

const fn row(place: usize) -> Algorithm {
    Algorithm::new(GROUPS[place].name, PROPERTIES, &FUNCTIONS[place])
}

pub(super) static ROWS: [Algorithm; 3] = [row(0), row(1), row(2)];
