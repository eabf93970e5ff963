// SPDX-License-Identifier: Apache-2.0
//! New key pairs in a token.

use crate::abi::{Given, Params};
use crate::failure::{Failure, Reason, Result};
use crate::host::Token;
use crate::key::{BY_PSS, Key};
use crate::kind::{Does, Form, KeyKind, Variant};
use crate::provider::{Provider, no_question};
use crate::public::curve_named;
use metaslot_ck::*;
use metaslot_client::uri::{Class, Uri};
use metaslot_client::{Access, Mechanism, Template, Value};
use metaslot_spi::curves::Curve;
use metaslot_spi::der::Node;
use std::ffi::CStr;
use std::sync::Arc;

/// The parameter that says where: libcrypto passes on what it does not know. pkcs11-provider has it by this name.
pub(crate) const PLACE: &CStr = c"pkcs11_uri";

/// Bits of an RSA key where nothing is said, as libcrypto makes them.
const BITS: CK_ULONG = 2048;

/// Bytes of a `CKA_ID` that the URI does not name.
const ID: usize = 16;

/// A pair that is to be made.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) provider: Arc<Provider>,
    kind: &'static KeyKind,
    place: Option<Uri>,
    bits: CK_ULONG,
    exponent: Vec<u8>,
    curve: Option<&'static Curve>,
}

impl Generator {
    pub(crate) fn new(provider: Arc<Provider>, kind: &'static KeyKind) -> Self {
        Self { provider, kind, place: None, bits: BITS, exponent: vec![1, 0, 1], curve: None }
    }

    pub(crate) fn set(&mut self, params: &Params) -> Result<()> {
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
        if let Some(name) = params.find(c"group").and_then(Given::text) {
            let curve = curve_named(name);
            let unknown = || Failure::unsupported(format!("the curve {name} is not supported"));
            self.curve = Some(curve.ok_or_else(unknown)?);
        }
        Ok(())
    }

    /// On the curve of this key.
    pub(crate) fn as_in(&mut self, key: &Key) {
        if let crate::public::Public::Ec { curve, .. } = &key.public {
            self.curve = Some(curve);
        }
    }

    /// Makes it.
    pub(crate) fn run(&self) -> Result<Arc<Key>> {
        let uri = self.place.as_ref().ok_or_else(|| {
            Failure::input(
                "keys are made in a token: name it, and the key, by the parameter pkcs11_uri",
            )
        })?;
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
            match &uri.object {
                Some(label) => template.label(label),
                None => template,
            }
        };
        let (public, private) = self.templates()?;
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
            (Some(_), false) => {
                Err(Failure::input(format!("{uri}: several tokens are meant: name one by token=")))
            }
        }
    }

    /// The public and the private half: sensitive, and for what its kind is for.
    fn templates(&self) -> Result<(Template, Template)> {
        let public = Template::new();
        let private = Template::new().bool(CKA_PRIVATE, true).bool(CKA_SENSITIVE, true);
        let private = private.bool(CKA_EXTRACTABLE, false);
        Ok(match &self.kind.form {
            Form::Rsa { pss: true } => {
                let by_pss = || Value::Mechanisms(BY_PSS.to_vec());
                let public = public
                    .ulong(CKA_MODULUS_BITS, self.bits)
                    .bytes(CKA_PUBLIC_EXPONENT, &self.exponent)
                    .bool(CKA_VERIFY, true)
                    .with(CKA_ALLOWED_MECHANISMS, by_pss());
                (public, private.bool(CKA_SIGN, true).with(CKA_ALLOWED_MECHANISMS, by_pss()))
            }
            Form::Rsa { .. } => (
                public
                    .ulong(CKA_MODULUS_BITS, self.bits)
                    .bytes(CKA_PUBLIC_EXPONENT, &self.exponent)
                    .bool(CKA_VERIFY, true)
                    .bool(CKA_ENCRYPT, true),
                private.bool(CKA_SIGN, true).bool(CKA_DECRYPT, true),
            ),
            Form::Ec => {
                let curve = self.curve.ok_or_else(|| Failure::input("no curve is named"))?;
                (
                    public
                        .bytes(CKA_EC_PARAMS, Node::Oid(curve.oid).to_vec())
                        .bool(CKA_VERIFY, true),
                    private.bool(CKA_SIGN, true).bool(CKA_DERIVE, true),
                )
            }
            Form::Number(number) => {
                let public = match number.variant {
                    Variant::Curve(_) => {
                        public.bytes(CKA_EC_PARAMS, Node::Oid(number.oid).to_vec())
                    }
                    Variant::Set(set) => public.ulong(CKA_PARAMETER_SET, set),
                };
                match number.does {
                    Does::Sign(_) => (public.bool(CKA_VERIFY, true), private.bool(CKA_SIGN, true)),
                    Does::Agree => (public, private.bool(CKA_DERIVE, true)),
                    Does::Encapsulate => {
                        (public.bool(CKA_ENCAPSULATE, true), private.bool(CKA_DECAPSULATE, true))
                    }
                }
            }
        })
    }
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
