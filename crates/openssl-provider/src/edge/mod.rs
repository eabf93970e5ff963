// SPDX-License-Identifier: Apache-2.0
//! The functions that libcrypto calls, one file for each operation: they take what it passes apart, and no more.

mod all;
mod asym_cipher;
mod cipher;
mod coder;
mod context;
mod digest;
mod hybrid;
mod kdf;
mod kem;
mod keyexch;
mod keymgmt;
mod mac;
mod provider;
mod random;
mod signature;
mod store;
mod tls;
mod work;

use crate::abi::{Algorithm, Context, Output, Place, Table, caught};
use crate::failure::{Failure, Result};
use crate::generate;
use crate::kind::{KINDS, Needed};
use crate::provider::{Offer, Provider};
use metaslot_memory::PerProcess;
use std::ffi::{CStr, c_int};
use std::sync::{Arc, Mutex, PoisonError};

/// What `OSSL_provider_init` hands to libcrypto.
type Home = Context<Arc<Provider>>;

/// What every algorithm says of itself.
const PROPERTIES: &CStr = c"provider=metaslot";

/// The same of DSA and Diffie-Hellman in mode `all`, where `?provider=metaslot` prefers what says so: keys of files stay with OpenSSL, and a
/// token's keys are used here all the same.
const OF_TOKENS: &CStr = c"metaslot.keys=tokens";

/// A table and its end: `M` is one more than `N`.
const fn ended<const N: usize, const M: usize>(rows: &[Algorithm; N]) -> [Algorithm; M] {
    joined(&[], rows)
}

/// Two tables as one, and its end.
const fn joined<const N: usize, const M: usize, const ALL: usize>(
    first: &[Algorithm; N],
    second: &[Algorithm; M],
) -> [Algorithm; ALL] {
    let mut table = [Algorithm::END; ALL];
    let mut place = 0;
    while place < N + M {
        table[place] = if place < N { first[place] } else { second[place - N] };
        place += 1;
    }
    table
}

/// Parts of tables that libcrypto was given. There are few: a module's mechanisms rarely change.
static OFFERED: PerProcess<Mutex<Vec<&'static [Algorithm]>>> =
    PerProcess::new(|_| Mutex::default());

/// What is offered of a table: the rows whose mechanisms, of which `needs` are, the module has.
fn offered(
    provider: &Arc<Provider>,
    table: &'static [Algorithm],
    needs: &dyn Fn(usize) -> Needed,
) -> Table<Algorithm> {
    let token = match provider.offer() {
        Offer::All => return Table::of(table),
        Offer::Nothing => return Table::null(),
        Offer::Of(token) => token,
    };
    let rows = table[..table.len() - 1].iter().enumerate().filter_map(|(place, row)| {
        let kind = KINDS.iter().find(|kind| row.is_called(kind.names));
        let has = match kind {
            Some(kind) => generate::has(provider, &token, kind, None),
            None => needs(place).iter().all(|needed| token.has(*needed)),
        };
        let old = kind.is_some_and(|kind| kind.field().is_some());
        has.then(|| if old { row.with_properties(OF_TOKENS) } else { *row })
    });
    kept(rows.chain([Algorithm::END]).collect())
}

/// A table that libcrypto keeps.
fn kept(rows: Vec<Algorithm>) -> Table<Algorithm> {
    let mut offered = OFFERED.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = offered.iter().find(|same| **same == rows) {
        return Table::of(same);
    }
    let rows = Vec::leak(rows);
    offered.push(rows);
    Table::of(rows)
}

/// 1 or 0, and then why.
fn answer(provider: &Provider, call: impl FnOnce() -> Result<()>) -> c_int {
    let mut call = Some(call);
    done(provider, &mut || call.take().map_or(Ok(()), |call| call()))
}

/// The same for all, so that it is there once.
fn done(provider: &Provider, call: &mut dyn FnMut() -> Result<()>) -> c_int {
    caught(0, || answered(provider, provider.core.unless_failed(call)))
}

fn answered(provider: &Provider, done: Result<()>) -> c_int {
    match done {
        Ok(()) => 1,
        Err(failure) => {
            provider.raise(&failure);
            0
        }
    }
}

/// What `call` makes, or NULL, and then why.
fn made<T>(provider: &Provider, call: impl FnOnce() -> Result<T>) -> Context<T> {
    let mut context = Context::null();
    answer(provider, || {
        context = Context::new(call()?);
        Ok(())
    });
    context
}

/// The convention of answers whose length varies: NULL asks for the longest, and so much room there must be.
fn output(
    out: &mut Output,
    length: &mut Place<usize>,
    room: usize,
    longest: impl FnOnce() -> Result<usize>,
    make: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<()> {
    let Some(out) = out.of(room) else {
        length.set(longest()?);
        return Ok(());
    };
    let too_little = || Failure::input("there is too little room for the answer");
    // Before anything is made: how long an answer really is may be a secret.
    if room < longest()? {
        return Err(too_little());
    }
    let mut made = make()?;
    let place = out.get_mut(..made.len()).ok_or_else(too_little)?;
    place.copy_from_slice(&made);
    length.set(made.len());
    // It may be a secret.
    made.fill(0);
    std::hint::black_box(&made);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::resume_unwind;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(caught(0, || resume_unwind(Box::new("without a word"))), 0);
    }

    #[test]
    fn an_answer_keeps_to_its_room() {
        let mut room = [0_u8; 4];
        let (mut length, mut made) = (0_usize, 0);
        let mut answered = |given: Option<usize>| {
            // As libcrypto passes them.
            let (mut out, mut place) =
                crate::abi::passed(given.map(|size| &mut room[..size]), &mut length);
            let done = output(
                &mut out,
                &mut place,
                given.unwrap_or_default(),
                || Ok(4),
                || {
                    made += 1;
                    Ok(vec![7; 3])
                },
            );
            (done.is_ok(), length, made)
        };
        assert_eq!(answered(None), (true, 4, 0));
        assert_eq!(
            answered(Some(3)),
            (false, 4, 0),
            "the answer would fit, and yet nothing is made"
        );
        assert_eq!(answered(Some(4)), (true, 3, 1));
        assert_eq!(room, [7, 7, 7, 0]);
    }
}
