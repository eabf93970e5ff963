// SPDX-License-Identifier: Apache-2.0
//! A message under any cipher.

use super::Work;
use super::aead::Aead;
use super::cipher::{Pass, Row};
use super::plain::Plain;
use crate::abi::{Answer, Params};
use crate::failure::Result;
use crate::provider::Provider;
use std::sync::Arc;

/// A message that is being encrypted or decrypted.
#[derive(Debug)]
pub(crate) enum Cipher {
    Plain(Box<Plain>),
    Aead(Box<Aead>),
}

impl Work for Cipher {
    fn provider(&self) -> &Arc<Provider> {
        match self {
            Self::Plain(cipher) => &cipher.provider,
            Self::Aead(cipher) => &cipher.provider,
        }
    }
}

impl Cipher {
    pub(crate) fn new(provider: Arc<Provider>, row: &'static Row) -> Self {
        match row.is_aead() {
            true => Self::Aead(Box::new(Aead::new(provider, row))),
            false => Self::Plain(Box::new(Plain::new(provider, row))),
        }
    }

    pub(crate) fn copy(&self) -> Result<Self> {
        Ok(match self {
            Self::Plain(cipher) => Self::Plain(cipher.clone()),
            Self::Aead(cipher) => Self::Aead(Box::new(cipher.copy()?)),
        })
    }

    /// A key and an IV, or one of them, or none: empty where there is none.
    pub(crate) fn begin(&mut self, forward: bool, key: &[u8], iv: &[u8]) -> Result<()> {
        match self {
            Self::Plain(cipher) => cipher.begin(forward, key, iv),
            Self::Aead(cipher) => cipher.begin(forward, key, iv),
        }
    }

    pub(crate) fn set(&mut self, params: &Params) -> Result<()> {
        match self {
            Self::Plain(cipher) => cipher.set(params),
            Self::Aead(cipher) => cipher.set(params),
        }
    }

    /// `room`: for how many bytes the answer has room.
    pub(crate) fn answer(&self, name: &[u8], room: usize) -> Option<Answer<'_>> {
        match self {
            Self::Plain(cipher) => cipher.answer(name),
            Self::Aead(cipher) => cipher.answer(name, room),
        }
    }

    /// A part of the message; how many bytes come out.
    pub(crate) fn update(&mut self, pass: Pass<'_>) -> Result<usize> {
        match self {
            Self::Plain(cipher) => cipher.update(pass),
            Self::Aead(cipher) => cipher.update(pass),
        }
    }

    /// Its end.
    pub(crate) fn finish(&mut self, pass: Pass<'_>) -> Result<usize> {
        match self {
            Self::Plain(cipher) => cipher.finish(pass),
            Self::Aead(cipher) => cipher.finish(),
        }
    }

    /// A whole message, or whole blocks: `EVP_Cipher`.
    pub(crate) fn whole(&mut self, pass: Pass<'_>) -> Result<usize> {
        match self {
            Self::Plain(cipher) => cipher.whole(pass),
            Self::Aead(cipher) if pass.data.is_null() => cipher.finish(),
            Self::Aead(cipher) => cipher.update(pass),
        }
    }
}
