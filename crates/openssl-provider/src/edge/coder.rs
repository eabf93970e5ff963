// SPDX-License-Identifier: Apache-2.0
//! Decoders of PEM files that name a key, and encoders of keys (provider-decoder(7), provider-encoder(7)). A private key of a token is written as
//! what names it, for nothing else of it leaves the token.

use super::keymgmt::{KeyContext, held};
use super::store::{carried, passphrase};
use super::{Home, answer};
use crate::abi::numbers::{coder as number, select};
use crate::abi::{
    Algorithm, Argument, Asking, Bio, Builder, Callback, Context, Dispatch, Params, caught,
};
use crate::failure::{Failure, Result};
use crate::key::{Key, Private};
use crate::kind::{COUNT, KINDS, for_each_kind};
use crate::pem;
use crate::provider::Provider;
use crate::store::{Found, Store};
use crate::text;
use metaslot_client::uri::Class;
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// Longest document that names a key.
const DOCUMENT: usize = 16 * 1024;

extern "C" fn new(home: Home) -> Home {
    caught(Context::null(), || {
        home.get().map_or(Context::null(), |provider| Context::new(Arc::clone(provider)))
    })
}

extern "C" fn free(context: Home) {
    caught((), || drop(context.take()));
}

/// All that is asked for: what is found is a key with both halves.
extern "C" fn any_selection(_home: Home, _selection: c_int) -> c_int {
    1
}

/// From PEM to DER: the first part of the file, if it is one of ours. What is none goes to the next decoder: that is no failure.
extern "C" fn from_pem(
    context: Home,
    input: Bio,
    _selection: c_int,
    callback: Callback,
    argument: Argument,
    _asking: Asking,
    _asking_argument: Argument,
) -> c_int {
    caught(1, || {
        let Some(der) = context.get().and_then(|provider| first_part(provider, input)) else {
            return 1;
        };
        let mut params =
            Builder::default().octets(c"data", &der).text(c"data-structure", "pk11-uri");
        c_int::from(params.build(|params| callback.call(params, argument)))
    })
}

fn first_part(provider: &Provider, input: Bio) -> Option<Vec<u8>> {
    let mut body: Option<Vec<u8>> = None;
    loop {
        let line = provider.core.line(input);
        if line.is_empty() {
            return None;
        }
        let text = line.trim_ascii_end();
        match &mut body {
            None if text.starts_with(b"-----BEGIN ") => {
                let label = text.strip_prefix(b"-----BEGIN ")?.strip_suffix(b"-----")?;
                (label == pem::LABEL.as_bytes()).then_some(())?;
                body = Some(Vec::new());
            }
            None => {}
            Some(body) if text.starts_with(b"-----END ") => return pem::decoded(body),
            Some(body) => body.extend_from_slice(text),
        }
        if body.as_ref().is_some_and(|body| body.len() > DOCUMENT) {
            return None;
        }
    }
}

/// From DER to a key of this kind.
extern "C" fn from_der<const N: usize>(
    context: Home,
    input: Bio,
    _selection: c_int,
    callback: Callback,
    argument: Argument,
    asking: Asking,
    asking_argument: Argument,
) -> c_int {
    let taken = |key| carried(key, callback, argument);
    let ask = |what: &str| passphrase(what, asking, asking_argument);
    found(&context, KINDS[N].name, input, &taken, &ask)
}

#[inline(never)]
fn found(
    context: &Home,
    kind: &CStr,
    input: Bio,
    taken: &dyn Fn(Arc<Key>) -> bool,
    ask: crate::provider::Ask<'_>,
) -> c_int {
    caught(1, || {
        let Some(provider) = context.get() else { return 1 };
        let Some(der) = provider.core.read(input, DOCUMENT) else { return 1 };
        let Some(uri) = pem::uri(&der) else { return 1 };
        // Python takes another number than before for the reason, and shows that.
        let before = errno::errno();
        let named = named(provider, uri, ask);
        errno::set_errno(before);
        match named {
            Ok(key) if key.kind.name == kind => c_int::from(taken(key)),
            Ok(_) => 1,
            Err(failure) => {
                provider.raise(&failure);
                0
            }
        }
    })
}

/// The private key of a URI, or a public one where it names that.
fn named(provider: &Arc<Provider>, uri: &str, ask: crate::provider::Ask<'_>) -> Result<Arc<Key>> {
    let mut store = Store::open(Arc::clone(provider), uri)?;
    if !store.names_class() {
        store.expect(Some(Class::Private));
    }
    match store.next(ask)? {
        Some(Found::Key(key)) => Ok(key),
        _ => Err(Failure::input(format!("{} names no key", store.text()))),
    }
}

/// What an encoder writes.
const PUBLIC_DER: u8 = 0;
const PUBLIC_PEM: u8 = 1;
const PRIVATE_PEM: u8 = 2;

extern "C" fn writes<const FORM: u8>(_home: Home, selection: c_int) -> c_int {
    let private = selection & select::PRIVATE != 0;
    c_int::from(match FORM {
        PUBLIC_DER | PUBLIC_PEM => !private && selection & select::PUBLIC != 0,
        PRIVATE_PEM => private,
        _ => true,
    })
}

extern "C" fn encode<const FORM: u8>(
    context: Home,
    out: Bio,
    key: KeyContext,
    _abstract: Params,
    selection: c_int,
    _asking: Asking,
    _asking_argument: Argument,
) -> c_int {
    let Some(provider) = context.get() else { return 0 };
    answer(provider, || {
        let key = held(&key).ok_or_else(|| Failure::input("there is no key"))?;
        if matches!(FORM, PUBLIC_DER | PUBLIC_PEM) && !key.public.is_known() {
            return Err(Failure::input("the token does not show the public half of the key"));
        }
        let info = || key.identifier(|algorithm| key.public.info(algorithm));
        let mut written = match FORM {
            PUBLIC_DER => info(),
            PUBLIC_PEM => pem::written("PUBLIC KEY", &info()).into_bytes(),
            PRIVATE_PEM => match &key.private {
                Some(Private::Named(named)) => {
                    pem::written(pem::LABEL, &pem::document(&named.uri.to_string())).into_bytes()
                }
                Some(Private::Own(parts)) => {
                    let info =
                        key.identifier(|algorithm| parts.info(key.kind, &key.public, algorithm));
                    pem::written("PRIVATE KEY", info?.expose()).into_bytes()
                }
                None => return Err(Failure::input("the key has no private half")),
            },
            _ => {
                let half = selection & (select::PRIVATE | select::PUBLIC) != 0;
                let parameters = if half { None } else { text::parameters(&key) };
                let text =
                    parameters.unwrap_or_else(|| text::of(&key, selection & select::PRIVATE != 0));
                text.into_bytes()
            }
        };
        let done = provider.core.write(out, &written);
        // It may be a secret.
        written.fill(0);
        std::hint::black_box(&written);
        if done { Ok(()) } else { Err(Failure::input("cannot write")) }
    })
}

const fn decoder(run: *const ()) -> [Dispatch; 5] {
    [
        Dispatch::new(number::NEWCTX, new as *const ()),
        Dispatch::new(number::FREECTX, free as *const ()),
        Dispatch::new(number::DOES_SELECTION, any_selection as *const ()),
        Dispatch::new(number::RUN, run),
        Dispatch::END,
    ]
}

const fn encoder<const FORM: u8>() -> [Dispatch; 5] {
    [
        Dispatch::new(number::NEWCTX, new as *const ()),
        Dispatch::new(number::FREECTX, free as *const ()),
        Dispatch::new(number::DOES_SELECTION, writes::<FORM> as *const ()),
        Dispatch::new(number::RUN, encode::<FORM> as *const ()),
        Dispatch::END,
    ]
}

static FROM_PEM: [Dispatch; 5] = decoder(from_pem as *const ());

const fn decoder_of<const N: usize>() -> [Dispatch; 5] {
    decoder(from_der::<N> as *const ())
}

static FROM_DER: [[Dispatch; 5]; COUNT] = for_each_kind!(decoder_of);
static ENCODERS: [[Dispatch; 5]; 4] =
    [encoder::<0>(), encoder::<1>(), encoder::<2>(), encoder::<3>()];

pub(super) static DECODERS: [Algorithm; COUNT + 2] = {
    let properties = c"provider=metaslot,input=der,structure=pk11-uri";
    let mut rows = [Algorithm::END; COUNT + 2];
    rows[0] = Algorithm::new(c"DER", c"provider=metaslot,input=pem", &FROM_PEM);
    let mut kind = 0;
    while kind < COUNT {
        rows[kind + 1] = Algorithm::new(KINDS[kind].names, properties, &FROM_DER[kind]);
        kind += 1;
    }
    rows
};

const fn encodes(place: usize) -> Algorithm {
    let (kind, form) = (place / ENCODERS.len(), place % ENCODERS.len());
    let properties = match form {
        0 => c"provider=metaslot,output=der,structure=SubjectPublicKeyInfo",
        1 => c"provider=metaslot,output=pem,structure=SubjectPublicKeyInfo",
        2 => c"provider=metaslot,output=pem,structure=PrivateKeyInfo",
        _ => c"provider=metaslot,output=text",
    };
    Algorithm::new(KINDS[kind].names, properties, &ENCODERS[form])
}

pub(super) static ENCODERS_OF_KEYS: [Algorithm; 4 * COUNT + 1] = {
    let mut rows = [Algorithm::END; 4 * COUNT + 1];
    let mut place = 0;
    while place < 4 * COUNT {
        rows[place] = encodes(place);
        place += 1;
    }
    rows
};
