// SPDX-License-Identifier: Apache-2.0
//! Message authentication codes: HMAC, and CMAC and GMAC by AES. A message is kept, so that the token does it in one call; of a long one as much
//! as is needed, so that contexts can be copied: HMAC's inner digest, and of CMAC the blocks that are not encrypted yet.

use super::cipher::{self, BLOCK, Mode};
use super::digest::{self, Digest};
use super::key::{Hidden, Key, keyed};
use super::sessions::Whose as _;
use super::{Owner, Work};
use crate::abi::{Answer, Given, Params};
use crate::failure::{Failure, Result};
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params as Parameter, Whole};
use std::sync::Arc;

/// A message that is longer is not kept.
const KEPT: usize = 64 * 1024;

/// Short keys of HMAC are filled up with zeros, which change nothing: a token may want some length.
const LEAST: usize = 32;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Hmac,
    Cmac,
    Gmac,
}

/// A message that is being authenticated.
#[derive(Debug)]
pub(crate) struct Mac {
    provider: Owner,
    kind: Kind,
    digest: Option<&'static digest::Row>,
    cipher: Option<&'static cipher::Row>,
    key: Option<Key>,
    iv: Vec<u8>,
    message: Hidden,
    /// What HMAC hashes of a long one.
    inner: Option<Digest>,
    /// How long a record of TLS is with its padding, the MAC of which is taken from it: zero where it is none.
    record: usize,
}

impl Work for Mac {
    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn set(&mut self, params: &Params) -> Result<()> {
        let text = |name| params.find(name).and_then(Given::text);
        if let Some(name) = text(c"digest")
            && self.kind == Kind::Hmac
        {
            self.digest = Some(digest::Row::named(name)?);
            self.restart();
        }
        if let Some(name) = text(c"cipher")
            && self.kind != Kind::Hmac
        {
            let mode = if self.kind == Kind::Cmac { Mode::Cbc } else { Mode::Gcm };
            let row = cipher::Row::named(name).filter(|row| row.mode == mode);
            let unknown = || Failure::unsupported(format!("there is no such MAC by {name}"));
            self.cipher = Some(row.ok_or_else(unknown)?);
        }
        if let Some(iv) = params.find(c"iv").and_then(Given::octets) {
            self.iv = iv.to_vec();
        }
        if let Some(length) = params.find(c"tls-data-size").and_then(Given::number) {
            self.record = usize::try_from(length).unwrap_or_default();
        }
        match params.find(c"key").and_then(Given::octets) {
            Some(key) => self.key(key),
            None => Ok(()),
        }
    }

    fn answer(&self, name: &[u8]) -> Option<Answer<'_>> {
        let number = match name {
            b"size" => self.length()?,
            b"block-size" => match self.kind {
                Kind::Hmac => self.digest?.block,
                Kind::Cmac => BLOCK,
                Kind::Gmac => return None,
            },
            _ => return None,
        };
        Some(Answer::size(number))
    }
}

impl Mac {
    pub(crate) fn new(provider: Owner, kind: Kind) -> Self {
        let (message, iv) = Default::default();
        let (digest, cipher, key, inner) = Default::default();
        Self { provider, kind, digest, cipher, key, iv, message, inner, record: 0 }
    }

    /// HMAC by this key.
    pub(crate) fn hmac(provider: Owner, digest: &'static digest::Row, key: &[u8]) -> Result<Self> {
        let mut mac = Self::new(provider, Kind::Hmac);
        mac.digest = Some(digest);
        mac.key(key)?;
        Ok(mac)
    }

    pub(crate) fn copy(&self) -> Result<Self> {
        Ok(Self {
            provider: self.provider,
            key: self.key.clone(),
            iv: self.iv.clone(),
            message: self.message.clone(),
            inner: self.inner.as_ref().map(Digest::copy).transpose()?,
            ..*self
        })
    }

    /// A new message.
    fn restart(&mut self) {
        self.message.clear();
        self.inner = None;
    }

    fn key(&mut self, key: &[u8]) -> Result<()> {
        self.restart();
        // Where this one is refused, nothing is authenticated by the one before.
        let mut kept = self.key.take();
        let mut padded = Hidden::default();
        let form = if self.kind == Kind::Hmac {
            padded.push(key);
            padded.push(&[0; LEAST][..LEAST.saturating_sub(key.len())]);
            CKK_GENERIC_SECRET
        } else {
            let row = self.cipher.ok_or_else(|| Failure::input("there is no cipher"))?;
            padded.push(row.checked(key)?);
            CKK_AES
        };
        Key::change(&mut kept, &self.provider, (form, &[CKA_SIGN]), &padded);
        self.key = kept;
        Ok(())
    }

    /// A new message, with another key if there is one.
    pub(crate) fn begin(&mut self, key: Option<&[u8]>, params: &Params) -> Result<()> {
        self.set(params)?;
        self.restart();
        match key {
            Some(key) => self.key(key),
            None => Ok(()),
        }
    }

    fn length(&self) -> Option<usize> {
        if self.kind == Kind::Hmac { Some(self.digest?.length) } else { Some(BLOCK) }
    }

    pub(crate) fn update(&mut self, part: &[u8]) -> Result<()> {
        part.chunks(KEPT).try_for_each(|part| {
            if let Some(inner) = &mut self.inner {
                return inner.update(part);
            }
            self.message.push(part);
            // GMAC is made of a whole message by some modules.
            match self.kind {
                _ if self.message.len() <= KEPT || self.record > 0 => Ok(()),
                Kind::Hmac => self.hash(),
                Kind::Cmac => self.fold(),
                Kind::Gmac => Ok(()),
            }
        })
    }

    /// Hashes what came so far of a long message (RFC 2104).
    fn hash(&mut self) -> Result<()> {
        // Where the MAC is refused, its parts are not made either.
        let mut room = [0; 64];
        self.once(&[], room.get_mut(..self.length().unwrap_or_default()).unwrap_or_default())?;
        let Some(digest) = self.digest else { return Ok(()) };
        let mut inner = Digest::new(self.provider, digest);
        inner.update(&self.padded(digest, 0x36)?)?;
        inner.update(&self.message)?;
        self.message.clear();
        self.inner = Some(inner);
        Ok(())
    }

    /// The key as a block.
    fn padded(&self, digest: &digest::Row, byte: u8) -> Result<Hidden> {
        let key = self.key.as_ref().map(Key::bytes).unwrap_or_default();
        let mut block = Hidden::default();
        let room = block.room(digest.block);
        match room.get_mut(..key.len()) {
            Some(room) => room.copy_from_slice(key),
            None => digest::once(&self.provider, digest, key, &mut room[..digest.length])?,
        }
        room.iter_mut().for_each(|place| *place ^= byte);
        Ok(block)
    }

    /// Encrypts the first blocks of a long message into the next one (SP 800-38B).
    fn fold(&mut self) -> Result<()> {
        let (Some(row), Some(key)) = (self.cipher, &self.key) else {
            return Err(Failure::input("there is no key"));
        };
        let mut key = Key::new(&self.provider, row.form(), key.bytes());
        let whole = self.message.len() / BLOCK * BLOCK - BLOCK;
        let (first, rest) = self.message.split_at(whole);
        let (mut sealed, mut rest) = (Hidden::default(), Hidden::of(rest));
        let sealed = sealed.room(whole);
        let mechanism = Mechanism::with(row.mechanism, Parameter::Bytes(&[0; BLOCK]));
        key.pass(true, &mechanism, first, sealed)?;
        let block = rest.room(BLOCK).iter_mut();
        block.zip(&sealed[whole - BLOCK..]).for_each(|(byte, other)| *byte ^= other);
        self.message = rest;
        Ok(())
    }

    /// The MAC of a whole message; `room` is as long as it.
    pub(crate) fn once(&mut self, message: &[u8], room: &mut [u8]) -> Result<()> {
        made((self.kind, self.digest, &self.iv), &mut self.key, message, room)
    }

    /// The MAC; how long it is.
    pub(crate) fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let length = self.length().ok_or_else(|| Failure::input("there is no hash function"))?;
        let room = out.get_mut(..length);
        let room = room.ok_or_else(|| Failure::input("there is too little room for the MAC"))?;
        if let (Some(mut inner), Some(digest)) = (self.inner.take(), self.digest) {
            let mut outer = self.padded(digest, 0x5c)?;
            inner.finish(room)?;
            outer.push(room);
            digest::once(&self.provider, digest, &outer, room)?;
            return Ok(length);
        }
        made((self.kind, self.digest, &self.iv), &mut self.key, &self.message, room)?;
        if self.record > 0 {
            self.even_out()?;
        }
        self.message.clear();
        if self.kind == Kind::Gmac {
            // Two tags under one IV give the key away.
            self.iv.clear();
        }
        Ok(length)
    }

    /// How long a record's data is must not show (Lucky Thirteen): what its padding takes away from the blocks that are hashed is hashed after it.
    fn even_out(&self) -> Result<()> {
        const HEADER: usize = 13;
        let Some(digest) = self.digest else { return Ok(()) };
        let end = digest.block / 8 + 1;
        let blocks = |length: usize| (length + end).div_ceil(digest.block);
        let more = blocks(HEADER + self.record).saturating_sub(blocks(self.message.len()));
        let mut room = [0; 64];
        let room = room.get_mut(..digest.length).unwrap_or_default();
        digest::once(&self.provider, digest, &vec![0; more * digest.block], room)
    }
}

/// The MAC of a whole message by a kind, its hash function and its IV; `room` is as long as it.
#[inline]
fn made(
    (kind, digest, iv): (Kind, Option<&'static digest::Row>, &[u8]),
    key: &mut Option<Key>,
    message: &[u8],
    room: &mut [u8],
) -> Result<()> {
    let mechanism = match kind {
        Kind::Hmac => {
            let digest = digest.ok_or_else(|| Failure::input("there is no hash function"))?;
            Mechanism::new(digest.hmac)
        }
        Kind::Cmac => Mechanism::new(CKM_AES_CMAC),
        Kind::Gmac => Mechanism::with(CKM_AES_GMAC, Parameter::Bytes(iv)),
    };
    let call = |provider: &Arc<Provider>, key| {
        provider.bulk().whole(provider, Whole::Sign(key), &mechanism, message, room)
    };
    keyed(key)?.again(call).map(drop)
}
