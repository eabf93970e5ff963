// SPDX-License-Identifier: Apache-2.0
//! HMAC over whole messages (PKCS#11 3.2 §6.20–§6.26, `_HMAC` and `_HMAC_GENERAL`): who goes through the combiner is
//! decided as for digests.

use super::digest::{self, MOST};
use super::{
    Answer, Held, Message, Plain, WIDTH, batch, device_error, kept, later, no_result, put,
};
use crate::combiner::{Combiner, Kernel};
use crate::hash::{self, Hash, MacRequest};
use metaslot_awslc_wrapper::constant_time;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Direction, Postponed, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// Messages below this are authenticated before a job could be made of them, in bytes, where the function has instructions
/// of its own. The others' two blocks more than a digest has are worth one.
const WORTH_A_JOB: usize = 1024;

/// One function: its two mechanisms, and where its jobs meet.
struct Row {
    whole: CK_MECHANISM_TYPE,
    general: CK_MECHANISM_TYPE,
    hash: Hash,
    combiner: Combiner<Function>,
}

const fn row(whole: CK_MECHANISM_TYPE, general: CK_MECHANISM_TYPE, hash: Hash) -> Row {
    Row { whole, general, hash, combiner: Combiner::new(Function(hash)) }
}

static ROWS: [Row; 12] = [
    row(CKM_MD5_HMAC, CKM_MD5_HMAC_GENERAL, Hash::Md5),
    row(CKM_SHA_1_HMAC, CKM_SHA_1_HMAC_GENERAL, Hash::Sha1),
    row(CKM_SHA224_HMAC, CKM_SHA224_HMAC_GENERAL, Hash::Sha224),
    row(CKM_SHA256_HMAC, CKM_SHA256_HMAC_GENERAL, Hash::Sha256),
    row(CKM_SHA384_HMAC, CKM_SHA384_HMAC_GENERAL, Hash::Sha384),
    row(CKM_SHA512_HMAC, CKM_SHA512_HMAC_GENERAL, Hash::Sha512),
    row(CKM_SHA512_224_HMAC, CKM_SHA512_224_HMAC_GENERAL, Hash::Sha512_224),
    row(CKM_SHA512_256_HMAC, CKM_SHA512_256_HMAC_GENERAL, Hash::Sha512_256),
    row(CKM_SHA3_224_HMAC, CKM_SHA3_224_HMAC_GENERAL, Hash::Sha3_224),
    row(CKM_SHA3_256_HMAC, CKM_SHA3_256_HMAC_GENERAL, Hash::Sha3_256),
    row(CKM_SHA3_384_HMAC, CKM_SHA3_384_HMAC_GENERAL, Hash::Sha3_384),
    row(CKM_SHA3_512_HMAC, CKM_SHA3_512_HMAC_GENERAL, Hash::Sha3_512),
];

/// Two rows for each function that the plain provider has too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let both = |row: &'static Row| {
        [row.whole, row.general].map(|mechanism| algorithm(plain, row, mechanism))
    };
    ROWS.iter().flat_map(both).flatten().collect()
}

fn algorithm(plain: Plain, row: &'static Row, mechanism: CK_MECHANISM_TYPE) -> Option<Algorithm> {
    let beneath = plain.row(mechanism)?;
    let whole = plain.row(row.whole)?.sign?;
    let worth_waiting = digest::worth_waiting(row.hash);
    let mac = kept(Mac { row, plain: beneath.sign?, whole, worth_waiting });
    Some(Algorithm {
        mechanism,
        key_sizes: beneath.key_sizes,
        sign: Some(mac),
        verify: Some(mac),
        ..Algorithm::NONE
    })
}

/// The operation of a row.
struct Mac {
    row: &'static Row,
    plain: &'static dyn Signature,
    /// The plain provider's for the MAC that is not truncated.
    whole: &'static dyn Signature,
    worth_waiting: usize,
}

impl std::fmt::Debug for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mac").field("hash", &self.row.hash).finish_non_exhaustive()
    }
}

impl Mac {
    fn worth_a_job(&self, data: &[u8]) -> bool {
        self.for_waiting() || data.len() >= WORTH_A_JOB
    }

    fn job<'a>(&self, key: Held<'a>, data: Message<'a>, length: usize) -> Job<'a> {
        let mac = Secret::zeroed(self.row.hash.length());
        Job {
            key,
            data,
            whole: self.whole,
            mac,
            length,
            given: None,
            result: Err(Error::DEVICE_ERROR),
        }
    }

    /// Computes, here or on another thread, and gives the job back done.
    fn run<'a>(&self, mut job: Job<'a>) -> Result<Job<'a>> {
        self.row.combiner.run(&mut job).map_err(no_result)?;
        Ok(job)
    }
}

impl Signature for Mac {
    fn serves(&self, _: &Key) -> bool {
        hash::lanes(self.row.hash) > 0
    }

    fn for_waiting(&self) -> bool {
        self.worth_waiting < usize::MAX
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.plain.length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        if data.len() < self.worth_waiting {
            return self.plain.sign(key, params, data, out);
        }
        let length = self.length(key, params);
        self.run(self.job(Held::Borrowed(key), Message::Borrowed(data), length))?.answer(out)
    }

    fn sign_later(&self, key: &Arc<Key>, params: &Params, data: &[u8]) -> Postponed {
        if !self.worth_a_job(data) {
            return Ok(None);
        }
        let length = self.length(key, params);
        let job = self.job(Held::Shared(Arc::clone(key)), Message::copy(data)?, length);
        later(self.row.combiner.submit(job))
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let length = self.length(key, params);
        let (true, Some(given)) = (data.len() >= self.worth_waiting, tag(signature, length)) else {
            return self.plain.verify(key, params, data, signature);
        };
        let job = self.job(Held::Borrowed(key), Message::Borrowed(data), length);
        self.run(Job { given: Some(given), ..job })?.answer(&mut []).map(drop)
    }

    fn verify_later(
        &self,
        key: &Arc<Key>,
        params: &Params,
        data: &[u8],
        signature: &[u8],
    ) -> Postponed {
        let length = self.length(key, params);
        let (true, Some(given)) = (self.worth_a_job(data), tag(signature, length)) else {
            return Ok(None);
        };
        let job = self.job(Held::Shared(Arc::clone(key)), Message::copy(data)?, length);
        later(self.row.combiner.submit(Job { given: Some(given), ..job }))
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        self.plain.start(direction, key, params)
    }
}

type Tag = SmallVec<[u8; 64]>;

/// A MAC to be checked; `None` for one of another length, for which the plain provider has an error.
fn tag(signature: &[u8], length: usize) -> Option<Tag> {
    (signature.len() == length).then(|| Tag::from_slice(signature))
}

/// A key's forms for the functions that it was used with. One key may serve all of them, more than a key keeps forms.
#[derive(Debug)]
struct Forms([OnceLock<hash::Key>; Hash::ALL.len()]);

fn form(key: &Key, hash: Hash) -> Result<&hash::Key> {
    let forms: &Forms =
        key.prepared(|_| Ok(Forms([const { OnceLock::new() }; Hash::ALL.len()])))?;
    let place = &forms.0[hash as usize];
    if let Some(form) = place.get() {
        return Ok(form);
    }
    let form = hash::Key::new(hash, key.secret(CKA_VALUE)?).map_err(device_error)?;
    Ok(place.get_or_init(|| form))
}

/// A message to be authenticated.
#[derive(Debug)]
struct Job<'a> {
    key: Held<'a>,
    data: Message<'a>,
    whole: &'static dyn Signature,
    /// All of it; while it is not compared, it is not for anybody else to know.
    mac: Secret,
    /// How much of it counts, in bytes.
    length: usize,
    /// What it is to be compared with.
    given: Option<Tag>,
    result: Result<()>,
}

impl Answer for Job<'_> {
    fn answer(self, out: &mut [u8]) -> Result<usize> {
        self.result?;
        let mac = &self.mac.expose()[..self.length];
        match &self.given {
            Some(given) if constant_time::equal(mac, given) => Ok(0),
            Some(_) => Err(Error::SIGNATURE_INVALID),
            None => put(mac, out),
        }
    }
}

/// One function's batches.
struct Function(Hash);

impl Kernel for Function {
    type Job<'a> = Job<'a>;

    fn lanes(&self) -> usize {
        hash::lanes(self.0).clamp(1, MOST)
    }

    fn enough(&self) -> usize {
        self.lanes().min(WIDTH)
    }

    fn break_even(&self) -> usize {
        digest::wins(self.0).jobs
    }

    fn crowd(&self) -> usize {
        digest::wins(self.0).threads
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        let Job { key, data, whole, mac, result, .. } = job;
        *result = whole.sign(key, &Params::None, data, mac.expose_mut()).map(drop);
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut requests = SmallVec::<[MacRequest<'_>; MOST]>::new();
        for job in &mut *jobs {
            let Job { key, data, mac, .. } = &mut **job;
            let Ok(key) = form(key, self.0) else { break };
            requests.push(MacRequest { key, data, output: mac.expose_mut() });
        }
        hash::hmac(self.0, &mut requests);
        let done = requests.len();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            if at < done { job.result = Ok(()) } else { self.one(job) }
        }
    }
}
