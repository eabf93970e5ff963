// SPDX-License-Identifier: Apache-2.0
//! Digests of whole messages (PKCS#11 3.2 §6.20–§6.26). A thread that waits goes through the combiner only with a message so long
//! that its lane saves more than two switches of threads cost; an asynchronous session with nearly any.

use super::batch::{Batch, Meeting};
use super::parts::{Message, Plain, Size, device_error, kept, put};
use crate::hash::{self, Request};
use metaslot_awslc_wrapper::counter_kdf;
use metaslot_awslc_wrapper::digest::{Hash, MAX_LENGTH};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Digest, DigestStream, Postponed};
use smallvec::SmallVec;

/// Shorter messages are hashed before a job could be made of them, in bytes; the second for functions that have instructions of
/// their own.
const WORTH_A_JOB: (usize, usize) = (128, 1024);
/// The most requests that any function takes side by side.
const MAX_LANES: usize = 32;

/// One function: its mechanism, and from which length on, in bytes, a waiting thread's message is worth company; `usize::MAX` where
/// the library hashes faster than threads switch.
#[derive(Debug)]
struct DigestMechanism {
    mechanism: CK_MECHANISM_TYPE,
    hash: Hash,
    worth_waiting: usize,
    meeting: Meeting<Function>,
}

const fn row(mechanism: CK_MECHANISM_TYPE, hash: Hash, worth_waiting: usize) -> DigestMechanism {
    DigestMechanism { mechanism, hash, worth_waiting, meeting: Meeting::new(Function(hash)) }
}

static MECHANISMS: [DigestMechanism; 12] = [
    row(CKM_MD5, Hash::Md5, 8 << 10),
    row(CKM_SHA_1, Hash::Sha1, usize::MAX),
    row(CKM_SHA224, Hash::Sha224, usize::MAX),
    row(CKM_SHA256, Hash::Sha256, usize::MAX),
    row(CKM_SHA384, Hash::Sha384, 8 << 10),
    row(CKM_SHA512, Hash::Sha512, 8 << 10),
    row(CKM_SHA512_224, Hash::Sha512_224, 8 << 10),
    row(CKM_SHA512_256, Hash::Sha512_256, 8 << 10),
    row(CKM_SHA3_224, Hash::Sha3_224, 8 << 10),
    row(CKM_SHA3_256, Hash::Sha3_256, 8 << 10),
    row(CKM_SHA3_384, Hash::Sha3_384, 8 << 10),
    row(CKM_SHA3_512, Hash::Sha3_512, 8 << 10),
];

/// The function of a digest mechanism.
pub(super) fn function(mechanism: CK_MECHANISM_TYPE) -> Option<Hash> {
    MECHANISMS.iter().find(|row| row.mechanism == mechanism).map(|row| row.hash)
}

/// [`counter_kdf::expand`] with it.
pub(super) fn expand(
    mechanism: CK_MECHANISM_TYPE,
    length: usize,
    head: &[u8],
    tail: &[&[u8]],
) -> Result<Secret> {
    let hash = function(mechanism).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    counter_kdf::expand(hash, length, head, tail).map_err(device_error)
}

/// From which length on, in bytes, a waiting thread's message is worth company.
pub(super) fn worth_waiting(hash: Hash) -> usize {
    MECHANISMS.iter().find(|row| row.hash == hash).map_or(usize::MAX, |row| row.worth_waiting)
}

/// How many messages make a batch.
pub(super) fn size(hash: Hash) -> Size {
    let available = hash::lanes(hash);
    let lanes = available.clamp(1, MAX_LANES);
    let size = match hash {
        // The library has an instruction for a round of these; no thread waits for them.
        Hash::Sha1 | Hash::Sha224 | Hash::Sha256 => {
            Size { lanes, jobs: available * 5 / 8, threads: available }
        }
        Hash::Sha384 | Hash::Sha512 | Hash::Sha512_224 | Hash::Sha512_256 => {
            Size { lanes, jobs: 2, threads: 4 }
        }
        _ => Size { lanes, jobs: 2, threads: 3 },
    };
    size.when(available > 0)
}

/// A row for each function that the plain provider has too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let algorithm = |row: &'static DigestMechanism| {
        let plain = plain.row(row.mechanism)?.digest?;
        let digest = kept(Hashing { row, plain });
        let algorithm =
            Algorithm { mechanism: row.mechanism, digest: Some(digest), ..Algorithm::NONE };
        Some(algorithm)
    };
    MECHANISMS.iter().filter_map(algorithm).collect()
}

#[derive(Debug)]
struct Hashing {
    row: &'static DigestMechanism,
    plain: &'static dyn Digest,
}

impl Hashing {
    fn work<'a>(&self, data: Message<'a>) -> Hashed<'a> {
        let digest = SmallVec::from_elem(0, self.row.hash.length());
        Hashed { plain: self.plain, data, digest }
    }
}

impl Digest for Hashing {
    fn for_waiting(&self) -> bool {
        self.row.worth_waiting < usize::MAX && hash::lanes(self.row.hash) > 0
    }

    fn length(&self) -> usize {
        self.row.hash.length()
    }

    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len() < self.row.worth_waiting {
            return self.plain.digest(data, out);
        }
        let hashed = self.row.meeting.run(self.work(Message::Borrowed(data)))?;
        Function::answer(hashed, out).map(drop)
    }

    fn digest_later(&self, data: &[u8]) -> Postponed {
        let least = if self.for_waiting() { WORTH_A_JOB.0 } else { WORTH_A_JOB.1 };
        if data.len() < least || hash::lanes(self.row.hash) == 0 {
            return Ok(None);
        }
        self.row.meeting.later(self.work(Message::copy(data)?))
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        self.plain.start()
    }

    fn restore(&self, state: &[u8]) -> Result<Box<dyn DigestStream>> {
        self.plain.restore(state)
    }
}

/// A message to be hashed.
struct Hashed<'a> {
    plain: &'static dyn Digest,
    data: Message<'a>,
    digest: SmallVec<[u8; MAX_LENGTH]>,
}

/// One function's batches.
#[derive(Debug)]
struct Function(Hash);

impl Batch for Function {
    type Work<'a> = Hashed<'a>;
    type Request<'r> = Request<'r>;

    fn size(&self) -> Size {
        size(self.0)
    }

    fn request<'r>(&self, work: &'r mut Hashed<'_>) -> Option<Request<'r>> {
        Some(Request { data: &work.data, output: &mut work.digest })
    }

    fn compute(&self, requests: &mut [Request<'_>]) {
        hash::digest(self.0, requests);
    }

    fn alone(&self, work: &mut Hashed<'_>) -> Result<()> {
        work.plain.digest(&work.data, &mut work.digest)
    }

    fn answer(work: Hashed<'_>, out: &mut [u8]) -> Result<usize> {
        put(&work.digest, out)
    }
}
