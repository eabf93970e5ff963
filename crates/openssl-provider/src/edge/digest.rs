// SPDX-License-Identifier: Apache-2.0
//! Digests (provider-digest(7)).

use super::Home;
use super::work::{self, PROPERTIES, Row, with};
use crate::abi::numbers::digest as number;
use crate::abi::{
    Algorithm, Answer, Context, Dispatch, Input, Kind, Output, Param, Params, Place, Table, caught,
};
use crate::bulk::digest::{Digest, ROWS, once};
use crate::failure::Failure;
use std::ffi::c_int;

type DigestContext = Context<Digest>;

extern "C" fn new<const N: usize>(home: Home) -> DigestContext {
    work::new(home, |provider| Digest::new(provider, &ROWS[N]))
}

extern "C" fn copy(context: DigestContext) -> DigestContext {
    work::copy(context, Digest::copy)
}

extern "C" fn begin(context: DigestContext, _params: Params) -> c_int {
    with(context, |digest| {
        digest.begin();
        Ok(())
    })
}

extern "C" fn update(context: DigestContext, data: Input, size: usize) -> c_int {
    with(context, |digest| digest.update(data.of(size)))
}

extern "C" fn finish(
    context: DigestContext,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
) -> c_int {
    with(context, |digest| {
        length.set(digest.finish(out.of(room).unwrap_or_default())?);
        Ok(())
    })
}

extern "C" fn whole<const N: usize>(
    home: Home,
    data: Input,
    size: usize,
    mut out: Output,
    mut length: Place<usize>,
    room: usize,
) -> c_int {
    let Some(provider) = home.get() else { return 0 };
    super::answer(provider, || {
        let out = out.of(room).and_then(|out| out.get_mut(..ROWS[N].length));
        let out = out.ok_or_else(|| Failure::input("there is too little room for the digest"))?;
        once(provider, &ROWS[N], data.of(size), out)?;
        length.set(ROWS[N].length);
        Ok(())
    })
}

extern "C" fn get_params<const N: usize>(mut params: Params) -> c_int {
    caught(0, || {
        let row = &ROWS[N];
        let number = |number: usize| Some(Answer::Number(number.try_into().unwrap_or_default()));
        let known = |name: &[u8], _| match name {
            b"blocksize" => number(row.block),
            b"size" => number(row.length),
            b"xof" => number(0),
            b"algid-absent" => number(row.bare.into()),
            _ => None,
        };
        c_int::from(params.answer(known))
    })
}

extern "C" fn gettable(_home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

static GETTABLE: [Param; 5] = [
    Param::named(c"blocksize", Kind::Unsigned),
    Param::named(c"size", Kind::Unsigned),
    Param::named(c"xof", Kind::Integer),
    Param::named(c"algid-absent", Kind::Integer),
    Param::END,
];

const fn functions<const N: usize>() -> [Dispatch; 10] {
    [
        Dispatch::new(number::NEWCTX, new::<N> as *const ()),
        Dispatch::new(number::FREECTX, work::free::<Digest> as *const ()),
        Dispatch::new(number::DUPCTX, copy as *const ()),
        Dispatch::new(number::INIT, begin as *const ()),
        Dispatch::new(number::UPDATE, update as *const ()),
        Dispatch::new(number::FINAL, finish as *const ()),
        Dispatch::new(number::DIGEST, whole::<N> as *const ()),
        Dispatch::new(number::GET_PARAMS, get_params::<N> as *const ()),
        Dispatch::new(number::GETTABLE_PARAMS, gettable as *const ()),
        Dispatch::END,
    ]
}

static FUNCTIONS: [[Dispatch; 10]; ROWS.len()] = [
    functions::<0>(),
    functions::<1>(),
    functions::<2>(),
    functions::<3>(),
    functions::<4>(),
    functions::<5>(),
    functions::<6>(),
    functions::<7>(),
    functions::<8>(),
    functions::<9>(),
    functions::<10>(),
    functions::<11>(),
    functions::<12>(),
];

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = Row> {
    ROWS.iter().zip(&FUNCTIONS).map(|(row, functions)| Row {
        needs: row.mechanism,
        algorithm: Algorithm::new(row.names, PROPERTIES, functions),
    })
}
