// SPDX-License-Identifier: Apache-2.0
//! Ciphers that do not authenticate. What one part of a message hands on to the next is known here (the last bytes of CBC and CFB, the counter of CTR,
//! what is left of a key stream): each part is a message of its own for the token, and nothing stays in a session.

use super::cipher::{BLOCK, HALF, Mode, Pass, Row};
use super::key::{Hidden, Key, keyed};
use super::sessions::Whose as _;
use super::tls;
use crate::abi::{Answer, Params};
use crate::failure::{Failure, Result};
use crate::provider::Provider;
use metaslot_client::{Mechanism, Params as Parameter};
use std::sync::Arc;

/// A message under such a cipher.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) provider: Arc<Provider>,
    row: &'static Row,
    key: Option<Key>,
    forward: bool,
    pads: bool,
    has_iv: bool,
    /// What the program gave, and what it has become: of a block of CFB and OFB that was begun, what is left of its key stream stands there.
    given: [u8; BLOCK],
    iv: [u8; BLOCK],
    /// The beginning of a block; of CTR the key stream of the one that was begun.
    held: [u8; BLOCK],
    used: usize,
    /// What records are: TLS's number, zero without; and how long their MACs are.
    version: i64,
    mac_length: usize,
    mac: Vec<u8>,
    joined: Hidden,
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.held.fill(0);
        self.iv.fill(0);
        std::hint::black_box((&self.held, &self.iv));
    }
}

impl Plain {
    pub(crate) fn new(provider: Arc<Provider>, row: &'static Row) -> Self {
        let (given, iv, held) = Default::default();
        Self {
            provider,
            row,
            key: None,
            forward: true,
            pads: true,
            has_iv: false,
            given,
            iv,
            held,
            used: 0,
            version: 0,
            mac_length: 0,
            mac: Vec::new(),
            joined: Hidden::default(),
        }
    }

    pub(crate) fn begin(&mut self, forward: bool, key: &[u8], iv: &[u8]) -> Result<()> {
        self.forward = forward;
        if !iv.is_empty() {
            let length = self.row.iv();
            if iv.len() != length {
                return Err(Failure::input("this length of an IV is not supported"));
            }
            self.given[..length].copy_from_slice(iv);
            self.has_iv = true;
        }
        if !key.is_empty() {
            let key = self.row.checked(key)?;
            Key::change(&mut self.key, &self.provider, self.row.form(), key);
        }
        self.used = 0;
        // A counter goes on, and so does what began without an IV.
        if !iv.is_empty() || self.has_iv && self.row.mode != Mode::Ctr {
            self.iv = self.given;
        }
        Ok(())
    }

    pub(crate) fn set(&mut self, params: &Params) -> Result<()> {
        for (name, given) in params.each() {
            let number = given.number().unwrap_or_default();
            match name {
                b"padding" => self.pads = number != 0,
                b"tls-version" => self.version = number,
                b"tls-mac-size" => self.mac_length = usize::try_from(number).unwrap_or_default(),
                b"keylen" => self.row.keeps(given)?,
                b"num" if number != 0 => {
                    return Err(Failure::unsupported("a message begins with a whole block"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn answer(&self, name: &[u8]) -> Option<Answer<'_>> {
        let number = |number| Some(Answer::size(number));
        match name {
            b"padding" => number(self.pads.into()),
            b"num" => number(if self.row.block() == 1 { self.used } else { 0 }),
            b"iv" => Some(Answer::Octets(&self.given[..self.row.iv()])),
            b"updated-iv" => Some(Answer::Octets(&self.iv[..self.row.iv()])),
            b"tls-mac" => Some(Answer::Octets(&self.mac)),
            _ => self.row.answer(name).and_then(number),
        }
    }

    pub(crate) fn update(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        keyed(&mut self.key)?;
        if self.version != 0 {
            return self.record(pass);
        }
        match self.row.mode {
            Mode::Ecb | Mode::Cbc => {}
            _ => return self.whole(pass),
        }
        let (step, all) = (BLOCK, self.used + pass.length);
        let mut whole = all - all % step;
        if self.pads && !self.forward && whole == all {
            // It may be the last one, with the padding.
            whole = whole.saturating_sub(step);
        }
        if whole == 0 {
            self.held[self.used..all].copy_from_slice(pass.bytes());
            self.used = all;
            return Ok(0);
        }
        let taken = whole - self.used;
        let mut rest = [0; BLOCK];
        rest[..all - whole].copy_from_slice(&pass.bytes()[taken..]);
        if self.used == 0 {
            self.run(&mut pass, whole)?;
        } else {
            self.joined(whole, |cipher, room| {
                let (first, last) = room.split_at_mut(cipher.used);
                first.copy_from_slice(&cipher.held[..cipher.used]);
                last.copy_from_slice(&pass.bytes()[..taken]);
                cipher.step(room, pass.out(whole)?)
            })?;
        }
        (self.held, self.used) = (rest, all - whole);
        Ok(whole)
    }

    /// The end: with padding one block more, or one less.
    pub(crate) fn finish(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        if !self.row.wraps() && self.row.mode != Mode::Xts {
            keyed(&mut self.key)?;
        }
        let (step, used) = (BLOCK, self.used);
        if self.row.block() != BLOCK || self.version != 0 || !self.pads && used == 0 {
            return Ok(0);
        }
        let wrong = || Failure::input("the data is not a whole number of blocks");
        if used != step && (!self.pads || !self.forward) {
            return Err(wrong());
        }
        self.used = 0;
        let mut block = self.held;
        let mut done = [0; BLOCK];
        if self.forward {
            block[used..step].fill((step - used).try_into().unwrap_or_default());
            self.step(&block[..step], &mut done[..step])?;
            pass.out(step)?.copy_from_slice(&done[..step]);
            return Ok(step);
        }
        self.step(&block[..step], &mut done[..step])?;
        if !self.pads {
            // It was switched off after this block had come.
            pass.out(step)?.copy_from_slice(&done);
            return Ok(step);
        }
        let padding = usize::from(done[step - 1]);
        let length = step.checked_sub(padding).filter(|_| padding > 0);
        let right =
            |length: &usize| done[*length..step].iter().all(|byte| usize::from(*byte) == padding);
        let length = length.filter(right).ok_or_else(|| Failure::input("the padding is wrong"))?;
        pass.out(length)?.copy_from_slice(&done[..length]);
        Ok(length)
    }

    /// Whole blocks, or a message that is not padded.
    pub(crate) fn whole(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        keyed(&mut self.key)?;
        let length = pass.length;
        match self.row.mode {
            Mode::Cfb | Mode::Ofb | Mode::Ctr => return self.stream(&mut pass),
            Mode::Wrap | Mode::Padded => return self.wrap(pass),
            Mode::Xts if !self.has_iv || length < BLOCK => {
                return Err(Failure::input("an IV or a whole block is missing"));
            }
            Mode::Xts | Mode::Bytes | Mode::Bits => {}
            _ if !length.is_multiple_of(BLOCK) => {
                return Err(Failure::input("the data is not a whole number of blocks"));
            }
            _ => {}
        }
        self.run(&mut pass, length)?;
        Ok(length)
    }

    /// The first `length` bytes, which may be where the result goes.
    fn run(&mut self, pass: &mut Pass<'_>, length: usize) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        if !pass.out.overlaps(pass.data, length.max(pass.room)) {
            let data = pass.data;
            return self.step(data.of(length), pass.out(length)?);
        }
        self.joined(length, |cipher, room| {
            room.copy_from_slice(&pass.bytes()[..length]);
            cipher.step(room, pass.out(length)?)
        })
    }

    /// What `call` does with memory for so many bytes.
    fn joined(
        &mut self,
        length: usize,
        call: impl FnOnce(&mut Self, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut joined = std::mem::take(&mut self.joined);
        let done = call(self, joined.room(length));
        self.joined = joined;
        done
    }

    /// One call of the module, and what it means for the next one.
    fn step(&mut self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        if self.row.mode == Mode::Ctr {
            // After the largest counter comes zero, but not in one call of a token.
            let left = u128::from_be_bytes(self.iv).wrapping_neg();
            let left = usize::try_from(left).unwrap_or_default().saturating_mul(BLOCK);
            if (1..data.len()).contains(&left) {
                let ((now, later), (out, last)) = (data.split_at(left), out.split_at_mut(left));
                self.step(now, out)?;
                return self.step(later, last);
            }
        }
        let (mode, step) = (self.row.mode, BLOCK);
        let length = self.call(data, out)?;
        if length != out.len() {
            return Err(Failure::unsupported("the module keeps a part of the message back"));
        }
        match mode {
            Mode::Cbc | Mode::Cfb => {
                let sealed = if self.forward { &*out } else { data };
                self.iv[..step].copy_from_slice(&sealed[length - step..]);
            }
            // What is encrypted next are the last bytes of the ciphertext, however few have come.
            Mode::Bytes | Mode::Bits => {
                let sealed = if self.forward { &*out } else { data };
                let new = length.min(step);
                self.iv.copy_within(new.., 0);
                self.iv[step - new..].copy_from_slice(&sealed[length - new..]);
            }
            Mode::Ctr => {
                let counter = u128::from_be_bytes(self.iv);
                let blocks = u128::try_from(length.div_ceil(step)).unwrap_or_default();
                self.iv = counter.wrapping_add(blocks).to_be_bytes();
            }
            Mode::Ofb => {
                let last = out.iter().zip(data).skip(length - step);
                self.iv.iter_mut().zip(last).for_each(|(place, (out, byte))| *place = out ^ byte);
            }
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let mode = self.row.mode;
        let params = match mode {
            Mode::Ecb => Parameter::None,
            Mode::Wrap | Mode::Padded if !self.has_iv => Parameter::None,
            Mode::Wrap | Mode::Padded => Parameter::Bytes(&self.iv[..self.row.iv()]),
            Mode::Ctr => Parameter::Ctr { bits: 128, block: self.iv },
            _ => Parameter::Bytes(&self.iv),
        };
        let (mechanism, forward) =
            (Mechanism::with(self.row.mechanism, params), self.forward || mode == Mode::Ctr);
        keyed(&mut self.key)?.pass(forward, &mechanism, data, out)
    }

    /// A key, which comes out longer by its check, or shorter.
    fn wrap(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        let length = pass.length;
        if length == 0 {
            return Ok(0);
        }
        let pads = self.row.mode == Mode::Padded;
        let made = match (self.forward, pads) {
            (true, true) => length.next_multiple_of(HALF) + HALF,
            (true, false) => length + HALF,
            (false, _) => length.saturating_sub(HALF),
        };
        // Who asks for a length only may ask for one that is none; with padding one block is enough.
        let asks = pass.out.is_null();
        let least = if asks || pads { HALF } else { BLOCK };
        if !(self.forward && pads) && (!length.is_multiple_of(HALF) || length.min(made) < least) {
            return Err(Failure::input("no key of this length is wrapped"));
        }
        if asks {
            return Ok(made);
        }
        if pads && pass.room >= length {
            // libcrypto speaks of one block more than the input, where the padding may come to that: EVP_EncryptUpdate(3) tells programs to have room.
            pass.room = pass.room.max(made);
        }
        let mut done = 0;
        self.joined(length, |cipher, room| {
            room.copy_from_slice(pass.bytes());
            done = cipher.call(room, pass.out(made)?)?;
            Ok(())
        })?;
        if done == made || pads && !self.forward {
            return Ok(done);
        }
        Err(Failure::unsupported("the module wraps to another length"))
    }

    /// CFB, OFB and CTR: any number of bytes. Of the last block so much of the key stream is kept as no byte had.
    fn stream(&mut self, pass: &mut Pass<'_>) -> Result<usize> {
        let (mode, length, used, before) = (self.row.mode, pass.length, self.used, self.iv);
        let mut begun = if mode == Mode::Ctr { self.held } else { before };
        let mut first = [0; BLOCK];
        let head = if used == 0 { 0 } else { length.min(BLOCK - used) };
        for ((place, out), byte) in
            begun[used..].iter_mut().zip(&mut first).zip(pass.bytes()).take(head)
        {
            *out = *place ^ byte;
            if mode == Mode::Cfb {
                *place = if self.forward { *out } else { *byte };
            }
        }
        if mode != Mode::Ctr {
            self.iv = begun;
        }
        let rest = length - head;
        let whole = rest.next_multiple_of(BLOCK);
        let done = if used == 0 && length == whole {
            self.run(pass, length)
        } else {
            self.joined(2 * whole, |cipher, room| {
                let (room, made) = room.split_at_mut(whole);
                room[..rest].copy_from_slice(&pass.bytes()[head..]);
                room[rest..].fill(0);
                cipher.step(room, made)?;
                let (out, last) = pass.out(length)?.split_at_mut(head);
                out.copy_from_slice(&first[..head]);
                last.copy_from_slice(&made[..rest]);
                let kept = if mode == Mode::Ctr { &mut cipher.held } else { &mut cipher.iv };
                kept[BLOCK - (whole - rest)..].copy_from_slice(&made[rest..]);
                Ok(())
            })
        };
        match done {
            Ok(()) => self.used = (used + length) % BLOCK,
            // No byte of the key stream is used twice.
            Err(_) => self.iv = before,
        }
        done.map(|()| length)
    }

    /// A record of TLS before 1.3, in its place; what comes out is without padding, MAC and explicit IV.
    fn record(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        let (length, step) = (pass.length, BLOCK);
        if self.row.mode != Mode::Cbc || !pass.out.overlaps(pass.data, 1) {
            return Err(Failure::unsupported("records are of CBC, and stay in their place"));
        }
        let mut whole = length;
        if self.forward {
            let padding = step - length % step;
            whole += padding;
            let last = u8::try_from(padding - 1).unwrap_or_default();
            let room = &mut pass.out(whole)?[length..];
            room.fill(if self.version == tls::SSL3 { 0 } else { last });
            room[padding - 1] = last;
        }
        if whole % step != 0 {
            return Err(Failure::input("the record is not a whole number of blocks"));
        }
        let record = pass.out(whole)?;
        self.joined(whole, |cipher, room| {
            room.copy_from_slice(record);
            cipher.step(room, record)
        })?;
        if self.forward {
            return Ok(whole);
        }
        let skipped = if self.version > tls::TLS1 { step } else { 0 };
        let record =
            record.get_mut(skipped..).ok_or_else(|| Failure::input("the record is too short"))?;
        let bad = self.mac_length > 0;
        let mut random = [0; tls::MAC];
        if bad {
            self.provider.bulk().random(&self.provider, &mut random)?;
        }
        let opened = tls::opened(record, step, self.mac_length, self.version, &random);
        let (length, mac) = opened.ok_or_else(|| Failure::input("this is no record"))?;
        self.mac = mac;
        Ok(length)
    }
}
