// SPDX-License-Identifier: Apache-2.0
//! ECDH with one key pair a side on P-256 and P-384 (PKCS#11 3.2 §6.3.19, §6.3.20), whose cofactor is 1: both mechanisms are one.

use super::digest::expand;
use super::prime::{
    self, BATCH, FLAGS, Lanes, P256Kernel, P384Kernel, SIZES, Size, plain_form, private_form,
};
use super::{Plain, WIDTH, batch, kept, no_result};
use crate::combiner::{Combiner, Kernel};
use crate::weierstrass::{DeriveRequest, PrivateKey};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::provider::{Algorithm, Derive, Keys};
use metaslot_spi::{Key, Params, key_info};
use smallvec::SmallVec;
use std::any::Any;

/// A row for each of the two mechanisms that the plain provider has too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = |mechanism| {
        let plain = plain.row(mechanism)?.derive?;
        Some(Algorithm {
            mechanism,
            key_sizes: SIZES,
            derive: Some(kept(Ecdh { plain })),
            extra_flags: FLAGS,
            ..Algorithm::NONE
        })
    };
    [CKM_ECDH1_DERIVE, CKM_ECDH1_COFACTOR_DERIVE].into_iter().filter_map(row).collect()
}

/// One row's agreements.
#[derive(Debug)]
struct Ecdh {
    plain: &'static dyn Derive,
}

impl Derive for Ecdh {
    fn serves(&self, key: &Key) -> bool {
        prime::serves(key)
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
        keys: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let Some(size) = Size::of(key) else {
            return self.plain.derive(key, params, lengths, keys);
        };
        let agreement = Agreement::read(params)?;
        agreement.derive(lengths, || size.agree(key, agreement.public), expand)
    }
}

static DERIVE_256: Combiner<Meeting<P256Kernel, 5>> = Combiner::new(Meeting(P256Kernel));
static DERIVE_384: Combiner<Meeting<P384Kernel, 8>> = Combiner::new(Meeting(P384Kernel));

impl Size {
    fn agree(self, key: &Key, peer: &[u8]) -> Result<Secret> {
        let mut job = Job::new(self, key, peer);
        match self {
            Self::P256 => DERIVE_256.run(&mut job),
            Self::P384 => DERIVE_384.run(&mut job),
        }
        .map_err(no_result)?;
        job.result.map(|()| job.secret)
    }
}

/// A secret to be agreed on.
#[derive(Debug)]
struct Job<'a> {
    key: &'a Key,
    peer: &'a [u8],
    secret: Secret,
    result: Result<()>,
}

impl<'a> Job<'a> {
    fn new(size: Size, key: &'a Key, peer: &'a [u8]) -> Self {
        let peer = key_info::ec_point(size.length(), peer);
        Self { key, peer, secret: Secret::zeroed(size.length()), result: Err(Error::DEVICE_ERROR) }
    }
}

/// Agreements with one curve's keys.
#[derive(Debug)]
struct Meeting<L, const N: usize>(L);

impl<L: Lanes<N>, const N: usize> Kernel for Meeting<L, N>
where
    PrivateKey<N>: Any + Send + Sync,
{
    type Job<'a> = Job<'a>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn enough(&self) -> usize {
        WIDTH
    }

    fn break_even(&self) -> usize {
        L::DERIVE.when(L::available()).jobs
    }

    fn crowd(&self) -> usize {
        L::DERIVE.when(L::available()).threads
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        job.result = plain_form(job.key).and_then(|key| {
            key.diffie_hellman(job.peer, job.secret.expose_mut())
                .map_err(|_| Error::MECHANISM_PARAM_INVALID)
        });
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut requests = SmallVec::<[DeriveRequest<'_, N>; BATCH]>::new();
        for job in &mut *jobs {
            let Job { key, peer, secret, .. } = &mut **job;
            let Ok(key) = private_form::<L, N>(key) else { break };
            requests.push(DeriveRequest::new(key, peer, secret.expose_mut()));
        }
        L::derive(&mut requests);
        let results: SmallVec<[_; BATCH]> = requests.iter().map(|request| request.result).collect();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            match results.get(at) {
                Some(Ok(())) => job.result = Ok(()),
                // A point off the curve, a key that could not be prepared: the library's word counts.
                _ => self.one(job),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_awslc_wrapper::ec::{Curve, EcKey};
    use metaslot_spi::{Attributes, Material, Secrets, Value};
    use std::sync::Arc;

    /// A key as the plain provider leaves it, and its point.
    fn key(curve: Curve) -> (Key, Vec<u8>) {
        let library = EcKey::generate(curve).unwrap();
        let mut scalar = Secret::zeroed(curve.length());
        library.write_scalar(scalar.expose_mut()).unwrap();
        let mut point = vec![0; curve.point_length()];
        library.write_point(&mut point).unwrap();
        let mut secrets = Secrets::new();
        secrets.set(CKA_VALUE, scalar);
        let attributes: Attributes =
            [(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY))].into_iter().collect();
        let key = Key::new(Arc::new(attributes), Arc::new(Material::new(secrets)));
        key.prepared(|_| Ok(library)).unwrap();
        (key, point)
    }

    /// Every third peer is a point off the curve, every third comes compressed.
    fn peers(curve: Curve, count: usize) -> Vec<Vec<u8>> {
        let peer = |at: usize| {
            let (_, mut point) = key(curve);
            match at % 3 {
                0 => point[curve.length()] ^= 1,
                1 => {
                    point[0] = 2 + (point[2 * curve.length()] & 1);
                    point.truncate(1 + curve.length());
                }
                _ => {}
            }
            point
        };
        (0..count).map(peer).collect()
    }

    fn lanes_agree_with_the_library<L: Lanes<N>, const N: usize>(
        size: Size,
        curve: Curve,
        meeting: &Meeting<L, N>,
    ) where
        PrivateKey<N>: Any + Send + Sync,
    {
        if !L::available() {
            return;
        }
        let keys: Vec<_> = (0..BATCH).map(|_| key(curve).0).collect();
        let peers = peers(curve, BATCH);
        let all = || keys.iter().zip(peers.iter());
        let mut jobs: Vec<_> = all().map(|(key, peer)| Job::new(size, key, peer)).collect();
        meeting.many(&mut jobs.iter_mut().collect::<Vec<_>>());
        for (at, (job, (key, peer))) in jobs.iter().zip(all()).enumerate() {
            let mut alone = Job::new(size, key, peer);
            meeting.one(&mut alone);
            assert_eq!(job.result, alone.result, "lane {at}");
            let right = if at % 3 == 0 { Err(Error::MECHANISM_PARAM_INVALID) } else { Ok(()) };
            assert_eq!(job.result, right, "lane {at}");
            if right.is_ok() {
                assert_eq!(job.secret.expose(), alone.secret.expose(), "lane {at}");
            }
        }
    }

    #[test]
    fn a_point_off_p256_fails_alone() {
        lanes_agree_with_the_library(Size::P256, Curve::P256, DERIVE_256.kernel());
    }

    #[test]
    fn a_point_off_p384_fails_alone() {
        lanes_agree_with_the_library(Size::P384, Curve::P384, DERIVE_384.kernel());
    }
}
