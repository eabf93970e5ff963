// SPDX-License-Identifier: Apache-2.0
//! Key encapsulation (provider-kem(7)).

use super::context::{self, with};
use super::keymgmt::{KeyContext, held};
use super::{Home, PROPERTIES, ended, hybrid, output};
use crate::abi::numbers::kem as number;
use crate::abi::{Algorithm, Context, Dispatch, Input, Output, Param, Params, Place, Table};
use crate::failure::Failure;
use crate::hybrid::{GROUPS, HybridKem};
use crate::kem::{Encapsulates, Kem};
use crate::kind::KeyKind;
use std::ffi::{CStr, c_int};

type KemContext = Context<Kem>;

extern "C" fn begin(context: KemContext, key: KeyContext, _params: Params) -> c_int {
    with(context, |kem| kem.begin(held(&key)))
}

extern "C" fn encapsulate<T: Encapsulates>(
    context: Context<T>,
    mut out: Output,
    mut length: Place<usize>,
    mut secret: Output,
    mut secret_length: Place<usize>,
) -> c_int {
    with(context, |kem| {
        let rooms = [length.get(), secret_length.get()];
        let lengths = kem.lengths()?;
        if out.of(rooms[0]).is_none() {
            length.set(lengths.0);
            secret_length.set(lengths.1);
            return Ok(());
        }
        if rooms[0] < lengths.0 || rooms[1] < lengths.1 {
            return Err(Failure::input("there is too little room for the answer"));
        }
        let (ciphertext, key) = kem.encapsulate()?;
        output(&mut out, &mut length, rooms[0], || Ok(lengths.0), || Ok(ciphertext))?;
        output(&mut secret, &mut secret_length, rooms[1], || Ok(lengths.1), || Ok(key))
    })
}

extern "C" fn decapsulate<T: Encapsulates>(
    context: Context<T>,
    mut secret: Output,
    mut length: Place<usize>,
    data: Input,
    size: usize,
) -> c_int {
    with(context, |kem| {
        let room = length.get();
        let longest = kem.lengths()?.1;
        let made = || kem.decapsulate(data.of(size));
        output(&mut secret, &mut length, room, || Ok(longest), made)
    })
}

extern "C" fn settable(_context: Home, _home: Home) -> Table<Param> {
    Table::of(&[Param::END])
}

/// The table of what begins with a key by `begin`.
const fn functions<T: Encapsulates>(begin: *const ()) -> [Dispatch; 10] {
    [
        Dispatch::new(number::NEWCTX, context::new::<T> as *const ()),
        Dispatch::new(number::FREECTX, context::free::<T> as *const ()),
        Dispatch::new(number::DUPCTX, context::copy::<T> as *const ()),
        Dispatch::new(number::ENCAPSULATE_INIT, begin),
        Dispatch::new(number::ENCAPSULATE, encapsulate::<T> as *const ()),
        Dispatch::new(number::DECAPSULATE_INIT, begin),
        Dispatch::new(number::DECAPSULATE, decapsulate::<T> as *const ()),
        Dispatch::new(number::SET_CTX_PARAMS, context::set::<T> as *const ()),
        Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
        Dispatch::END,
    ]
}

static FUNCTIONS: [Dispatch; 10] = functions::<Kem>(begin as *const ());
static HYBRID: [Dispatch; 10] = functions::<HybridKem>(hybrid::begin as *const ());

const fn row(name: &CStr) -> Algorithm {
    Algorithm::new(KeyKind::named(name).names, PROPERTIES, &FUNCTIONS)
}

const fn hybrid_row(place: usize) -> Algorithm {
    Algorithm::new(GROUPS[place].name, PROPERTIES, &HYBRID)
}

static ROWS: [Algorithm; 6] = [
    hybrid_row(0),
    hybrid_row(1),
    hybrid_row(2),
    row(c"ML-KEM-512"),
    row(c"ML-KEM-768"),
    row(c"ML-KEM-1024"),
];

/// Hybrid ones first.
pub(super) static ALGORITHMS: [Algorithm; 7] = ended(&ROWS);
