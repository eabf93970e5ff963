// SPDX-License-Identifier: Apache-2.0
//! Message authentication codes: HMAC, and CMAC and GMAC by AES. A message is kept, so that the token does it in one call and contexts can be
//! copied; a long one goes to a session as it comes.

use super::Work;
use super::cipher::{self, Mode};
use super::digest;
use super::key::{Hidden, Key};
use super::sessions::{Held, Whose as _};
use crate::abi::{Answer, Given, Params};
use crate::failure::{Failure, Result};
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params as Parameter};
use std::sync::Arc;

/// A message that is longer is not kept.
const KEPT: usize = 64 * 1024;

/// Short keys of HMAC are filled up with zeros, which change nothing: a token may want some length.
const LEAST: usize = 32;

/// What fails, in words.
const WHAT: &str = "make a MAC";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Hmac,
    Cmac,
    Gmac,
}

/// A message that is being authenticated.
#[derive(Debug)]
pub(crate) struct Mac {
    provider: Arc<Provider>,
    kind: Kind,
    digest: Option<&'static digest::Row>,
    cipher: Option<&'static cipher::Row>,
    key: Option<Key>,
    iv: Vec<u8>,
    message: Hidden,
    running: Option<Held>,
    /// How long a record of TLS is with its padding, the MAC of which is taken from it: zero where it is none.
    record: usize,
}

impl Work for Mac {
    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }
}

impl Mac {
    pub(crate) fn new(provider: Arc<Provider>, kind: Kind) -> Self {
        let (message, iv) = Default::default();
        let (digest, cipher, key, running) = Default::default();
        Self { provider, kind, digest, cipher, key, iv, message, running, record: 0 }
    }

    pub(crate) fn copy(&self) -> Result<Self> {
        if self.running.is_some() {
            return Err(Failure::unsupported("a long message is not copied in its middle"));
        }
        Ok(Self {
            provider: Arc::clone(&self.provider),
            key: self.key.clone(),
            iv: self.iv.clone(),
            message: self.message.clone(),
            running: None,
            ..*self
        })
    }

    pub(crate) fn set(&mut self, params: &Params) -> Result<()> {
        let text = |name| params.find(name).and_then(Given::text);
        if let Some(name) = text(c"digest")
            && self.kind == Kind::Hmac
        {
            self.digest = Some(digest::Row::named(name)?);
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

    fn key(&mut self, key: &[u8]) -> Result<()> {
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
        if self.key.as_ref().is_none_or(|old| !old.is(&padded)) {
            self.key = Some(Key::new(&self.provider, (form, &[CKA_SIGN]), &padded));
        }
        Ok(())
    }

    /// A new message, with another key if there is one.
    pub(crate) fn begin(&mut self, key: Option<&[u8]>, params: &Params) -> Result<()> {
        self.set(params)?;
        self.message.clear();
        self.running = None;
        match key {
            Some(key) => self.key(key),
            None => Ok(()),
        }
    }

    pub(crate) fn answer(&self, name: &[u8]) -> Option<Answer<'_>> {
        let number = match name {
            b"size" => self.length()?,
            b"block-size" => self.digest.map_or(cipher::BLOCK, |digest| digest.block),
            _ => return None,
        };
        Some(Answer::Number(number.try_into().unwrap_or_default()))
    }

    fn length(&self) -> Option<usize> {
        if self.kind == Kind::Hmac { Some(self.digest?.length) } else { Some(cipher::BLOCK) }
    }

    fn mechanism(&self) -> Result<Mechanism<'_>> {
        Ok(match self.kind {
            Kind::Hmac => {
                let digest = self.digest;
                let digest = digest.ok_or_else(|| Failure::input("there is no hash function"))?;
                Mechanism::new(digest.hmac)
            }
            Kind::Cmac => Mechanism::new(CKM_AES_CMAC),
            Kind::Gmac => Mechanism::with(CKM_AES_GMAC, Parameter::Bytes(&self.iv)),
        })
    }

    fn handle(&mut self) -> Result<ObjectHandle> {
        self.key.as_mut().ok_or_else(|| Failure::input("there is no key"))?.handle()
    }

    pub(crate) fn update(&mut self, part: &[u8]) -> Result<()> {
        if let Some(held) = &self.running {
            return held.call(&self.provider, WHAT, |session| session.sign_update(part));
        }
        self.message.push(part);
        // GMAC is made of a whole message by some modules.
        if self.message.len() <= KEPT || self.record > 0 || self.kind == Kind::Gmac {
            return Ok(());
        }
        let key = self.handle()?;
        let mechanism = self.mechanism()?;
        let held = self.provider.bulk().session(&self.provider)?;
        held.call(&self.provider, WHAT, |session| {
            session.sign_init(&mechanism, key)?;
            session.sign_update(&self.message)
        })?;
        self.message.clear();
        self.running = Some(held);
        Ok(())
    }

    /// The MAC; how long it is.
    pub(crate) fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let length = self.length().ok_or_else(|| Failure::input("there is no hash function"))?;
        let room = out.get_mut(..length);
        let room = room.ok_or_else(|| Failure::input("there is too little room for the MAC"))?;
        let key = self.handle()?;
        if let Some(held) = self.running.take() {
            held.call(&self.provider, WHAT, |session| session.sign_final_into(room))?;
            held.back();
            return Ok(length);
        }
        let mechanism = self.mechanism()?;
        self.provider.bulk().with(&self.provider, WHAT, |session| {
            session.sign_init(&mechanism, key)?;
            session.sign_into(&self.message, room)
        })?;
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
