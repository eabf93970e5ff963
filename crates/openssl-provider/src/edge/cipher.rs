// SPDX-License-Identifier: Apache-2.0
//! Ciphers (provider-cipher(7)).

use super::Home;
use super::work::{self, PROPERTIES, Row, with};
use crate::abi::numbers::cipher as number;
use crate::abi::{
    Algorithm, Answer, Context, Dispatch, Input, Kind, Output, Param, Params, Place, Table,
    caught_here,
};
use crate::bulk::cipher::{self, Pass, ROWS};
use crate::bulk::message::Cipher;
use crate::failure::Result;
use crate::kind::for_each;
use metaslot_memory::PerProcess;
use std::ffi::c_int;

type CipherContext = Context<Cipher>;

extern "C" fn new<const N: usize>(home: Home) -> CipherContext {
    work::new(home, |provider| Cipher::new((*provider).clone(), &ROWS[N]))
}

extern "C" fn copy(context: CipherContext) -> CipherContext {
    work::copy(context, Cipher::copy)
}

extern "C" fn encrypt(
    context: CipherContext,
    key: Input,
    key_length: usize,
    iv: Input,
    iv_length: usize,
    params: Params,
) -> c_int {
    begin(context, true, key.of(key_length), iv.of(iv_length), &params)
}

extern "C" fn decrypt(
    context: CipherContext,
    key: Input,
    key_length: usize,
    iv: Input,
    iv_length: usize,
    params: Params,
) -> c_int {
    begin(context, false, key.of(key_length), iv.of(iv_length), &params)
}

fn begin(context: CipherContext, forward: bool, key: &[u8], iv: &[u8], params: &Params) -> c_int {
    with(context, |cipher| {
        cipher.begin(forward, key, iv)?;
        cipher.set(params)
    })
}

/// Something done with data.
fn passed(
    context: CipherContext,
    (mut out, mut length, room): (Output, Place<usize>, usize),
    (data, size): (Input, usize),
    call: impl FnOnce(&mut Cipher, Pass<'_>) -> Result<usize>,
) -> c_int {
    with(context, |cipher| {
        let pass = Pass { data: &data, length: size, out: &mut out, room };
        length.set(call(cipher, pass)?);
        Ok(())
    })
}

extern "C" fn update(
    context: CipherContext,
    out: Output,
    length: Place<usize>,
    room: usize,
    data: Input,
    size: usize,
) -> c_int {
    passed(context, (out, length, room), (data, size), Cipher::update)
}

extern "C" fn finish(
    context: CipherContext,
    out: Output,
    length: Place<usize>,
    room: usize,
) -> c_int {
    passed(context, (out, length, room), (Input::null(), 0), Cipher::finish)
}

extern "C" fn whole(
    context: CipherContext,
    out: Output,
    length: Place<usize>,
    room: usize,
    data: Input,
    size: usize,
) -> c_int {
    passed(context, (out, length, room), (data, size), Cipher::whole)
}

extern "C" fn set(context: CipherContext, params: Params) -> c_int {
    with(context, |cipher| cipher.set(&params))
}

extern "C" fn get(mut context: CipherContext, mut params: Params) -> c_int {
    caught_here(0, || {
        let Some(cipher) = context.get_mut() else { return 0 };
        let (mut counted, mut tag) = (None, 0);
        for (name, given) in params.each() {
            match (name, &mut *cipher) {
                (b"tlsivgen", Cipher::Aead(cipher)) => {
                    counted = cipher.counted(given.size());
                    if counted.is_none() {
                        return 0;
                    }
                }
                (b"tag", _) => tag = given.size(),
                _ => {}
            }
        }
        let wrong = tag > 0 && cipher.answer(b"tag", tag).is_none();
        let known = |name: &[u8], _| match name {
            b"tlsivgen" => counted.clone().map(Answer::Own),
            _ => cipher.answer(name, tag),
        };
        c_int::from(params.answer(known) && !wrong)
    })
}

extern "C" fn get_params<const N: usize>(params: Params) -> c_int {
    said(&ROWS[N], params)
}

fn said(row: &cipher::Row, params: Params) -> c_int {
    work::said(params, |name| row.answer(name))
}

extern "C" fn gettable(_home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

extern "C" fn gettable_here(_context: CipherContext, _home: Home) -> Table<Param> {
    Table::of(&GETTABLE_HERE)
}

extern "C" fn settable(_context: CipherContext, _home: Home) -> Table<Param> {
    Table::of(&SETTABLE)
}

static GETTABLE: [Param; 10] = [
    Param::named(c"mode", Kind::Unsigned),
    Param::named(c"keylen", Kind::Unsigned),
    Param::named(c"ivlen", Kind::Unsigned),
    Param::named(c"blocksize", Kind::Unsigned),
    Param::named(c"aead", Kind::Integer),
    Param::named(c"custom-iv", Kind::Integer),
    Param::named(c"cts", Kind::Integer),
    Param::named(c"tls-multi", Kind::Integer),
    Param::named(c"has-randkey", Kind::Integer),
    Param::END,
];

static GETTABLE_HERE: [Param; 12] = [
    Param::named(c"keylen", Kind::Unsigned),
    Param::named(c"ivlen", Kind::Unsigned),
    Param::named(c"padding", Kind::Unsigned),
    Param::named(c"num", Kind::Unsigned),
    Param::named(c"taglen", Kind::Unsigned),
    Param::named(c"iv", Kind::Octets),
    Param::named(c"updated-iv", Kind::Octets),
    Param::named(c"tag", Kind::Octets),
    Param::named(c"tlsaadpad", Kind::Unsigned),
    Param::named(c"tlsivgen", Kind::Octets),
    Param::named(c"tls-mac", Kind::OctetPointer),
    Param::END,
];

static SETTABLE: [Param; 11] = [
    Param::named(c"keylen", Kind::Unsigned),
    Param::named(c"ivlen", Kind::Unsigned),
    Param::named(c"padding", Kind::Unsigned),
    Param::named(c"num", Kind::Unsigned),
    Param::named(c"tag", Kind::Octets),
    Param::named(c"tlsaad", Kind::Octets),
    Param::named(c"tlsivfixed", Kind::Octets),
    Param::named(c"tlsivinv", Kind::Octets),
    Param::named(c"tls-version", Kind::Unsigned),
    Param::named(c"tls-mac-size", Kind::Unsigned),
    Param::END,
];

/// How many there are of each algorithm, with the end.
const FUNCTIONS: usize = 15;

/// What is another function for each row: libcrypto passes no row.
type OfRow = (extern "C" fn(Home) -> CipherContext, extern "C" fn(Params) -> c_int);

const fn of_row<const N: usize>() -> OfRow {
    (new::<N>, get_params::<N>)
}

static OF_ROWS: [OfRow; ROWS.len()] = for_each!(of_row 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35);

fn functions(row: &cipher::Row, (new, get_params): OfRow) -> [Dispatch; FUNCTIONS] {
    [
        Dispatch::new(number::NEWCTX, new as *const ()),
        Dispatch::new(number::FREECTX, work::free::<Cipher> as *const ()),
        Dispatch::new(number::DUPCTX, copy as *const ()),
        Dispatch::new(number::ENCRYPT_INIT, encrypt as *const ()),
        Dispatch::new(number::DECRYPT_INIT, decrypt as *const ()),
        Dispatch::new(number::UPDATE, update as *const ()),
        Dispatch::new(number::FINAL, finish as *const ()),
        // libcrypto tells by it what EVP_Cipher(3) answers.
        match row.wraps() {
            true => Dispatch::new(number::UPDATE, update as *const ()),
            false => Dispatch::new(number::CIPHER, whole as *const ()),
        },
        Dispatch::new(number::SET_CTX_PARAMS, set as *const ()),
        Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
        Dispatch::new(number::GET_CTX_PARAMS, get as *const ()),
        Dispatch::new(number::GETTABLE_CTX_PARAMS, gettable_here as *const ()),
        Dispatch::new(number::GET_PARAMS, get_params as *const ()),
        Dispatch::new(number::GETTABLE_PARAMS, gettable as *const ()),
        Dispatch::END,
    ]
}

/// Made when they are asked for first: in the file each would take twice as much for its relocations, in mode `keys`, too. Forked children have
/// their parent's.
static TABLES: PerProcess<&'static [[Dispatch; FUNCTIONS]]> = PerProcess::new(|old| match old {
    Some(tables) => tables,
    None => {
        let tables = ROWS.iter().zip(OF_ROWS).map(|(row, own)| functions(row, own));
        tables.collect::<Vec<_>>().leak()
    }
});

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = Row> {
    ROWS.iter().zip(*TABLES.get()).map(|(row, functions)| Row {
        needs: row.mechanism,
        algorithm: Algorithm::new(row.names, PROPERTIES, functions),
    })
}
