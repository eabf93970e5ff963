// SPDX-License-Identifier: Apache-2.0
//! AES in one call (PKCS#11 3.2 §6.10): ECB, CTR and CBC decryption, whose blocks are independent, four at a time; CBC encryption, whose
//! blocks are not, of up to 16 messages at a time in asynchronous sessions. Multi-part operations are the plain provider's.

use super::batch::{Batch, Meeting};
use super::over::{Ciphering, cipher};
use super::parts::{Plain, Size, put};
use crate::aes::{self, BLOCK, Counter, LANES, Stream};
use crate::data::{Data, Way};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, Direction, Postponed};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// Shorter messages are encrypted before a job could be made of them, in bytes.
const WORTH_A_JOB: usize = 256;
/// Shorter messages are over before four blocks at a time gain anything, in bytes.
const WORTH_BLOCKS: usize = 128;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Ecb,
    Cbc,
    Ctr,
}

/// A row for each mode that the plain provider has too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = |(mechanism, mode)| cipher(plain, mechanism, |plain| Aes { mode, plain });
    let modes = [(CKM_AES_ECB, Mode::Ecb), (CKM_AES_CBC, Mode::Cbc), (CKM_AES_CTR, Mode::Ctr)];
    modes.into_iter().filter_map(row).collect()
}

/// One mode.
#[derive(Debug)]
struct Aes {
    mode: Mode,
    plain: &'static dyn Cipher,
}

/// The prepared key.
fn form(key: &Key) -> Result<&aes::Key> {
    key.prepared(|key| aes::Key::new(key.secret(CKA_VALUE)?).ok_or(Error::KEY_SIZE_RANGE))
}

impl Ciphering for Aes {
    fn plain(&self) -> &'static dyn Cipher {
        self.plain
    }

    fn serves(&self) -> bool {
        aes::available()
    }

    fn for_waiting(&self, direction: Direction) -> bool {
        self.mode != Mode::Cbc || direction == Direction::Backward
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        // What is wrong with the data is for the plain provider to say.
        let done = input.len() >= WORTH_BLOCKS
            && out
                .get_mut(..input.len())
                .is_some_and(|out| self.transform(direction, key, params, input, out));
        Ok(done.then_some(input.len()))
    }

    fn run_later(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
        input: &[u8],
    ) -> Postponed {
        let (Mode::Cbc, Direction::Forward, Params::Iv(iv)) = (self.mode, direction, params) else {
            return Ok(None);
        };
        if input.len() < WORTH_A_JOB || !input.len().is_multiple_of(BLOCK) {
            return Ok(None);
        }
        let (Ok(iv), Some(data)) = (iv.as_slice().try_into(), Secret::try_copy_of(input)) else {
            return Ok(None);
        };
        CBC.later(Text { key: Arc::clone(key), iv, data })
    }
}

impl Aes {
    /// Whether that could be done here: with good data always, but for CBC encryption.
    fn transform(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> bool {
        let Ok(key) = form(key) else { return false };
        let blocks = input.len().is_multiple_of(BLOCK);
        let way = Way::from(direction);
        match (self.mode, params) {
            (Mode::Ecb, Params::None) if blocks => key.ecb(way, Data::between(input, out)),
            (Mode::Cbc, Params::Iv(iv)) if blocks && way == Way::Decrypt => {
                let Ok(mut iv) = iv.as_slice().try_into() else { return false };
                key.cbc_decrypt(&mut iv, Data::between(input, out));
            }
            (Mode::Ctr, Params::Ctr { bits, block }) if fits(*bits, *block, input.len()) => {
                let bits = u32::try_from(*bits).unwrap_or(0);
                key.ctr(&mut Counter::new(*block, bits), Data::between(input, out));
            }
            _ => return false,
        }
        true
    }
}

/// Whether the counter does not come round within so many bytes.
fn fits(bits: u64, block: [u8; BLOCK], length: usize) -> bool {
    if !(1..=128).contains(&bits) {
        return false;
    }
    let most = u128::MAX >> (128 - bits);
    let left = most - (u128::from_be_bytes(block) & most);
    (length.div_ceil(BLOCK) as u128).saturating_sub(1) <= left
}

/// A message to be encrypted in place.
struct Text {
    key: Arc<Key>,
    iv: [u8; BLOCK],
    data: Secret,
}

/// CBC encryption.
#[derive(Debug)]
struct Cbc;

static CBC: Meeting<Cbc> = Meeting::new(Cbc);

impl Batch for Cbc {
    type Work<'a> = Text;
    type Request<'r> = Stream<'r>;

    const ONE_IN_A_LANE: bool = true;

    fn size(&self) -> Size {
        Size::new(LANES, 2)
    }

    fn request<'r>(&self, work: &'r mut Text) -> Option<Stream<'r>> {
        let Text { key, iv, data } = work;
        Some(Stream { key: form(key).ok()?, iv, data: Data::in_place(data.expose_mut()) })
    }

    fn compute(&self, streams: &mut [Stream<'_>]) {
        aes::cbc_encrypt(streams);
    }

    fn answer(work: Text, out: &mut [u8]) -> Result<usize> {
        put(work.data.expose(), out)
    }
}
