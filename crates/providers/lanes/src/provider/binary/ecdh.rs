// SPDX-License-Identifier: Apache-2.0
//! ECDH with one key pair a side (PKCS#11 3.2 §6.3.19, §6.3.20), with the cofactor and without.

use super::key::{curve, point, private};
use super::{Job, Places, Work, row};
use crate::binary::{self, BATCH, Curve, PublicKey};
use crate::provider::digest::expand;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::provider::{Algorithm, Derive, Keys};
use metaslot_spi::{Key, Params};
use smallvec::SmallVec;

pub(super) fn rows() -> Vec<Algorithm> {
    let algorithm = |mechanism, ecdh| Algorithm { derive: Some(ecdh), ..row(mechanism) };
    vec![
        algorithm(CKM_ECDH1_DERIVE, &Ecdh { cofactor: false }),
        algorithm(CKM_ECDH1_COFACTOR_DERIVE, &Ecdh { cofactor: true }),
    ]
}

static PLACES: Places<Agreed> = Places::new();

#[derive(Debug)]
struct Ecdh {
    cofactor: bool,
}

impl Derive for Ecdh {
    fn serves(&self, key: &Key) -> bool {
        curve(key).is_some()
    }

    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        Agreement::read(params)?;
        private(key).map(drop)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        let plain = Agreement::read(params).ok()?.is_plain();
        curve(key).filter(|_| plain).map(Curve::field_length)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let agreement = Agreement::read(params)?;
        let agree = || {
            let curve = private(key)?.curve();
            let peer = point(curve, agreement.public).ok_or(Error::MECHANISM_PARAM_INVALID)?;
            let secret = Secret::zeroed(curve.field_length());
            let work = Agreed { peer, cofactor: self.cofactor, secret };
            PLACES.run(curve, key, work).map(|work| work.secret)
        };
        agreement.derive(lengths, agree, expand)
    }
}

/// A secret to be agreed on.
#[derive(Debug)]
struct Agreed {
    peer: PublicKey,
    cofactor: bool,
    secret: Secret,
}

impl Work for Agreed {
    fn compute(jobs: &mut [&mut Job<'_, Self>]) {
        let mut requests = SmallVec::<[binary::Derive<'_>; BATCH]>::new();
        for job in &mut *jobs {
            let Job { key, work: Self { peer, cofactor, secret }, .. } = &mut **job;
            let Ok(key) = private(key) else { break };
            requests.push(binary::Derive::new(key, peer, *cofactor, secret.expose_mut()));
        }
        binary::derive(&mut requests);
        let answers: SmallVec<[_; BATCH]> = requests.iter().map(|request| request.answer).collect();
        drop(requests);
        for (job, answer) in jobs.iter_mut().zip(answers) {
            job.result = answer.map_err(|_| Error::DEVICE_ERROR);
        }
    }
}
