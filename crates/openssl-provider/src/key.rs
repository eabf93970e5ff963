// SPDX-License-Identifier: Apache-2.0
//! A key in libcrypto's hands: its public half, and where its private half is found or what it is. Each process has handles of both for itself.

use crate::abi::{Answer, deep};
use crate::failure::{Failure, Gone, Reason, Result, is_stale};
use crate::host::{Lease, Token, lock};
use crate::kind::{Form, KeyKind};
use crate::own::Parts;
use crate::provider::{Provider, no_question};
use crate::pss::Pss;
use crate::public::{self, Public};
use metaslot_ck::*;
use metaslot_client::uri::{Class, Uri};
use metaslot_client::{Session, Template};
use metaslot_memory::PerProcess;
use metaslot_spi::curves::Curve;
use metaslot_spi::der::Node;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) provider: Arc<Provider>,
    pub(crate) kind: &'static KeyKind,
    pub(crate) public: Public,
    pub(crate) private: Option<Private>,
    /// What a key of RSA-PSS is restricted to.
    pub(crate) pss: Option<Pss>,
    /// That of the private half; the public one has the next.
    number: u64,
}

/// The private half.
#[derive(Debug)]
pub(crate) enum Private {
    /// It is in a token and stays there.
    Named(Box<Named>),
    /// It is the program's own, and brought into a token as a session object.
    Own(Parts),
}

/// Where a private key is.
#[derive(Debug)]
pub(crate) struct Named {
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
    CKA_PRIME,
    CKA_SUBPRIME,
    CKA_BASE,
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
    CKM_SHA3_224_RSA_PKCS_PSS,
    CKM_SHA3_256_RSA_PKCS_PSS,
    CKM_SHA3_384_RSA_PKCS_PSS,
    CKM_SHA3_512_RSA_PKCS_PSS,
];

/// Codes of keys that a module does not have or take.
const LACKING: &[Error] = &[
    Error::ATTRIBUTE_TYPE_INVALID,
    Error::ATTRIBUTE_VALUE_INVALID,
    Error::CURVE_NOT_SUPPORTED,
    Error::DOMAIN_PARAMS_INVALID,
    Error::FUNCTION_NOT_SUPPORTED,
    Error::KEY_SIZE_RANGE,
    Error::MECHANISM_INVALID,
    Error::PARAMETER_SET_NOT_SUPPORTED,
    Error::TEMPLATE_INCOMPLETE,
    Error::TEMPLATE_INCONSISTENT,
];

/// A half of a key.
#[derive(Clone, Copy, Debug)]
enum Half {
    Private,
    Public,
}

impl Key {
    /// A public key.
    pub(crate) fn public(provider: Arc<Provider>, kind: &'static KeyKind, public: Public) -> Self {
        let number = NUMBERS.fetch_add(2, Ordering::Relaxed);
        Self { provider, kind, public, private: None, pss: None, number }
    }

    /// A key that the program brings, with what is private of it. `None` where the module does not have such keys; where it cannot be asked, what
    /// is done with the key says why.
    pub(crate) fn own(mut self, parts: Parts) -> Result<Option<Self>> {
        let half = if parts.is_empty() { Half::Public } else { Half::Private };
        if !parts.is_empty() {
            self.private = Some(Private::Own(parts));
        }
        let found = self.check_point().and_then(|()| self.located(half));
        let found = match found {
            Ok(found) => found,
            Err(failure) if failure.lacks || self.provider.fallback => return Ok(None),
            Err(_) if self.public.is_known() => return Ok(Some(self)),
            Err(failure) => return Err(failure),
        };
        if !self.public.is_known() {
            let shown = found.0.keeping(|session| session.attribute(found.1, CKA_PUBLIC_KEY_INFO));
            let public = self.public.clone().completed(&shown.unwrap_or_default());
            if !public.is_known() {
                return Ok(None);
            }
            self.public = public;
        }
        Ok(Some(self))
    }

    /// With its point whole, where the module shows it so. A token refuses one that is not on the curve.
    pub(crate) fn check_point(&mut self) -> Result<()> {
        let Public::Ec { curve, point } = &self.public else { return Ok(()) };
        let (curve, Some(form)) = (*curve, point.first().copied()) else { return Ok(()) };
        let found = self.located(Half::Public)?;
        if form != 4 {
            let whole = Public::Ec { curve, point: shown_point(&found, curve) };
            if whole.has_form() {
                self.public = whole;
            }
        }
        Ok(())
    }

    /// The key of a pair that was made for the program, by the session that made it: what is private of it is read.
    pub(crate) fn made(
        provider: &Arc<Provider>,
        kind: &'static KeyKind,
        token: &Arc<Token>,
        session: &Session,
        (public, private): (ObjectHandle, ObjectHandle),
    ) -> metaslot_client::Result<Option<Self>> {
        let parts = Parts::read(kind, session, private)?;
        let shown = public::attributes(kind);
        let values = session.attributes(public, shown)?;
        let of_attributes = Public::of_attributes(kind, |attribute| {
            let place = shown.iter().position(|other| *other == attribute);
            place.and_then(|place| values[place].clone()).unwrap_or_default()
        });
        let Some(known) = of_attributes.filter(|known| known.is_known()) else { return Ok(None) };
        let mut key = Self::public(Arc::clone(provider), kind, known);
        key.private = Some(Private::Own(parts));
        for (half, handle) in [(Half::Private, private), (Half::Public, public)] {
            provider.host().found(key.number + half as u64, Arc::clone(token), handle);
        }
        Ok(Some(key))
    }

    /// Without its private half, and without the public one where that is not asked for.
    pub(crate) fn without(&self, public: bool) -> Self {
        let rest = self.public.clone();
        let rest = if public { rest } else { rest.emptied() };
        let mut rest = Self::public(Arc::clone(&self.provider), self.kind, rest);
        rest.pss = self.pss;
        rest
    }

    /// With another public half; what is the program's own of the private one stays.
    pub(crate) fn with(&self, public: Public) -> Self {
        let mut other = Self::public(Arc::clone(&self.provider), self.kind, public);
        other.private = self.parts().cloned().map(Private::Own);
        other
    }

    /// Where it is, of a key in a token.
    pub(crate) fn uri(&self) -> Option<&Uri> {
        match &self.private {
            Some(Private::Named(named)) => Some(&named.uri),
            _ => None,
        }
    }

    /// Its private parts, of a key of the program's own.
    pub(crate) fn parts(&self) -> Option<&Parts> {
        match &self.private {
            Some(Private::Own(parts)) => Some(parts),
            _ => None,
        }
    }

    /// A parameter by libcrypto's name.
    pub(crate) fn answer(&self, name: &[u8]) -> Option<Answer<'_>> {
        match (name, &self.pss) {
            (b"mandatory-digest" | b"default-digest", Some(pss)) => {
                Some(Answer::Text(pss.hash.names[0].to_owned()))
            }
            _ => self.public.answer(self.kind, name),
        }
        .or_else(|| self.parts()?.answer(self.kind, name))
    }

    /// What stands in its `AlgorithmIdentifier`.
    pub(crate) fn identifier<T>(&self, with: impl FnOnce(&[Node<'_>]) -> T) -> T {
        match &self.pss {
            Some(pss) => pss.identifier(with),
            None => self.public.identifier(self.kind, with),
        }
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
        let get = |attribute| value_of(&values, attribute);
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
            key.private = Some(Private::Named(Box::new(Named { uri, template, always })));
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

    /// The same with the public half.
    pub(crate) fn with_public<T>(
        &self,
        what: &str,
        call: impl Fn(&Lease, ObjectHandle) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        self.with_half(Half::Public, what, |token, handle| attempt(token, &call, handle))
    }

    /// The same with the private half and without a session: `call` may pause the job that it is in.
    pub(crate) fn with_token<T>(
        &self,
        what: &str,
        call: impl Fn(&Arc<Token>, ObjectHandle) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        self.with_half(Half::Private, what, call)
    }

    fn with_half<T>(
        &self,
        half: Half,
        what: &str,
        call: impl Fn(&Arc<Token>, ObjectHandle) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let (token, handle) = deep(|| self.located(half))?;
        let error = match call(&token, handle) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if !is_stale(error) {
            return Err(self.failed(&token, what, error));
        }
        // One object is gone that is the program's own.
        let alone = self.uri().is_none() && Gone::of(error) == Some(Gone::Object);
        let located = deep(|| {
            // Another call may have done it meanwhile; a child that was forked while its parent's job paused has nothing old.
            let mut host = self.provider.host();
            let number = self.number + half as u64;
            match host.key(number) {
                Some((now, other)) if Arc::ptr_eq(&now, &token) => match alone {
                    true if other == handle => drop(host.forget(number)),
                    true => {}
                    false => host.renew(&token, error),
                },
                _ => {}
            }
            drop(host);
            self.located(half)
        });
        let (now, other) = located?;
        call(&now, other).map_err(|error| {
            if alone && Gone::of(error) == Some(Gone::Object) {
                // It is something else: the old one stays.
                deep(|| self.end(half));
                self.provider.host().found(self.number + half as u64, token, handle);
            }
            self.failed(&now, what, error)
        })
    }

    /// Whether a batch saves more of its operations than a pause of a job costs, which is 40 to 70 µs of processor time: RSA from 2048 bits on saves 100 µs
    /// at least, P-384 75, all others of the lanes less (docs/lanes.md). A key that wants a login for each use is used at once.
    pub(crate) fn may_pause(&self) -> bool {
        let gains = match &self.public {
            Public::Rsa { .. } => self.public.bits(self.kind) >= 2048,
            Public::Ec { curve, .. } => curve.oid == P384,
            _ => false,
        };
        let always = match &self.private {
            Some(Private::Named(named)) => named.always,
            Some(Private::Own(_)) => false,
            None => true,
        };
        self.provider.async_jobs && gains && !always
    }

    /// Whether both halves of a key of the program's own belong together, as far as the module shows the public one.
    pub(crate) fn is_pair(&self) -> Result<bool> {
        let shown = self
            .with_private("check", |lease, handle| lease.attribute(handle, CKA_PUBLIC_KEY_INFO))?;
        let found = self.without(false).public.clone().completed(&shown);
        Ok(!found.is_known() || found.is(&self.public))
    }

    /// The login for one use, of a key that wants one.
    pub(crate) fn authorize(&self, lease: &Lease) -> metaslot_client::Result<()> {
        match &self.private {
            Some(Private::Named(named)) if named.always => {
                let pin = self.provider.pin(lease.token(), &named.uri, &no_question);
                lease.token().authorize(lease, pin.unwrap_or_default())
            }
            _ => Ok(()),
        }
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
        let error = match attempt(&token, &call, none) {
            Err(error) if is_stale(error) => error,
            done => return done.map_err(|error| token.failed(what, error)),
        };
        self.provider.host().renew(&token, error);
        token = self.token()?;
        attempt(&token, &call, none).map_err(|error| token.failed(what, error))
    }

    /// A session with its token, or any.
    pub(crate) fn session(&self) -> Result<Lease> {
        self.token()?.session()
    }

    fn token(&self) -> Result<Arc<Token>> {
        match self.private {
            Some(Private::Named(_)) => Ok(self.located(Half::Private)?.0),
            _ => self.provider.any(),
        }
    }

    /// Where it is in this process; what is not there yet is brought there.
    fn located(&self, half: Half) -> Result<(Arc<Token>, ObjectHandle)> {
        if let Some(found) = self.provider.host().key(self.number + half as u64) {
            return Ok(found);
        }
        match (half, &self.private) {
            (Half::Private, None) => Err(Failure::input("the key has no private half")),
            (Half::Private, Some(Private::Named(named))) => self.found(named),
            (Half::Private, Some(Private::Own(parts))) => {
                self.brought(half, &parts.template(self.kind, &self.public))
            }
            (Half::Public, _) => match &self.public {
                Public::Ec { curve, point } if matches!(point.first(), Some(6 | 7)) => {
                    self.brought_hybrid(curve, point)
                }
                public => self.brought(half, &public.template(self.kind)),
            },
        }
    }

    /// A point in its hybrid form, which not every token knows: it is the compressed one, and Y, which must be that of what the token shows.
    fn brought_hybrid(
        &self,
        curve: &'static Curve,
        point: &[u8],
    ) -> Result<(Arc<Token>, ObjectHandle)> {
        let (compressed, y) = point.split_at(1 + curve.length());
        let mut compressed = compressed.to_vec();
        compressed[0] -= 4;
        let public = Public::Ec { curve, point: compressed };
        let found = self.brought(Half::Public, &public.template(self.kind))?;
        if shown_point(&found, curve).ends_with(y) {
            return Ok(found);
        }
        self.end(Half::Public);
        let odd = Failure::input("the point is on no curve");
        Err(Failure { lacks: true, ..odd })
    }

    /// The object of a half that is this process's goes.
    fn end(&self, half: Half) {
        let known = self.provider.host().forget(self.number + half as u64);
        let stays = matches!((half, &self.private), (Half::Private, Some(Private::Named(_))));
        if let Some((token, handle)) = known.filter(|_| !stays) {
            // Where it fails, the session's end takes the object away.
            token.keeping(|session| session.destroy(handle)).ok();
        }
    }

    /// A session object of this process.
    fn brought(&self, half: Half, template: &Template) -> Result<(Arc<Token>, ObjectHandle)> {
        let create = |_: &Arc<Token>, session: &Session| session.create(template);
        let (token, created) = keeping(&self.provider, || self.token(), create)?;
        let handle = created.map_err(|error| Failure {
            lacks: LACKING.contains(&error.code),
            ..self.failed(&token, "bring a key", error)
        })?;
        let number = self.number + half as u64;
        let first = self.provider.host().found(number, Arc::clone(&token), handle);
        if first.1 != handle {
            // Another thread was faster.
            token.keeping(|session| session.destroy(handle)).ok();
        }
        Ok(first)
    }

    /// A key that has a name.
    fn found(&self, named: &Named) -> Result<(Arc<Token>, ObjectHandle)> {
        self.search(named).map_err(|failure| failure.about(&self.shown()))
    }

    fn search(&self, named: &Named) -> Result<(Arc<Token>, ObjectHandle)> {
        let mut why = "there is no such key now";
        for token in self.provider.tokens(&named.uri)? {
            self.provider.login(&token, &named.uri, &no_question)?;
            let mut session = token.session()?;
            let found = session.find(&named.template);
            session.succeeded();
            for handle in found.map_err(|error| self.failed(&token, "find", error))? {
                let same = Self::read(&self.provider, &session, handle, true, &named.uri)?;
                if same.is_none_or(|same| same.public == self.public) {
                    let mut host = self.provider.host();
                    return Ok(host.found(self.number, Arc::clone(&token), handle));
                }
                why = "another key has its name now";
            }
        }
        Err(Failure::new(Reason::NotFound, why))
    }

    fn failed(&self, token: &Token, what: &str, error: metaslot_client::Error) -> Failure {
        token.failed(&format!("{what} by {}", self.shown()), error)
    }

    /// Its name in messages.
    fn shown(&self) -> String {
        let what = if self.private.is_some() { "key of the program" } else { "public key" };
        let named = self.uri().map(|uri| uri.key_part().to_string());
        named.unwrap_or_else(|| format!("a {what} ({})", self.kind.text()))
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

/// What `call` makes in a session that stays open: after a login, where the token does nothing without, and anew where all was lost.
pub(crate) fn keeping<T>(
    provider: &Provider,
    token: impl Fn() -> Result<Arc<Token>>,
    call: impl Fn(&Arc<Token>, &Session) -> metaslot_client::Result<T>,
) -> Result<(Arc<Token>, metaslot_client::Result<T>)> {
    let mut now = token()?;
    let mut done = now.keeping(|session| call(&now, session));
    match done {
        Err(error) if error.code == Error::USER_NOT_LOGGED_IN => {
            provider.login(&now, &Uri::default(), &no_question)?;
        }
        Err(error) if is_stale(error) => {
            provider.host().renew(&now, error);
            now = token()?;
        }
        done => return Ok((now, done)),
    }
    done = now.keeping(|session| call(&now, session));
    Ok((now, done))
}

impl Drop for Key {
    fn drop(&mut self) {
        self.end(Half::Private);
        self.end(Half::Public);
    }
}

/// The point of a public key in a token, as it is shown.
fn shown_point((token, handle): &(Arc<Token>, ObjectHandle), curve: &Curve) -> Vec<u8> {
    let shown = token.keeping(|session| session.attribute(*handle, CKA_EC_POINT));
    curve.point(&shown.unwrap_or_default()).to_vec()
}

fn carried() -> MutexGuard<'static, HashMap<u64, Arc<Key>>> {
    lock(CARRIED.get())
}

/// Of the values of `ATTRIBUTES`, in that order, this one's; nothing where it is not there.
#[inline(never)]
fn value_of(values: &[Option<Vec<u8>>], attribute: CK_ATTRIBUTE_TYPE) -> Vec<u8> {
    let place = ATTRIBUTES.iter().position(|other| *other == attribute);
    place.and_then(|place| values[place].clone()).unwrap_or_default()
}

fn attempt<T>(
    token: &Arc<Token>,
    call: &impl Fn(&Lease, ObjectHandle) -> metaslot_client::Result<T>,
    handle: ObjectHandle,
) -> metaslot_client::Result<T> {
    let mut lease = token.lease()?;
    let done = call(&lease, handle).inspect_err(|error| token.hears(*error))?;
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
    let in_field = kind.field().map_or(CKA_EC_POINT, |_| CKA_VALUE);
    let point = kind.number().map_or(in_field, public::attribute);
    let value = search(template, point).unwrap_or_default();
    let found = Public::of_attributes(kind, |attribute| match (attribute, &public) {
        (attribute, _) if attribute == point => value.clone(),
        (CKA_EC_PARAMS, Public::Ec { curve, .. }) => Node::Oid(curve.oid).to_vec(),
        _ => public.number(attribute).unwrap_or_default().to_vec(),
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
