// SPDX-License-Identifier: Apache-2.0
//! Key agreement: ECDH, X25519, X448 and Diffie-Hellman.

use crate::abi::{Answer, Given, Params};
use crate::failure::{Failure, Result};
use crate::hash::{Hash, named};
use crate::host::Lease;
use crate::key::Key;
use crate::kind::Form;
use crate::operation::{Operation, key_of, passing_by, taken};
use crate::provider::Provider;
use crate::public::Public;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params as Parameter};
use std::sync::Arc;

/// One that is being used.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
    peer: Option<Arc<Key>>,
    /// With the order of the curve's points divided by that of the key's.
    cofactor: bool,
    /// What the key says of that.
    of_key: bool,
    /// Of Diffie-Hellman: a secret that begins with zeros keeps them.
    pad: bool,
    /// X9.63's key derivation function: its hash function, length and shared information.
    kdf: bool,
    hash: Option<&'static Hash>,
    length: usize,
    shared: Vec<u8>,
}

/// What a key derivation function of a hash function is called.
const KDFS: &[(CK_MECHANISM_TYPE, CK_ULONG)] = &[
    (CKM_SHA_1, CKD_SHA1_KDF),
    (CKM_SHA224, CKD_SHA224_KDF),
    (CKM_SHA256, CKD_SHA256_KDF),
    (CKM_SHA384, CKD_SHA384_KDF),
    (CKM_SHA512, CKD_SHA512_KDF),
    (CKM_SHA3_224, CKD_SHA3_224_KDF),
    (CKM_SHA3_256, CKD_SHA3_256_KDF),
    (CKM_SHA3_384, CKD_SHA3_384_KDF),
    (CKM_SHA3_512, CKD_SHA3_512_KDF),
];

impl Operation for Exchange {
    fn new(provider: Arc<Provider>) -> Self {
        let (key, peer, hash, shared) = Default::default();
        Self {
            provider,
            key,
            peer,
            cofactor: false,
            of_key: false,
            pad: false,
            kdf: false,
            hash,
            length: 0,
            shared,
        }
    }

    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn copy(&self) -> Result<Self> {
        Ok(self.clone())
    }

    fn set(&mut self, params: &Params) -> Result<()> {
        if let Some(name) = params.find(c"kdf-type").and_then(Given::text) {
            if !matches!(name, "" | "X963KDF") {
                return Err(Failure::unsupported("this key derivation function is not supported"));
            }
            self.kdf = !name.is_empty();
        }
        if let Some(mode) = params.find(c"ecdh-cofactor-mode").and_then(Given::number) {
            self.cofactor = match mode {
                -1 => self.of_key,
                0 | 1 => mode == 1,
                _ => return Err(Failure::input("this is no mode of the cofactor")),
            };
        }
        if let Some(pad) = params.find(c"pad").and_then(Given::number) {
            self.pad = pad != 0;
        }
        if let Some(name) = params.find(c"kdf-digest").and_then(Given::text) {
            self.hash = Some(named(name)?);
        }
        if let Some(length) = params.find(c"kdf-outlen").and_then(Given::number) {
            let length = usize::try_from(length);
            self.length = length.map_err(|_| Failure::input("this is no length"))?;
        }
        if let Some(shared) = params.find(c"kdf-ukm").and_then(Given::octets) {
            self.shared = shared.to_vec();
        }
        Ok(())
    }

    fn answer(&self, name: &[u8], _wants_text: bool) -> Option<Answer<'_>> {
        match name {
            b"kdf-type" => Some(Answer::Constant(if self.kdf { c"X963KDF" } else { c"" })),
            b"kdf-digest" => self.hash.map(|hash| Answer::Text(hash.names[0].to_owned())),
            b"kdf-outlen" => i64::try_from(self.length).ok().map(Answer::Number),
            b"kdf-ukm" => Some(Answer::Octets(&self.shared)),
            b"ecdh-cofactor-mode" => Some(Answer::Number(self.cofactor.into())),
            _ => None,
        }
    }
}

impl Exchange {
    pub(crate) fn begin(&mut self, key: Option<Arc<Key>>, cofactor: bool) -> Result<()> {
        self.key = Some(Arc::clone(key_of(key.as_ref())?));
        (self.cofactor, self.of_key) = (cofactor, cofactor);
        Ok(())
    }

    pub(crate) fn with(&mut self, peer: Option<Arc<Key>>) -> Result<()> {
        let same = |peer: &Arc<Key>| {
            self.key.as_ref().is_some_and(|key| {
                key.kind.name == peer.kind.name && key.public.is_beside(&peer.public)
            })
        };
        let peer = peer.filter(same);
        self.peer = Some(
            peer.ok_or_else(|| Failure::input("the peer's key is of another curve or group"))?,
        );
        Ok(())
    }

    /// Length of the secret.
    pub(crate) fn length(&self) -> Result<usize> {
        if self.kdf {
            return Ok(self.length);
        }
        self.both().map(|(key, _)| plain(key))
    }

    /// Whether libcrypto takes the beginning of a secret that there is too little room for.
    pub(crate) fn is_cut(&self) -> bool {
        !self.kdf && self.key.as_ref().is_some_and(|key| matches!(key.public, Public::Ec { .. }))
    }

    fn both(&self) -> Result<(&Arc<Key>, &Arc<Key>)> {
        let both = self.key.as_ref().zip(self.peer.as_ref());
        both.ok_or_else(|| Failure::input("a key or the peer's key is missing"))
    }

    /// The secret, or its first bytes.
    pub(crate) fn derive(&self, most: usize) -> Result<Vec<u8>> {
        let (key, peer) = self.both()?;
        let sent = match &peer.public {
            Public::Ec { point, .. } | Public::Number(point) => point.clone(),
            Public::Field { value, .. } => peer.public.padded(value),
            Public::Rsa { .. } => return Err(Failure::unsupported("such keys do not agree")),
        };
        let public = &*sent;
        let length = self.length()?;
        let row = KDFS.iter().find(|row| self.hash.is_some_and(|hash| hash.digest == row.0));
        let (kdf, shared) = match (self.kdf, row) {
            (false, _) => (CKD_NULL, &[][..]),
            (true, Some(row)) => (row.1, &*self.shared),
            (true, None) => {
                return Err(Failure::input("the key derivation function lacks its hash function"));
            }
        };
        // Where the cofactor is one, modules need not have a mechanism for it.
        let cofactor =
            self.cofactor && matches!(&key.public, Public::Ec { curve, .. } if curve.cofactor > 1);
        let number = match key.kind.form {
            Form::Field(_) if self.kdf => {
                return Err(Failure::unsupported("such keys agree on the secret itself"));
            }
            Form::Field(mechanism) => mechanism,
            _ if cofactor => CKM_ECDH1_COFACTOR_DERIVE,
            _ => CKM_ECDH1_DERIVE,
        };
        let agreed = |lease: &Lease, handle, kdf, shared, length| {
            // CK_X9_42_DH1_DERIVE_PARAMS has the same fields.
            let params = match number {
                CKM_DH_PKCS_DERIVE => Parameter::Bytes(public),
                _ => Parameter::Ecdh1 { kdf, shared, public },
            };
            let mechanism = Mechanism::with(number, params);
            taken(lease, lease.derive(&mechanism, handle, &passing_by(key, length))?)
        };
        let mut secret = key.with_private("agree", |lease, handle| {
            match (agreed(lease, handle, kdf, shared, length), self.hash) {
                // A module without the function.
                (Err(error), Some(hash))
                    if self.kdf && error.code == Error::MECHANISM_PARAM_INVALID =>
                {
                    let secret = agreed(lease, handle, CKD_NULL, &[], plain(key))?;
                    expanded(lease, hash, secret, shared, length)
                }
                (done, _) => done,
            }
        })?;
        if key.kind.agrees_only() && !self.pad {
            let zeros = secret.iter().take_while(|byte| **byte == 0).count();
            secret.copy_within(zeros.., 0);
            secret[length - zeros..].fill(0);
            secret.truncate(length - zeros);
        }
        if let Some(rest) = secret.get_mut(most..) {
            rest.fill(0);
            secret.truncate(most);
        }
        Ok(secret)
    }
}

/// Length of the secret itself.
fn plain(key: &Key) -> usize {
    match &key.public {
        Public::Ec { curve, .. } => curve.length(),
        _ => key.answer_length(),
    }
}

/// What X9.63's key derivation function makes of a secret: digests of it, of a number and of what is shared.
fn expanded(
    lease: &Lease,
    hash: &Hash,
    mut secret: Vec<u8>,
    shared: &[u8],
    length: usize,
) -> metaslot_client::Result<Vec<u8>> {
    let place = secret.len()..secret.len() + 4;
    let mut input = [&*secret, &[0; 4], shared].concat();
    let (mut made, mut number) = (Vec::with_capacity(length + hash.length), 0_u32);
    while made.len() < length {
        number += 1;
        input[place.clone()].copy_from_slice(&number.to_be_bytes());
        made.extend(lease.digest(&Mechanism::new(hash.digest), &input)?);
    }
    made.truncate(length);
    secret.fill(0);
    input.fill(0);
    std::hint::black_box((&secret, &input));
    Ok(made)
}
