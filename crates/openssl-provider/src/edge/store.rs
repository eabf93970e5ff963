// SPDX-License-Identifier: Apache-2.0
//! The store of `pkcs11:` URIs (provider-storemgmt(7)).

use super::{Home, PROPERTIES, answer, made};
use crate::abi::numbers::{expect, object, store as number};
use crate::abi::{
    Algorithm, Argument, Asking, Builder, Callback, Context, Dispatch, Given, Kind, Param, Params,
    Table, Text, caught,
};
use crate::failure::{Failure, Result};
use crate::key::Key;
use crate::pin::Pin;
use crate::store::{Found, Store};
use metaslot_ck::{CKA_ISSUER, CKA_SERIAL_NUMBER, CKA_SUBJECT};
use metaslot_client::uri::Class;
use metaslot_spi::der::Node;
use std::ffi::c_int;
use std::sync::Arc;

type StoreContext = Context<Store>;

/// Longest passphrase that a program may give.
const PASSPHRASE: usize = 1024;

extern "C" fn open(home: Home, uri: Text) -> StoreContext {
    let Some(provider) = home.get() else { return Context::null() };
    made(provider, || Store::open(Arc::clone(provider), uri.get().unwrap_or_default()))
}

extern "C" fn set_params(mut context: StoreContext, params: Params) -> c_int {
    caught(0, || {
        let Some(store) = context.get_mut() else { return 0 };
        let expected = match params.find(c"expect").and_then(Given::number) {
            Some(expect::PUBLIC_KEY) => Some(Class::Public),
            Some(expect::PRIVATE_KEY) => Some(Class::Private),
            Some(expect::CERTIFICATE) => Some(Class::Certificate),
            _ => None,
        };
        if expected.is_some() {
            store.expect(expected);
        }
        for (name, attribute) in [(c"subject", CKA_SUBJECT), (c"name", CKA_ISSUER)] {
            if let Some(value) = params.find(name).and_then(Given::octets) {
                store.certificates(attribute, value);
            }
        }
        if let Some(serial) = params.find(c"serial").and_then(Given::large) {
            store.certificates(CKA_SERIAL_NUMBER, &Node::Integer(&serial).to_vec());
        }
        if let Some(alias) = params.find(c"alias").and_then(Given::text) {
            store.called(alias);
        }
        1
    })
}

extern "C" fn settable(_home: Home) -> Table<Param> {
    Table::of(&SETTABLE)
}

extern "C" fn load(
    mut context: StoreContext,
    callback: Callback,
    argument: Argument,
    asking: Asking,
    asking_argument: Argument,
) -> c_int {
    let Some(store) = context.get_mut() else { return 0 };
    let provider = Arc::clone(&store.provider);
    answer(&provider, || {
        let ask = |what: &str| passphrase(what, asking, asking_argument);
        match store.next(&ask)? {
            Some(found) => handed(found, callback, argument),
            None => Err(Failure::input("there is nothing more")),
        }
    })
}

extern "C" fn is_done(context: StoreContext) -> c_int {
    caught(1, || c_int::from(context.get().is_none_or(Store::is_done)))
}

extern "C" fn close(context: StoreContext) -> c_int {
    caught(1, || {
        drop(context.take());
        1
    })
}

/// What the user answers.
pub(super) fn passphrase(what: &str, asking: Asking, argument: Argument) -> Option<Pin> {
    let mut room = [0; PASSPHRASE];
    let mut info = Builder::default().text(c"info", what);
    let length = info.build(|params| asking.ask(&mut room, params, argument));
    let pin = length.map(|length| Pin::new(&room[..length]));
    room.fill(0);
    std::hint::black_box(&room);
    pin
}

fn handed(found: Found, callback: Callback, argument: Argument) -> Result<()> {
    let taken = match found {
        Found::Key(key) => carried(key, callback, argument),
        Found::Certificate(der) => {
            let params = Builder::default().number(c"type", object::CERTIFICATE);
            params.octets(c"data", &der).build(|params| callback.call(params, argument))
        }
    };
    if taken { Ok(()) } else { Err(Failure::input("OpenSSL does not take what was found")) }
}

/// A key, by a reference.
pub(super) fn carried(key: Arc<Key>, callback: Callback, argument: Argument) -> bool {
    let name = key.kind.text();
    key.carried(|reference| {
        let params = Builder::default().number(c"type", object::KEY).text(c"data-type", name);
        params.octets(c"reference", reference).build(|params| callback.call(params, argument))
    })
}

static SETTABLE: [Param; 8] = [
    Param::named(c"expect", Kind::Integer),
    Param::named(c"subject", Kind::Octets),
    Param::named(c"name", Kind::Octets),
    Param::named(c"serial", Kind::Unsigned),
    Param::named(c"alias", Kind::Utf8),
    Param::named(c"properties", Kind::Utf8),
    Param::named(c"input-type", Kind::Utf8),
    Param::END,
];

static FUNCTIONS: [Dispatch; 7] = [
    Dispatch::new(number::OPEN, open as *const ()),
    Dispatch::new(number::SET_CTX_PARAMS, set_params as *const ()),
    Dispatch::new(number::SETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::new(number::LOAD, load as *const ()),
    Dispatch::new(number::EOF, is_done as *const ()),
    Dispatch::new(number::CLOSE, close as *const ()),
    Dispatch::END,
];

pub(super) static ALGORITHMS: [Algorithm; 2] =
    [Algorithm::new(c"pkcs11", PROPERTIES, &FUNCTIONS), Algorithm::END];
