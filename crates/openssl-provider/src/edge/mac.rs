// SPDX-License-Identifier: Apache-2.0
//! Message authentication codes (provider-mac(7)).

use super::Home;
use super::work::{self, PROPERTIES, Row, with};
use crate::abi::numbers::mac as number;
use crate::abi::{Algorithm, Context, Dispatch, Input, Kind, Output, Param, Params, Place, Table};
use crate::bulk::mac::{self, Mac};
use metaslot_ck::{CKM_AES_CMAC, CKM_AES_GMAC, CKM_SHA256_HMAC};
use std::ffi::c_int;

type MacContext = Context<Mac>;

const KINDS: [mac::Kind; 3] = [mac::Kind::Hmac, mac::Kind::Cmac, mac::Kind::Gmac];

extern "C" fn new<const N: usize>(home: Home) -> MacContext {
    work::new(home, |provider| Mac::new(provider, KINDS[N]))
}

extern "C" fn copy(context: MacContext) -> MacContext {
    work::copy(context, Mac::copy)
}

extern "C" fn begin(context: MacContext, key: Input, length: usize, params: Params) -> c_int {
    with(context, |mac| mac.begin((!key.is_null()).then(|| key.of(length)), &params))
}

extern "C" fn update(context: MacContext, data: Input, size: usize) -> c_int {
    with(context, |mac| mac.update(data.of(size)))
}

extern "C" fn finish(
    context: MacContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
) -> c_int {
    with(context, |mac| {
        length.set(mac.finish(out.of(room).unwrap_or_default())?);
        Ok(())
    })
}

extern "C" fn gettable(_context: MacContext, _home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

extern "C" fn settable(_context: MacContext, _home: Home) -> Table<Param> {
    Table::of(&SETTABLE)
}

static GETTABLE: [Param; 3] = [
    Param::named(c"size", Kind::Unsigned),
    Param::named(c"block-size", Kind::Unsigned),
    Param::END,
];

static SETTABLE: [Param; 7] = [
    Param::named(c"digest", Kind::Utf8),
    Param::named(c"cipher", Kind::Utf8),
    Param::named(c"properties", Kind::Utf8),
    Param::named(c"key", Kind::Octets),
    Param::named(c"iv", Kind::Octets),
    Param::named(c"tls-data-size", Kind::Unsigned),
    Param::END,
];

const fn functions<const N: usize>() -> [Dispatch; 11] {
    [
        Dispatch::new(number::NEWCTX, new::<N> as *const ()),
        Dispatch::new(number::FREECTX, work::free::<Mac> as *const ()),
        Dispatch::new(number::DUPCTX, copy as *const ()),
        Dispatch::new(number::INIT, begin as *const ()),
        Dispatch::new(number::UPDATE, update as *const ()),
        Dispatch::new(number::FINAL, finish as *const ()),
        Dispatch::new(number::SET_CTX_PARAMS, work::set::<Mac> as *const ()),
        Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
        Dispatch::new(number::GET_CTX_PARAMS, work::get::<Mac> as *const ()),
        Dispatch::new(number::GETTABLE_CTX_PARAMS, gettable as *const ()),
        Dispatch::END,
    ]
}

static TABLES: [[Dispatch; 11]; 3] = [functions::<0>(), functions::<1>(), functions::<2>()];

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = Row> {
    let names = [c"HMAC", c"CMAC", c"GMAC:1.0.9797.3.4"];
    let needs = [CKM_SHA256_HMAC, CKM_AES_CMAC, CKM_AES_GMAC];
    names.into_iter().zip(needs).zip(&TABLES).map(|((names, needs), functions)| Row {
        needs,
        algorithm: Algorithm::new(names, PROPERTIES, functions),
    })
}
