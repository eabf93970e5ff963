// SPDX-License-Identifier: Apache-2.0
//! Triple DES in one call (PKCS#11 3.2 §6.18): ECB and CBC decryption, whose blocks are independent, hundreds at a time; CBC encryption,
//! whose blocks are not, of many messages at a time. Padding, short messages and multi-part operations are the plain provider's.

use super::batch::{Batch, Meeting};
use super::over::Ciphering;
use super::{Held, Plain, Wins, put};
use crate::data::{Data, Way};
use crate::des::{self, BLOCK, Lanes, Stream};
use metaslot_awslc_wrapper::cleanse;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, Direction, Postponed};
use metaslot_spi::{Bytes, Key, Params};
use std::sync::Arc;

/// A pass over 512 blocks takes as long as the library with about 13 of them: shorter messages are the library's, in bytes.
const WORTH_A_PASS: usize = 256;
/// Shorter messages are encrypted before a job could be made of them, in bytes.
const WORTH_A_JOB: usize = 256;
/// Shorter messages of a thread that waits take less time than the switches of threads, in bytes.
const WORTH_WAITING: usize = 2048;
/// Messages encrypted side by side, of 512 that the kernel has room for: more would wait for longer.
const BATCH: usize = 128;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Ecb,
    Cbc,
    CbcPad,
}

/// A row for each mode that the plain provider has too, over its row for CBC as well.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let cbc = plain.row(CKM_DES3_CBC).and_then(|row| row.encrypt);
    let row = |(mechanism, mode)| {
        let cbc = cbc?;
        plain.cipher(mechanism, |plain| TripleDes { mode, plain, cbc })
    };
    let modes =
        [(CKM_DES3_ECB, Mode::Ecb), (CKM_DES3_CBC, Mode::Cbc), (CKM_DES3_CBC_PAD, Mode::CbcPad)];
    modes.into_iter().filter_map(row).collect()
}

/// One mode.
#[derive(Debug)]
struct TripleDes {
    mode: Mode,
    plain: &'static dyn Cipher,
    /// The plain provider's for whole blocks.
    cbc: &'static dyn Cipher,
}

/// The kernel's form of the key.
fn form(key: &Key) -> Result<&des::Key> {
    key.prepared(|key| des::Key::new(key.secret(CKA_VALUE)?).ok_or(Error::KEY_SIZE_RANGE))
}

fn iv(params: &Params) -> Option<[u8; BLOCK]> {
    let Params::Iv(iv) = params else { return None };
    iv.as_slice().try_into().ok()
}

impl Ciphering for TripleDes {
    fn plain(&self) -> &'static dyn Cipher {
        self.plain
    }

    fn serves(&self) -> bool {
        des::available()
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        let head = self.head(direction, input.len());
        let Some((head, rest)) = head.and_then(|head| input.split_at_checked(head)) else {
            return Ok(None);
        };
        let (front, back) = out.split_at_mut_checked(head.len()).ok_or(Error::BUFFER_TOO_SMALL)?;
        let next = self.transform(direction, key, params, head, front)?;
        if self.mode != Mode::CbcPad {
            return Ok(Some(head.len()));
        }
        let next = Params::Iv(Bytes::from_slice(&next));
        let last = self.plain.run(direction, key, &next, rest, back);
        if last.is_err() {
            cleanse(front);
        }
        Ok(Some(head.len() + last?))
    }

    fn run_later(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
        input: &[u8],
    ) -> Postponed {
        let (Direction::Forward, Some(iv)) = (direction, iv(params)) else { return Ok(None) };
        let blocks = self.mode == Mode::CbcPad || input.len().is_multiple_of(BLOCK);
        if input.len() < WORTH_A_JOB || !blocks {
            return Ok(None);
        }
        let padding = if self.mode == Mode::CbcPad { BLOCK - input.len() % BLOCK } else { 0 };
        let Some(mut data) = Secret::try_zeroed(input.len() + padding) else { return Ok(None) };
        let (text, pad) = data.expose_mut().split_at_mut(input.len());
        text.copy_from_slice(input);
        pad.fill(u8::try_from(padding).unwrap_or(0));
        let (key, text) = (Held::Shared(Arc::clone(key)), Text::Own(data));
        CBC.later(Work { plain: self.cbc, key, iv, text })
    }
}

impl TripleDes {
    /// How much of a message is for the kernel, in bytes: whole blocks, without the one that has or gets the padding. `None` for
    /// what the plain provider does as well, or has an error for.
    fn head(&self, direction: Direction, length: usize) -> Option<usize> {
        let least = match (self.mode, direction) {
            (Mode::Cbc | Mode::CbcPad, Direction::Forward) => WORTH_WAITING,
            _ => WORTH_A_PASS,
        };
        let whole = length.is_multiple_of(BLOCK);
        let head = match (self.mode, direction) {
            (Mode::Ecb | Mode::Cbc, _) => whole.then_some(length)?,
            (Mode::CbcPad, Direction::Forward) => length - length % BLOCK,
            (Mode::CbcPad, Direction::Backward) => whole.then(|| length.checked_sub(BLOCK))??,
        };
        (head >= least).then_some(head)
    }

    /// Whole blocks, and the IV of what follows them.
    fn transform(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<[u8; BLOCK]> {
        let kernel = form(key)?;
        let way = Way::from(direction);
        if self.mode == Mode::Ecb {
            kernel.ecb(way, Data::between(input, out));
            return Ok([0; BLOCK]);
        }
        let mut iv = iv(params).ok_or(Error::MECHANISM_PARAM_INVALID)?;
        match way {
            Way::Encrypt => {
                let (key, text) = (Held::Borrowed(key), Text::Between(input, out));
                CBC.run(Work { plain: self.cbc, key, iv, text }).map(|work| work.iv)
            }
            Way::Decrypt => {
                kernel.cbc_decrypt(&mut iv, Data::between(input, out));
                Ok(iv)
            }
        }
    }
}

/// Whole blocks to be encrypted.
struct Work<'a> {
    plain: &'static dyn Cipher,
    key: Held<'a>,
    /// Left as what follows needs it.
    iv: [u8; BLOCK],
    text: Text<'a>,
}

/// Where they are.
enum Text<'a> {
    Between(&'a [u8], &'a mut [u8]),
    /// In place.
    Own(Secret),
}

impl Text<'_> {
    fn encrypted(&self) -> &[u8] {
        match self {
            Self::Between(_, out) => out,
            Self::Own(data) => data.expose(),
        }
    }
}

/// CBC encryption.
#[derive(Debug)]
struct Cbc;

static CBC: Meeting<Cbc> = Meeting::new(Cbc);

impl Batch for Cbc {
    type Work<'a> = Work<'a>;
    type Request<'r> = Stream<'r>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn enough(&self) -> usize {
        BATCH
    }

    fn wins(&self) -> Wins {
        Wins::from(24).when(des::available())
    }

    fn request<'r>(&self, work: &'r mut Work<'_>) -> Option<Stream<'r>> {
        let data = match &mut work.text {
            Text::Between(input, out) => Data::between(input, out),
            Text::Own(data) => Data::in_place(data.expose_mut()),
        };
        Some(Stream { key: form(&work.key).ok()?, iv: &mut work.iv, data })
    }

    fn compute(&self, streams: &mut [Stream<'_>]) {
        Lanes::new().cbc_encrypt(streams);
    }

    fn alone(&self, work: &mut Work<'_>) -> Result<()> {
        let Work { plain, key, iv, text } = work;
        let params = Params::Iv(Bytes::from_slice(iv));
        let run =
            |input: &[u8], out: &mut [u8]| plain.run(Direction::Forward, key, &params, input, out);
        match text {
            Text::Between(input, out) => run(input, out),
            Text::Own(data) => run(Secret::copy_of(data.expose()).expose(), data.expose_mut()),
        }?;
        *iv = *text.encrypted().last_chunk().unwrap_or(iv);
        Ok(())
    }

    fn answer(work: Work<'_>, out: &mut [u8]) -> Result<usize> {
        put(work.text.encrypted(), out)
    }
}
