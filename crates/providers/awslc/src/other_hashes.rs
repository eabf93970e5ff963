// SPDX-License-Identifier: Apache-2.0
//! Hash functions that AWS-LC's descriptions do not have: `BLAKE2b` in four lengths (PKCS#11 3.2 §6.62) and RIPEMD-160 (PKCS#11
//! Historical Mechanisms 3.0). Digests, HMAC, derived keys.

use crate::mac::{Mac, Prepared, Stream, row, running};
use crate::{blake2b, generate};
use metaslot_awslc_wrapper::{Failed, ripemd};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Derive, Digest, DigestStream, Keys, SignatureStream};
use metaslot_spi::{Key, Params};
use std::fmt::Debug;
use std::marker::PhantomData;

pub(crate) const ROWS: [Algorithm; 23] = [
    digest(CKM_RIPEMD160, &Hashing::<Ripemd>::NEW),
    row(CKM_RIPEMD160_HMAC, KEYS, &Pads::<Ripemd>::WHOLE),
    row(CKM_RIPEMD160_HMAC_GENERAL, KEYS, &Pads::<Ripemd>::GENERAL),
    digest(CKM_BLAKE2B_160, &Hashing::<Blake<20>>::NEW),
    row(CKM_BLAKE2B_160_HMAC, KEYS, &Pads::<Blake<20>>::WHOLE),
    row(CKM_BLAKE2B_160_HMAC_GENERAL, KEYS, &Pads::<Blake<20>>::GENERAL),
    derive(CKM_BLAKE2B_160_KEY_DERIVE, &Hashing::<Blake<20>>::NEW),
    generate::mac(CKM_BLAKE2B_160_KEY_GEN),
    digest(CKM_BLAKE2B_256, &Hashing::<Blake<32>>::NEW),
    row(CKM_BLAKE2B_256_HMAC, KEYS, &Pads::<Blake<32>>::WHOLE),
    row(CKM_BLAKE2B_256_HMAC_GENERAL, KEYS, &Pads::<Blake<32>>::GENERAL),
    derive(CKM_BLAKE2B_256_KEY_DERIVE, &Hashing::<Blake<32>>::NEW),
    generate::mac(CKM_BLAKE2B_256_KEY_GEN),
    digest(CKM_BLAKE2B_384, &Hashing::<Blake<48>>::NEW),
    row(CKM_BLAKE2B_384_HMAC, KEYS, &Pads::<Blake<48>>::WHOLE),
    row(CKM_BLAKE2B_384_HMAC_GENERAL, KEYS, &Pads::<Blake<48>>::GENERAL),
    derive(CKM_BLAKE2B_384_KEY_DERIVE, &Hashing::<Blake<48>>::NEW),
    generate::mac(CKM_BLAKE2B_384_KEY_GEN),
    digest(CKM_BLAKE2B_512, &Hashing::<Blake<64>>::NEW),
    row(CKM_BLAKE2B_512_HMAC, KEYS, &Pads::<Blake<64>>::WHOLE),
    row(CKM_BLAKE2B_512_HMAC_GENERAL, KEYS, &Pads::<Blake<64>>::GENERAL),
    derive(CKM_BLAKE2B_512_KEY_DERIVE, &Hashing::<Blake<64>>::NEW),
    generate::mac(CKM_BLAKE2B_512_KEY_GEN),
];

/// As for the other HMACs, in bytes.
const KEYS: (u64, u64) = (1, 8192);

const fn digest(mechanism: CK_MECHANISM_TYPE, digest: &'static dyn Digest) -> Algorithm {
    Algorithm { mechanism, digest: Some(digest), ..Algorithm::NONE }
}

const fn derive(mechanism: CK_MECHANISM_TYPE, derive: &'static dyn Derive) -> Algorithm {
    Algorithm { mechanism, key_sizes: KEYS, derive: Some(derive), ..Algorithm::NONE }
}

/// A hash in the middle, in protected memory.
trait Hash: Clone + Debug + Default + Send + Sync + 'static {
    const LENGTH: usize;
    const BLOCK: usize;

    fn update(&mut self, data: &[u8]);
    fn finish(&mut self, out: &mut [u8]);
    fn save(&self) -> Vec<u8>;
    fn restore(saved: &[u8]) -> Option<Self>;
}

#[derive(Clone, Debug)]
struct Blake<const LENGTH: usize>(blake2b::Stream);

impl<const LENGTH: usize> Default for Blake<LENGTH> {
    fn default() -> Self {
        Self(blake2b::Stream::new(LENGTH))
    }
}

impl<const LENGTH: usize> Hash for Blake<LENGTH> {
    const LENGTH: usize = LENGTH;
    const BLOCK: usize = blake2b::BLOCK;

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finish(&mut self, out: &mut [u8]) {
        self.0.finish(out);
    }

    fn save(&self) -> Vec<u8> {
        self.0.save()
    }

    fn restore(saved: &[u8]) -> Option<Self> {
        blake2b::Stream::restore(saved).map(Self)
    }
}

#[derive(Clone, Debug, Default)]
struct Ripemd(ripemd::Stream);

impl Hash for Ripemd {
    const LENGTH: usize = ripemd::LENGTH;
    const BLOCK: usize = ripemd::BLOCK;

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finish(&mut self, out: &mut [u8]) {
        let mut whole = [0; ripemd::LENGTH];
        self.0.finish(&mut whole);
        out.copy_from_slice(&whole[..out.len()]);
        metaslot_awslc_wrapper::cleanse(&mut whole);
    }

    fn save(&self) -> Vec<u8> {
        self.0.save()
    }

    fn restore(saved: &[u8]) -> Option<Self> {
        ripemd::Stream::restore(saved).map(Self)
    }
}

/// A function without a key.
#[derive(Debug)]
struct Hashing<H>(PhantomData<H>);

impl<H: Hash> Hashing<H> {
    const NEW: Self = Self(PhantomData);
}

impl<H: Hash> Digest for Hashing<H> {
    fn length(&self) -> usize {
        H::LENGTH
    }

    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let mut hash = H::default();
        hash.update(data);
        hash.finish(out);
        Ok(())
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        Ok(Box::new(Running(H::default())))
    }

    fn restore(&self, state: &[u8]) -> Result<Box<dyn DigestStream>> {
        Ok(Box::new(Running(H::restore(state).ok_or(Error::SAVED_STATE_INVALID)?)))
    }
}

impl<H: Hash> Derive for Hashing<H> {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        let Params::None = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
        key.secret(CKA_VALUE).map(drop)
    }

    fn natural_length(&self, _: &Key, _: &Params) -> Option<usize> {
        Some(H::LENGTH)
    }

    fn derive(
        &self,
        key: &Key,
        _: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let [length] = lengths else { return Err(Error::MECHANISM_PARAM_INVALID) };
        if *length > H::LENGTH {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let mut out = Secret::zeroed(H::LENGTH);
        self.digest(key.secret(CKA_VALUE)?, out.expose_mut())?;
        Ok(vec![out.truncated(*length)])
    }
}

#[derive(Debug)]
struct Running<H>(H);

impl<H: Hash> DigestStream for Running<H> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.0.update(data);
        Ok(())
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        self.0.finish(out);
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        Ok(self.0.save())
    }
}

/// A key of HMAC (RFC 2104): the hash of the inner pad, to which the message is added, and of the outer one.
#[derive(Clone, Debug)]
struct Pads<H> {
    inner: H,
    outer: H,
}

impl<H: Hash> Pads<H> {
    const WHOLE: Mac = Mac {
        general: false,
        length: H::LENGTH,
        prepared: |key| Ok(key.prepared(Self::new)?),
        anew: |key| Ok(Box::new(Self::new(key)?)),
    };
    const GENERAL: Mac = Mac { general: true, ..Self::WHOLE };

    fn new(key: &Key) -> Result<Self> {
        let (value, mut pad) = (key.secret(CKA_VALUE)?, Secret::zeroed(H::BLOCK));
        if value.len() > H::BLOCK {
            Hashing::<H>::NEW.digest(value, &mut pad.expose_mut()[..H::LENGTH])?;
        } else {
            pad.expose_mut()[..value.len()].copy_from_slice(value);
        }
        let mut hashed = |mask: u8| {
            let mut hash = H::default();
            pad.expose_mut().iter_mut().for_each(|byte| *byte ^= mask);
            hash.update(pad.expose());
            hash
        };
        let inner = hashed(0x36);
        Ok(Self { inner, outer: hashed(0x36 ^ 0x5c) })
    }
}

impl<H: Hash> Prepared for Pads<H> {
    fn mac(&self, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed> {
        let mut stream = self.clone();
        stream.update(data)?;
        stream.finish(out)
    }

    fn start(&self, length: usize) -> std::result::Result<Box<dyn SignatureStream>, Failed> {
        Ok(running(self.clone(), length))
    }
}

impl<H: Hash> Stream for Pads<H> {
    fn update(&mut self, data: &[u8]) -> std::result::Result<(), Failed> {
        self.inner.update(data);
        Ok(())
    }

    fn finish(&mut self, out: &mut [u8]) -> std::result::Result<(), Failed> {
        let mut digest = Secret::zeroed(H::LENGTH);
        self.inner.finish(digest.expose_mut());
        self.outer.update(digest.expose());
        self.outer.finish(digest.expose_mut());
        out.copy_from_slice(&digest.expose()[..out.len()]);
        Ok(())
    }
}
