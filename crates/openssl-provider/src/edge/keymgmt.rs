// SPDX-License-Identifier: Apache-2.0
//! Key management (provider-keymgmt(7)).

use super::{Home, PROPERTIES, answer, ended, made};
use crate::abi::numbers::{keymgmt as number, operation, select};
use crate::abi::{
    Algorithm, Argument, Callback, Context, Dispatch, Kind, Param, Params, Reference, Table, Text,
    caught,
};
use crate::failure::Failure;
use crate::generate::{Generator, PLACE};
use crate::key::Key;
use crate::kind::{COUNT, Form, KINDS, for_each_kind};
use crate::provider::Provider;
use crate::public::{E, GROUP, N, PUB, Public};
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// What libcrypto holds: a key, or one that is to be imported.
#[derive(Clone, Debug)]
pub(super) struct Held {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
}

pub(super) type KeyContext = Context<Held>;

/// The key that libcrypto holds.
pub(super) fn held(context: &KeyContext) -> Option<Arc<Key>> {
    context.get()?.key.clone()
}

/// What stays with the provider that loaded it: keys of the program's own, by their secret parts, and keys of RSA-PSS that name
/// their only hash function, which is not kept here.
const FOREIGN_PARTS: [&CStr; 4] = [c"d", c"priv", c"digest", c"saltlen"];

extern "C" fn new(home: Home) -> KeyContext {
    caught(Context::null(), || match home.get() {
        Some(provider) => Context::new(Held { provider: Arc::clone(provider), key: None }),
        None => Context::null(),
    })
}

extern "C" fn free(key: KeyContext) {
    caught((), || drop(key.take()));
}

extern "C" fn load(reference: Reference, size: usize) -> KeyContext {
    caught(Context::null(), || match Key::arrived(reference.of(size)) {
        Some(key) => Context::new(Held { provider: Arc::clone(&key.provider), key: Some(key) }),
        None => Context::null(),
    })
}

extern "C" fn copy(key: KeyContext, _selection: c_int) -> KeyContext {
    caught(Context::null(), || key.get().map_or(Context::null(), |held| Context::new(held.clone())))
}

extern "C" fn has(key: KeyContext, selection: c_int) -> c_int {
    caught(0, || {
        let Some(key) = held(&key) else { return c_int::from(selection == 0) };
        let private = selection & select::PRIVATE == 0 || key.private.is_some();
        let public = selection & select::PUBLIC == 0 || key.public.is_known();
        c_int::from(private && public)
    })
}

/// The token sees to its own keys, and is asked about a public key that came from elsewhere.
extern "C" fn validate(context: KeyContext, selection: c_int, _how: c_int) -> c_int {
    caught(0, || {
        let foreign = held(&context).filter(|key| key.private.is_none());
        let Some(key) = foreign.filter(|_| selection & select::PUBLIC != 0) else {
            return has(context, selection);
        };
        let taken = || key.with_public("check", |_, _| Ok(()));
        c_int::from(key.public.is_sound() && answer(&key.provider, taken) != 0)
    })
}

extern "C" fn matches(one: KeyContext, other: KeyContext, selection: c_int) -> c_int {
    caught(0, || {
        let (Some(one), Some(other)) = (held(&one), held(&other)) else { return 0 };
        let same = if selection & (select::PUBLIC | select::PRIVATE) != 0 {
            one.public.is_known() && one.public.is(&other.public)
        } else {
            match (&one.public, &other.public) {
                (Public::Ec { curve, .. }, Public::Ec { curve: another, .. }) => curve == another,
                _ => true,
            }
        };
        c_int::from(same && one.kind.key_type == other.kind.key_type)
    })
}

extern "C" fn import<const N: usize>(
    mut key: KeyContext,
    selection: c_int,
    params: Params,
) -> c_int {
    caught(0, || {
        let Some(held) = key.get_mut() else { return 0 };
        if FOREIGN_PARTS.iter().any(|name| params.find(name).is_some()) {
            return 0;
        }
        let kind = &KINDS[N];
        let Some(public) = Public::of_params(kind, &params) else { return 0 };
        if selection & select::PUBLIC != 0 && !(public.is_known() && public.has_form()) {
            return 0;
        }
        held.key = Some(Arc::new(Key::public(Arc::clone(&held.provider), kind, public)));
        1
    })
}

/// Nothing is exported where the private half is asked for: libcrypto then comes to this provider with what it has to sign.
extern "C" fn export(
    key: KeyContext,
    selection: c_int,
    callback: Callback,
    argument: Argument,
) -> c_int {
    caught(0, || {
        let Some(key) = held(&key) else { return 0 };
        let wants_private = selection & select::PRIVATE != 0 && key.private.is_some();
        if wants_private || selection & select::PUBLIC != 0 && !key.public.is_known() {
            return 0;
        }
        c_int::from(key.public.params().build(|params| callback.call(params, argument)))
    })
}

extern "C" fn types<const N: usize>(_selection: c_int) -> Table<Param> {
    match KINDS[N].form {
        Form::Rsa { .. } => Table::of(&RSA_PARTS),
        Form::Ec => Table::of(&EC_PARTS),
        Form::Number(_) => Table::of(&NUMBER_PARTS),
    }
}

extern "C" fn get_params(key: KeyContext, mut params: Params) -> c_int {
    caught(0, || {
        let Some(key) = held(&key) else { return 0 };
        c_int::from(params.answer(|name, _| key.public.answer(key.kind, name)))
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
    let Some(provider) = home.get() else { return Context::null() };
    made(provider, || {
        if selection & select::PRIVATE == 0 {
            return Err(Failure::unsupported("keys are made here, and no parameters alone"));
        }
        let mut generator = Generator::new(Arc::clone(provider), &KINDS[N]);
        generator.set(&params)?;
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
    made(&generator.provider, || Ok(Held { provider, key: Some(generator.run()?) }))
}

extern "C" fn generator_free(generator: Context<Generator>) {
    caught((), || drop(generator.take()));
}

static GENERATOR_SETTABLE: [Param; 6] = [
    Param::named(PLACE, Kind::Utf8),
    Param::named(c"bits", Kind::Unsigned),
    Param::named(E, Kind::Unsigned),
    Param::named(GROUP, Kind::Utf8),
    Param::named(c"encoding", Kind::Utf8),
    Param::END,
];

static RSA_PARTS: [Param; 3] =
    [Param::named(N, Kind::Unsigned), Param::named(E, Kind::Unsigned), Param::END];
static EC_PARTS: [Param; 3] =
    [Param::named(GROUP, Kind::Utf8), Param::named(PUB, Kind::Octets), Param::END];
static NUMBER_PARTS: [Param; 2] = [Param::named(PUB, Kind::Octets), Param::END];

static GETTABLE: [Param; 16] = [
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
    Param::END,
];

const fn functions<const N: usize>() -> [Dispatch; 21] {
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
        Dispatch::new(number::QUERY_OPERATION_NAME, operation_name::<N> as *const ()),
        Dispatch::END,
    ]
}

static FUNCTIONS: [[Dispatch; 21]; COUNT] = for_each_kind!(functions);

const fn row<const N: usize>() -> Algorithm {
    Algorithm::new(KINDS[N].names, PROPERTIES, &FUNCTIONS[N])
}

static ROWS: [Algorithm; COUNT] = for_each_kind!(row);

pub(super) static ALGORITHMS: [Algorithm; COUNT + 1] = ended(&ROWS);
