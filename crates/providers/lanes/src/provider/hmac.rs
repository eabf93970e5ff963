// SPDX-License-Identifier: Apache-2.0
//! HMAC over whole messages (PKCS#11 3.2 §6.20–§6.26, `_HMAC` and `_HMAC_GENERAL`): who goes through the combiner is
//! decided as for digests.

use super::batch::{Batch, Meeting};
use super::digest;
use super::over::{Call, Over, Ready, Signing};
use super::parts::{Held, Message, Plain, Size, device_error, kept, put};
use crate::hash::{self, Hash, MacRequest};
use metaslot_awslc_wrapper::constant_time;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Signature};
use metaslot_spi::{Key, Params};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// Messages below this are authenticated before a job could be made of them, in bytes, where the function has instructions
/// of its own. The others' two blocks more than a digest has are worth one.
const WORTH_A_JOB: usize = 1024;

/// One function: its two mechanisms, and where its works meet.
#[derive(Debug)]
struct HmacMechanisms {
    whole: CK_MECHANISM_TYPE,
    general: CK_MECHANISM_TYPE,
    hash: Hash,
    meeting: Meeting<Function>,
}

const fn row(whole: CK_MECHANISM_TYPE, general: CK_MECHANISM_TYPE, hash: Hash) -> HmacMechanisms {
    HmacMechanisms { whole, general, hash, meeting: Meeting::new(Function(hash)) }
}

static MECHANISMS: [HmacMechanisms; 12] = [
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
    let both = |row: &'static HmacMechanisms| {
        [row.whole, row.general].map(|mechanism| algorithm(plain, row, mechanism))
    };
    MECHANISMS.iter().flat_map(both).flatten().collect()
}

fn algorithm(
    plain: Plain,
    row: &'static HmacMechanisms,
    mechanism: CK_MECHANISM_TYPE,
) -> Option<Algorithm> {
    let beneath = plain.row(mechanism)?;
    let whole = plain.row(row.whole)?.sign?;
    let worth_waiting = digest::worth_waiting(row.hash);
    let mac = kept(Over(Mac { row, plain: beneath.sign?, whole, worth_waiting }));
    Some(Algorithm {
        mechanism,
        key_sizes: beneath.key_sizes,
        sign: Some(mac),
        verify: Some(mac),
        ..Algorithm::NONE
    })
}

/// The operation of a row.
#[derive(Debug)]
struct Mac {
    row: &'static HmacMechanisms,
    plain: &'static dyn Signature,
    /// The plain provider's for the MAC that is not truncated.
    whole: &'static dyn Signature,
    worth_waiting: usize,
}

impl Mac {
    fn worth_a_job(&self, call: Call<'_, '_>) -> bool {
        let length = call.data().len();
        if call.waits() {
            return length >= self.worth_waiting;
        }
        self.for_waiting() || length >= WORTH_A_JOB
    }

    fn work<'a>(&self, call: Call<'a, '_>, length: usize, given: Option<Tag>) -> Result<Work<'a>> {
        let mac = Secret::zeroed(self.row.hash.length());
        let (key, data) = (call.held(), call.message()?);
        Ok(Work { key, data, whole: self.whole, mac, length, given })
    }
}

impl Signing for Mac {
    type Sign = Function;
    type Verify = Function;

    fn plain(&self) -> &'static dyn Signature {
        self.plain
    }

    fn serves(&self, _: &Key) -> bool {
        hash::lanes(self.row.hash) > 0
    }

    fn for_waiting(&self) -> bool {
        self.worth_waiting < usize::MAX
    }

    fn sign<'a>(&self, call: Call<'a, '_>, params: &Params) -> Result<Ready<'a, Function>> {
        if !self.worth_a_job(call) {
            return Ok(None);
        }
        let length = self.plain.length(call.key(), params);
        Ok(Some((&self.row.meeting, self.work(call, length, None)?)))
    }

    fn verify<'a>(
        &self,
        call: Call<'a, '_>,
        params: &Params,
        signature: &[u8],
    ) -> Result<Ready<'a, Function>> {
        let length = self.plain.length(call.key(), params);
        // The plain provider has an error for a MAC of another length.
        if !self.worth_a_job(call) || signature.len() != length {
            return Ok(None);
        }
        let given = Some(Tag::from_slice(signature));
        Ok(Some((&self.row.meeting, self.work(call, length, given)?)))
    }
}

type Tag = SmallVec<[u8; 64]>;

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
struct Work<'a> {
    key: Held<'a>,
    data: Message<'a>,
    whole: &'static dyn Signature,
    /// All of it: a secret until it is compared.
    mac: Secret,
    /// How much of it counts, in bytes.
    length: usize,
    /// What it is to be compared with.
    given: Option<Tag>,
}

/// One function's batches.
#[derive(Debug)]
struct Function(Hash);

impl Batch for Function {
    type Work<'a> = Work<'a>;
    type Request<'r> = MacRequest<'r>;

    fn size(&self) -> Size {
        digest::size(self.0)
    }

    fn request<'r>(&self, work: &'r mut Work<'_>) -> Option<MacRequest<'r>> {
        let key = form(&work.key, self.0).ok()?;
        Some(MacRequest { key, data: &work.data, output: work.mac.expose_mut() })
    }

    fn compute(&self, requests: &mut [MacRequest<'_>]) {
        hash::hmac(self.0, requests);
    }

    fn alone(&self, work: &mut Work<'_>) -> Result<()> {
        work.whole.sign(&work.key, &Params::None, &work.data, work.mac.expose_mut()).map(drop)
    }

    fn answer(work: Work<'_>, out: &mut [u8]) -> Result<usize> {
        let mac = &work.mac.expose()[..work.length];
        match &work.given {
            Some(given) if constant_time::equal(mac, given) => Ok(0),
            Some(_) => Err(Error::SIGNATURE_INVALID),
            None => put(mac, out),
        }
    }
}
