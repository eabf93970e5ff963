// SPDX-License-Identifier: Apache-2.0
//! RC4 in one call (PKCS#11 Historical Mechanisms 3.0 §2.4): a long message by the kernel alone, several of asynchronous sessions
//! interleaved. Short messages, whose time goes into the key's setup, and multi-part operations are the plain provider's.

use super::batch::{Batch, Meeting};
use super::over::Ciphering;
use super::{Plain, Wins, put};
use crate::data::Data;
use crate::rc4::{LANES, Rc4, Stream, apply};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, Direction, Postponed};
use metaslot_spi::{Key, Params};
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

impl Ciphering for Streams {
    fn plain(&self) -> &'static dyn Cipher {
        self.plain
    }

    fn run(
        &self,
        _: Direction,
        key: &Key,
        _: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        if input.len() < LONG {
            return Ok(None);
        }
        let out = out.get_mut(..input.len()).ok_or(Error::BUFFER_TOO_SMALL)?;
        state(key)?.apply(Data::between(input, out));
        Ok(Some(input.len()))
    }

    fn run_later(&self, _: Direction, key: &Arc<Key>, _: &Params, input: &[u8]) -> Postponed {
        if input.len() < LONG {
            return Ok(None);
        }
        let Some(data) = Secret::try_copy_of(input) else { return Ok(None) };
        RC4.later(Text { state: state(key)?, data })
    }
}

/// A message to be encrypted or decrypted in place, and its key stream.
struct Text {
    state: Rc4,
    data: Secret,
}

/// Interleaved streams.
#[derive(Debug)]
struct Interleaved;

static RC4: Meeting<Interleaved> = Meeting::new(Interleaved);

impl Batch for Interleaved {
    type Work<'a> = Text;
    type Request<'r> = Stream<'r>;

    fn lanes(&self) -> usize {
        LANES
    }

    fn wins(&self) -> Wins {
        Wins::from(3)
    }

    fn one_in_a_lane(&self) -> bool {
        true
    }

    fn request<'r>(&self, work: &'r mut Text) -> Option<Stream<'r>> {
        Some(Stream { state: &mut work.state, data: Data::in_place(work.data.expose_mut()) })
    }

    fn compute(&self, streams: &mut [Stream<'_>]) {
        apply(streams);
    }

    fn answer(work: Text, out: &mut [u8]) -> Result<usize> {
        put(work.data.expose(), out)
    }
}
