// SPDX-License-Identifier: Apache-2.0
//! The functions of our own interface about who does the work: what each provider is expected to take, and takes.

use crate::decode::Given;
use crate::enter::enter;
use metaslot_ck::*;
use metaslot_router::{CROWD, Job as Wanted, Routes};
use metaslot_wiring::text::padded;
use std::time::Duration;

/// `METASLOT_JOB`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Job {
    mechanism: CK_MECHANISM_TYPE,
    /// `CKF_…`, and where a crowd asks for it, [`CROWD`].
    operation: CK_FLAGS,
    key_bits: CK_ULONG,
    bytes: CK_ULONG,
    /// How long each provider is measured; 0 asks what is expected.
    microseconds: CK_ULONG,
}

impl Job {
    fn wanted(self) -> Result<Wanted> {
        let key_bits = u32::try_from(self.key_bits).map_err(|_| Error::KEY_SIZE_RANGE)?;
        let bytes = usize::try_from(self.bytes).map_err(|_| Error::DATA_LEN_RANGE)?;
        let (mechanism, operation) = (self.mechanism, self.operation & !CROWD);
        Ok(Wanted { mechanism, operation, key_bits, bytes })
    }
}

/// `METASLOT_ESTIMATE`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Estimate {
    provider: [CK_UTF8CHAR; 16],
    /// `CK_UNAVAILABLE_INFORMATION` where it is not known.
    picoseconds: CK_ULONG,
    /// How often it failed at what another one did; where it was measured, how often it did it.
    failures: CK_ULONG,
    flags: CK_FLAGS,
}

/// It would be taken.
const CHOSEN: CK_FLAGS = 1;
/// It fails, and is left alone for a while.
const OUT: CK_FLAGS = 2;

/// What it computes is not what the others compute.
const DIFFERS: CK_FLAGS = 4;

/// The longest that one provider is measured.
const LONGEST: Duration = Duration::from_secs(10);

/// Who can do a job, what each is expected to take, and who would do it; or, where a time is given, what each takes.
pub(crate) extern "C" fn estimates(
    job: Given<'_, Job>,
    list: Given<'_, Estimate>,
    count: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter(Function::GetMechanismInfo, |engine, caller| {
        let job = caller.read(job)?;
        let all = match job.microseconds {
            0 => expected(engine.routes(), job.wanted()?),
            _ => measured(engine.routes(), job)?,
        };
        caller.list(&all, list, count)
    })
}

fn expected(routes: &Routes, job: Wanted) -> Vec<Estimate> {
    let (all, chosen) = routes.estimates(job);
    let row = |one: metaslot_router::Estimate| Estimate {
        provider: padded(routes.providers()[one.provider].name()),
        picoseconds: one.nanoseconds.map_or(UNAVAILABLE, |time| picoseconds(f64::from(time))),
        failures: one.failures,
        flags: if one.out { OUT } else { 0 }
            | if chosen == Some(one.provider) { CHOSEN } else { 0 },
    };
    all.into_iter().map(row).collect()
}

/// They do it in turns, in this thread, which may be one of a crowd.
fn measured(routes: &Routes, job: Job) -> Result<Vec<Estimate>> {
    let length = Duration::from_micros(job.microseconds).min(LONGEST);
    let row = |one: metaslot_router::Measured| Estimate {
        provider: padded(routes.providers()[one.provider].name()),
        picoseconds: one.nanoseconds.map_or(UNAVAILABLE, picoseconds),
        failures: one.times.into(),
        flags: if one.differs { DIFFERS } else { 0 },
    };
    let measured = match job.operation & CROWD {
        0 => routes.measure(job.wanted()?, length)?,
        _ => routes.measure_crowded(job.wanted()?, length)?,
    };
    Ok(measured.into_iter().map(row).collect())
}

/// Times are not negative, and shorter than the age of the world.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn picoseconds(nanoseconds: f64) -> CK_ULONG {
    (nanoseconds * 1e3) as CK_ULONG
}
