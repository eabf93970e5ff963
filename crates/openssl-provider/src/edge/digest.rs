// SPDX-License-Identifier: Apache-2.0
//! Digests (provider-digest(7)).

use super::Home;
use super::work::{self, PROPERTIES, Row, with};
use crate::abi::numbers::digest as number;
use crate::abi::{Algorithm, Context, Dispatch, Input, Kind, Output, Param, Params, Place, Table};
use crate::bulk::digest::{self, Digest, ROWS, once};
use crate::kind::for_each;
use crate::provider::Provider;
use std::ffi::c_int;
use std::sync::Arc;

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
    out: Output,
    length: Place<usize>,
    room: usize,
) -> c_int {
    hashed(home.get(), &ROWS[N], data.of(size), (out, length, room))
}

fn hashed(
    provider: Option<&Arc<Provider>>,
    row: &digest::Row,
    data: &[u8],
    (mut out, mut length, room): (Output, Place<usize>, usize),
) -> c_int {
    let Some(provider) = provider else { return 0 };
    super::answer(provider, || {
        let out = out.of(room).and_then(|out| out.get_mut(..row.length));
        let out = out.ok_or_else(digest::too_little)?;
        once(provider, row, data, out)?;
        length.set(row.length);
        Ok(())
    })
}

extern "C" fn get_params<const N: usize>(params: Params) -> c_int {
    said(&ROWS[N], params)
}

fn said(row: &digest::Row, params: Params) -> c_int {
    work::said(params, |name| match name {
        b"blocksize" => Some(row.block),
        b"size" => Some(row.length),
        b"xof" => Some(0),
        b"algid-absent" => Some(row.bare.into()),
        _ => None,
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

static FUNCTIONS: [[Dispatch; 10]; ROWS.len()] = for_each!(functions 0 1 2 3 4 5 6 7 8 9 10 11 12);

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = Row> {
    ROWS.iter().zip(&FUNCTIONS).map(|(row, functions)| Row {
        needs: row.mechanism,
        algorithm: Algorithm::new(row.names, PROPERTIES, functions),
    })
}
