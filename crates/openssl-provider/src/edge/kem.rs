// SPDX-License-Identifier: Apache-2.0
//! Key encapsulation (provider-kem(7)).

use super::context::{self, with};
use super::keymgmt::{KeyContext, held};
use super::{Home, PROPERTIES, ended, output};
use crate::abi::numbers::kem as number;
use crate::abi::{Algorithm, Context, Dispatch, Input, Output, Param, Params, Place, Table};
use crate::failure::Failure;
use crate::kem::{Kem, SECRET};
use crate::kind::KINDS;
use std::ffi::c_int;

type KemContext = Context<Kem>;

extern "C" fn begin(context: KemContext, key: KeyContext, _params: Params) -> c_int {
    with(context, |kem| kem.begin(held(&key)))
}

extern "C" fn encapsulate(
    context: KemContext,
    mut out: Output,
    mut length: Place<usize>,
    mut secret: Output,
    mut secret_length: Place<usize>,
) -> c_int {
    with(context, |kem| {
        let rooms = [length.get(), secret_length.get()];
        if out.of(rooms[0]).is_none() {
            length.set(kem.length()?);
            secret_length.set(SECRET);
            return Ok(());
        }
        if rooms[0] < kem.length()? || rooms[1] < SECRET {
            return Err(Failure::input("there is too little room for the answer"));
        }
        let (ciphertext, key) = kem.encapsulate()?;
        output(&mut out, &mut length, rooms[0], || kem.length(), || Ok(ciphertext))?;
        output(&mut secret, &mut secret_length, rooms[1], || Ok(SECRET), || Ok(key))
    })
}

extern "C" fn decapsulate(
    context: KemContext,
    mut secret: Output,
    mut length: Place<usize>,
    data: Input,
    size: usize,
) -> c_int {
    with(context, |kem| {
        let room = length.get();
        let made = || kem.decapsulate(data.of(size));
        output(&mut secret, &mut length, room, || Ok(SECRET), made)
    })
}

extern "C" fn settable(_context: KemContext, _home: Home) -> Table<Param> {
    Table::of(&[Param::END])
}

static FUNCTIONS: [Dispatch; 10] = [
    Dispatch::new(number::NEWCTX, context::new::<Kem> as *const ()),
    Dispatch::new(number::FREECTX, context::free::<Kem> as *const ()),
    Dispatch::new(number::DUPCTX, context::copy::<Kem> as *const ()),
    Dispatch::new(number::ENCAPSULATE_INIT, begin as *const ()),
    Dispatch::new(number::ENCAPSULATE, encapsulate as *const ()),
    Dispatch::new(number::DECAPSULATE_INIT, begin as *const ()),
    Dispatch::new(number::DECAPSULATE, decapsulate as *const ()),
    Dispatch::new(number::SET_CTX_PARAMS, context::set::<Kem> as *const ()),
    Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::END,
];

/// The three, which stand last among the kinds.
const fn row(place: usize) -> Algorithm {
    Algorithm::new(KINDS[KINDS.len() - 3 + place].names, PROPERTIES, &FUNCTIONS)
}

static ROWS: [Algorithm; 3] = [row(0), row(1), row(2)];

pub(super) static ALGORITHMS: [Algorithm; 4] = ended(&ROWS);
