// SPDX-License-Identifier: Apache-2.0
//! Triple DES in one call (PKCS#11 3.2 §6.18): ECB and CBC decryption, whose blocks are independent, hundreds at a time; CBC encryption,
//! whose blocks are not, of many messages at a time. Padding, short messages and multi-part operations are the plain provider's.

use super::{Answer, Held, Plain, batch, later, no_result, put};
use crate::combiner::{Combiner, Kernel};
use crate::data::{Data, Way};
use crate::des::{self, BLOCK, Lanes, Stream};
use metaslot_awslc_wrapper::aes::Way as PlainWay;
use metaslot_awslc_wrapper::{cleanse, des as library};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction, Postponed};
use metaslot_spi::{Bytes, Key, Params};
use smallvec::SmallVec;
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

/// A row for each mode that the plain provider has too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = |(mechanism, mode)| plain.cipher(mechanism, |plain| TripleDes { mode, plain });
    let modes =
        [(CKM_DES3_ECB, Mode::Ecb), (CKM_DES3_CBC, Mode::Cbc), (CKM_DES3_CBC_PAD, Mode::CbcPad)];
    modes.into_iter().filter_map(row).collect()
}

/// One mode.
#[derive(Debug)]
struct TripleDes {
    mode: Mode,
    plain: &'static dyn Cipher,
}

/// The kernel's form of the key.
fn form(key: &Key) -> Result<&des::Key> {
    key.prepared(|key| des::Key::new(key.secret(CKA_VALUE)?).ok_or(Error::KEY_SIZE_RANGE))
}

/// The library's form, which the plain provider has prepared.
fn plain_form(key: &Key) -> Result<&library::Keys> {
    key.prepared(|_| Err(Error::KEY_TYPE_INCONSISTENT))
}

fn iv(params: &Params) -> Option<[u8; BLOCK]> {
    let Params::Iv(iv) = params else { return None };
    iv.as_slice().try_into().ok()
}

impl Cipher for TripleDes {
    fn serves(&self, _: &Key) -> bool {
        des::available()
    }

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
        let head = self.head(direction, input.len());
        let Some((head, rest)) = head.and_then(|head| input.split_at_checked(head)) else {
            return self.plain.run(direction, key, params, input, out);
        };
        let (front, back) = out.split_at_mut_checked(head.len()).ok_or(Error::BUFFER_TOO_SMALL)?;
        let next = self.transform(direction, key, params, head, front)?;
        if self.mode != Mode::CbcPad {
            return Ok(head.len());
        }
        let next = Params::Iv(Bytes::from_slice(&next));
        let last = self.plain.run(direction, key, &next, rest, back);
        if last.is_err() {
            cleanse(front);
        }
        Ok(head.len() + last?)
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
        later(CBC.submit(Job { key, iv, text, result: Err(Error::DEVICE_ERROR) }))
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
            Way::Encrypt => encrypt(key, iv, input, out),
            Way::Decrypt => {
                kernel.cbc_decrypt(&mut iv, Data::between(input, out));
                Ok(iv)
            }
        }
    }
}

/// CBC encryption by a thread that waits; gives the last block.
fn encrypt(key: &Key, iv: [u8; BLOCK], input: &[u8], out: &mut [u8]) -> Result<[u8; BLOCK]> {
    let (key, text) = (Held::Borrowed(key), Text::Between(input, out));
    let mut job = Job { key, iv, text, result: Err(Error::DEVICE_ERROR) };
    CBC.run(&mut job).map_err(no_result)?;
    job.result.map(|()| job.iv)
}

/// Whole blocks to be encrypted.
#[derive(Debug)]
struct Job<'a> {
    key: Held<'a>,
    /// Left as what follows needs it.
    iv: [u8; BLOCK],
    text: Text<'a>,
    result: Result<()>,
}

/// Where they are.
#[derive(Debug)]
enum Text<'a> {
    Between(&'a [u8], &'a mut [u8]),
    /// In place.
    Own(Secret),
}

impl Answer for Job<'_> {
    fn answer(self, out: &mut [u8]) -> Result<usize> {
        self.result?;
        // A caller who waits has the result where it belongs.
        let Text::Own(data) = self.text else { return Err(Error::GENERAL_ERROR) };
        put(data.expose(), out)
    }
}

/// CBC encryption.
#[derive(Debug)]
struct Cbc;

static CBC: Combiner<Cbc> = Combiner::new(Cbc);

impl Kernel for Cbc {
    type Job<'a> = Job<'a>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn break_even(&self) -> usize {
        if des::available() { 24 } else { usize::MAX }
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        let Job { key, iv, text, result } = job;
        *result = plain_form(key).and_then(|key| {
            match text {
                Text::Between(input, out) => key.cbc(PlainWay::Encrypt, iv, input, out),
                Text::Own(data) => {
                    let input = Secret::try_copy_of(data.expose()).ok_or(Error::DEVICE_MEMORY)?;
                    key.cbc(PlainWay::Encrypt, iv, input.expose(), data.expose_mut());
                }
            }
            Ok(())
        });
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut streams = SmallVec::<[Stream<'_>; 32]>::new();
        for job in &mut *jobs {
            let Job { key, iv, text, .. } = &mut **job;
            let Ok(key) = form(key) else { break };
            let data = match text {
                Text::Between(input, out) => Data::between(input, out),
                Text::Own(data) => Data::in_place(data.expose_mut()),
            };
            streams.push(Stream { key, iv, data });
        }
        Lanes::new().cbc_encrypt(&mut streams);
        let done = streams.len();
        drop(streams);
        for (at, job) in jobs.iter_mut().enumerate() {
            if at < done { job.result = Ok(()) } else { self.one(job) }
        }
    }
}
