// SPDX-License-Identifier: Apache-2.0
//! What a job takes here: each provider does it in turns.

use crate::judge::Judge;
use crate::material::{Pair, params};
use crate::{Job, Routes};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_spi::Params;
use metaslot_spi::provider::{Algorithm, Digest, Direction};
use std::time::{Duration, Instant};

/// Rounds, of which the second best counts: whatever disturbs a round makes it longer.
const ROUNDS: u32 = 9;
/// Most that a job may have, in bytes.
const LARGEST: usize = 1 << 24;

/// What a provider took for a job.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The provider's place in the list of them.
    pub provider: usize,
    /// In nanoseconds; `None` where it failed, or does this for no caller that waits.
    pub nanoseconds: Option<f64>,
    /// How often this thread of a crowd did it; the others may have done more of its work.
    pub times: u32,
    /// Whether it fails at what another one seals, signs or computes, or another one at what it does.
    pub differs: bool,
}

/// One operation, ready to be repeated.
type Work = Box<dyn FnMut() -> Result<()>>;

/// A provider at work.
struct Runner {
    provider: usize,
    differs: bool,
    work: Work,
    times: u32,
    rounds: Vec<f64>,
}

impl Routes {
    /// Measures each provider that can do a job, for about as long as `length` each. The caller's thread does it.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` when no provider can, or the mechanism is not measured; `CKR_DATA_LEN_RANGE`.
    pub fn measure(&self, job: Job, length: Duration) -> Result<Vec<Measured>> {
        let (row, pair) = self.material(job)?;
        let params = || params(row, job).ok_or(Error::MECHANISM_INVALID);
        let (judge, rows) = (Judge::new(job, pair.clone(), params()?), self.rows_for(job));
        let (mut runners, mut wrong) = (Vec::new(), Vec::new());
        for (provider, algorithm) in &rows {
            let differs = rows.iter().any(|other| judge.agree(algorithm, other.1) == Some(false));
            // One that refuses this key or these data is not measured.
            let work = work(algorithm, job, pair.clone(), params()?).ok().flatten();
            match work.and_then(|work| Runner::ready(*provider, differs, work, length)) {
                Some(runner) => runners.push(runner),
                None if differs => wrong.push(Measured {
                    provider: *provider,
                    nanoseconds: None,
                    times: 0,
                    differs,
                }),
                None => {}
            }
        }
        for _ in 0..ROUNDS {
            for runner in &mut runners {
                runner.round()?;
            }
        }
        Ok(runners.into_iter().map(Runner::result).chain(wrong).collect())
    }

    /// As [`Self::measure`], by as many threads as a crowd has ([`crowd`](crate::cost::crowd)): each of them calls this, and all have the
    /// same provider for the same `length`. What it takes is CPU time of this thread; who leads a batch computes for the others.
    /// Of providers that company is all the same to nothing is said.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub fn measure_crowded(&self, job: Job, length: Duration) -> Result<Vec<Measured>> {
        let (row, pair) = self.material(job)?;
        let mut all = Vec::new();
        let rows = self.rows_for(job).into_iter();
        for (provider, algorithm) in rows.filter(|row| self.providers[row.0].depends_on_company()) {
            let params = params(row, job).ok_or(Error::MECHANISM_INVALID)?;
            let work = work(algorithm, job, pair.clone(), params).ok().flatten();
            self.meeting.wait(self.crowd);
            if let Some(work) = work {
                let (nanoseconds, times) = work_for(length, work).unzip();
                let times = times.unwrap_or_default();
                all.push(Measured { provider, nanoseconds, times, differs: false });
            }
        }
        Ok(all)
    }

    /// What a job is measured with.
    fn material(&self, job: Job) -> Result<(&'static MechanismRow, Option<Pair>)> {
        let row = MechanismRow::find(job.mechanism).ok_or(Error::MECHANISM_INVALID)?;
        if job.bytes > LARGEST {
            return Err(Error::DATA_LEN_RANGE);
        }
        Ok((row, self.pairs.of(row, job, self.providers)?))
    }
}

/// The clock is read after so much work.
const UNREAD: Duration = Duration::from_micros(20);

/// CPU time of one operation in nanoseconds, and how often it was done; `None` where it failed.
fn work_for(length: Duration, mut work: Work) -> Option<(f64, u32)> {
    let (began, before) = (Instant::now(), thread_time());
    let (mut done, mut times) = (0_u32, 1_u32);
    // Once in any case: a thread of a crowd may get its processor when the time is over.
    loop {
        let this = Instant::now();
        for _ in 0..times {
            work().ok()?;
        }
        done = done.saturating_add(times);
        if began.elapsed() >= length {
            let used = thread_time() - before;
            return Some((used.as_secs_f64() * 1e9 / f64::from(done), done));
        }
        if this.elapsed() < UNREAD {
            times *= 2;
        }
    }
}

/// CPU time of this thread since it began.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

impl Runner {
    /// With so many repetitions in a round that all rounds take the whole time; `None` where it fails.
    fn ready(provider: usize, differs: bool, mut work: Work, length: Duration) -> Option<Self> {
        work().ok()?;
        let (mut times, aim) = (1_u32, length / ROUNDS);
        loop {
            let began = Instant::now();
            for _ in 0..times {
                work().ok()?;
            }
            let spent = began.elapsed();
            if spent >= aim / 2 || times >= 1 << 24 {
                return Some(Self { provider, differs, work, times, rounds: Vec::new() });
            }
            times *= 2;
        }
    }

    fn round(&mut self) -> Result<()> {
        let began = Instant::now();
        for _ in 0..self.times {
            (self.work)()?;
        }
        self.rounds.push(began.elapsed().as_secs_f64() * 1e9 / f64::from(self.times));
        Ok(())
    }

    fn result(mut self) -> Measured {
        self.rounds.sort_by(f64::total_cmp);
        let Self { provider, differs, times, .. } = self;
        Measured { provider, nanoseconds: self.rounds.get(1).copied(), times, differs }
    }
}

/// The operation of a job by a row; `None` where the row has nothing for a caller that waits.
///
/// # Errors
/// What the provider says of such keys, parameters or data.
fn work(
    algorithm: &'static Algorithm,
    job: Job,
    pair: Option<Pair>,
    params: Params,
) -> Result<Option<Work>> {
    // As the trailer ends that ANSI X9.31 wants.
    let data = vec![0xcc_u8; job.data_length()];
    let Some(pair) = pair else { return Ok(algorithm.digest.and_then(|row| digests(row, data))) };
    match job.operation {
        CKF_ENCRYPT => encrypts(algorithm, pair, params, data),
        CKF_DECRYPT => decrypts(algorithm, pair, params, &data),
        CKF_SIGN => signs(algorithm, pair, params, data),
        CKF_VERIFY => verifies(algorithm, pair, params, data),
        _ => Ok(None),
    }
}

fn digests(digest: &'static dyn Digest, data: Vec<u8>) -> Option<Work> {
    let mut out = vec![0; digest.length()];
    let work: Work = Box::new(move || digest.digest(&data, &mut out));
    digest.for_waiting().then_some(work)
}

fn encrypts(
    algorithm: &'static Algorithm,
    [key, _]: Pair,
    params: Params,
    data: Vec<u8>,
) -> Result<Option<Work>> {
    let (direction, row) = (Direction::Forward, algorithm.encrypt);
    let Some(cipher) = row.filter(|row| row.serves(&key) && row.for_waiting(direction)) else {
        return Ok(None);
    };
    cipher.check(direction, &key, &params)?;
    let mut out = vec![0; cipher.length(direction, &key, &params, data.len())?];
    Ok(Some(Box::new(move || cipher.run(direction, &key, &params, &data, &mut out).map(drop))))
}

fn decrypts(
    algorithm: &'static Algorithm,
    [public, key]: Pair,
    params: Params,
    data: &[u8],
) -> Result<Option<Work>> {
    let (direction, row) = (Direction::Backward, algorithm.decrypt);
    let Some(cipher) = row.filter(|row| row.serves(&key) && row.for_waiting(direction)) else {
        return Ok(None);
    };
    let sealer = algorithm.encrypt.ok_or(Error::MECHANISM_INVALID)?;
    sealer.check(Direction::Forward, &public, &params)?;
    let mut sealed = vec![0; sealer.length(Direction::Forward, &public, &params, data.len())?];
    let used = sealer.run(Direction::Forward, &public, &params, data, &mut sealed)?;
    sealed.truncate(used);
    cipher.check(direction, &key, &params)?;
    let mut out = vec![0; cipher.length(direction, &key, &params, sealed.len())?];
    Ok(Some(Box::new(move || cipher.run(direction, &key, &params, &sealed, &mut out).map(drop))))
}

fn signs(
    algorithm: &'static Algorithm,
    [_, key]: Pair,
    params: Params,
    data: Vec<u8>,
) -> Result<Option<Work>> {
    let row = algorithm.sign.filter(|row| row.serves(&key) && row.for_waiting());
    let Some(signer) = row else { return Ok(None) };
    signer.check(Direction::Forward, &key, &params)?;
    let mut out = vec![0; signer.length(&key, &params)];
    Ok(Some(Box::new(move || signer.sign(&key, &params, &data, &mut out).map(drop))))
}

fn verifies(
    algorithm: &'static Algorithm,
    [key, private]: Pair,
    params: Params,
    data: Vec<u8>,
) -> Result<Option<Work>> {
    let row = algorithm.verify.filter(|row| row.serves(&key) && row.for_waiting());
    let Some(verifier) = row else { return Ok(None) };
    let signer = algorithm.sign.ok_or(Error::MECHANISM_INVALID)?;
    signer.check(Direction::Forward, &private, &params)?;
    let mut signature = vec![0; signer.length(&private, &params)];
    signer.sign(&private, &params, &data, &mut signature)?;
    verifier.check(Direction::Backward, &key, &params)?;
    Ok(Some(Box::new(move || verifier.verify(&key, &params, &data, &signature))))
}
