// SPDX-License-Identifier: Apache-2.0
//! Hybrid groups of TLS 1.3 (draft-ietf-tls-ecdhe-mlkem): a key of ML-KEM and one of a curve, both made by the token for one handshake and
//! gone after it. There is no login for them: nothing of them is stored.

use crate::failure::{Failure, Reason, Result, is_stale};
use crate::host::{Lease, Token, lock};
use crate::kem::{Encapsulates, SECRET};
use crate::kind::{KeyKind, Needed, Variant};
use crate::operation::{Operation, passing, taken};
use crate::provider::Provider;
use crate::public::{Public, curve_named};
use metaslot_ck::*;
use metaslot_client::uri::Uri;
use metaslot_client::{Mechanism, Params as Parameter, Template};
use metaslot_spi::curves::Curve;
use metaslot_spi::der::Node;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard};

/// Table: the groups.
pub(crate) static GROUPS: [Group; 3] = [
    group(c"X25519MLKEM768", 0x11ec, c"ML-KEM-768", c"X25519", None),
    group(c"SecP256r1MLKEM768", 0x11eb, c"ML-KEM-768", c"EC", Some("P-256")),
    group(c"SecP384r1MLKEM1024", 0x11ed, c"ML-KEM-1024", c"EC", Some("P-384")),
];

/// One of them.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: &'static CStr,
    /// By which TLS knows it.
    pub(crate) number: i32,
    kem: Half,
    other: Half,
    /// In every concatenation.
    kem_first: bool,
}

/// The key of ML-KEM, or that beside it.
#[derive(Debug)]
struct Half {
    kind: &'static KeyKind,
    /// Of a key that is a point of a curve.
    curve: Option<&'static str>,
    /// What the private key is for.
    purpose: CK_ATTRIBUTE_TYPE,
}

const fn group(
    name: &'static CStr,
    number: i32,
    kem: &CStr,
    other: &CStr,
    curve: Option<&'static str>,
) -> Group {
    let kem = Half { kind: KeyKind::named(kem), curve: None, purpose: CKA_DECAPSULATE };
    let kem_first = curve.is_none();
    let other = Half { kind: KeyKind::named(other), curve, purpose: CKA_DERIVE };
    Group { name, number, kem, other, kem_first }
}

/// Both public keys, or none; and the private ones of a pair that was made here.
#[derive(Debug)]
pub(crate) struct HybridKey {
    pub(crate) provider: Arc<Provider>,
    pub(crate) group: &'static Group,
    /// As TLS sends them.
    pub(crate) public: Vec<u8>,
    pub(crate) private: Option<Pair>,
}

/// Private keys, with the session whose end is theirs.
#[derive(Debug)]
pub(crate) struct Pair {
    lease: Mutex<Lease>,
    kem: ObjectHandle,
    other: ObjectHandle,
}

/// One that is being used.
#[derive(Clone, Debug)]
pub(crate) struct HybridKem {
    provider: Arc<Provider>,
    key: Option<Arc<HybridKey>>,
}

impl Half {
    fn curve(&self) -> Option<&'static Curve> {
        self.curve.and_then(curve_named)
    }

    /// Of the public key, and of what it answers: a ciphertext, or a secret.
    fn lengths(&self) -> (usize, usize) {
        match (self.curve(), self.kind.number()) {
            (Some(curve), _) => (1 + 2 * curve.length(), curve.length()),
            (None, number) => number.map_or((0, 0), |number| (number.length, number.answer)),
        }
    }

    fn public(&self, bytes: &[u8]) -> Public {
        let point = bytes.to_vec();
        match self.curve() {
            Some(curve) => Public::Ec { curve, point },
            None => Public::Number(point),
        }
    }

    /// A new pair: the public key, and the handle of the private one.
    fn pair(&self, lease: &Lease) -> metaslot_client::Result<(Vec<u8>, ObjectHandle)> {
        let here = Template::new().token(false).bool(CKA_PRIVATE, false);
        let of_curve = |oid| here.clone().bytes(CKA_EC_PARAMS, Node::Oid(oid).to_vec());
        let public = match (self.curve(), self.kind.number().map(|number| number.variant)) {
            (Some(curve), _) => of_curve(curve.oid),
            (None, Some(Variant::Set(set))) => here.clone().ulong(CKA_PARAMETER_SET, set),
            _ => of_curve(self.kind.number().map_or(&[][..], |number| number.oid)),
        };
        let private = here.bool(CKA_SENSITIVE, true).bool(CKA_EXTRACTABLE, false);
        let private = private.bool(self.purpose, true);
        let made = lease.generate_key_pair(&Mechanism::new(self.kind.generates), &public, &private);
        let (public, private) = made?;
        let read = Public::of_attributes(self.kind, |name| {
            lease.attribute(public, name).unwrap_or_default()
        });
        lease.destroy(public)?;
        Ok((read.map(Public::into_bytes).unwrap_or_default(), private))
    }
}

impl Group {
    /// Security in bits, as libcrypto counts it: that of ML-KEM.
    pub(crate) fn security(&self) -> i64 {
        self.kem.kind.number().map_or(0, |number| number.security)
    }

    /// Whether so many bytes may be the public keys.
    pub(crate) fn is_public(&self, bytes: &[u8]) -> bool {
        bytes.len() == self.kem.lengths().0 + self.other.lengths().0
    }

    /// Of a ciphertext and of a secret.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        let (public, secret) = self.other.lengths();
        (self.kem.lengths().1 + public, SECRET + secret)
    }

    /// What is of ML-KEM, of that length, and the rest.
    fn parted<'a>(&self, whole: &'a [u8], kem: usize) -> Result<(&'a [u8], &'a [u8])> {
        let (all, other) = (kem + self.other.lengths().0, self.other.lengths().0);
        if whole.len() != all {
            let (is, name) = (whole.len(), self.name.to_string_lossy());
            return Err(Failure::input(format!("{name} has {all} bytes where {is} are given")));
        }
        let (first, second) = whole.split_at(if self.kem_first { kem } else { other });
        let (kem, other) = if self.kem_first { (first, second) } else { (second, first) };
        // RFC 8446, §4.2.8.2: the other forms are refused, which a module may take.
        if self.other.curve.is_some() && other.first() != Some(&4) {
            return Err(Failure::input("the point is not in its uncompressed form"));
        }
        Ok((kem, other))
    }

    /// Both in their order; they may be secrets.
    fn joined(&self, mut kem: Vec<u8>, mut other: Vec<u8>) -> Vec<u8> {
        let whole =
            if self.kem_first { [&*kem, &*other].concat() } else { [&*other, &*kem].concat() };
        kem.fill(0);
        other.fill(0);
        std::hint::black_box((&kem, &other));
        whole
    }

    /// The mechanisms without which there is none.
    pub(crate) const fn needs(&self) -> Needed {
        [self.kem.kind.generates, self.other.kind.generates]
    }

    /// A token that can do all that it takes.
    fn token(&self, provider: &Provider) -> Result<Arc<Token>> {
        let can = |token: &Arc<Token>| {
            let needs = [CKM_ML_KEM, CKM_ECDH1_DERIVE];
            self.needs().iter().chain(&needs).all(|one| token.has(*one))
        };
        let any = provider.any()?;
        if can(&any) {
            return Ok(any);
        }
        provider.tokens(&Uri::default())?.into_iter().find(can).ok_or_else(|| {
            let name = self.name.to_string_lossy();
            Failure::new(Reason::NotFound, format!("{name}: no token has the mechanisms for it"))
        })
    }

    /// Whether there is one. Where the module fails there may be: what is asked of it later says why.
    pub(crate) fn is_offered(&self, provider: &Provider) -> bool {
        self.token(provider).map_or_else(|failure| failure.reason != Reason::NotFound, |_| true)
    }

    /// What `call` does in a session; once more where what there was of the module is gone.
    fn with_session<T>(
        &self,
        provider: &Provider,
        what: &str,
        call: impl Fn(Lease) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let mut again = true;
        loop {
            let token = self.token(provider)?;
            match token.lease().and_then(&call) {
                Err(error) if again && is_stale(error) => provider.host().renew(&token, error),
                done => return done.map_err(|error| token.failed(what, error)),
            }
            again = false;
        }
    }
}

impl HybridKey {
    /// One that has this public half.
    pub(crate) const fn public(
        provider: Arc<Provider>,
        group: &'static Group,
        public: Vec<u8>,
    ) -> Self {
        Self { provider, group, public, private: None }
    }

    /// A new pair.
    pub(crate) fn generate(provider: Arc<Provider>, group: &'static Group) -> Result<Self> {
        let made = group.with_session(&provider, "generate a key pair", |lease| {
            let ((kem_public, kem), (public, other)) =
                (group.kem.pair(&lease)?, group.other.pair(&lease)?);
            let private = Pair { lease: Mutex::new(lease), kem, other };
            Ok((group.joined(kem_public, public), private))
        });
        let (public, private) = made?;
        Ok(Self { provider, group, public, private: Some(private) })
    }
}

impl Pair {
    fn lease(&self) -> MutexGuard<'_, Lease> {
        lock(&self.lease)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let mut lease = self.lease();
        if lease.is_here()
            && [self.kem, self.other].into_iter().all(|key| lease.destroy(key).is_ok())
        {
            lease.succeeded();
        }
    }
}

/// What a private key and the other side's public one agree on.
fn agree(
    lease: &Lease,
    half: &Half,
    private: ObjectHandle,
    public: &[u8],
) -> metaslot_client::Result<Vec<u8>> {
    let params = Parameter::Ecdh1 { kdf: CKD_NULL, shared: &[], public };
    let mechanism = Mechanism::with(CKM_ECDH1_DERIVE, params);
    taken(lease, lease.derive(&mechanism, private, &passing(half.lengths().1))?)
}

impl Operation for HybridKem {
    fn new(provider: Arc<Provider>) -> Self {
        Self { provider, key: None }
    }

    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn copy(&self) -> Result<Self> {
        Ok(self.clone())
    }
}

impl HybridKem {
    pub(crate) fn begin(&mut self, key: Option<Arc<HybridKey>>) -> Result<()> {
        self.key = key;
        self.key().map(|_| ())
    }

    fn key(&self) -> Result<&HybridKey> {
        self.key.as_deref().ok_or_else(|| Failure::input("there is no key"))
    }
}

impl Encapsulates for HybridKem {
    fn lengths(&self) -> Result<(usize, usize)> {
        self.key().map(|key| key.group.lengths())
    }

    fn encapsulate(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let key = self.key()?;
        let group = key.group;
        let (kem_public, public) = group.parted(&key.public, group.kem.lengths().0)?;
        let template = group.kem.public(kem_public).template(group.kem.kind);
        group.with_session(&self.provider, "encapsulate", |mut lease| {
            let public_key = lease.create(&template)?;
            let made = lease.encapsulate(&Mechanism::new(CKM_ML_KEM), public_key, &passing(SECRET));
            let (ciphertext, secret) = made?;
            lease.destroy(public_key)?;
            let secret = taken(&lease, secret)?;
            let (own, private) = group.other.pair(&lease)?;
            let agreed = agree(&lease, &group.other, private, public)?;
            lease.destroy(private)?;
            lease.succeeded();
            Ok((group.joined(ciphertext, own), group.joined(secret, agreed)))
        })
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Vec<u8>> {
        let group = self.key()?.group;
        let private = self.key()?.private.as_ref();
        let private = private.ok_or_else(|| Failure::input("the key has no private half"))?;
        let (ciphertext, public) = group.parted(ciphertext, group.kem.lengths().1)?;
        let lease = private.lease();
        if !lease.is_here() {
            return Err(Failure::input("the key was made before the process was forked"));
        }
        let opened = || {
            let mechanism = Mechanism::new(CKM_ML_KEM);
            let secret =
                lease.decapsulate(&mechanism, private.kem, ciphertext, &passing(SECRET))?;
            let secret = taken(&lease, secret)?;
            Ok((secret, agree(&lease, &group.other, private.other, public)?))
        };
        let (secret, agreed) =
            opened().map_err(|error| lease.token().failed("decapsulate", error))?;
        Ok(group.joined(secret, agreed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of draft-ietf-tls-ecdhe-mlkem, §4: of what a client and a server send, and of the secret.
    #[test]
    fn what_is_sent_is_as_long_as_the_draft_says_and_in_its_order() {
        for (group, (client, server, secret), first) in [
            (&GROUPS[0], (1216, 1120, 64), 1088),
            (&GROUPS[1], (1249, 1153, 64), 65),
            (&GROUPS[2], (1665, 1665, 80), 97),
        ] {
            assert!(group.is_public(&vec![0; client]) && !group.is_public(&vec![0; client + 1]));
            assert_eq!(group.lengths(), (server, secret), "{group:?}");
            let sent = [vec![4; first], vec![2; server - first]].concat();
            let (kem, other) = group.parted(&sent, group.kem.lengths().1).expect("its length");
            assert_eq!(kem[0], if group.kem_first { 4 } else { 2 });
            assert_eq!(kem.len() + other.len(), server);
            assert_eq!(group.joined(kem.to_vec(), other.to_vec()), sent);
            assert!(group.parted(&sent[1..], group.kem.lengths().1).is_err());
        }
    }
}
