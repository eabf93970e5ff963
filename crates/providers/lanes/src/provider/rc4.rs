// SPDX-License-Identifier: Apache-2.0
//! RC4 in one call (PKCS#11 Historical Mechanisms 3.0 §2.4): a long message by the kernel alone, several of asynchronous sessions
//! interleaved. Short messages, whose time goes into the key's setup, and multi-part operations are the plain provider's.

use super::{Answer, Plain, batch, later, put};
use crate::combiner::{Combiner, Kernel};
use crate::data::Data;
use crate::rc4::{LANES, Rc4, Stream, apply};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction, Postponed};
use metaslot_spi::{Key, Params};
use smallvec::SmallVec;
use std::sync::Arc;

/// Shorter messages are the plain provider's, in bytes.
const LONG: usize = 2048;

/// The row, where the plain provider has it too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    plain.cipher(CKM_RC4, |plain| Streams { plain }).into_iter().collect()
}

#[derive(Debug)]
struct Streams {
    plain: &'static dyn Cipher,
}

/// The key stream from its beginning.
fn state(key: &Key) -> Result<Rc4> {
    Rc4::new(key.secret(CKA_VALUE)?).ok_or(Error::KEY_SIZE_RANGE)
}

impl Cipher for Streams {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(direction, key, params)
    }

    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        self.plain.length(direction, key, params, input)
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        if input.len() < LONG {
            return self.plain.run(direction, key, params, input, out);
        }
        let out = out.get_mut(..input.len()).ok_or(Error::BUFFER_TOO_SMALL)?;
        state(key)?.apply(Data::between(input, out));
        Ok(input.len())
    }

    fn run_later(&self, _: Direction, key: &Arc<Key>, _: &Params, input: &[u8]) -> Postponed {
        if input.len() < LONG {
            return Ok(None);
        }
        let Some(data) = Secret::try_copy_of(input) else { return Ok(None) };
        later(RC4.submit(Job { state: state(key)?, data }))
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        self.plain.start(direction, key, params)
    }
}

/// A message to be encrypted or decrypted in place, and its key stream.
#[derive(Debug)]
struct Job {
    state: Rc4,
    data: Secret,
}

impl Answer for Job {
    fn answer(self, out: &mut [u8]) -> Result<usize> {
        put(self.data.expose(), out)
    }
}

/// Interleaved streams.
#[derive(Debug)]
struct Interleaved;

static RC4: Combiner<Interleaved> = Combiner::new(Interleaved);

impl Kernel for Interleaved {
    type Job<'a> = Job;

    fn lanes(&self) -> usize {
        LANES
    }

    fn break_even(&self) -> usize {
        3
    }

    fn one(&self, job: &mut Job) {
        job.state.apply(Data::in_place(job.data.expose_mut()));
    }

    fn many(&self, jobs: &mut [&mut Job]) {
        batch(jobs.len());
        let mut streams = SmallVec::<[Stream<'_>; LANES]>::new();
        for job in jobs {
            let Job { state, data } = &mut **job;
            streams.push(Stream { state, data: Data::in_place(data.expose_mut()) });
        }
        apply(&mut streams);
    }
}
