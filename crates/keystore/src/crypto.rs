// SPDX-License-Identifier: Apache-2.0
//! The keys under the master key, and what is sealed and authenticated with them.
//!
//! Every purpose has its own key, and every sealed value its own AES key (made from the row's id,
//! or from a random salt), so that random 96-bit nonces never come near their limit of 2³² per key.
//! Nonces are random and not counted because a restored file would repeat a counter.

use crate::error::{Error, Result};
use metaslot_awslc_wrapper::digest::{self, Hash};
use metaslot_awslc_wrapper::{aead, constant_time, hkdf, hmac, random};
use metaslot_ck::CK_ATTRIBUTE_TYPE;
use metaslot_ck::attribute::AttributeRow;
use metaslot_memory::Secret;
use metaslot_spi::store::{Name, Role, Term};

/// Length of the master key and of every key made from it, in bytes.
pub(crate) const KEY: usize = 32;
/// Length of a nonce, in bytes.
pub(crate) const NONCE: usize = 12;
/// Length of what a sealed value is longer than the plain one, in bytes.
pub(crate) const OVERHEAD: usize = NONCE + aead::TAG;
/// Length of a row's tag, in bytes.
pub(crate) const TAG: usize = 32;
/// Length of an entry of the index, in bytes.
pub(crate) const LOOKUP: usize = 16;

/// A token's serial number, as bytes.
pub type Serial = [u8; 8];
/// Tells a master key from another without giving it away.
pub type KeyId = [u8; 16];

/// HMAC-SHA-256 with a key that is used once.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> Result<Secret> {
    let mut out = Secret::zeroed(KEY);
    hmac::Key::new(Hash::Sha256, key)?.mac(parts, out.expose_mut())?;
    Ok(out)
}

/// `N` random bytes that are no secret.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut out = [0; N];
    random::fill(&mut out)?;
    Ok(out)
}

/// A random key.
pub(crate) fn random_key() -> Result<Secret> {
    let mut key = Secret::zeroed(KEY);
    random::fill(key.expose_mut())?;
    Ok(key)
}

/// Nonce, ciphertext, tag.
pub(crate) fn seal(key: &Secret, aad: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
    let mut out = zeros(plain.len() + OVERHEAD)?;
    let (nonce, sealed) = out.split_at_mut(NONCE);
    random::fill(nonce)?;
    aead::Key::aes_256_gcm(key.expose())?.seal(nonce, aad, plain, sealed)?;
    Ok(out)
}

/// `false` when `sealed` is not what [`seal`] gave for this key and this `aad`. `out` must be
/// [`OVERHEAD`] shorter than `sealed`.
#[must_use]
pub(crate) fn open(key: &Secret, aad: &[u8], sealed: &[u8], out: &mut [u8]) -> bool {
    if sealed.len() != out.len() + OVERHEAD {
        return false;
    }
    let (nonce, sealed) = sealed.split_at(NONCE);
    aead::Key::aes_256_gcm(key.expose()).is_ok_and(|key| key.open(nonce, aad, sealed, out).is_ok())
}

/// [`open`] into protected memory.
pub(crate) fn open_secret(key: &Secret, aad: &[u8], sealed: &[u8]) -> Result<Option<Secret>> {
    let Some(length) = sealed.len().checked_sub(OVERHEAD) else { return Ok(None) };
    let mut out = Secret::try_zeroed(length).ok_or(Error::Memory)?;
    Ok(open(key, aad, sealed, out.expose_mut()).then_some(out))
}

/// Anyone who wrote a row has chosen how long it is.
fn zeros(length: usize) -> Result<Vec<u8>> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length).map_err(|_| Error::Memory)?;
    zeros.resize(length, 0);
    Ok(zeros)
}

/// What a row is, for the associated data of everything in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RowContext {
    pub(crate) serial: Serial,
    pub(crate) id: u64,
    pub(crate) version: u64,
    pub(crate) private: bool,
}

impl RowContext {
    const ENCODED: usize = 8 + 8 + 8 + 1;

    fn encode(&self) -> [u8; Self::ENCODED] {
        let mut out = [0; Self::ENCODED];
        out[..8].copy_from_slice(&self.serial);
        out[8..16].copy_from_slice(&self.id.to_le_bytes());
        out[16..24].copy_from_slice(&self.version.to_le_bytes());
        out[24] = u8::from(self.private);
        out
    }
}

/// The keys of a logged-in process.
#[derive(Debug)]
pub struct Keys {
    /// Who logged in.
    pub(crate) role: Role,
    /// Which identity it is, whose end is that of the login: its name and incarnation.
    pub(crate) bound: Option<(Name, u64)>,
    pub(crate) serial: Serial,
    pub(crate) id: KeyId,
    pub(crate) master: Secret,
    attributes: hmac::Key,
    secrets: hmac::Key,
    rows: hmac::Key,
    index: hmac::Key,
    /// The keys of the attributes that are searched for, made beforehand.
    indexed: Vec<(CK_ATTRIBUTE_TYPE, hmac::Key)>,
    nodes: hmac::Key,
    state: hmac::Key,
}

impl Keys {
    pub(crate) fn new(master: Secret, serial: Serial, role: Role) -> Result<Self> {
        let key = |purpose: &str| -> Result<hmac::Key> {
            let derived = subkey(&master, &serial, purpose)?;
            Ok(hmac::Key::new(Hash::Sha256, derived.expose())?)
        };
        let index = key("index")?;
        let indexed = AttributeRow::indexed()
            .map(|attribute| Ok((attribute, Self::index_key(&index, attribute)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            role,
            bound: None,
            serial,
            id: key_id(&master, &serial)?,
            attributes: key("attributes")?,
            secrets: key("secrets")?,
            rows: key("rows")?,
            index,
            indexed,
            nodes: key("nodes")?,
            state: key("state")?,
            master,
        })
    }

    /// Who logged in.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The name and the incarnation of the identity whose end is that of the login.
    #[must_use]
    pub const fn bound(&self) -> Option<(Name, u64)> {
        self.bound
    }

    /// The same keys, of a login that ends with no identity.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Cryptography`]
    pub fn unbound(&self) -> Result<Self> {
        Self::new(Secret::copy_of(self.master.expose()), self.serial, self.role)
    }

    /// The name of the master key.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    fn derived(key: &hmac::Key, from: &[u8]) -> Result<Secret> {
        let mut out = Secret::zeroed(KEY);
        key.mac(&[from], out.expose_mut())?;
        Ok(out)
    }

    /// The attributes of a private row.
    pub(crate) fn seal_attributes(&self, place: &RowContext, plain: &[u8]) -> Result<Vec<u8>> {
        let key = Self::derived(&self.attributes, &place.id.to_le_bytes())?;
        seal(&key, &place.encode(), plain)
    }

    pub(crate) fn open_attributes(
        &self,
        place: &RowContext,
        sealed: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let Some(length) = sealed.len().checked_sub(OVERHEAD) else { return Ok(None) };
        let key = Self::derived(&self.attributes, &place.id.to_le_bytes())?;
        let mut plain = zeros(length)?;
        Ok(open(&key, &place.encode(), sealed, &mut plain).then_some(plain))
    }

    /// The secrets of any row; `attributes` is the column as it is stored.
    pub(crate) fn seal_secrets(
        &self,
        place: &RowContext,
        attributes: &[u8],
        plain: &Secret,
    ) -> Result<Vec<u8>> {
        let key = Self::derived(&self.secrets, &place.id.to_le_bytes())?;
        seal(&key, &secrets_aad(place, attributes), plain.expose())
    }

    pub(crate) fn open_secrets(
        &self,
        place: &RowContext,
        attributes: &[u8],
        sealed: &[u8],
    ) -> Result<Option<Secret>> {
        let key = Self::derived(&self.secrets, &place.id.to_le_bytes())?;
        open_secret(&key, &secrets_aad(place, attributes), sealed)
    }

    /// The MAC over everything in a row, as it is stored.
    pub(crate) fn tag(
        &self,
        place: &RowContext,
        attributes: &[u8],
        secrets: Option<&[u8]>,
        terms: &[u8],
    ) -> Result<[u8; TAG]> {
        let lengths = [attributes.len() as u64, secrets.map_or(u64::MAX, |s| s.len() as u64)]
            .map(u64::to_le_bytes);
        let mut tag = [0; TAG];
        self.rows.mac(
            &[
                &place.encode(),
                lengths.as_flattened(),
                attributes,
                secrets.unwrap_or_default(),
                terms,
            ],
            &mut tag,
        )?;
        Ok(tag)
    }

    /// What the node above has of a node of the tree.
    pub(crate) fn node(&self, level: u8, number: u64, entries: &[u8]) -> Result<[u8; 16]> {
        let mut out = [0; 16];
        self.nodes.mac(&[&[level], &number.to_le_bytes(), entries], &mut out)?;
        Ok(out)
    }

    /// The MAC over the token's state.
    pub(crate) fn state(&self, plain: &[u8]) -> Result<[u8; 32]> {
        let mut out = [0; 32];
        self.state.mac(&[plain], &mut out)?;
        Ok(out)
    }

    /// The index entry of a private row's attribute: its key is the attribute's own.
    fn private_lookup(&self, attribute: CK_ATTRIBUTE_TYPE, value: &[u8]) -> Result<[u8; LOOKUP]> {
        let mut out = [0; LOOKUP];
        match self.indexed.iter().find(|(known, _)| *known == attribute) {
            Some((_, key)) => key.mac(&[value], &mut out)?,
            None => Self::index_key(&self.index, attribute)?.mac(&[value], &mut out)?,
        }
        Ok(out)
    }

    fn index_key(index: &hmac::Key, attribute: CK_ATTRIBUTE_TYPE) -> Result<hmac::Key> {
        let key = Self::derived(index, &attribute.to_le_bytes())?;
        Ok(hmac::Key::new(Hash::Sha256, key.expose())?)
    }
}

/// The index entry of a public row's attribute.
fn public_lookup(attribute: CK_ATTRIBUTE_TYPE, value: &[u8]) -> Result<[u8; LOOKUP]> {
    let mut stream = digest::Stream::new(Hash::Sha256)?;
    stream.update(b"metaslot 1 public index")?;
    stream.update(&attribute.to_le_bytes())?;
    stream.update(value)?;
    let mut whole = [0; 32];
    stream.finish(&mut whole)?;
    let mut out = [0; LOOKUP];
    out.copy_from_slice(&whole[..LOOKUP]);
    Ok(out)
}

/// The index entry of a term: keyed with `Some`, open with `None`.
pub(crate) fn lookup(keys: Option<&Keys>, term: &Term) -> Result<[u8; LOOKUP]> {
    match keys {
        Some(keys) => keys.private_lookup(term.0, &term.1),
        None => public_lookup(term.0, &term.1),
    }
}

fn secrets_aad(place: &RowContext, attributes: &[u8]) -> [u8; RowContext::ENCODED + 32] {
    let mut aad = [0; RowContext::ENCODED + 32];
    aad[..RowContext::ENCODED].copy_from_slice(&place.encode());
    aad[RowContext::ENCODED..].copy_from_slice(&digest::sha256(attributes));
    aad
}

pub(crate) fn subkey(master: &Secret, serial: &Serial, purpose: &str) -> Result<Secret> {
    let mut key = Secret::zeroed(KEY);
    let info = ["metaslot 1 ", purpose].concat();
    hkdf::sha256(master.expose(), serial, info.as_bytes(), key.expose_mut())?;
    Ok(key)
}

/// The public name of a master key.
pub(crate) fn key_id(master: &Secret, serial: &Serial) -> Result<KeyId> {
    let whole = subkey(master, serial, "name")?;
    whole.expose()[..16].try_into().map_err(|_| Error::Cryptography)
}

/// Constant-time comparison.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    constant_time::equal(a, b)
}
