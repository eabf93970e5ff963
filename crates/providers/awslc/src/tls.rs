// SPDX-License-Identifier: Apache-2.0
//! The secrets, keys and MACs of TLS (RFC 5246, RFC 7627, RFC 5705; PKCS#11 3.2 §6.40) and of what was before it (RFC 2246, RFC 4346,
//! RFC 6101; §6.39).

use crate::failure::device_error;
use crate::generate;
use metaslot_awslc_wrapper::digest::{Hash, MAX_LENGTH, Stream};
use metaslot_awslc_wrapper::{cleanse, constant_time, hmac};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::buffer::Buffer;
use metaslot_spi::provider::{
    Algorithm, Derive, Direction, Generate, Keys, Signature, SignatureStream,
};
use metaslot_spi::{Attributes, Bytes, Key, NewObject, Params, Tls};
use std::sync::Arc;

/// Length of a master secret, and of a secret that comes over RSA, in bytes.
const SECRET: usize = 48;

/// No MAC is longer, in bytes.
const LONGEST_MAC: usize = 255;

pub(crate) const ROWS: [Algorithm; 22] = [
    pre_master(CKM_SSL3_PRE_MASTER_KEY_GEN),
    derive(CKM_SSL3_MASTER_KEY_DERIVE, &Step::OfRsa),
    derive(CKM_SSL3_KEY_AND_MAC_DERIVE, &Step::Keys),
    derive(CKM_SSL3_MASTER_KEY_DERIVE_DH, &Step::Master),
    pre_master(CKM_TLS_PRE_MASTER_KEY_GEN),
    derive(CKM_TLS_MASTER_KEY_DERIVE, &Step::OfRsa),
    derive(CKM_TLS_KEY_AND_MAC_DERIVE, &Step::Keys),
    derive(CKM_TLS_MASTER_KEY_DERIVE_DH, &Step::Master),
    derive(CKM_TLS12_MASTER_KEY_DERIVE, &Step::OfRsa),
    derive(CKM_TLS12_KEY_AND_MAC_DERIVE, &Step::Keys),
    derive(CKM_TLS12_MASTER_KEY_DERIVE_DH, &Step::Master),
    derive(CKM_TLS12_KEY_SAFE_DERIVE, &Step::Keys),
    derive(CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE, &Step::OfRsa),
    derive(CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE_DH, &Step::Master),
    derive(CKM_TLS12_KDF, &Step::Any),
    derive(CKM_TLS_KDF, &Step::Any),
    mac(CKM_SSL3_MD5_MAC, SIZES_BITS, &Mac::Padded(Hash::Md5)),
    mac(CKM_SSL3_SHA1_MAC, SIZES_BITS, &Mac::Padded(Hash::Sha1)),
    mac(CKM_TLS10_MAC_SERVER, SIZES, &Mac::Finished),
    mac(CKM_TLS10_MAC_CLIENT, SIZES, &Mac::Finished),
    mac(CKM_TLS12_MAC, SIZES, &Mac::Finished),
    mac(CKM_TLS_MAC, SIZES, &Mac::Finished),
];

/// Lengths of secrets, in bytes.
const SIZES: (u64, u64) = (1, 8192);

/// The same in bits.
const SIZES_BITS: (u64, u64) = (8 * SIZES.0, 8 * SIZES.1);

const fn derive(mechanism: CK_MECHANISM_TYPE, derive: &'static Step) -> Algorithm {
    let master = matches!(derive, Step::OfRsa | Step::Master);
    // §6.39.5, §6.40.5: they tell the length of the result.
    let key_sizes = if master { (SECRET as u64, SECRET as u64) } else { SIZES };
    Algorithm { mechanism, key_sizes, derive: Some(derive), ..Algorithm::NONE }
}

const fn mac(mechanism: CK_MECHANISM_TYPE, key_sizes: (u64, u64), mac: &'static Mac) -> Algorithm {
    crate::mac::row(mechanism, key_sizes, mac)
}

const fn pre_master(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    let sizes = (SECRET as u64, SECRET as u64);
    Algorithm { mechanism, key_sizes: sizes, generate: Some(&PreMaster), ..Algorithm::NONE }
}

/// What expands a secret.
#[derive(Clone, Copy, Debug)]
enum Prf {
    /// TLS 1.2: by one function.
    One(Hash),
    /// Before it: half of the secret by MD5, the other half by SHA-1.
    Both,
    /// SSL 3.0: MD5 of the secret and SHA-1.
    Nested,
}

impl Prf {
    fn find(number: CK_MECHANISM_TYPE) -> Option<Self> {
        Some(match number {
            CKM_TLS_PRF => Self::Both,
            CKM_SSL3_MASTER_KEY_DERIVE => Self::Nested,
            // Which no suite of TLS 1.2 has.
            CKM_MD5 | CKM_SHA_1 => return None,
            number => Self::One(crate::digest::hash(number)?),
        })
    }

    /// Fills `out`.
    fn expand(self, secret: &[u8], label: &[u8], seed: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            Self::One(hash) => chain(hash, secret, &[label, seed], out),
            Self::Both => {
                let half = secret.len().div_ceil(2);
                chain(Hash::Md5, &secret[..half], &[label, seed], out)?;
                let mut other = Secret::try_zeroed(out.len()).ok_or(Error::DEVICE_MEMORY)?;
                let last = &secret[secret.len() - half..];
                chain(Hash::Sha1, last, &[label, seed], other.expose_mut())?;
                out.iter_mut().zip(other.expose()).for_each(|(byte, other)| *byte ^= other);
                Ok(())
            }
            Self::Nested => nested(secret, seed, out),
        }
    }
}

/// The MACs of what was MACed so often before, and of the parts (RFC 5246 §5).
fn chain(hash: Hash, secret: &[u8], parts: &[&[u8]; 2], out: &mut [u8]) -> Result<()> {
    let mac = hmac::Key::new(hash, secret).map_err(device_error)?;
    let mut place = [0; MAX_LENGTH];
    let before = &mut place[..hash.length()];
    let mut done = mac.mac(parts, before);
    for block in out.chunks_mut(hash.length()) {
        done = done.and_then(|()| mac.mac(&[before, parts[0], parts[1]], block));
        let mut next = [0; MAX_LENGTH];
        let next = &mut next[..hash.length()];
        done = done.and_then(|()| mac.mac(&[before], next));
        before.copy_from_slice(next);
        cleanse(next);
    }
    cleanse(&mut place);
    done.map_err(device_error)
}

fn hashed(hash: Hash, parts: &[&[u8]], out: &mut [u8]) -> Result<()> {
    let mut stream = Stream::new(hash).map_err(device_error)?;
    parts.iter().try_for_each(|part| stream.update(part)).map_err(device_error)?;
    stream.finish(out).map_err(device_error)
}

/// RFC 6101 §6.1, §6.2.2: A, BB, CCC and so on, each before the secret and the seed.
fn nested(secret: &[u8], seed: &[u8], out: &mut [u8]) -> Result<()> {
    for (letter, block) in (b'A'..=b'Z').zip(out.chunks_mut(Hash::Md5.length())) {
        let letters = [letter; 26];
        let letters = &letters[..usize::from(letter - b'A') + 1];
        let mut inner = [0; MAX_LENGTH];
        let inner = &mut inner[..Hash::Sha1.length()];
        let mut whole = [0; MAX_LENGTH];
        let whole = &mut whole[..Hash::Md5.length()];
        hashed(Hash::Sha1, &[letters, secret, seed], inner)?;
        hashed(Hash::Md5, &[secret, inner], whole)?;
        block.copy_from_slice(&whole[..block.len()]);
        cleanse(inner);
        cleanse(whole);
    }
    Ok(())
}

fn fields(params: &Params) -> Result<(&Tls, Prf)> {
    let Params::Tls(tls) = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
    Ok((tls, Prf::find(tls.prf).ok_or(Error::MECHANISM_PARAM_INVALID)?))
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// A master secret of what came over RSA, which begins with a version.
    OfRsa,
    /// A master secret of any other.
    Master,
    /// The keys of a connection, and IVs.
    Keys,
    /// Whatever the label says.
    Any,
}

impl Derive for Step {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        fields(params)?;
        let value = key.secret(CKA_VALUE)?;
        let long = *self != Self::OfRsa || value.len() == SECRET;
        if long { Ok(()) } else { Err(Error::KEY_SIZE_RANGE) }
    }

    fn natural_length(&self, _: &Key, _: &Params) -> Option<usize> {
        matches!(self, Self::OfRsa | Self::Master).then_some(SECRET)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let (tls, prf) = fields(params)?;
        if matches!(self, Self::OfRsa | Self::Master) && lengths != [SECRET] {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let value = key.secret(CKA_VALUE)?;
        let keys: usize = lengths.iter().sum();
        let beside = tls.beside.as_ref().filter(|_| *self == Self::Keys);
        let mut whole = Secret::try_zeroed(keys + beside.map_or(0, |beside| beside.length))
            .ok_or(Error::DEVICE_MEMORY)?;
        // SSL 3.0 has a letter for each block.
        if matches!(prf, Prf::Nested) && whole.len() > 26 * Hash::Md5.length() {
            return Err(Error::KEY_SIZE_RANGE);
        }
        prf.expand(value, &tls.label, &tls.seed, whole.expose_mut())?;
        let (mut rest, ivs) = whole.expose().split_at(keys);
        if let Some(beside) = &tls.beside {
            let told = if *self == Self::Keys { Some(ivs) } else { value.get(..2) };
            let told = told.ok_or(Error::KEY_SIZE_RANGE)?;
            beside.told.set(Bytes::from_slice(told)).map_err(|_| Error::DEVICE_ERROR)?;
        }
        let each = lengths.iter().map(|length| {
            let (one, others) = rest.split_at(*length);
            rest = others;
            Secret::try_copy_of(one).ok_or(Error::DEVICE_MEMORY)
        });
        each.collect()
    }
}

/// A secret that goes over RSA: a version, and random bytes.
#[derive(Debug)]
struct PreMaster;

impl Generate for PreMaster {
    fn generate(&self, params: &Params, template: &Attributes) -> Result<NewObject> {
        let Params::Iv(version) = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
        if template.ulong(CKA_VALUE_LEN).is_some_and(|length| length != SECRET as u64) {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let mut value = Secret::zeroed(SECRET);
        let (first, rest) = value.expose_mut().split_at_mut(2);
        first.copy_from_slice(version.get(..2).ok_or(Error::MECHANISM_PARAM_INVALID)?);
        generate::random(rest)?;
        Ok(generate::secret_key(value))
    }
}

#[derive(Clone, Copy, Debug)]
enum Mac {
    /// Of the messages of a handshake, or their hash (RFC 5246 §7.4.9).
    Finished,
    /// Of a record of SSL 3.0 (RFC 6101 §5.2.3.1).
    Padded(Hash),
}

impl Mac {
    fn mac(self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<()> {
        let secret = key.secret(CKA_VALUE)?;
        let Self::Padded(hash) = self else {
            let (tls, prf) = fields(params)?;
            return prf.expand(secret, &tls.label, data, out);
        };
        let pad = if hash == Hash::Md5 { 48 } else { 40 };
        let (one, other) = ([0x36; 48], [0x5c; 48]);
        let mut inner = [0; MAX_LENGTH];
        let inner = &mut inner[..hash.length()];
        let mut whole = [0; MAX_LENGTH];
        let whole = &mut whole[..hash.length()];
        hashed(hash, &[secret, &one[..pad], data], inner)?;
        hashed(hash, &[secret, &other[..pad], inner], whole)?;
        out.copy_from_slice(&whole[..out.len()]);
        cleanse(inner);
        cleanse(whole);
        Ok(())
    }

    fn verify_by(self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        if signature.len() != self.length(key, params) {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        let mut own = [0; LONGEST_MAC];
        let own = &mut own[..signature.len()];
        self.mac(key, params, data, own)?;
        let equal = constant_time::equal(own, signature);
        cleanse(own);
        if equal { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
    }
}

impl Signature for Mac {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        key.secret(CKA_VALUE)?;
        match (self, params) {
            (Self::Finished, _) => match fields(params)? {
                (_, Prf::Nested) => Err(Error::MECHANISM_PARAM_INVALID),
                (tls, _) if (1..=LONGEST_MAC).contains(&tls.mac_length) => Ok(()),
                _ => Err(Error::MECHANISM_PARAM_INVALID),
            },
            (Self::Padded(hash), Params::Ulong(length))
                if (1..=hash.length() as u64).contains(length) =>
            {
                Ok(())
            }
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        match params {
            Params::Tls(tls) => tls.mac_length,
            Params::Ulong(length) => usize::try_from(*length).unwrap_or(0),
            _ => 0,
        }
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = self.length(key, params);
        self.mac(key, params, data, &mut out[..length]).map(|()| length)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        self.verify_by(key, params, data, signature)
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let params = match params {
            Params::Ulong(length) => Params::Ulong(*length),
            other => {
                let (tls, _) = fields(other)?;
                let (label, mac_length) = (tls.label.clone(), tls.mac_length);
                let (seed, further) = (Bytes::new(), Vec::new());
                let prf = tls.prf;
                Params::Tls(Box::new(Tls { prf, label, seed, mac_length, further, beside: None }))
            }
        };
        Ok(Box::new(Parts { mac: *self, key: Arc::clone(key), params, data: Buffer::default() }))
    }
}

/// A MAC in the middle: the messages are hashed as a whole, and more than once.
struct Parts {
    mac: Mac,
    key: Arc<Key>,
    params: Params,
    data: Buffer,
}

impl SignatureStream for Parts {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.data.push(data)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.mac.sign(&self.key, &self.params, self.data.bytes(), out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        self.mac.verify_by(&self.key, &self.params, self.data.bytes(), signature)
    }
}
