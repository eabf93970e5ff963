// SPDX-License-Identifier: Apache-2.0
//! Hash functions that AWS-LC's descriptions do not have: `BLAKE2b` in four lengths (PKCS#11 3.2 §6.62), MD2, RIPEMD-128 and
//! RIPEMD-160 (PKCS#11 Historical Mechanisms 3.0). Digests, HMAC, derived keys, signatures of RSA.

use crate::mac::{Mac, Prepared, Stream, row, running};
use crate::old_hashes::{Hash, Md2, Ripemd128};
use crate::{blake2b, generate, rsa_key, rsa_pkcs1};
use metaslot_awslc_wrapper::{Failed, ripemd};
use metaslot_ck::*;
use metaslot_memory::{Secret, wipe_shallow_stack};
use metaslot_spi::parts::{self, Begun};
use metaslot_spi::provider::{
    Algorithm, Derive, Digest, DigestStream, Direction, Keys, Signature, SignatureStream,
};
use metaslot_spi::{Key, Params};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

pub(crate) const ROWS: [Algorithm; 33] = [
    digest(CKM_MD2, &Hashing::<Md2>::NEW),
    row(CKM_MD2_HMAC, KEYS, &Pads::<Md2>::WHOLE),
    row(CKM_MD2_HMAC_GENERAL, KEYS, &Pads::<Md2>::GENERAL),
    derive(CKM_MD2_KEY_DERIVATION, &Hashing::<Md2>::NEW),
    signature(CKM_MD2_RSA_PKCS, &Hashing::<Md2>::NEW),
    digest(CKM_RIPEMD128, &Hashing::<Ripemd128>::NEW),
    row(CKM_RIPEMD128_HMAC, KEYS, &Pads::<Ripemd128>::WHOLE),
    row(CKM_RIPEMD128_HMAC_GENERAL, KEYS, &Pads::<Ripemd128>::GENERAL),
    signature(CKM_RIPEMD128_RSA_PKCS, &Hashing::<Ripemd128>::NEW),
    signature(CKM_RIPEMD160_RSA_PKCS, &Hashing::<Ripemd>::NEW),
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

/// As digests, for signatures over them.
pub(crate) const BLAKE2B_256: &dyn Digest = &Hashing::<Blake<32>>::NEW;
/// As well.
pub(crate) const BLAKE2B_512: &dyn Digest = &Hashing::<Blake<64>>::NEW;

/// As for the other HMACs, in bytes.
const KEYS: (u64, u64) = (1, 8192);

const fn digest(mechanism: CK_MECHANISM_TYPE, digest: &'static dyn Digest) -> Algorithm {
    Algorithm { mechanism, digest: Some(digest), ..Algorithm::NONE }
}

const fn derive(mechanism: CK_MECHANISM_TYPE, derive: &'static dyn Derive) -> Algorithm {
    Algorithm { mechanism, key_sizes: KEYS, derive: Some(derive), ..Algorithm::NONE }
}

const fn signature(mechanism: CK_MECHANISM_TYPE, signature: &'static dyn Signature) -> Algorithm {
    let (sign, verify) = (Some(signature), Some(signature));
    Algorithm { mechanism, key_sizes: rsa_key::SIZES, sign, verify, ..Algorithm::NONE }
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

/// Functions over whose digests RSA signs.
trait Signed: Hash {
    /// What stands before the digest (RFC 8017 §9.2).
    const INFO: &'static [u8];
}

impl Signed for Md2 {
    const INFO: &'static [u8] =
        b"\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x02\x05\x00\x04\x10";
}

impl Signed for Ripemd128 {
    const INFO: &'static [u8] = b"\x30\x1d\x30\x09\x06\x05\x2b\x24\x03\x02\x02\x05\x00\x04\x10";
}

impl Signed for Ripemd {
    const INFO: &'static [u8] = b"\x30\x21\x30\x09\x06\x05\x2b\x24\x03\x02\x01\x05\x00\x04\x14";
}

impl<H: Signed> Signature for Hashing<H> {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        rsa_key::prepared(key).map(drop)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        rsa_key::prepared(key).map_or(0, |rsa| rsa.size())
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Running(H::default()).sign_all(key, data, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Running(H::default()).verify_all(key, data, signature)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        Ok(parts::stream(key, Running(H::default())))
    }
}

impl<H: Signed> Running<H> {
    /// The digest, with what stands before it.
    fn info(mut self) -> Vec<u8> {
        let mut info = [H::INFO, &[0; 64][..H::LENGTH]].concat();
        self.0.finish(&mut info[H::INFO.len()..]);
        info
    }
}

impl<H: Signed> Begun for Running<H> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.0.update(data);
        Ok(())
    }

    fn sign(self, key: &Key, out: &mut [u8]) -> Result<usize> {
        rsa_pkcs1::sign_message(key, &self.info(), out)
    }

    fn verify(self, key: &Key, signature: &[u8]) -> Result<()> {
        rsa_pkcs1::verify_message(key, &self.info(), signature)
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

/// In frames of their own, which the caller can wipe.
impl<H: Hash> Pads<H> {
    #[inline(never)]
    fn whole(&self, data: &[u8], out: &mut [u8]) {
        let mut stream = self.clone();
        stream.inner.update(data);
        stream.ended(out);
    }

    #[inline(never)]
    fn begun(&self, length: usize) -> Box<dyn SignatureStream> {
        running(self.clone(), length)
    }

    #[inline(never)]
    fn added(&mut self, data: &[u8]) {
        self.inner.update(data);
    }

    #[inline(never)]
    fn ended(&mut self, out: &mut [u8]) {
        let mut digest = Secret::zeroed(H::LENGTH);
        self.inner.finish(digest.expose_mut());
        self.outer.update(digest.expose());
        self.outer.finish(digest.expose_mut());
        out.copy_from_slice(&digest.expose()[..out.len()]);
    }
}

impl<H: Hash> Prepared for Pads<H> {
    fn mac(&self, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.whole(data, out);
        wipe_shallow_stack();
        Ok(())
    }

    fn start(&self, length: usize) -> std::result::Result<Box<dyn SignatureStream>, Failed> {
        let stream = self.begun(length);
        wipe_shallow_stack();
        Ok(stream)
    }
}

impl<H: Hash> Stream for Pads<H> {
    fn update(&mut self, data: &[u8]) -> std::result::Result<(), Failed> {
        self.added(data);
        // The hash function's rounds can be computed backwards, from what they leave and known data to the key's pad.
        wipe_shallow_stack();
        Ok(())
    }

    fn finish(&mut self, out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.ended(out);
        wipe_shallow_stack();
        Ok(())
    }
}
