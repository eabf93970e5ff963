// SPDX-License-Identifier: Apache-2.0
//! Agreement with X25519 (PKCS#11 3.2 §6.3.19; RFC 7748).

use super::digest::expand;
use super::{Plain, WIDTH, Wins, batch, kept, no_result};
use crate::combiner::{Combiner, Kernel};
use crate::curve25519::{self, KEY_LENGTH, X25519Key, X25519Request};
use metaslot_awslc_wrapper::curve25519 as library;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::provider::{Algorithm, Derive, Keys};
use metaslot_spi::{Key, Params, key_info};
use smallvec::SmallVec;

/// Requests in one call of the kernel, which share an inversion.
const BATCH: usize = 32;
const WINS: Wins = Wins { jobs: 3, threads: 4 };

/// The row, where the plain provider has it too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = plain.row(CKM_ECDH1_DERIVE).and_then(|row| {
        Some(Algorithm {
            mechanism: CKM_ECDH1_DERIVE,
            key_sizes: (255, 255),
            derive: Some(kept(X25519 { plain: row.derive? })),
            extra_flags: CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_CURVENAME,
            ..Algorithm::NONE
        })
    });
    row.into_iter().collect()
}

/// Agreements.
#[derive(Debug)]
struct X25519 {
    plain: &'static dyn Derive,
}

impl Derive for X25519 {
    fn serves(&self, key: &Key) -> bool {
        key.key_type() == CKK_EC_MONTGOMERY && curve25519::available()
    }

    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(key, params)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        self.plain.natural_length(key, params)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let agreement = Agreement::read(params)?;
        agreement.derive(lengths, || agree(key, agreement.public), expand)
    }
}

fn agree(key: &Key, peer: &[u8]) -> Result<Secret> {
    let peer = key_info::number_point(peer).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    let mut job = Job::new(key, peer);
    AGREE.run(&mut job).map_err(no_result)?;
    job.result.map(|()| job.secret)
}

fn private(key: &Key) -> Result<&[u8; KEY_LENGTH]> {
    key.secret(CKA_VALUE)?.try_into().map_err(|_| Error::KEY_TYPE_INCONSISTENT)
}

fn private_form(key: &Key) -> Result<&X25519Key> {
    key.prepared(|key| private(key).map(X25519Key::new))
}

/// A secret to be agreed on.
#[derive(Debug)]
struct Job<'a> {
    key: &'a Key,
    peer: &'a [u8; KEY_LENGTH],
    secret: Secret,
    result: Result<()>,
}

impl<'a> Job<'a> {
    fn new(key: &'a Key, peer: &'a [u8; KEY_LENGTH]) -> Self {
        Self { key, peer, secret: Secret::zeroed(KEY_LENGTH), result: Err(Error::DEVICE_ERROR) }
    }
}

/// The secret's place.
fn place(secret: &mut Secret) -> Result<&mut [u8; KEY_LENGTH]> {
    secret.expose_mut().try_into().map_err(|_| Error::DEVICE_ERROR)
}

/// X25519.
#[derive(Debug)]
struct Meeting;

static AGREE: Combiner<Meeting> = Combiner::new(Meeting);

impl Kernel for Meeting {
    type Job<'a> = Job<'a>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn enough(&self) -> usize {
        WIDTH
    }

    fn break_even(&self) -> usize {
        WINS.when(curve25519::available()).jobs
    }

    fn crowd(&self) -> usize {
        WINS.when(curve25519::available()).threads
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        let Job { key, peer, secret, result } = job;
        *result = private(key).and_then(|key| {
            library::x25519(key, peer, place(secret)?).map_err(|_| Error::MECHANISM_PARAM_INVALID)
        });
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut requests = SmallVec::<[X25519Request<'_>; BATCH]>::new();
        for job in &mut *jobs {
            let Job { key, peer, secret, .. } = &mut **job;
            let (Ok(key), Ok(secret)) = (private_form(key), place(secret)) else { break };
            requests.push(X25519Request::new(key, peer, secret));
        }
        curve25519::x25519(&mut requests);
        let results: SmallVec<[_; BATCH]> = requests.iter().map(|request| request.result).collect();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            match results.get(at) {
                Some(Ok(())) => job.result = Ok(()),
                // A point of small order, a key that could not be prepared: the library's word counts.
                _ => self.one(job),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_spi::{Attributes, Material, Secrets, Value};
    use std::sync::Arc;

    fn random() -> [u8; KEY_LENGTH] {
        let mut bytes = [0; KEY_LENGTH];
        metaslot_awslc_wrapper::random::fill(&mut bytes).unwrap();
        bytes
    }

    fn key() -> Key {
        let mut secrets = Secrets::new();
        secrets.set(CKA_VALUE, Secret::copy_of(&random()));
        let attributes: Attributes =
            [(CKA_KEY_TYPE, Value::Ulong(CKK_EC_MONTGOMERY))].into_iter().collect();
        Key::new(Arc::new(attributes), Arc::new(Material::new(secrets)))
    }

    #[test]
    fn a_point_of_small_order_fails_alone() {
        if !curve25519::available() {
            return;
        }
        let small = [0; KEY_LENGTH];
        let peers: Vec<_> =
            (0..BATCH).map(|at| if at % 3 == 0 { small } else { random() }).collect();
        let keys: Vec<_> = (0..BATCH).map(|_| key()).collect();
        let all = || keys.iter().zip(peers.iter());
        let mut jobs: Vec<_> = all().map(|(key, peer)| Job::new(key, peer)).collect();
        Meeting.many(&mut jobs.iter_mut().collect::<Vec<_>>());
        for (at, (job, (key, peer))) in jobs.iter().zip(all()).enumerate() {
            let mut alone = Job::new(key, peer);
            Meeting.one(&mut alone);
            assert_eq!(job.result, alone.result, "lane {at}");
            let right = if at % 3 == 0 { Err(Error::MECHANISM_PARAM_INVALID) } else { Ok(()) };
            assert_eq!(job.result, right, "lane {at}");
            if right.is_ok() {
                assert_eq!(job.secret.expose(), alone.secret.expose(), "lane {at}");
            }
        }
    }
}
