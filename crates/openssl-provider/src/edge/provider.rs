// SPDX-License-Identifier: Apache-2.0
//! The provider itself (provider-base(7)).

use super::{Home, all, asym_cipher, coder, kem, keyexch, keymgmt, offered, signature, store, tls};
use crate::abi::numbers::{operation, provider as number};
use crate::abi::{
    Algorithm, Answer, Context, Core, CoreHandle, Dispatch, Item, Kind, Param, Params, Place,
    Table, Upcalls, caught,
};
use crate::failure::REASONS;
use crate::hybrid::GROUPS;
use crate::kind::Needed;
use crate::provider::Provider;
use metaslot_ck::*;
use std::ffi::{CStr, c_int};
use std::panic;
use std::sync::Arc;

const NAME: &CStr = c"Metaslot: keys of PKCS#11 tokens";
const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// What libcrypto calls when it loads the file.
#[unsafe(no_mangle)]
pub(super) extern "C" fn OSSL_provider_init(
    handle: CoreHandle,
    functions: Upcalls,
    mut out: Place<Table<Dispatch>>,
    mut home: Place<Home>,
) -> c_int {
    caught(0, || {
        // A panic is an answer of 0, and prints nothing into the program's log.
        panic::set_hook(Box::new(|_| {}));
        let core = Core::new(handle, &functions);
        out.set(Table::of(&FUNCTIONS));
        home.set(Context::new(Arc::new(Provider::new(core))));
        1
    })
}

extern "C" fn teardown(home: Home) {
    caught((), || {
        if let Some(provider) = home.take() {
            provider.close();
        }
    });
}

extern "C" fn gettable(_home: Home) -> Table<Param> {
    Table::of(&GETTABLE)
}

extern "C" fn get_params(_home: Home, mut params: Params) -> c_int {
    caught(0, || {
        let known = |name: &[u8], _| match name {
            b"name" => Some(Answer::Constant(NAME)),
            b"version" | b"buildinfo" => Some(Answer::Constant(VERSION)),
            b"status" => Some(Answer::Number(1)),
            _ => None,
        };
        c_int::from(params.answer(known))
    })
}

extern "C" fn query(home: Home, asked: c_int, mut no_store: Place<c_int>) -> Table<Algorithm> {
    caught(Table::null(), || {
        let Some(provider) = home.get() else { return Table::null() };
        // For a module that is made of libcrypto, and only as long as it is being loaded, there is nothing.
        no_store.set(c_int::from(Provider::is_loading()));
        if Provider::is_loading() {
            return Table::null();
        }
        let of = |table, needs: &dyn Fn(usize) -> Needed| offered(provider, table, needs);
        // What is of hybrid groups stands first.
        let skipped = if provider.hybrid_groups { 0 } else { GROUPS.len() };
        match asked {
            operation::KEYMGMT => {
                of(&keymgmt::ALGORITHMS[skipped..], &|row| keymgmt::needs(row + skipped))
            }
            operation::SIGNATURE => of(&signature::ALGORITHMS, &signature::needs),
            operation::ASYM_CIPHER => of(&asym_cipher::ALGORITHMS, &|_| [CKM_RSA_PKCS; 2]),
            operation::KEYEXCH => of(&keyexch::ALGORITHMS, &keyexch::needs),
            operation::KEM => of(&kem::ALGORITHMS[skipped..], &|_| [CKM_ML_KEM; 2]),
            operation::STORE => Table::of(&store::ALGORITHMS),
            operation::DECODER => Table::of(&coder::DECODERS),
            operation::ENCODER => Table::of(&coder::ENCODERS_OF_KEYS),
            _ => all::algorithms(provider, asked),
        }
    })
}

extern "C" fn reasons(_home: Home) -> Table<Item> {
    Table::of(&REASON_STRINGS)
}

static REASON_STRINGS: [Item; REASONS.len() + 1] = {
    let mut items = [Item::END; REASONS.len() + 1];
    let mut place = 0;
    while place < REASONS.len() {
        items[place] = Item::new(REASONS[place].0 as u32, REASONS[place].1);
        place += 1;
    }
    items
};

static GETTABLE: [Param; 5] = [
    Param::named(c"name", Kind::Utf8Pointer),
    Param::named(c"version", Kind::Utf8Pointer),
    Param::named(c"buildinfo", Kind::Utf8Pointer),
    Param::named(c"status", Kind::Integer),
    Param::END,
];

static FUNCTIONS: [Dispatch; 7] = [
    Dispatch::new(number::TEARDOWN, teardown as *const ()),
    Dispatch::new(number::GETTABLE_PARAMS, gettable as *const ()),
    Dispatch::new(number::GET_PARAMS, get_params as *const ()),
    Dispatch::new(number::QUERY_OPERATION, query as *const ()),
    Dispatch::new(number::GET_REASON_STRINGS, reasons as *const ()),
    Dispatch::new(number::GET_CAPABILITIES, tls::capabilities as *const ()),
    Dispatch::END,
];
