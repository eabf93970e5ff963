// SPDX-License-Identifier: Apache-2.0
//! Key management (provider-keymgmt(7)).

use super::{Home, PROPERTIES, answer, hybrid, joined, made};
use crate::abi::numbers::{keymgmt as number, operation, select};
use crate::abi::{
    Algorithm, Answer, Argument, Callback, Context, Dispatch, Given, Kind, Param, Params,
    Reference, Table, Text, caught,
};
use crate::failure::{Failure, Result};
use crate::generate::{COFACTOR, Generator, PLACE, cofactor_of};
use crate::hybrid::GROUPS;
use crate::key::Key;
use crate::kind::{COUNT, Form, KINDS, KeyKind, Needed, for_each_kind};
use crate::own::Parts;
use crate::provider::{Mode, Provider};
use crate::pss::Pss;
use crate::public::{E, GROUP, N, PUB, Public};
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// What libcrypto holds: a key, or one that is to be imported.
#[derive(Clone, Debug)]
pub(super) struct Held {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
    /// Whether it agrees with the cofactor, where the agreement does not say.
    cofactor: bool,
}

impl Held {
    fn new(provider: Arc<Provider>, key: Option<Arc<Key>>) -> Self {
        Self { provider, key, cofactor: false }
    }
}

pub(super) type KeyContext = Context<Held>;

/// The key that libcrypto holds.
pub(super) fn held(context: &KeyContext) -> Option<Arc<Key>> {
    context.get()?.key.clone()
}

pub(super) fn has_cofactor(context: &KeyContext) -> bool {
    context.get().is_some_and(|held| held.cofactor)
}

/// What stays with the provider that loaded it unless everything is the module's: keys of the program's own, by their secret parts, and keys of
/// RSA-PSS that are restricted.
const FOREIGN_PARTS: [&CStr; 4] = [c"d", c"priv", c"digest", c"saltlen"];

extern "C" fn new(home: Home) -> KeyContext {
    caught(Context::null(), || match home.get() {
        Some(provider) => Context::new(Held::new(Arc::clone(provider), None)),
        None => Context::null(),
    })
}

extern "C" fn free(key: KeyContext) {
    caught((), || drop(key.take()));
}

extern "C" fn load(reference: Reference, size: usize) -> KeyContext {
    caught(Context::null(), || match Key::arrived(reference.of(size)) {
        Some(key) => Context::new(Held::new(Arc::clone(&key.provider), Some(key))),
        None => Context::null(),
    })
}

extern "C" fn copy(key: KeyContext, selection: c_int) -> KeyContext {
    caught(Context::null(), || {
        let Some(mut held) = key.get().cloned() else { return Context::null() };
        if selection & select::PRIVATE == 0 {
            let public = selection & select::PUBLIC != 0;
            held.key = held.key.map(|key| Arc::new(key.without(public)));
        }
        Context::new(held)
    })
}

extern "C" fn has(key: KeyContext, selection: c_int) -> c_int {
    caught(0, || c_int::from(has_parts(held(&key).as_deref(), selection)))
}

fn has_parts(key: Option<&Key>, selection: c_int) -> bool {
    let Some(key) = key else { return selection == 0 };
    let private = selection & select::PRIVATE == 0 || key.private.is_some();
    private && (selection & select::PUBLIC == 0 || key.public.is_known())
}

/// The token sees to its own keys, and is asked about one that came from elsewhere.
extern "C" fn validate(context: KeyContext, selection: c_int, _how: c_int) -> c_int {
    caught(0, || {
        let key = held(&context);
        let present = has_parts(key.as_deref(), selection);
        let Some(key) = key.filter(|key| present && key.uri().is_none()) else {
            return c_int::from(present);
        };
        let taken = || {
            if selection & select::PUBLIC != 0 {
                key.with_public("check", |_, _| Ok(()))?;
            }
            if selection & select::PRIVATE != 0 {
                let is_pair = key.is_pair()? || selection & select::PUBLIC == 0;
                let apart = || Failure::input("the halves of the key are not of one pair");
                is_pair.then_some(()).ok_or_else(apart)?;
            }
            Ok(())
        };
        let sound = selection & select::PUBLIC == 0 || key.public.is_sound();
        c_int::from(sound && answer(&key.provider, taken) != 0)
    })
}

extern "C" fn matches(one: KeyContext, other: KeyContext, selection: c_int) -> c_int {
    caught(0, || {
        let (Some(one), Some(other)) = (held(&one), held(&other)) else { return 0 };
        let same = if selection & (select::PUBLIC | select::PRIVATE) != 0 {
            one.public.is_known() && one.public.is(&other.public)
        } else {
            one.public.is_beside(&other.public)
        };
        c_int::from(same && one.kind.key_type == other.kind.key_type)
    })
}

extern "C" fn import<const N: usize>(key: KeyContext, selection: c_int, params: Params) -> c_int {
    taken(key, &KINDS[N], selection, &params)
}

/// What is the same for all kinds is there once.
#[inline(never)]
fn taken(mut key: KeyContext, kind: &'static KeyKind, selection: c_int, params: &Params) -> c_int {
    let Some(held) = key.get_mut() else { return 0 };
    let provider = Arc::clone(&held.provider);
    let done = answer(&provider, || {
        held.cofactor = cofactor_of(params)?.unwrap_or_default();
        held.key = imported(&provider, kind, selection, params)?.map(Arc::new);
        Ok(())
    });
    if held.key.is_some() { done } else { 0 }
}

/// `None` stays with the provider that has it.
fn imported(
    provider: &Arc<Provider>,
    kind: &'static KeyKind,
    selection: c_int,
    params: &Params,
) -> Result<Option<Key>> {
    let all = provider.mode == Mode::All;
    if !all && FOREIGN_PARTS.iter().any(|name| params.find(name).is_some()) {
        return Ok(None);
    }
    let Some(public) = Public::of_params(kind, params) else { return Ok(None) };
    let private = selection & select::PRIVATE != 0;
    let Some(parts) = Parts::of_params(kind, &public, params, private) else { return Ok(None) };
    let wanted = selection & (select::PUBLIC | select::PRIVATE) != 0;
    if wanted && (public.is_known() || parts.is_empty()) && !public.has_form() {
        return Ok(None);
    }
    // What is not asked for is not taken.
    let public = if wanted { public } else { public.emptied() };
    let mut key = Key::public(Arc::clone(provider), kind, public);
    if key.signs_by_pss_only() {
        Pss::update(&mut key.pss, params)?;
    }
    if all && wanted { key.own(parts) } else { Ok(Some(key)) }
}

/// Of a key that is in a token nothing is exported where the private half is asked for: libcrypto then comes to this provider with what
/// it has to sign.
extern "C" fn export(
    context: KeyContext,
    selection: c_int,
    callback: Callback,
    argument: Argument,
) -> c_int {
    caught(0, || {
        let Some(key) = held(&context) else { return 0 };
        let private = selection & select::PRIVATE != 0;
        if private && key.uri().is_some()
            || selection & select::PUBLIC != 0 && !key.public.is_known()
        {
            return 0;
        }
        let mut params = key.public.params();
        if has_cofactor(&context) {
            params = params.number(COFACTOR, 1);
        }
        if let Some(pss) = &key.pss {
            params = pss.send(params);
        }
        if let Some(parts) = key.parts().filter(|_| private) {
            params = parts.send(key.kind, params);
        }
        c_int::from(params.build(|params| callback.call(params, argument)))
    })
}

/// How keys are written that are here, and not otherwise.
const WRITTEN: [(&CStr, &str); 2] =
    [(c"point-format", "uncompressed"), (c"encoding", "named_curve")];

/// The point of a key that has none yet: what the other side of an agreement sends.
extern "C" fn set_params(mut key: KeyContext, params: Params) -> c_int {
    let Some(held) = key.get_mut() else { return 0 };
    caught(0, || {
        if WRITTEN
            .iter()
            .any(|(name, only)| params.find(name).is_some_and(|form| form.text() != Some(only)))
        {
            return 0;
        }
        let Ok(cofactor) = cofactor_of(&params) else { return 0 };
        held.cofactor = cofactor.unwrap_or(held.cofactor);
        let Some(point) = params.find(c"encoded-pub-key").and_then(Given::octets) else { return 1 };
        let Some(key) = &held.key else { return 0 };
        let Some(public) = key.public.with_encoded(point, key.kind) else { return 0 };
        let mut other = key.with(public);
        // What is sent whole is checked where it is used.
        let whole = point.first() == Some(&4);
        let done = if whole { 1 } else { answer(&key.provider, || other.check_point()) };
        if done == 1 {
            held.key = Some(Arc::new(other));
        }
        done
    })
}

extern "C" fn settable(_home: Home) -> Table<Param> {
    Table::of(&SETTABLE)
}

extern "C" fn types<const N: usize>(_selection: c_int) -> Table<Param> {
    match KINDS[N].form {
        Form::Rsa { .. } => Table::of(&RSA_PARTS),
        Form::Ec => Table::of(&EC_PARTS),
        Form::Number(_) => Table::of(&NUMBER_PARTS),
        Form::Field(_) => Table::of(&FIELD_PARTS),
    }
}

extern "C" fn get_params(key: KeyContext, mut params: Params) -> c_int {
    caught(0, || {
        let Some(held) = key.get() else { return 0 };
        let Some(key) = &held.key else { return 0 };
        let cofactor = || Answer::Number(held.cofactor.into());
        let is_ec = matches!(key.kind.form, Form::Ec);
        c_int::from(params.answer(|name, _| match name {
            b"use-cofactor-flag" if is_ec => Some(cofactor()),
            _ => key.answer(name),
        }))
    })
}

extern "C" fn gettable(_home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

extern "C" fn operation_name<const N: usize>(asked: c_int) -> Text {
    let kind = &KINDS[N];
    let name = match asked {
        operation::SIGNATURE => kind.signs,
        operation::KEYEXCH => kind.agrees,
        _ => None,
    };
    Text::of(name.unwrap_or(kind.name))
}

extern "C" fn generator<const N: usize>(
    home: Home,
    selection: c_int,
    params: Params,
) -> Context<Generator> {
    begun(&home, &KINDS[N], selection, &params)
}

#[inline(never)]
fn begun(
    home: &Home,
    kind: &'static KeyKind,
    selection: c_int,
    params: &Params,
) -> Context<Generator> {
    let Some(provider) = home.get() else { return Context::null() };
    made(provider, || {
        let pair = selection & (select::PRIVATE | select::PUBLIC) != 0;
        if !pair && provider.mode == Mode::Keys {
            return Err(Failure::unsupported("keys are made here, and no parameters alone"));
        }
        let mut generator = Generator::new(Arc::clone(provider), kind, pair);
        generator.set(params)?;
        Ok(generator)
    })
}

extern "C" fn generator_like(mut generator: Context<Generator>, key: KeyContext) -> c_int {
    caught(0, || {
        let (Some(generator), Some(key)) = (generator.get_mut(), held(&key)) else { return 0 };
        generator.as_in(&key);
        1
    })
}

extern "C" fn generator_set(mut generator: Context<Generator>, params: Params) -> c_int {
    let Some(generator) = generator.get_mut() else { return 0 };
    let provider = Arc::clone(&generator.provider);
    answer(&provider, || generator.set(&params))
}

extern "C" fn generator_settable(_generator: Context<Generator>, _home: Home) -> Table<Param> {
    Table::of(&GENERATOR_SETTABLE)
}

extern "C" fn generate(
    generator: Context<Generator>,
    _progress: Callback,
    _argument: Argument,
) -> KeyContext {
    let Some(generator) = generator.get() else { return Context::null() };
    let provider = Arc::clone(&generator.provider);
    made(&generator.provider, || {
        let cofactor = generator.cofactor;
        Ok(Held { cofactor, ..Held::new(provider, Some(generator.run()?)) })
    })
}

extern "C" fn generator_free(generator: Context<Generator>) {
    caught((), || drop(generator.take()));
}

static GENERATOR_SETTABLE: [Param; 15] = [
    Param::named(COFACTOR, Kind::Integer),
    Param::named(PLACE, Kind::Utf8),
    Param::named(c"bits", Kind::Unsigned),
    Param::named(E, Kind::Unsigned),
    Param::named(c"primes", Kind::Unsigned),
    Param::named(c"p", Kind::Unsigned),
    Param::named(c"q", Kind::Unsigned),
    Param::named(c"g", Kind::Unsigned),
    Param::named(GROUP, Kind::Utf8),
    Param::named(c"encoding", Kind::Utf8),
    Param::named(c"seed", Kind::Octets),
    Param::named(c"digest", Kind::Utf8),
    Param::named(c"mgf1-digest", Kind::Utf8),
    Param::named(c"saltlen", Kind::Integer),
    Param::END,
];

static SETTABLE: [Param; 3] = [
    Param::named(c"encoded-pub-key", Kind::Octets),
    Param::named(COFACTOR, Kind::Integer),
    Param::END,
];

static RSA_PARTS: [Param; 12] = [
    Param::named(N, Kind::Unsigned),
    Param::named(E, Kind::Unsigned),
    Param::named(c"d", Kind::Unsigned),
    Param::named(c"rsa-factor1", Kind::Unsigned),
    Param::named(c"rsa-factor2", Kind::Unsigned),
    Param::named(c"rsa-exponent1", Kind::Unsigned),
    Param::named(c"rsa-exponent2", Kind::Unsigned),
    Param::named(c"rsa-coefficient1", Kind::Unsigned),
    Param::named(c"digest", Kind::Utf8),
    Param::named(c"mgf1-digest", Kind::Utf8),
    Param::named(c"saltlen", Kind::Integer),
    Param::END,
];
static EC_PARTS: [Param; 5] = [
    Param::named(COFACTOR, Kind::Integer),
    Param::named(GROUP, Kind::Utf8),
    Param::named(PUB, Kind::Octets),
    Param::named(c"priv", Kind::Unsigned),
    Param::END,
];
static FIELD_PARTS: [Param; 7] = [
    Param::named(GROUP, Kind::Utf8),
    Param::named(c"p", Kind::Unsigned),
    Param::named(c"q", Kind::Unsigned),
    Param::named(c"g", Kind::Unsigned),
    Param::named(PUB, Kind::Unsigned),
    Param::named(c"priv", Kind::Unsigned),
    Param::END,
];
static NUMBER_PARTS: [Param; 4] = [
    Param::named(PUB, Kind::Octets),
    Param::named(c"priv", Kind::Octets),
    Param::named(c"seed", Kind::Octets),
    Param::END,
];

static GETTABLE: [Param; 29] = [
    Param::named(c"field-type", Kind::Utf8),
    Param::named(COFACTOR, Kind::Integer),
    Param::named(c"bits", Kind::Integer),
    Param::named(c"security-bits", Kind::Integer),
    Param::named(c"max-size", Kind::Integer),
    Param::named(c"default-digest", Kind::Utf8),
    Param::named(c"mandatory-digest", Kind::Utf8),
    Param::named(N, Kind::Unsigned),
    Param::named(E, Kind::Unsigned),
    Param::named(GROUP, Kind::Utf8),
    Param::named(c"encoding", Kind::Utf8),
    Param::named(c"point-format", Kind::Utf8),
    Param::named(c"decoded-from-explicit", Kind::Integer),
    Param::named(PUB, Kind::Octets),
    Param::named(c"encoded-pub-key", Kind::Octets),
    Param::named(c"qx", Kind::Unsigned),
    Param::named(c"qy", Kind::Unsigned),
    Param::named(c"p", Kind::Unsigned),
    Param::named(c"q", Kind::Unsigned),
    Param::named(c"g", Kind::Unsigned),
    // Of keys of the program's own.
    Param::named(c"priv", Kind::Octets),
    Param::named(c"seed", Kind::Octets),
    Param::named(c"d", Kind::Unsigned),
    Param::named(c"rsa-factor1", Kind::Unsigned),
    Param::named(c"rsa-factor2", Kind::Unsigned),
    Param::named(c"rsa-exponent1", Kind::Unsigned),
    Param::named(c"rsa-exponent2", Kind::Unsigned),
    Param::named(c"rsa-coefficient1", Kind::Unsigned),
    Param::END,
];

const fn functions<const N: usize>() -> [Dispatch; 23] {
    [
        Dispatch::new(number::NEW, new as *const ()),
        Dispatch::new(number::FREE, free as *const ()),
        Dispatch::new(number::GEN_INIT, generator::<N> as *const ()),
        Dispatch::new(number::GEN_SET_TEMPLATE, generator_like as *const ()),
        Dispatch::new(number::GEN_SET_PARAMS, generator_set as *const ()),
        Dispatch::new(number::GEN_SETTABLE_PARAMS, generator_settable as *const ()),
        Dispatch::new(number::GEN, generate as *const ()),
        Dispatch::new(number::GEN_CLEANUP, generator_free as *const ()),
        Dispatch::new(number::LOAD, load as *const ()),
        Dispatch::new(number::DUP, copy as *const ()),
        Dispatch::new(number::HAS, has as *const ()),
        Dispatch::new(number::VALIDATE, validate as *const ()),
        Dispatch::new(number::MATCH, matches as *const ()),
        Dispatch::new(number::IMPORT, import::<N> as *const ()),
        Dispatch::new(number::IMPORT_TYPES, types::<N> as *const ()),
        Dispatch::new(number::EXPORT, export as *const ()),
        Dispatch::new(number::EXPORT_TYPES, types::<N> as *const ()),
        Dispatch::new(number::GET_PARAMS, get_params as *const ()),
        Dispatch::new(number::GETTABLE_PARAMS, gettable as *const ()),
        Dispatch::new(number::SET_PARAMS, set_params as *const ()),
        Dispatch::new(number::SETTABLE_PARAMS, settable as *const ()),
        Dispatch::new(number::QUERY_OPERATION_NAME, operation_name::<N> as *const ()),
        Dispatch::END,
    ]
}

static FUNCTIONS: [[Dispatch; 23]; COUNT] = for_each_kind!(functions);

const fn row<const N: usize>() -> Algorithm {
    Algorithm::new(KINDS[N].names, PROPERTIES, &FUNCTIONS[N])
}

static ROWS: [Algorithm; COUNT] = for_each_kind!(row);

/// Hybrid ones first.
pub(super) static ALGORITHMS: [Algorithm; hybrid::ROWS.len() + COUNT + 1] =
    joined(&hybrid::ROWS, &ROWS);

/// The mechanisms that a row needs.
pub(super) fn needs(row: usize) -> Needed {
    match GROUPS.get(row) {
        Some(group) => group.needs(),
        None => KINDS[row - GROUPS.len()].needs(),
    }
}
