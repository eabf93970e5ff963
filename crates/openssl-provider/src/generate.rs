// SPDX-License-Identifier: Apache-2.0
//! New key pairs: in a token, or of the program's own.

use crate::abi::{Given, Params};
use crate::failure::{Failure, Reason, Result};
use crate::host::Token;
use crate::key::{BY_PSS, Key, keeping};
use crate::kind::{Form, KeyKind, Number, Variant};
use crate::own::Parts;
use crate::provider::{Mode, Provider, no_question};
use crate::pss::Pss;
use crate::public::{Public, curve_named};
use metaslot_ck::*;
use metaslot_client::uri::{Class, Uri};
use metaslot_client::{Access, Mechanism, Template, Value};
use metaslot_spi::curves::Curve;
use metaslot_spi::der::Node;
use metaslot_spi::known_groups;
use std::ffi::CStr;
use std::sync::Arc;

/// The parameter that says where: libcrypto passes on what it does not know. pkcs11-provider has it by this name.
pub(crate) const PLACE: &CStr = c"pkcs11_uri";
/// The parameter that says whether a key agrees with the cofactor of its curve.
pub(crate) const COFACTOR: &CStr = c"use-cofactor-flag";

/// Bits of an RSA key where nothing is said, as libcrypto makes them.
const BITS: CK_ULONG = 2048;

/// Bytes of a `CKA_ID` that the URI does not name.
const ID: usize = 16;

/// What keys are for; modules switch on what nothing is said of.
const OF_PUBLIC: [CK_ATTRIBUTE_TYPE; 3] = [CKA_VERIFY, CKA_ENCRYPT, CKA_WRAP];
const OF_PRIVATE: [CK_ATTRIBUTE_TYPE; 3] = [CKA_SIGN, CKA_DECRYPT, CKA_UNWRAP];

/// A pair that is to be made.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) provider: Arc<Provider>,
    kind: &'static KeyKind,
    place: Option<Uri>,
    bits: CK_ULONG,
    exponent: Vec<u8>,
    curve: Option<&'static Curve>,
    /// A group of numbers.
    group: Option<Public>,
    /// Of what the pair of the program's own is computed.
    seed: Option<Parts>,
    pss: Option<Pss>,
    /// Both halves, or nothing but the curve.
    pair: bool,
    /// What the key says of agreement with the cofactor.
    pub(crate) cofactor: bool,
}

/// What a key says of agreement with the cofactor, where it is among these.
pub(crate) fn cofactor_of(params: &Params) -> Result<Option<bool>> {
    match params.find(COFACTOR).map(Given::number) {
        None => Ok(None),
        Some(Some(flag @ (0 | 1))) => Ok(Some(flag == 1)),
        _ => Err(Failure::input("agreement with the cofactor is 0 or 1")),
    }
}

impl Generator {
    pub(crate) fn new(provider: Arc<Provider>, kind: &'static KeyKind, pair: bool) -> Self {
        let (place, curve, group, seed, pss) = Default::default();
        let (bits, exponent) = (BITS, vec![1, 0, 1]);
        Self {
            provider,
            kind,
            place,
            bits,
            exponent,
            curve,
            group,
            seed,
            pss,
            pair,
            cofactor: false,
        }
    }

    pub(crate) fn set(&mut self, params: &Params) -> Result<()> {
        self.cofactor = cofactor_of(params)?.unwrap_or(self.cofactor);
        if let Some(text) = params.find(PLACE).and_then(Given::text) {
            let uri = text.parse();
            // The text itself may have a PIN in it.
            let failed = |error| Failure::input(format!("not a PKCS#11 URI: {error}"));
            self.place = Some(uri.map_err(failed)?);
        }
        if let Some(bits) = params.find(c"bits").and_then(Given::number) {
            let bits = CK_ULONG::try_from(bits);
            self.bits = bits.map_err(|_| Failure::input("this is no length of a key"))?;
        }
        if let Some(exponent) = params.find(c"e").and_then(Given::large) {
            self.exponent = exponent;
        }
        if params.find(c"primes").and_then(Given::number).is_some_and(|primes| primes != 2) {
            return Err(Failure::unsupported("keys have two primes"));
        }
        if params.find(c"encoding").and_then(Given::text).is_some_and(|form| form != "named_curve")
        {
            return Err(Failure::unsupported("curves have names"));
        }
        if let Some(seed) = params.find(c"seed").and_then(Given::octets) {
            self.seed = Some(Parts::of_seed(seed));
        }
        if matches!(self.kind.form, Form::Rsa { pss: true }) {
            Pss::update(&mut self.pss, params)?;
        }
        let group = params.find(c"group");
        if let Some(name) = group.and_then(Given::text).filter(|_| self.kind.agrees_only()) {
            let unknown = || Failure::unsupported(format!("the group {name} is not supported"));
            let prime = known_groups::named(name).filter(|_| self.kind.key_type == CKK_DH);
            let numbers = vec![(CKA_PRIME, prime.ok_or_else(unknown)?), (CKA_BASE, vec![2])];
            self.group = Some(Public::Field { group: numbers, value: Vec::new() });
        }
        if params.find(c"p").is_some() {
            self.group = Public::of_params(self.kind, params).map(Public::emptied);
        }
        let group = group.filter(|_| matches!(self.kind.form, Form::Ec));
        if let Some(name) = group.and_then(Given::text) {
            let curve = curve_named(name);
            let unknown = || Failure::unsupported(format!("the curve {name} is not supported"));
            self.curve = Some(curve.ok_or_else(unknown)?);
        }
        Ok(())
    }

    /// On the curve of this key.
    pub(crate) fn as_in(&mut self, key: &Key) {
        if let Public::Ec { curve, .. } = &key.public {
            self.curve = Some(curve);
        }
        if let Public::Field { .. } = &key.public {
            self.group = Some(key.public.clone().emptied());
        }
    }

    /// Makes it.
    pub(crate) fn run(&self) -> Result<Arc<Key>> {
        let Some(uri) = self.place.as_ref().filter(|_| self.pair) else {
            return self.own().map(Arc::new);
        };
        if self.seed.is_some() || self.pss.is_some() {
            return Err(Failure::unsupported(
                "a token takes no seed of a new key, and keeps no parameters of RSA-PSS",
            ));
        }
        let token = self.token(uri)?;
        self.provider.login(&token, uri, &no_question)?;
        let failed = |error| token.failed("generate a key pair", error);
        let session = token.open(Access::ReadWrite)?;
        let exists = session.find_one(&meant(uri)).map_err(failed)?.is_some();
        if exists && (uri.id.is_some() || uri.object.is_some()) {
            let text = "the token has such a key already: give the new one another name";
            return Err(Failure::input(format!("{uri}: {text}")));
        }
        let mut id = uri.id.clone().unwrap_or_default();
        if id.is_empty() {
            id.resize(ID, 0);
            session.random(&mut id).map_err(failed)?;
        }
        let named = |template: Template| {
            let template = template.token(true).bytes(CKA_ID, &id);
            let template = match &self.kind.form {
                Form::Rsa { pss: true } => {
                    template.with(CKA_ALLOWED_MECHANISMS, Value::Mechanisms(BY_PSS.to_vec()))
                }
                _ => template,
            };
            match &uri.object {
                Some(label) => template.label(label),
                None => template,
            }
        };
        let private = Template::new().bool(CKA_PRIVATE, true).bool(CKA_SENSITIVE, true);
        let private = private.bool(CKA_EXTRACTABLE, false);
        let (public, private) = self.templates(private)?;
        let (public, private) = (only(public, OF_PUBLIC), only(private, OF_PRIVATE));
        let mechanism = Mechanism::new(self.kind.generates);
        let pair = session.generate_key_pair(&mechanism, &named(public), &named(private));
        let (public, private) = pair.map_err(failed)?;
        // What the program does not get does not stay.
        self.made(&token, private, uri).inspect_err(|_| {
            for half in [private, public] {
                session.destroy(half).ok();
            }
        })
    }

    fn made(&self, token: &Arc<Token>, handle: ObjectHandle, uri: &Uri) -> Result<Arc<Key>> {
        let mut lease = token.session()?;
        let key = Key::read(&self.provider, &lease, handle, true, uri)?;
        lease.succeeded();
        let odd = || Failure::new(Reason::Token, "the key that was made is of another kind");
        key.filter(|key| key.kind.name == self.kind.name).map(Arc::new).ok_or_else(odd)
    }

    /// A key of the program's own: the module makes it, and shows it.
    fn own(&self) -> Result<Key> {
        let (provider, kind) = (&self.provider, self.kind);
        if provider.mode == Mode::Keys {
            return Err(Failure::input(
                "keys are made in a token: name it, and the key, by the parameter pkcs11_uri",
            ));
        }
        let none = match (&self.group, self.curve) {
            (Some(group), _) => group.clone(),
            (None, Some(curve)) => Public::Ec { curve, point: Vec::new() },
            (None, None) => Public::Number(Vec::new()),
        };
        if !self.pair {
            return Ok(Key::public(Arc::clone(provider), kind, none));
        }
        let odd = || Failure::unsupported("the module does not make such keys");
        if let Some(seed) = &self.seed {
            let key = Key::public(Arc::clone(provider), kind, none);
            return key.own(seed.clone())?.ok_or_else(odd);
        }
        let shown = Template::new().token(false).bool(CKA_PRIVATE, false);
        let shown = shown.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
        let (public, private) = self.templates(shown)?;
        let (mechanism, public) = (Mechanism::new(kind.generates), public.token(false));
        let (token, made) = keeping(
            provider,
            || provider.any(),
            |token, session| {
                let pair = session.generate_key_pair(&mechanism, &public, &private)?;
                let made = Key::made(provider, kind, token, session, pair);
                if !matches!(made, Ok(Some(_))) {
                    // What the program does not get does not stay.
                    for half in [pair.0, pair.1] {
                        session.destroy(half).ok();
                    }
                }
                made
            },
        )?;
        let made = made.map_err(|error| token.failed("generate a key pair", error))?;
        let mut key = made.ok_or_else(odd)?;
        key.pss = self.pss;
        Ok(key)
    }

    /// The one token that is meant.
    fn token(&self, uri: &Uri) -> Result<Arc<Token>> {
        if uri.class.is_some_and(|class| class != Class::Private) {
            return Err(Failure::input("the type of what is made is 'private'"));
        }
        let mut tokens = self.provider.tokens(uri)?;
        tokens.retain(|token| token.info().has(CKF_TOKEN_INITIALIZED));
        match (tokens.pop(), tokens.is_empty()) {
            (Some(token), true) => Ok(token),
            (None, _) => {
                Err(Failure::new(Reason::NotFound, format!("{uri}: there is no such token")))
            }
            (Some(_), false) => Err(Failure::input(format!(
                "{uri}: several tokens are meant: name one by token= or serial="
            ))),
        }
    }

    /// The public and the private half, whose template begins with `private`.
    fn templates(&self, private: Template) -> Result<(Template, Template)> {
        let public = match (&self.kind.form, self.curve) {
            (Form::Field(_), _) => {
                let group = self.group.as_ref();
                let group = group.ok_or_else(|| Failure::input("no group is named"))?;
                group.domain(self.kind, Template::new())
            }
            (Form::Rsa { .. }, _) => Template::new()
                .ulong(CKA_MODULUS_BITS, self.bits)
                .bytes(CKA_PUBLIC_EXPONENT, &self.exponent),
            (Form::Ec, None) => return Err(Failure::input("no curve is named")),
            (_, Some(curve)) => Template::new().bytes(CKA_EC_PARAMS, Node::Oid(curve.oid).to_vec()),
            (Form::Number(_), _) => Public::Number(Vec::new()).domain(self.kind, Template::new()),
        };
        Ok(self.kind.usages(public, private))
    }
}

/// Whether a token has keys of a kind; `curve` is one of those that a kind has several of.
pub(crate) fn has(
    provider: &Arc<Provider>,
    token: &Token,
    kind: &'static KeyKind,
    curve: Option<&'static Curve>,
) -> bool {
    if !kind.needs().iter().all(|needed| token.has(*needed)) {
        return false;
    }
    let (oid, none, length) = match (&kind.form, curve) {
        (Form::Number(Number { variant: Variant::Curve(_), oid, length, .. }), _) => {
            (*oid, Public::Number(Vec::new()), *length)
        }
        (_, Some(curve)) => {
            (curve.oid, Public::Ec { curve, point: Vec::new() }, curve.order_length())
        }
        _ => return true,
    };
    // Of several curves a token may have one: it is given a key, as the mechanisms do not say it.
    token.has_curve(oid, || {
        let key = Key::public(Arc::clone(provider), kind, none);
        !matches!(key.own(Parts::of_any(length)), Ok(None))
    })
}

/// For what the template says, and for nothing else.
fn only(template: Template, uses: [CK_ATTRIBUTE_TYPE; 3]) -> Template {
    let off = |template: Template, usage| match template.find(usage) {
        None => template.bool(usage, false),
        Some(_) => template,
    };
    uses.into_iter().fold(template, off)
}

/// What finds the private keys that a URI names.
fn meant(uri: &Uri) -> Template {
    let template = Template::new().class(CKO_PRIVATE_KEY);
    let template = match &uri.id {
        Some(id) => template.bytes(CKA_ID, id),
        None => template,
    };
    match &uri.object {
        Some(label) => template.label(label),
        None => template,
    }
}
