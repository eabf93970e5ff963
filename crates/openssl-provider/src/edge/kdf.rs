// SPDX-License-Identifier: Apache-2.0
//! Key derivation (provider-kdf(7)).

use super::Home;
use super::work::{self, PROPERTIES, Row, with};
use crate::abi::numbers::kdf as number;
use crate::abi::{Algorithm, Context, Dispatch, Kind, Output, Param, Params, Table, caught_here};
use crate::bulk::Work as _;
use crate::bulk::kdf::{self, Kdf};
use metaslot_ck::{CKM_HKDF_DERIVE, CKM_PKCS5_PBKD2};
use std::ffi::c_int;

type KdfContext = Context<Kdf>;

const KINDS: [kdf::Kind; 3] = [kdf::Kind::Hkdf, kdf::Kind::Tls13, kdf::Kind::Pbkdf2];

extern "C" fn new<const N: usize>(home: Home) -> KdfContext {
    work::new(home, |provider| Kdf::new(provider, KINDS[N]))
}

extern "C" fn copy(context: KdfContext) -> KdfContext {
    work::copy(context, |kdf| Ok(kdf.clone()))
}

extern "C" fn reset(mut context: KdfContext) {
    caught_here((), || context.get_mut().map(Kdf::reset).unwrap_or_default());
}

extern "C" fn derive(context: KdfContext, mut out: Output, length: usize, params: Params) -> c_int {
    with(context, |kdf| {
        kdf.set(&params)?;
        kdf.derive(out.of(length).unwrap_or_default())
    })
}

extern "C" fn gettable(_context: KdfContext, _home: Home) -> Table<Param> {
    Table::of(&GETTABLE[1..])
}

extern "C" fn gettable_of_hkdf(_context: KdfContext, _home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

extern "C" fn settable(_context: KdfContext, _home: Home) -> Table<Param> {
    Table::of(&SETTABLE)
}

/// The first is of HKDF only.
static GETTABLE: [Param; 3] =
    [Param::named(c"info", Kind::Octets), Param::named(c"size", Kind::Unsigned), Param::END];

static SETTABLE: [Param; 13] = [
    Param::named(c"digest", Kind::Utf8),
    Param::named(c"properties", Kind::Utf8),
    Param::named(c"mode", Kind::Utf8),
    Param::named(c"key", Kind::Octets),
    Param::named(c"pass", Kind::Octets),
    Param::named(c"salt", Kind::Octets),
    Param::named(c"info", Kind::Octets),
    Param::named(c"prefix", Kind::Octets),
    Param::named(c"label", Kind::Octets),
    Param::named(c"data", Kind::Octets),
    Param::named(c"iter", Kind::Unsigned),
    Param::named(c"pkcs5", Kind::Integer),
    Param::END,
];

const fn functions<const N: usize>() -> [Dispatch; 10] {
    [
        Dispatch::new(number::NEWCTX, new::<N> as *const ()),
        Dispatch::new(number::FREECTX, work::free::<Kdf> as *const ()),
        Dispatch::new(number::DUPCTX, copy as *const ()),
        Dispatch::new(number::RESET, reset as *const ()),
        Dispatch::new(number::DERIVE, derive as *const ()),
        Dispatch::new(number::SET_CTX_PARAMS, work::set::<Kdf> as *const ()),
        Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
        Dispatch::new(number::GET_CTX_PARAMS, work::get::<Kdf> as *const ()),
        match KINDS[N] {
            kdf::Kind::Hkdf => {
                Dispatch::new(number::GETTABLE_CTX_PARAMS, gettable_of_hkdf as *const ())
            }
            _ => Dispatch::new(number::GETTABLE_CTX_PARAMS, gettable as *const ()),
        },
        Dispatch::END,
    ]
}

static TABLES: [[Dispatch; 10]; 3] = [functions::<0>(), functions::<1>(), functions::<2>()];

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = Row> {
    let names = [c"HKDF", c"TLS13-KDF", c"PBKDF2:1.2.840.113549.1.5.12"];
    let needs = [CKM_HKDF_DERIVE, CKM_HKDF_DERIVE, CKM_PKCS5_PBKD2];
    names.into_iter().zip(needs).zip(&TABLES).map(|((names, needs), functions)| Row {
        needs,
        algorithm: Algorithm::new(names, PROPERTIES, functions),
    })
}
