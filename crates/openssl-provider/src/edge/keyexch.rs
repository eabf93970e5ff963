// SPDX-License-Identifier: Apache-2.0
//! Key exchange (provider-keyexch(7)).

use super::context::{self, with};
use super::keymgmt::{KeyContext, has_cofactor, held};
use super::{Home, PROPERTIES, output};
use crate::abi::numbers::keyexch as number;
use crate::abi::{Algorithm, Context, Dispatch, Kind, Output, Param, Params, Place, Table};
use crate::exchange::Exchange;
use crate::kind::{KeyKind, Needed};
use crate::operation::Operation as _;
use metaslot_ck::*;
use std::ffi::c_int;

type ExchangeContext = Context<Exchange>;

extern "C" fn begin(context: ExchangeContext, key: KeyContext, params: Params) -> c_int {
    with(context, |exchange| {
        exchange.begin(held(&key), has_cofactor(&key))?;
        exchange.set(&params)
    })
}

extern "C" fn set_peer(context: ExchangeContext, peer: KeyContext) -> c_int {
    with(context, |exchange| exchange.with(held(&peer)))
}

extern "C" fn derive(
    context: ExchangeContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
) -> c_int {
    with(context, |exchange| {
        let cuts = room > 0 && !out.is_null() && exchange.is_cut();
        let most = if cuts { room } else { usize::MAX };
        let longest = || Ok(exchange.length()?.min(most));
        output(&mut out, &mut length, room, longest, || exchange.derive(most))
    })
}

extern "C" fn settable(_context: ExchangeContext, _home: Home) -> Table<Param> {
    Table::of(&SETTABLE)
}

static SETTABLE: [Param; 7] = [
    Param::named(c"pad", Kind::Unsigned),
    Param::named(c"ecdh-cofactor-mode", Kind::Integer),
    Param::named(c"kdf-type", Kind::Utf8),
    Param::named(c"kdf-digest", Kind::Utf8),
    Param::named(c"kdf-outlen", Kind::Unsigned),
    Param::named(c"kdf-ukm", Kind::Octets),
    Param::END,
];

static FUNCTIONS: [Dispatch; 11] = [
    Dispatch::new(number::NEWCTX, context::new::<Exchange> as *const ()),
    Dispatch::new(number::FREECTX, context::free::<Exchange> as *const ()),
    Dispatch::new(number::DUPCTX, context::copy::<Exchange> as *const ()),
    Dispatch::new(number::INIT, begin as *const ()),
    Dispatch::new(number::SET_PEER, set_peer as *const ()),
    Dispatch::new(number::DERIVE, derive as *const ()),
    Dispatch::new(number::SET_CTX_PARAMS, context::set::<Exchange> as *const ()),
    Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::new(number::GET_CTX_PARAMS, context::get::<Exchange> as *const ()),
    Dispatch::new(number::GETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::END,
];

pub(super) static ALGORITHMS: [Algorithm; 5] = [
    Algorithm::new(c"ECDH", PROPERTIES, &FUNCTIONS),
    Algorithm::new(KeyKind::named(c"X25519").names, PROPERTIES, &FUNCTIONS),
    Algorithm::new(KeyKind::named(c"X448").names, PROPERTIES, &FUNCTIONS),
    Algorithm::new(KeyKind::named(c"DH").names, PROPERTIES, &FUNCTIONS),
    Algorithm::END,
];

/// The mechanisms that a row needs.
pub(super) const fn needs(row: usize) -> Needed {
    match row {
        0 => [CKM_ECDH1_DERIVE, CKM_EC_KEY_PAIR_GEN],
        3 => [CKM_DH_PKCS_DERIVE, CKM_DH_PKCS_KEY_PAIR_GEN],
        _ => [CKM_ECDH1_DERIVE, CKM_EC_MONTGOMERY_KEY_PAIR_GEN],
    }
}
