// SPDX-License-Identifier: Apache-2.0
//! RSA signatures: PKCS #1 v1.5, PSS and the bare operation (PKCS#11 3.2 §6.1), of private keys of 1024, 2048, 3072 and 4096
//! bits. Verification is faster than a switch of threads, so only asynchronous sessions batch it.

use super::batch::{Batch, Meeting};
use super::digest::function;
use super::hashed::{self, Digest, DigestScheme, digest_of};
use super::over::{Call, Over, Ready, Signing};
use super::parts::{Held, Plain, Size, kept, put};
use crate::rsa::{self, PrivateKey, PrivateRequest, PublicKey, PublicRequest, WIDTH};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::rsa::{Pss, Rsa, RsaNumbers, digest_info, encode_pkcs1};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params, hashes};
use smallvec::SmallVec;
use std::sync::Arc;

/// As long as the modulus, in bytes.
type Block = SmallVec<[u8; 512]>;

/// How a message becomes a block; a hash where the mechanism has one.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    Bare,
    Pkcs1(Option<Hash>),
    Pss(Option<Hash>),
}

const SCHEMES: [(CK_MECHANISM_TYPE, Scheme); 22] = [
    (CKM_RSA_PKCS, Scheme::Pkcs1(None)),
    (CKM_RSA_X_509, Scheme::Bare),
    (CKM_MD5_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Md5))),
    (CKM_SHA1_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha1))),
    (CKM_SHA224_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha224))),
    (CKM_SHA256_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha256))),
    (CKM_SHA384_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha384))),
    (CKM_SHA512_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha512))),
    (CKM_SHA3_224_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha3_224))),
    (CKM_SHA3_256_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha3_256))),
    (CKM_SHA3_384_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha3_384))),
    (CKM_SHA3_512_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha3_512))),
    (CKM_RSA_PKCS_PSS, Scheme::Pss(None)),
    (CKM_SHA1_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha1))),
    (CKM_SHA224_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha224))),
    (CKM_SHA256_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha256))),
    (CKM_SHA384_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha384))),
    (CKM_SHA512_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha512))),
    (CKM_SHA3_224_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha3_224))),
    (CKM_SHA3_256_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha3_256))),
    (CKM_SHA3_384_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha3_384))),
    (CKM_SHA3_512_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha3_512))),
];

/// A row for each scheme that the plain provider has too, over its row for bare blocks as well.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = |(mechanism, scheme): (CK_MECHANISM_TYPE, Scheme)| {
        let (beneath, bare) = (plain.row(mechanism)?, plain.row(CKM_RSA_X_509)?);
        let over = |direction, plain, bare| kept(Over(Rows { scheme, direction, plain, bare }));
        Some(Algorithm {
            mechanism,
            key_sizes: (1024, 4096),
            sign: Some(over(Direction::Forward, beneath.sign?, bare.sign?)),
            verify: Some(over(Direction::Backward, beneath.verify?, bare.verify?)),
            ..Algorithm::NONE
        })
    };
    SCHEMES.into_iter().filter_map(row).collect()
}

/// One row's signatures, or its verifications.
#[derive(Clone, Copy, Debug)]
struct Rows {
    scheme: Scheme,
    direction: Direction,
    plain: &'static dyn Signature,
    /// The plain provider's for a block as it is.
    bare: &'static dyn Signature,
}

impl Signing for Rows {
    type Sign = Private;
    type Verify = Public;

    fn plain(&self) -> &'static dyn Signature {
        self.plain
    }

    fn serves(&self, key: &Key) -> bool {
        rsa::available() && matches!(size(key), 128 | 256 | 384 | 512)
    }

    fn for_waiting(&self) -> bool {
        self.direction == Direction::Forward
    }

    fn sign<'a>(&self, call: Call<'a, '_>, params: &Params) -> Result<Ready<'a, Private>> {
        let Some(meeting) = private_meeting(call.key()) else { return Ok(None) };
        let block = self.scheme.block(call.key(), self.scheme.pss(params)?, call.data())?;
        Ok(Some((meeting, self.work(call.held(), block))))
    }

    fn verify<'a>(
        &self,
        call: Call<'a, '_>,
        _: &Params,
        signature: &[u8],
    ) -> Result<Ready<'a, Public>> {
        // What a PSS signature must look like is known only when it is open; the library sees to that.
        let (false, Scheme::Pkcs1(_), Some(meeting)) =
            (call.waits(), self.scheme, public_meeting(call.key()))
        else {
            return Ok(None);
        };
        if signature.len() != size(call.key()) {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        let expected = self.scheme.block(call.key(), None, call.data())?;
        let given = Block::from_slice(signature);
        let opened = Block::from_elem(0, signature.len());
        let (bare, key) = (self.bare, call.held());
        Ok(Some((meeting, ToOpen { bare, key, expected, given, opened })))
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Option<Box<dyn SignatureStream>>> {
        let (Direction::Forward, Some(meeting), Some(hash)) =
            (direction, private_meeting(key), self.scheme.hash())
        else {
            return Ok(None);
        };
        let pss = self.scheme.pss(params)?;
        hashed::start(Multipart { rows: *self, pss, meeting }, hash, key).map(Some)
    }
}

impl Rows {
    fn work<'a>(&self, key: Held<'a>, block: Block) -> ToRaise<'a> {
        ToRaise { bare: self.bare, key, raised: Block::from_elem(0, block.len()), block }
    }
}

/// A signature over a multi-part message.
#[derive(Debug)]
struct Multipart {
    rows: Rows,
    pss: Option<Pss>,
    meeting: &'static Meeting<Private>,
}

impl DigestScheme for Multipart {
    fn sign_digest(&self, key: &Key, digest: Digest, out: &mut [u8]) -> Result<usize> {
        let block = self.rows.scheme.block_of_digest(key, self.pss, &digest)?;
        let work = self.rows.work(Held::Borrowed(key), block);
        Private::answer(self.meeting.run(work)?, out)
    }
}

impl Scheme {
    const fn hash(self) -> Option<Hash> {
        match self {
            Self::Bare => None,
            Self::Pkcs1(hash) | Self::Pss(hash) => hash,
        }
    }

    /// The parameters of PSS, which `check` has seen before.
    fn pss(self, params: &Params) -> Result<Option<Pss>> {
        let (Self::Pss(_), Params::Pss { hash, mgf, salt_length }) = (self, params) else {
            return Ok(None);
        };
        let known = |hash: Option<Hash>| hash.ok_or(Error::MECHANISM_PARAM_INVALID);
        Ok(Some(Pss {
            hash: known(function(*hash))?,
            mgf: known(hashes::of_mgf(*mgf).and_then(function))?,
            salt_length: usize::try_from(*salt_length)
                .map_err(|_| Error::MECHANISM_PARAM_INVALID)?,
        }))
    }

    /// The block for a message.
    fn block(self, key: &Key, pss: Option<Pss>, data: &[u8]) -> Result<Block> {
        match self.hash() {
            Some(hash) => self.block_of_digest(key, pss, &digest_of(hash, data)?),
            None => self.block_of_digest(key, pss, data),
        }
    }

    /// The block for a digest, or for a message of the caller's.
    fn block_of_digest(self, key: &Key, pss: Option<Pss>, data: &[u8]) -> Result<Block> {
        let size = size(key);
        let mut block = Block::from_elem(0, size);
        match (self, pss) {
            (Self::Pkcs1(Some(hash)), _) => {
                let (info, length) = digest_info(hash, data);
                encode_pkcs1(&info[..length], &mut block)
            }
            (Self::Pkcs1(None), _) => encode_pkcs1(data, &mut block),
            (_, Some(pss)) => modulus(key)?.encode_pss(pss, data, &mut block),
            _ => {
                let start = size.checked_sub(data.len()).ok_or(Error::DATA_LEN_RANGE)?;
                block[start..].copy_from_slice(data);
                Ok(())
            }
        }
        .map_err(|_| Error::DATA_LEN_RANGE)?;
        Ok(block)
    }
}

/// Length of a key's modulus, in bytes.
fn size(key: &Key) -> usize {
    key.bytes(CKA_MODULUS).map_or(0, <[u8]>::len)
}

/// The library's form of the public part, for the padding of PSS. The plain provider keeps one of its own.
struct Modulus(Rsa);

fn modulus(key: &Key) -> Result<&Rsa> {
    let form = key.prepared(|key| {
        Rsa::public(key.bytes(CKA_MODULUS)?, key.bytes(CKA_PUBLIC_EXPONENT)?)
            .map(Modulus)
            .map_err(|_| Error::KEY_TYPE_INCONSISTENT)
    });
    form.map(|form| &form.0)
}

fn private_form(key: &Key) -> Result<&PrivateKey> {
    key.prepared(|key| {
        let numbers = RsaNumbers {
            modulus: key.bytes(CKA_MODULUS)?,
            public_exponent: key.bytes(CKA_PUBLIC_EXPONENT)?,
            private_exponent: &[],
            prime_1: key.secret(CKA_PRIME_1)?,
            prime_2: key.secret(CKA_PRIME_2)?,
            exponent_1: key.secret(CKA_EXPONENT_1)?,
            exponent_2: key.secret(CKA_EXPONENT_2)?,
            coefficient: key.secret(CKA_COEFFICIENT)?,
        };
        PrivateKey::new(&numbers).map_err(|_| Error::KEY_TYPE_INCONSISTENT)
    })
}

fn public_form(key: &Key) -> Result<&PublicKey> {
    key.prepared(|key| {
        PublicKey::new(key.bytes(CKA_MODULUS)?, key.bytes(CKA_PUBLIC_EXPONENT)?)
            .map_err(|_| Error::KEY_TYPE_INCONSISTENT)
    })
}

/// A block to be raised to the private exponent.
struct ToRaise<'a> {
    bare: &'static dyn Signature,
    key: Held<'a>,
    block: Block,
    raised: Block,
}

/// The private operation, for keys of one size.
#[derive(Debug)]
struct Private {
    break_even: usize,
}

static PRIVATE: [Meeting<Private>; 4] = [
    Meeting::new(Private { break_even: 2 }),
    Meeting::new(Private { break_even: 3 }),
    Meeting::new(Private { break_even: 3 }),
    Meeting::new(Private { break_even: 3 }),
];

/// Where works with keys of the size of this one meet; `None` for a key that no kernel takes.
fn private_meeting(key: &Key) -> Option<&'static Meeting<Private>> {
    let meeting = PRIVATE.get(size_class(key)?)?;
    private_form(key).ok().map(|_| meeting)
}

fn size_class(key: &Key) -> Option<usize> {
    (size(key) / 128).checked_sub(1)
}

impl Batch for Private {
    type Work<'a> = ToRaise<'a>;
    type Request<'r> = PrivateRequest<'r>;

    fn size(&self) -> Size {
        Size::new(WIDTH, self.break_even).when(rsa::available())
    }

    fn request<'r>(&self, work: &'r mut ToRaise<'_>) -> Option<PrivateRequest<'r>> {
        let ToRaise { key, block: input, raised: output, .. } = work;
        Some(PrivateRequest {
            key: private_form(key).ok()?,
            input,
            output,
            result: Err(rsa::Failed),
        })
    }

    fn compute(&self, requests: &mut [PrivateRequest<'_>]) {
        rsa::private(requests);
    }

    fn well(request: &PrivateRequest<'_>) -> bool {
        request.result.is_ok()
    }

    fn alone(&self, work: &mut ToRaise<'_>) -> Result<()> {
        work.bare.sign(&work.key, &Params::None, &work.block, &mut work.raised).map(drop)
    }

    fn answer(work: ToRaise<'_>, out: &mut [u8]) -> Result<usize> {
        put(&work.raised, out)
    }
}

/// A signature to be opened and compared with the block that it must give (RFC 8017 §8.2.2).
struct ToOpen<'a> {
    bare: &'static dyn Signature,
    key: Held<'a>,
    expected: Block,
    given: Block,
    opened: Block,
}

/// The public operation, for keys of one size.
#[derive(Debug)]
struct Public;

static PUBLIC: [Meeting<Public>; 4] = [const { Meeting::new(Public) }; 4];

fn public_meeting(key: &Key) -> Option<&'static Meeting<Public>> {
    let meeting = PUBLIC.get(size_class(key)?)?;
    public_form(key).ok().map(|_| meeting)
}

impl Batch for Public {
    type Work<'a> = ToOpen<'a>;
    type Request<'r> = PublicRequest<'r>;

    fn size(&self) -> Size {
        Size::new(WIDTH, 3).when(rsa::available())
    }

    fn request<'r>(&self, work: &'r mut ToOpen<'_>) -> Option<PublicRequest<'r>> {
        let ToOpen { key, given: input, opened: output, .. } = work;
        Some(PublicRequest { key: public_form(key).ok()?, input, output, result: Err(rsa::Failed) })
    }

    fn compute(&self, requests: &mut [PublicRequest<'_>]) {
        rsa::public(requests);
    }

    fn well(request: &PublicRequest<'_>) -> bool {
        request.result.is_ok()
    }

    fn result(work: &ToOpen<'_>, well: bool) -> Option<Result<()>> {
        let good = work.opened == work.expected;
        well.then_some(if good { Ok(()) } else { Err(Error::SIGNATURE_INVALID) })
    }

    fn alone(&self, work: &mut ToOpen<'_>) -> Result<()> {
        work.bare.verify(&work.key, &Params::None, &work.expected, &work.given)
    }
}
