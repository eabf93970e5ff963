// SPDX-License-Identifier: Apache-2.0
//! Elliptic curves over GF(2^m) (PKCS#11 3.2 §6.3): this provider alone has them, so that it does everything that belongs
//! to their keys, on every processor.

mod ecdh;
mod ecdsa;
mod key;

pub(super) use key::{complete, decode, encode};

use super::{Answer, Held, batch, later, no_result};
use crate::binary::{self, BATCH, Curve};
use crate::combiner::{Combiner, Kernel};
use metaslot_ck::*;
use metaslot_spi::Key;
use metaslot_spi::provider::{Algorithm, Postponed};
use std::fmt::Debug;
use std::sync::Arc;

/// Fields that are served, in bits.
const SIZES: (u64, u64) = (163, 571);

/// What `CK_MECHANISM_INFO` says of EC mechanisms (§6.3.1).
const FLAGS: u64 =
    CKF_EC_F_2M | CKF_EC_NAMEDCURVE | CKF_EC_UNCOMPRESS | CKF_EC_COMPRESS | CKF_EC_CURVENAME;

/// A row with what all rows have.
const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm { mechanism, key_sizes: SIZES, extra_flags: FLAGS, ..Algorithm::NONE }
}

/// All rows.
pub(super) fn rows() -> Vec<Algorithm> {
    [key::rows(), ecdsa::rows(), ecdh::rows()].into_iter().flatten().collect()
}

/// Something to compute with a key.
#[derive(Debug)]
struct Job<'a, W> {
    key: Held<'a>,
    work: W,
    result: Result<()>,
}

/// What a job asks for, with the place of its result.
trait Work: Send + Debug + Sized + 'static {
    /// Computes up to [`BATCH`] jobs with keys of one curve, whose prepared forms are there.
    fn compute(jobs: &mut [&mut Job<'_, Self>]);
}

/// Jobs of one kind meet by curve.
#[derive(Debug)]
struct Meeting<W>(std::marker::PhantomData<fn() -> W>);

/// The meeting places for one kind of work.
#[derive(Debug)]
struct Places<W: Work>([Combiner<Meeting<W>>; Curve::ALL.len()]);

impl<W: Work> Places<W> {
    const fn new() -> Self {
        Self([const { Combiner::new(Meeting(std::marker::PhantomData)) }; Curve::ALL.len()])
    }

    /// Computes, here or on another thread, and gives the work back done.
    fn run(&'static self, curve: Curve, key: &Key, work: W) -> Result<W> {
        let mut job = Job { key: Held::Borrowed(key), work, result: Err(Error::DEVICE_ERROR) };
        self.0[curve as usize].run(&mut job).map_err(no_result)?;
        job.result.map(|()| job.work)
    }

    /// Computes when somebody comes for the result.
    fn submit(&'static self, curve: Curve, key: &Arc<Key>, work: W) -> Postponed
    where
        Job<'static, W>: Answer,
    {
        let key = Held::Shared(Arc::clone(key));
        later(self.0[curve as usize].submit(Job { key, work, result: Err(Error::DEVICE_ERROR) }))
    }
}

impl<W: Work> Kernel for Meeting<W> {
    type Job<'a> = Job<'a, W>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn break_even(&self) -> usize {
        break_even()
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        W::compute(&mut [job]);
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        W::compute(jobs);
    }
}

fn break_even() -> usize {
    if binary::available() { 2 } else { usize::MAX }
}
