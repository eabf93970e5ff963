// SPDX-License-Identifier: Apache-2.0
//! Ciphers that authenticate: AES-GCM, AES-CCM, ChaCha20-Poly1305.
//!
//! libcrypto does not say which part of a message is the last, and takes what a part becomes before it has the tag. The first part is done as if it
//! were the only one, in one call, which it mostly is. When a second one comes the message is begun again, in a session that takes parts.
//! A module that decrypts in parts gives nothing out before it has the tag: there, the key stream is what zeros are encrypted to, and the
//! tag that of what came out, encrypted again.

use super::cipher::{Mode, Pass, Row};
use super::key::{Hidden, Key, keyed, same};
use super::sessions::{Held, Whose as _};
use crate::abi::{Answer, Params};
use crate::failure::{Failure, Result};
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params as Parameter};
use std::sync::Arc;

/// The longest tag.
const TAG: usize = 16;

/// Longest part that is done at once as if it were all.
const WHOLE: usize = 20 * 1024;

/// Zeros that are encrypted at once.
static ZEROS: [u8; 512] = [0; 512];

/// Bytes that a TLS record's header is authenticated as, and of its IV that are sent (RFC 5288 §3, RFC 6655 §3).
const HEADER: usize = 13;
const EXPLICIT: usize = 8;

/// A message under such a cipher.
#[derive(Debug)]
pub(crate) struct Aead {
    pub(crate) provider: Arc<Provider>,
    row: &'static Row,
    key: Option<Key>,
    forward: bool,
    iv: Vec<u8>,
    iv_is: Iv,
    /// Where a part of the IV is fixed and GCM counts the others: whether this one was given out.
    counts: Option<bool>,
    /// The tag that was made or that is expected, and how long it is; zero where that is not known.
    tag: [u8; TAG],
    tag_length: usize,
    /// Whether this is the tag of a whole message.
    is_made: bool,
    aad: Vec<u8>,
    /// Of CCM, which must know it first.
    length: Option<usize>,
    /// The header of the TLS record that comes next.
    header: Option<[u8; HEADER]>,
    state: State,
    /// What the first part became, with its tag; or what a call has to have at one place.
    joined: Hidden,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Iv {
    None,
    /// For the next message.
    Set,
    /// The message has begun, or has ended.
    Used,
}

#[derive(Debug)]
enum State {
    /// No data yet.
    Begun,
    /// One part, as if it were all: of so many bytes.
    Whole(usize),
    /// In parts: what encrypts, and where it decrypts, what makes the key stream.
    Parts(Held, Option<Held>),
    Ended,
}

impl Aead {
    pub(crate) fn new(provider: Arc<Provider>, row: &'static Row) -> Self {
        Self {
            provider,
            row,
            key: None,
            forward: true,
            // What is usual with CCM is not what a message begins with.
            iv: vec![0; if row.mode == Mode::Ccm { 7 } else { row.iv() }],
            iv_is: Iv::None,
            counts: None,
            tag: [0; TAG],
            tag_length: if row.mode == Mode::Ccm { 12 } else { 0 },
            is_made: false,
            aad: Vec::new(),
            length: None,
            header: None,
            state: State::Ended,
            joined: Hidden::default(),
        }
    }

    pub(crate) fn copy(&self) -> Result<Self> {
        let state = match &self.state {
            State::Begun => State::Begun,
            State::Whole(length) => State::Whole(*length),
            State::Ended => State::Ended,
            State::Parts(..) => {
                return Err(Failure::unsupported("a long message is not copied in its middle"));
            }
        };
        Ok(Self {
            provider: Arc::clone(&self.provider),
            key: self.key.clone(),
            iv: self.iv.clone(),
            aad: self.aad.clone(),
            joined: self.joined.clone(),
            state,
            ..*self
        })
    }

    pub(crate) fn begin(&mut self, forward: bool, key: &[u8], iv: &[u8]) -> Result<()> {
        let mut is_other = self.forward != forward;
        self.forward = forward;
        if !iv.is_empty() {
            let longest = if self.row.mode == Mode::Gcm { 128 } else { self.iv.len() };
            if iv.len() > longest || self.row.mode != Mode::Gcm && iv.len() != longest {
                return Err(Failure::input("this length of an IV is not supported"));
            }
            self.iv.clear();
            self.iv.extend_from_slice(iv);
            self.start(Iv::Set);
        }
        if !key.is_empty() {
            let key = self.row.checked(key)?;
            is_other |= Key::change(&mut self.key, &self.provider, self.row.form(), key);
        }
        if is_other && !matches!(self.state, State::Begun) {
            // What has begun otherwise does not go on.
            self.state = State::Ended;
        }
        Ok(())
    }

    /// A new message.
    fn start(&mut self, iv: Iv) {
        (self.iv_is, self.is_made) = (iv, false);
        self.counts = self.counts.map(|_| false);
        self.aad.clear();
        (self.length, self.header) = (None, None);
        self.state = State::Begun;
    }

    pub(crate) fn set(&mut self, params: &Params) -> Result<()> {
        for (name, given) in params.each() {
            let octets = given.octets().unwrap_or_default();
            match name {
                b"ivlen" => self.set_length(given.number())?,
                b"keylen" => self.row.keeps(given)?,
                b"tag" => self.set_tag(given.size(), octets)?,
                b"tlsivfixed" => {
                    let fixed = given.octets_of(self.iv.len());
                    self.set_fixed(fixed.unwrap_or_default())?;
                }
                b"tlsivinv" => {
                    let right = self.counts.is_some() && !self.forward;
                    let place = self.iv.len().checked_sub(octets.len()).filter(|_| right);
                    let place = place.ok_or_else(|| Failure::input("this is no part of an IV"))?;
                    self.iv[place..].copy_from_slice(octets);
                    self.start(Iv::Set);
                }
                b"tlsaad" => self.set_header(octets)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn set_length(&mut self, length: Option<i64>) -> Result<()> {
        let range = match self.row.mode {
            Mode::Gcm => 1..=128,
            Mode::Ccm => 7..=13,
            _ => 12..=12,
        };
        let length = length.and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| range.contains(length));
        let length =
            length.ok_or_else(|| Failure::input("this length of an IV is not supported"))?;
        if length != self.iv.len() {
            self.iv = vec![0; length];
            if self.iv_is != Iv::None {
                (self.iv_is, self.state) = (Iv::Used, State::Ended);
            }
            // Nothing is fixed in it any more.
            self.counts = None;
        }
        Ok(())
    }

    fn set_tag(&mut self, length: usize, tag: &[u8]) -> Result<()> {
        let ccm = self.row.mode == Mode::Ccm;
        let right =
            length <= TAG && length > 0 && (!ccm || length.is_multiple_of(2) && length >= 4);
        if !right || !tag.is_empty() && self.forward {
            return Err(Failure::input("this is no tag of this cipher"));
        }
        let place = &mut self.tag[..tag.len()];
        if !ccm && matches!(self.state, State::Whole(_)) && !same(place, tag) {
            // The message had the one that was set before.
            self.state = State::Ended;
        }
        place.copy_from_slice(tag);
        self.tag_length = length;
        Ok(())
    }

    /// The part of the IV that a TLS connection keeps; the other one is random at first, and counted.
    fn set_fixed(&mut self, fixed: &[u8]) -> Result<()> {
        let rest = self.iv.len().checked_sub(fixed.len());
        let counts = self.row.mode == Mode::Gcm;
        // There is a number to count, whose beginning is in all of it.
        let right = |rest: &usize| fixed.len() >= if *rest == 0 { EXPLICIT } else { 4 };
        let rest = rest.filter(|rest| right(rest) && (*rest == 0 || *rest >= EXPLICIT));
        let rest = rest.ok_or_else(|| Failure::input("this is no fixed part of an IV"))?;
        self.iv[..fixed.len()].copy_from_slice(fixed);
        if rest > 0 && self.forward && counts {
            let bytes = &mut self.iv[fixed.len()..];
            self.provider.bulk().random(&self.provider, bytes)?;
        }
        self.counts = counts.then_some(false);
        self.start(Iv::Set);
        Ok(())
    }

    /// The header of a record: with the length of what it carries in the clear.
    fn set_header(&mut self, header: &[u8]) -> Result<()> {
        let wrong = || Failure::input("this is no header of a record");
        let mut header: [u8; HEADER] = header.try_into().map_err(|_| wrong())?;
        let mut length = u16::from_be_bytes([header[11], header[12]]);
        let more = self.explicit() + if self.forward { 0 } else { self.tag_room() };
        length =
            u16::try_from(more).ok().and_then(|more| length.checked_sub(more)).ok_or_else(wrong)?;
        header[11..].copy_from_slice(&length.to_be_bytes());
        self.header = Some(header);
        Ok(())
    }

    /// Bytes of the IV that a record carries.
    const fn explicit(&self) -> usize {
        if matches!(self.row.mode, Mode::Stream) { 0 } else { EXPLICIT }
    }

    fn tag_room(&self) -> usize {
        if self.row.mode == Mode::Ccm { self.tag_length } else { TAG }
    }

    /// The last bytes of the IV for a message, which the next one has another of.
    pub(crate) fn counted(&mut self, length: usize) -> Option<Vec<u8>> {
        // A shorter one has no room for a count.
        let given = self.counts.filter(|_| self.iv.len() >= EXPLICIT)?;
        next(&mut self.iv, given);
        let length = if length == 0 { self.iv.len() } else { length.min(self.iv.len()) };
        let last = self.iv[self.iv.len() - length..].to_vec();
        self.start(Iv::Set);
        self.counts = Some(true);
        Some(last)
    }

    pub(crate) fn answer(&self, name: &[u8], room: usize) -> Option<Answer<'_>> {
        let number = |number| Some(Answer::size(number));
        match name {
            b"ivlen" => number(self.iv.len()),
            b"taglen" => number(if self.tag_length == 0 { TAG } else { self.tag_length }),
            b"tlsaadpad" => number(self.tag_room()),
            b"iv" | b"updated-iv" if self.iv_is != Iv::None => Some(Answer::Octets(&self.iv)),
            b"tag" if self.forward && self.is_made => {
                let ccm = self.row.mode == Mode::Ccm;
                let tag = self.tag.get(..room).filter(|_| !ccm || room == self.tag_length);
                tag.map(Answer::Octets)
            }
            _ => self.row.answer(name).and_then(number),
        }
    }

    pub(crate) fn update(&mut self, pass: Pass<'_>) -> Result<usize> {
        if self.header.is_some() {
            return self.record(pass);
        }
        let ccm = self.row.mode == Mode::Ccm;
        if !ccm && pass.length == 0 {
            return Ok(0);
        }
        self.begun()?;
        if pass.out.is_null() {
            if ccm && pass.data.is_null() {
                self.length = Some(pass.length);
                return Ok(pass.length);
            }
            if !matches!(self.state, State::Begun) || ccm && self.length.is_none() {
                return Err(Failure::input(
                    "what is authenticated only comes first, and by CCM after the length",
                ));
            }
            self.aad.extend_from_slice(pass.bytes());
            return Ok(pass.length);
        }
        if ccm && self.length.is_some_and(|length| length != pass.length) {
            return Err(Failure::input("the data is not as long as was said"));
        }
        self.iv_is = Iv::Used;
        match (&self.state, self.forward) {
            (State::Begun, true) if ccm || pass.length <= WHOLE => self.seal_first(pass),
            (State::Begun, false) if ccm => self.open_first(pass),
            (State::Begun, false) if self.tag_length == TAG && pass.length <= WHOLE => {
                // The tag may be that of a longer message.
                let Pass { data, length, out, room } = pass;
                let opened = self.open_first(Pass { data, length, out: &mut *out, room });
                let mut pass = Pass { data, length, out, room };
                if opened.is_ok() {
                    return opened;
                }
                if pass.out.overlaps(data, length) {
                    // Where it was there may be anything now.
                    pass.out(length)?.copy_from_slice(&self.joined[..length]);
                }
                self.part(pass)
            }
            _ => self.part(pass),
        }
    }

    /// There is a message. One by GCM that is encrypted and has no IV gets one, which the program asks for.
    #[inline]
    fn begun(&mut self) -> Result<()> {
        keyed(&mut self.key)?;
        if self.iv_is == Iv::None {
            self.make_iv()?;
        }
        match self.state {
            State::Ended => Err(Failure::input("each message has an IV of its own")),
            _ => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_iv(&mut self) -> Result<()> {
        if self.row.mode != Mode::Gcm || !self.forward || self.iv.len() < self.row.iv() {
            return Err(Failure::input("there is no IV"));
        }
        self.provider.bulk().random(&self.provider, &mut self.iv)?;
        self.start(Iv::Set);
        Ok(())
    }

    /// The first part of a message that is encrypted.
    fn seal_first(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        self.seal(pass.bytes())?;
        let length = pass.length;
        pass.out(length)?.copy_from_slice(&self.joined[..length]);
        Ok(length)
    }

    /// Encrypts all of a message into `joined`.
    fn seal(&mut self, data: &[u8]) -> Result<()> {
        let length = data.len();
        let tag = self.tag_room();
        let mechanism = mechanism(self.row, &self.iv, &self.aad, length, tag);
        let joined = self.joined.room(length + tag);
        keyed(&mut self.key)?.pass(true, &mechanism, data, joined)?;
        self.tag[..tag].copy_from_slice(&joined[length..]);
        self.tag_length = tag;
        self.is_made = self.row.mode == Mode::Ccm;
        self.state = State::Whole(length);
        Ok(())
    }

    /// The first part of a message that is decrypted, whose tag is known; it fails where that is not its tag.
    fn open_first(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        let (length, tag) = (pass.length, self.tag_length);
        if tag == 0 {
            return Err(Failure::input("there is no tag"));
        }
        let mechanism = mechanism(self.row, &self.iv, &self.aad, length, tag);
        let joined = self.joined.room(length + tag);
        joined[..length].copy_from_slice(pass.bytes());
        joined[length..].copy_from_slice(&self.tag[..tag]);
        let out = pass.out(length)?;
        keyed(&mut self.key)?.pass(false, &mechanism, joined, out)?;
        self.state = State::Whole(length);
        Ok(length)
    }

    /// A part of a message that has several.
    fn part(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        if self.row.mode == Mode::Ccm {
            return Err(Failure::input("all of the data comes at once"));
        }
        self.divide()?;
        let State::Parts(sealing, stream) = &self.state else {
            return Err(Failure::input("the tag is that of what came before"));
        };
        let (provider, length) = (&self.provider, pass.length);
        let room = self.joined.room(length + TAG);
        let Some(stream) = stream else {
            sealed(provider, sealing, pass.bytes(), room)?;
            pass.out(length)?.copy_from_slice(&room[..length]);
            return Ok(length);
        };
        let mut done = 0;
        while done < length {
            let now = ZEROS.len().min(length - done);
            sealed(provider, stream, &ZEROS[..now], &mut room[done..])?;
            done += now;
        }
        for (byte, other) in room.iter_mut().zip(pass.bytes()) {
            *byte ^= other;
        }
        let out = pass.out(length)?;
        out.copy_from_slice(&room[..length]);
        sealed(provider, sealing, out, room)?;
        Ok(length)
    }

    /// Goes over to parts.
    fn divide(&mut self) -> Result<()> {
        let first = match self.state {
            State::Parts(..) => return Ok(()),
            State::Whole(length) if self.forward => length,
            State::Begun => 0,
            _ => return Err(Failure::input("the tag is that of what came before")),
        };
        let mechanism = mechanism(self.row, &self.iv, &self.aad, first, TAG);
        let (joined, forward) = (&self.joined, self.forward);
        let (sealing, stream) = keyed(&mut self.key)?.again(|provider, key| {
            let begun = || {
                let held = provider.bulk().session(provider)?;
                held.call(provider, "encrypt", |session| session.encrypt_init(&mechanism, key))?;
                Ok(held)
            };
            let sealing = begun()?;
            let stream = if forward { None } else { Some(begun()?) };
            if first > 0 {
                // What it was is in what it became.
                let mut plain = Hidden::default();
                let plain = plain.room(first);
                provider.bulk().once(provider, "encrypt", |session| {
                    session.decrypt_init(&mechanism, key)?;
                    session.decrypt_into(&joined[..first + TAG], plain)
                })?;
                let mut again = vec![0; first + TAG];
                sealed(provider, &sealing, plain, &mut again)?;
            }
            Ok((sealing, stream))
        })?;
        self.state = State::Parts(sealing, stream);
        Ok(())
    }

    /// The end of a message: of what is encrypted there is a tag then, and what was decrypted has the right one.
    pub(crate) fn finish(&mut self) -> Result<usize> {
        self.begun()?;
        self.iv_is = Iv::Used;
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Begun if self.forward => {
                self.seal(&[])?;
                self.state = State::Ended;
            }
            State::Begun => self.authentic(&[])?,
            State::Parts(sealing, _) => {
                let mut tag = [0; 2 * TAG];
                let length = sealing.call(&self.provider, "encrypt", |session| {
                    session.encrypt_final_into(&mut tag)
                })?;
                sealing.back();
                if length != TAG {
                    return Err(Failure::unsupported(
                        "the module keeps a part of the message back",
                    ));
                }
                if self.forward {
                    self.tag.copy_from_slice(&tag[..TAG]);
                    self.tag_length = TAG;
                } else {
                    self.same(&tag)?;
                }
            }
            State::Whole(_) | State::Ended => {}
        }
        self.is_made = self.forward;
        if !self.forward && self.row.mode != Mode::Ccm {
            // The next message has another one.
            self.tag_length = 0;
        }
        Ok(0)
    }

    /// Whether a message without data has the expected tag.
    fn authentic(&mut self, data: &[u8]) -> Result<()> {
        let (expected, length) = (self.tag, self.tag_length);
        self.seal(data)?;
        let made = std::mem::replace(&mut self.tag, expected);
        (self.tag_length, self.state) = (length, State::Ended);
        self.same(&made)
    }

    /// Whether the tag that was made is the expected one, in the same time for any.
    fn same(&self, made: &[u8]) -> Result<()> {
        let expected = &self.tag[..self.tag_length];
        if expected.is_empty() || !same(expected, &made[..expected.len()]) {
            return Err(Failure::input("the tag is not that of the message"));
        }
        Ok(())
    }

    /// A TLS record, in its place: the part of the IV that it carries, data, and the tag.
    fn record(&mut self, mut pass: Pass<'_>) -> Result<usize> {
        let (explicit, tag, whole) = (self.explicit(), self.tag_room(), pass.length);
        let header = self.header.take().unwrap_or_default();
        let in_place = pass.out.overlaps(pass.data, 1);
        let length =
            whole.checked_sub(explicit + tag).filter(|_| in_place && self.iv_is != Iv::None);
        let length = length.ok_or_else(|| Failure::input("this is no record"))?;
        let plain = usize::from(u16::from_be_bytes([header[11], header[12]]));
        if plain != length {
            return Err(Failure::input("the record is not as long as its header says"));
        }
        let forward = self.forward;
        let row = self.row;
        let whole = pass.out(whole)?;
        let mut iv = [0; 12];
        iv.copy_from_slice(
            self.iv.get(..12).ok_or_else(|| Failure::input("this is no IV of TLS"))?,
        );
        match row.mode {
            Mode::Stream => {
                let sequence = iv[4..].iter_mut().zip(&header);
                sequence.for_each(|(byte, other)| *byte ^= other);
            }
            Mode::Gcm if forward => {
                next(&mut iv, self.counts == Some(true));
                self.iv[4..].copy_from_slice(&iv[4..]);
                self.counts = Some(true);
                whole[..EXPLICIT].copy_from_slice(&iv[4..]);
            }
            // RFC 6655 §3: libssl sends the number of the record.
            Mode::Ccm if forward => {
                whole[..EXPLICIT].copy_from_slice(&header[..EXPLICIT]);
                iv[4..].copy_from_slice(&header[..EXPLICIT]);
            }
            _ => iv[4..].copy_from_slice(&whole[..EXPLICIT]),
        }
        let mechanism = mechanism(row, &iv, &header, length, tag);
        let joined = self.joined.room(length + tag);
        let whole = &mut whole[explicit..];
        self.state = State::Ended;
        let key = keyed(&mut self.key)?;
        if forward {
            key.pass(true, &mechanism, &whole[..length], joined)?;
            whole.copy_from_slice(joined);
            return Ok(explicit + length + tag);
        }
        let opened = key.pass(false, &mechanism, whole, &mut joined[..length]);
        match opened {
            Ok(_) => whole[..length].copy_from_slice(&joined[..length]),
            Err(_) => whole.fill(0),
        }
        opened.map(|_| length)
    }
}

/// The IV of the next message, where this one was given out: its last eight bytes are a number.
fn next(iv: &mut [u8], given: bool) {
    if given && let Some(last) = iv.last_chunk_mut::<EXPLICIT>() {
        *last = u64::from_be_bytes(*last).wrapping_add(1).to_be_bytes();
    }
}

/// A part that is encrypted in a session: what comes out is as long.
fn sealed(provider: &Provider, held: &Held, data: &[u8], room: &mut [u8]) -> Result<()> {
    match held.call(provider, "encrypt", |session| session.encrypt_update_into(data, room))? {
        length if length == data.len() => Ok(()),
        _ => Err(Failure::unsupported("the module keeps a part of the message back")),
    }
}

fn mechanism<'a>(
    row: &Row,
    iv: &'a [u8],
    aad: &'a [u8],
    length: usize,
    tag: usize,
) -> Mechanism<'a> {
    let params = match row.mode {
        Mode::Gcm => Parameter::Gcm { iv, aad, tag_bits: 8 * tag as CK_ULONG },
        Mode::Ccm => Parameter::Ccm {
            data_length: length as CK_ULONG,
            nonce: iv,
            aad,
            mac_length: tag as CK_ULONG,
        },
        _ => Parameter::ChaCha20Poly1305 { nonce: iv, aad },
    };
    Mechanism::with(row.mechanism, params)
}
