// SPDX-License-Identifier: Apache-2.0
//! Signatures (provider-signature(7)). One table for all kinds of keys: which one it is, the key says.

use super::context::{self, with, with_pause};
use super::keymgmt::{KeyContext, held};
use super::{Home, PROPERTIES, ended, output};
use crate::abi::numbers::signature as number;
use crate::abi::{
    Algorithm, Context, Dispatch, Input, Kind, Output, Param, Params, Place, Table, Text,
};
use crate::kind::{Does, Form, KINDS, KeyKind, Needed, Number};
use crate::sign::Signature;
use metaslot_ck::*;
use std::ffi::c_int;

type SignatureContext = Context<Signature>;

/// What is given is what is signed.
extern "C" fn begin(context: SignatureContext, key: KeyContext, params: Params) -> c_int {
    with(context, |signature| signature.begin(held(&key), None, &params))
}

/// What is given is hashed first.
extern "C" fn begin_hashing(
    context: SignatureContext,
    hash: Text,
    key: KeyContext,
    params: Params,
) -> c_int {
    with(context, |signature| signature.begin(held(&key), Some(hash.get()), &params))
}

extern "C" fn sign(
    context: SignatureContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
    data: Input,
    size: usize,
) -> c_int {
    with_pause(context, |signature| {
        let made = || signature.sign(data.of(size));
        output(&mut out, &mut length, room, || signature.length(), made)
    })
}

extern "C" fn verify(
    context: SignatureContext,
    given: Input,
    length: usize,
    data: Input,
    size: usize,
) -> c_int {
    with(context, |signature| signature.verify(data.of(size), given.of(length)))
}

extern "C" fn recover(
    context: SignatureContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
    given: Input,
    size: usize,
) -> c_int {
    with(context, |signature| {
        let made = || signature.recover(given.of(size));
        output(&mut out, &mut length, room, || signature.length(), made)
    })
}

extern "C" fn update(context: SignatureContext, data: Input, size: usize) -> c_int {
    with(context, |signature| signature.update(data.of(size)))
}

extern "C" fn finish(
    context: SignatureContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
) -> c_int {
    with_pause(context, |signature| {
        let longest = signature.length();
        output(&mut out, &mut length, room, || longest, || signature.finish())
    })
}

extern "C" fn check(context: SignatureContext, given: Input, length: usize) -> c_int {
    with(context, |signature| signature.check(given.of(length)))
}

extern "C" fn sign_message(
    context: SignatureContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
    data: Input,
    size: usize,
) -> c_int {
    with_pause(context, |signature| {
        let longest = signature.length();
        let made = || signature.sign_message(data.of(size));
        output(&mut out, &mut length, room, || longest, made)
    })
}

extern "C" fn verify_message(
    context: SignatureContext,
    given: Input,
    length: usize,
    data: Input,
    size: usize,
) -> c_int {
    with(context, |signature| signature.verify_message(data.of(size), given.of(length)))
}

/// What is given is the message.
extern "C" fn begin_message(context: SignatureContext, key: KeyContext, params: Params) -> c_int {
    with(context, |signature| signature.begin_message(held(&key), &params))
}

extern "C" fn check_given(context: SignatureContext) -> c_int {
    with(context, Signature::check_given)
}

extern "C" fn settable(_context: SignatureContext, _home: Home) -> Table<Param> {
    Table::of(&SETTABLE)
}

extern "C" fn gettable(_context: SignatureContext, _home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

static SETTABLE: [Param; 10] = [
    Param::named(c"digest", Kind::Utf8),
    Param::named(c"properties", Kind::Utf8),
    Param::named(c"pad-mode", Kind::Utf8),
    Param::named(c"saltlen", Kind::Utf8),
    Param::named(c"mgf1-digest", Kind::Utf8),
    Param::named(c"context-string", Kind::Octets),
    Param::named(c"instance", Kind::Utf8),
    Param::named(c"deterministic", Kind::Integer),
    Param::named(c"signature", Kind::Octets),
    Param::END,
];

static GETTABLE: [Param; 6] = [
    Param::named(c"algorithm-id", Kind::Octets),
    Param::named(c"digest", Kind::Utf8),
    Param::named(c"pad-mode", Kind::Utf8),
    Param::named(c"saltlen", Kind::Utf8),
    Param::named(c"mgf1-digest", Kind::Utf8),
    Param::END,
];

static FUNCTIONS: [Dispatch; 28] = [
    Dispatch::new(number::NEWCTX, context::new_with::<Signature> as *const ()),
    Dispatch::new(number::FREECTX, context::free::<Signature> as *const ()),
    Dispatch::new(number::DUPCTX, context::copy::<Signature> as *const ()),
    Dispatch::new(number::SIGN_INIT, begin as *const ()),
    Dispatch::new(number::SIGN, sign as *const ()),
    Dispatch::new(number::VERIFY_INIT, begin as *const ()),
    Dispatch::new(number::VERIFY, verify as *const ()),
    Dispatch::new(number::VERIFY_RECOVER_INIT, begin as *const ()),
    Dispatch::new(number::VERIFY_RECOVER, recover as *const ()),
    Dispatch::new(number::DIGEST_SIGN_INIT, begin_hashing as *const ()),
    Dispatch::new(number::DIGEST_SIGN_UPDATE, update as *const ()),
    Dispatch::new(number::DIGEST_SIGN_FINAL, finish as *const ()),
    Dispatch::new(number::DIGEST_SIGN, sign_message as *const ()),
    Dispatch::new(number::DIGEST_VERIFY_INIT, begin_hashing as *const ()),
    Dispatch::new(number::DIGEST_VERIFY_UPDATE, update as *const ()),
    Dispatch::new(number::DIGEST_VERIFY_FINAL, check as *const ()),
    Dispatch::new(number::DIGEST_VERIFY, verify_message as *const ()),
    Dispatch::new(number::SIGN_MESSAGE_INIT, begin_message as *const ()),
    Dispatch::new(number::SIGN_MESSAGE_UPDATE, update as *const ()),
    Dispatch::new(number::SIGN_MESSAGE_FINAL, finish as *const ()),
    Dispatch::new(number::VERIFY_MESSAGE_INIT, begin_message as *const ()),
    Dispatch::new(number::VERIFY_MESSAGE_UPDATE, update as *const ()),
    Dispatch::new(number::VERIFY_MESSAGE_FINAL, check_given as *const ()),
    Dispatch::new(number::GET_CTX_PARAMS, context::get::<Signature> as *const ()),
    Dispatch::new(number::GETTABLE_CTX_PARAMS, gettable as *const ()),
    Dispatch::new(number::SET_CTX_PARAMS, context::set::<Signature> as *const ()),
    Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::END,
];

/// RSA, ECDSA, and what each kind of numbers and DSA sign by.
const COUNT: usize = 2 + signing();

const fn signs(kind: &KeyKind) -> bool {
    matches!(kind.form, Form::Number(Number { does: Does::Sign(_), .. }) | Form::Field(CKM_DSA))
}

const fn signing() -> usize {
    let (mut kind, mut count) = (0, 0);
    while kind < KINDS.len() {
        count += signs(&KINDS[kind]) as usize;
        kind += 1;
    }
    count
}

static ROWS: [Algorithm; COUNT] = {
    let rsa = Algorithm::new(c"RSA:rsaEncryption:1.2.840.113549.1.1.1", PROPERTIES, &FUNCTIONS);
    let mut rows = [rsa; COUNT];
    rows[1] = Algorithm::new(c"ECDSA", PROPERTIES, &FUNCTIONS);
    let (mut kind, mut place) = (0, 2);
    while kind < KINDS.len() {
        if signs(&KINDS[kind]) {
            rows[place] = Algorithm::new(KINDS[kind].names, PROPERTIES, &FUNCTIONS);
            place += 1;
        }
        kind += 1;
    }
    rows
};

pub(super) static ALGORITHMS: [Algorithm; COUNT + 1] = ended(&ROWS);

/// The mechanisms that a row needs.
pub(super) fn needs(row: usize) -> Needed {
    match row {
        0 => [CKM_RSA_PKCS; 2],
        1 => [CKM_ECDSA; 2],
        _ => KINDS.iter().filter(|kind| signs(kind)).nth(row - 2).map_or([0; 2], KeyKind::needs),
    }
}
