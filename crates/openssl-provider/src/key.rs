// SPDX-License-Identifier: Apache-2.0
//! A key in libcrypto's hands: its public half, and where its private half is found, whose handle each process has for itself.

use crate::abi::deep;
use crate::failure::{Failure, Reason, Result};
use crate::host::{Lease, Token};
use crate::kind::{Form, KeyKind};
use crate::provider::{Provider, no_question};
use crate::public::{self, Public};
use metaslot_ck::*;
use metaslot_client::uri::{Class, Uri};
use metaslot_client::{Session, Template};
use metaslot_memory::PerProcess;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) provider: Arc<Provider>,
    pub(crate) kind: &'static KeyKind,
    pub(crate) public: Public,
    pub(crate) private: Option<Private>,
    number: u64,
}

/// Where a private key is.
#[derive(Debug)]
pub(crate) struct Private {
    /// What names it, with where its PIN is.
    pub(crate) uri: Uri,
    template: Template,
    /// `CKA_ALWAYS_AUTHENTICATE`
    always: bool,
}

/// secp384r1
const P384: &[u8] = b"\x2b\x81\x04\x00\x22";

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Keys on their way from a store or a decoder to key management, by the numbers that libcrypto carries.
static CARRIED: PerProcess<Mutex<HashMap<u64, Arc<Key>>>> =
    PerProcess::new(|_| Mutex::new(HashMap::new()));

/// The attributes that say what a key is.
const ATTRIBUTES: &[CK_ATTRIBUTE_TYPE] = &[
    CKA_KEY_TYPE,
    CKA_ID,
    CKA_LABEL,
    CKA_MODULUS,
    CKA_PUBLIC_EXPONENT,
    CKA_EC_PARAMS,
    CKA_EC_POINT,
    CKA_PARAMETER_SET,
    CKA_PUBLIC_KEY_INFO,
    CKA_ALWAYS_AUTHENTICATE,
    CKA_ALLOWED_MECHANISMS,
];

/// What signs by PSS.
pub(crate) const BY_PSS: &[CK_MECHANISM_TYPE] = &[
    CKM_RSA_PKCS_PSS,
    CKM_SHA1_RSA_PKCS_PSS,
    CKM_SHA224_RSA_PKCS_PSS,
    CKM_SHA256_RSA_PKCS_PSS,
    CKM_SHA384_RSA_PKCS_PSS,
    CKM_SHA512_RSA_PKCS_PSS,
];

/// Codes after which a session, a handle or a login that was good is looked for again.
const STALE: &[Error] = &[
    Error::CRYPTOKI_NOT_INITIALIZED,
    Error::DEVICE_REMOVED,
    Error::KEY_HANDLE_INVALID,
    Error::OBJECT_HANDLE_INVALID,
    Error::SESSION_CLOSED,
    Error::SESSION_HANDLE_INVALID,
    Error::SLOT_ID_INVALID,
    Error::TOKEN_NOT_PRESENT,
    Error::USER_NOT_LOGGED_IN,
];

impl Key {
    /// A public key.
    pub(crate) fn public(provider: Arc<Provider>, kind: &'static KeyKind, public: Public) -> Self {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self { provider, kind, public, private: None, number }
    }

    /// A key of a token; `None` for one that libcrypto has no name for. `uri` is what it was looked for by.
    pub(crate) fn read(
        provider: &Arc<Provider>,
        session: &Lease,
        handle: ObjectHandle,
        is_private: bool,
        uri: &Uri,
    ) -> Result<Option<Self>> {
        let token = session.token();
        let values = session.attributes(handle, ATTRIBUTES);
        let values = values.map_err(|error| token.failed("read a key", error))?;
        let get = |attribute| {
            let place = ATTRIBUTES.iter().position(|other| *other == attribute);
            place.and_then(|place| values[place].clone()).unwrap_or_default()
        };
        let numbers = |bytes: Vec<u8>| -> Vec<u64> {
            bytes
                .chunks_exact(8)
                .map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
                .collect()
        };
        let allowed = numbers(get(CKA_ALLOWED_MECHANISMS));
        let pss = !allowed.is_empty() && allowed.iter().all(|mechanism| BY_PSS.contains(mechanism));
        let key_type = numbers(get(CKA_KEY_TYPE)).first().copied().unwrap_or(UNAVAILABLE);
        let set = numbers(get(CKA_PARAMETER_SET)).first().copied();
        let Some(kind) = KeyKind::of(key_type, &get(CKA_EC_PARAMS), set, pss) else {
            return Ok(None);
        };
        let public = Public::of_attributes(kind, |attribute| match attribute {
            // Of a private key it is the secret.
            CKA_VALUE if is_private => Vec::new(),
            CKA_VALUE => session.attribute(handle, CKA_VALUE).unwrap_or_default(),
            // A private key need not show it.
            CKA_PUBLIC_EXPONENT if get(attribute).is_empty() => {
                let template = Template::new().class(CKO_PUBLIC_KEY).key_type(key_type);
                of_twin(session, template, &get(CKA_ID), attribute).unwrap_or_default()
            }
            other => get(other),
        });
        let Some(public) = public else { return Ok(None) };
        let mut public = public.completed(&get(CKA_PUBLIC_KEY_INFO));
        let (id, label) = (get(CKA_ID), get(CKA_LABEL));
        if !public.is_known() {
            public = elsewhere(session, kind, public, &id);
        }
        let mut key = Self::public(Arc::clone(provider), kind, public);
        if is_private {
            let always = get(CKA_ALWAYS_AUTHENTICATE).first().is_some_and(|byte| *byte != CK_FALSE);
            let template = key.template(&id, &label);
            let label = String::from_utf8(label).ok();
            let uri = named(token, uri, id, label.filter(|label| !label.is_empty()));
            key.private = Some(Private { uri, template, always });
            provider.host().found(key.number, Arc::clone(token), handle);
        }
        Ok(Some(key))
    }

    /// What finds the private half again.
    fn template(&self, id: &[u8], label: &[u8]) -> Template {
        let template = Template::new().class(CKO_PRIVATE_KEY).key_type(self.kind.key_type);
        let template = template.bytes(CKA_ID, id).bytes(CKA_LABEL, label);
        match &self.public {
            Public::Rsa { modulus, .. } => template.bytes(CKA_MODULUS, modulus),
            _ => template,
        }
    }

    /// Length of its RSA modulus, or of what it signs and agrees on.
    pub(crate) fn answer_length(&self) -> usize {
        self.public.answer_length(self.kind)
    }

    pub(crate) const fn is_rsa(&self) -> bool {
        matches!(self.kind.form, Form::Rsa { .. })
    }

    pub(crate) const fn signs_by_pss_only(&self) -> bool {
        matches!(self.kind.form, Form::Rsa { pss: true })
    }

    /// What `call` does with the private key. Where its handle, its session or its login are gone, they are made anew, once.
    pub(crate) fn with_private<T>(
        &self,
        what: &str,
        call: impl Fn(&Lease, ObjectHandle) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        self.with_token(what, |token, handle| attempt(token, &call, handle))
    }

    /// The same, without a session: `call` may pause the job that it is in.
    pub(crate) fn with_token<T>(
        &self,
        what: &str,
        call: impl Fn(&Arc<Token>, ObjectHandle) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let (token, handle) = deep(|| self.located())?;
        let error = match call(&token, handle) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if !STALE.contains(&error.code) {
            return Err(self.failed(&token, what, error));
        }
        let located = deep(|| {
            // Another call may have done it meanwhile; a child that was forked while its parent's job paused has nothing old.
            let mut host = self.provider.host();
            if host.key(self.number).is_some_and(|(now, _)| Arc::ptr_eq(&now, &token)) {
                host.renew();
            }
            drop(host);
            self.located()
        });
        let (token, handle) = located?;
        call(&token, handle).map_err(|error| self.failed(&token, what, error))
    }

    /// Whether a batch saves more of its operations than a pause of a job costs, which is 40 to 70 µs of processor time: RSA from 2048 bits on saves 100 µs
    /// at least, P-384 75, all others of the lanes less (docs/lanes.md). A key that wants a login for each use is used at once.
    pub(crate) fn may_pause(&self) -> bool {
        let gains = match &self.public {
            Public::Rsa { .. } => self.public.bits(self.kind) >= 2048,
            Public::Ec { curve, .. } => curve.oid == P384,
            _ => false,
        };
        let always = self.private.as_ref().is_none_or(|private| private.always);
        self.provider.async_jobs && gains && !always
    }

    /// What `call` does with the public half, as an object that is there for this one call.
    pub(crate) fn with_public<T>(
        &self,
        what: &str,
        call: impl Fn(&Lease, ObjectHandle) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let token = self.token()?;
        let template = self.public.template(self.kind);
        let mut lease = token.session()?;
        let object = lease.create(&template).map_err(|error| self.failed(&token, what, error))?;
        let done = call(&lease, object);
        // The session's end would take it away as well.
        lease.destroy(object).ok();
        if done.is_ok() {
            lease.succeeded();
        }
        done.map_err(|error| self.failed(&token, what, error))
    }

    /// The login for one use, of a key that wants one.
    pub(crate) fn authorize(&self, lease: &Lease) -> metaslot_client::Result<()> {
        let Some(private) = self.private.as_ref().filter(|private| private.always) else {
            return Ok(());
        };
        let pin = self.provider.pin(lease.token(), &private.uri, &no_question);
        lease.token().authorize(lease, pin.unwrap_or_default())
    }

    /// What `call` does in a session of its token, without the key.
    pub(crate) fn with_session<T>(
        &self,
        what: &str,
        call: impl Fn(&Lease) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let call = |lease: &Lease, _| call(lease);
        let none = ObjectHandle(0);
        let mut token = self.token()?;
        let done = attempt(&token, &call, none);
        if !done.as_ref().is_err_and(|error| STALE.contains(&error.code)) {
            return done.map_err(|error| token.failed(what, error));
        }
        self.provider.host().renew();
        token = self.token()?;
        attempt(&token, &call, none).map_err(|error| token.failed(what, error))
    }

    /// A session with its token, or any.
    pub(crate) fn session(&self) -> Result<Lease> {
        self.token()?.session()
    }

    fn token(&self) -> Result<Arc<Token>> {
        if self.private.is_some() {
            return Ok(self.located()?.0);
        }
        let found = self.provider.tokens(&Uri::default())?.into_iter().next();
        found.ok_or_else(|| Failure::new(Reason::NotFound, "there is no token"))
    }

    /// Where it is in this process.
    fn located(&self) -> Result<(Arc<Token>, ObjectHandle)> {
        if let Some(found) = self.provider.host().key(self.number) {
            return Ok(found);
        }
        let private = self.private.as_ref();
        let private = private.ok_or_else(|| Failure::input("the key has no private half"))?;
        let mut why = "there is no such key now";
        for token in self.provider.tokens(&private.uri)? {
            self.provider.login(&token, &private.uri, &no_question)?;
            let mut session = token.session()?;
            let found = session.find(&private.template);
            session.succeeded();
            for handle in found.map_err(|error| self.failed(&token, "find", error))? {
                let same = Self::read(&self.provider, &session, handle, true, &private.uri)?;
                if same.is_none_or(|same| same.public == self.public) {
                    self.provider.host().found(self.number, Arc::clone(&token), handle);
                    return Ok((token, handle));
                }
                why = "another key has its name now";
            }
        }
        Err(Failure::new(Reason::NotFound, format!("{}: {why}", self.shown())))
    }

    fn failed(&self, token: &Token, what: &str, error: metaslot_client::Error) -> Failure {
        token.failed(&format!("{what} by {}", self.shown()), error)
    }

    /// Its name in messages.
    fn shown(&self) -> String {
        let named = self.private.as_ref().map(|private| private.uri.key_part().to_string());
        named.unwrap_or_else(|| format!("a public key ({})", self.kind.text()))
    }

    /// Gives it to libcrypto under a number.
    pub(crate) fn carried<T>(self: Arc<Self>, with: impl FnOnce(&[u8]) -> T) -> T {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        carried().insert(number, self);
        let done = with(&number.to_ne_bytes());
        // Where libcrypto did not take it.
        carried().remove(&number);
        done
    }

    /// Takes one from libcrypto.
    pub(crate) fn arrived(reference: &[u8]) -> Option<Arc<Self>> {
        let number = u64::from_ne_bytes(reference.try_into().ok()?);
        carried().remove(&number)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        if self.private.is_some() {
            self.provider.host().forget(self.number);
        }
    }
}

fn carried() -> MutexGuard<'static, HashMap<u64, Arc<Key>>> {
    CARRIED.get().lock().unwrap_or_else(PoisonError::into_inner)
}

fn attempt<T>(
    token: &Arc<Token>,
    call: &impl Fn(&Lease, ObjectHandle) -> metaslot_client::Result<T>,
    handle: ObjectHandle,
) -> metaslot_client::Result<T> {
    let mut lease = token.lease()?;
    let done = call(&lease, handle)?;
    lease.succeeded();
    Ok(done)
}

/// The URI of one key: what names the token and the key, and where the PIN is.
fn named(token: &Token, searched: &Uri, id: Vec<u8>, object: Option<String>) -> Uri {
    let info = token.info();
    Uri {
        token: Some(info.label.clone()),
        serial: Some(info.serial.clone()),
        id: Some(id).filter(|id| !id.is_empty()),
        object,
        class: Some(Class::Private),
        pin_source: searched.pin_source.clone(),
        pin_value: searched.pin_value.clone(),
        ..Uri::default()
    }
}

/// What another object shows that has a key's `CKA_ID`.
fn of_twin(
    session: &Session,
    template: Template,
    id: &[u8],
    attribute: CK_ATTRIBUTE_TYPE,
) -> Option<Vec<u8>> {
    if id.is_empty() {
        return None;
    }
    let found = session.find_one(&template.bytes(CKA_ID, id)).ok()??;
    session.attribute(found, attribute).ok()
}

/// The public half of a private key that does not show it: that of the public key with its `CKA_ID`, or of the certificate.
fn elsewhere(session: &Session, kind: &KeyKind, public: Public, id: &[u8]) -> Public {
    let search = |template, attribute| of_twin(session, template, id, attribute);
    let template = Template::new().class(CKO_PUBLIC_KEY).key_type(kind.key_type);
    let point = kind.number().map_or(CKA_EC_POINT, public::attribute);
    let value = search(template, point).unwrap_or_default();
    let found = Public::of_attributes(kind, |attribute| match (attribute, &public) {
        (attribute, _) if attribute == point => value.clone(),
        (CKA_EC_PARAMS, Public::Ec { curve, .. }) => {
            metaslot_spi::der::Node::Oid(curve.oid).to_vec()
        }
        _ => Vec::new(),
    });
    match found {
        Some(found) if found.is_known() => found,
        _ => {
            let certificate = search(Template::new().class(CKO_CERTIFICATE), CKA_VALUE);
            let info = certificate.and_then(|certificate| public::of_certificate(&certificate));
            public.completed(&info.unwrap_or_default())
        }
    }
}
