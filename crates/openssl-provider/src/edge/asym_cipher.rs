// SPDX-License-Identifier: Apache-2.0
//! Asymmetric ciphers (provider-asym_cipher(7)).

use super::context::{self, with};
use super::keymgmt::{KeyContext, held};
use super::{Home, PROPERTIES, output};
use crate::abi::numbers::asym_cipher as number;
use crate::abi::{Algorithm, Context, Dispatch, Input, Kind, Output, Param, Params, Place, Table};
use crate::cipher::Cipher;
use std::ffi::c_int;

type CipherContext = Context<Cipher>;

extern "C" fn begin(context: CipherContext, key: KeyContext, params: Params) -> c_int {
    with(context, |cipher| cipher.begin(held(&key), &params))
}

extern "C" fn encrypt(
    context: CipherContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
    data: Input,
    size: usize,
) -> c_int {
    with(context, |cipher| {
        output(&mut out, &mut length, room, || cipher.length(), || cipher.encrypt(data.of(size)))
    })
}

extern "C" fn decrypt(
    context: CipherContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
    data: Input,
    size: usize,
) -> c_int {
    with(context, |cipher| {
        output(&mut out, &mut length, room, || cipher.length(), || cipher.decrypt(data.of(size)))
    })
}

extern "C" fn settable(_context: CipherContext, _home: Home) -> Table<Param> {
    Table::of(&PARAMS)
}

static PARAMS: [Param; 9] = [
    Param::named(c"pad-mode", Kind::Utf8),
    Param::named(c"digest", Kind::Utf8),
    Param::named(c"digest-props", Kind::Utf8),
    Param::named(c"mgf1-digest", Kind::Utf8),
    Param::named(c"mgf1-properties", Kind::Utf8),
    Param::named(c"oaep-label", Kind::Octets),
    Param::named(c"tls-client-version", Kind::Unsigned),
    Param::named(c"tls-negotiated-version", Kind::Unsigned),
    Param::END,
];

static FUNCTIONS: [Dispatch; 12] = [
    Dispatch::new(number::NEWCTX, context::new::<Cipher> as *const ()),
    Dispatch::new(number::FREECTX, context::free::<Cipher> as *const ()),
    Dispatch::new(number::DUPCTX, context::copy::<Cipher> as *const ()),
    Dispatch::new(number::ENCRYPT_INIT, begin as *const ()),
    Dispatch::new(number::ENCRYPT, encrypt as *const ()),
    Dispatch::new(number::DECRYPT_INIT, begin as *const ()),
    Dispatch::new(number::DECRYPT, decrypt as *const ()),
    Dispatch::new(number::GET_CTX_PARAMS, context::get::<Cipher> as *const ()),
    Dispatch::new(number::GETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::new(number::SET_CTX_PARAMS, context::set::<Cipher> as *const ()),
    Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::END,
];

pub(super) static ALGORITHMS: [Algorithm; 2] = [
    Algorithm::new(c"RSA:rsaEncryption:1.2.840.113549.1.1.1", PROPERTIES, &FUNCTIONS),
    Algorithm::END,
];
