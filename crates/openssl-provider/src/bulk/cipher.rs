// SPDX-License-Identifier: Apache-2.0
//! Table: ciphers, as libcrypto names them; and what all of them are given.

use super::key::Form;
use super::names::is_named;
use crate::abi::{Given, Input, Output};
use crate::failure::{Failure, Result};
use metaslot_ck::*;
use std::ffi::CStr;

/// In bytes, of AES.
pub(crate) const BLOCK: usize = 16;

/// What keys are wrapped in.
pub(crate) const HALF: usize = 8;

/// How blocks make a message: libcrypto's number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub(crate) enum Mode {
    /// ChaCha20-Poly1305
    Stream = 0,
    Ecb = 1,
    Cbc = 2,
    Cfb = 3,
    Ofb = 4,
    Ctr = 5,
    Gcm = 6,
    Ccm = 7,
    Xts = 0x1_0001,
    /// Of keys (RFC 3394), which comes whole.
    Wrap = 0x1_0002,
    /// CFB by bytes and by bits, which libcrypto counts as CFB.
    Bytes = 0x2_0000,
    Bits = 0x2_0001,
    /// Of anything (RFC 5649).
    Padded = 0x2_0002,
}

/// A cipher.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) names: &'static CStr,
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) mode: Mode,
    /// In bytes.
    pub(crate) key: usize,
    pub(crate) key_type: CK_KEY_TYPE,
}

const fn aes(names: &'static CStr, mode: Mode, key: usize) -> Row {
    let (mechanism, key_type) = match mode {
        Mode::Ecb => (CKM_AES_ECB, CKK_AES),
        Mode::Cbc => (CKM_AES_CBC, CKK_AES),
        Mode::Cfb => (CKM_AES_CFB128, CKK_AES),
        Mode::Bytes => (CKM_AES_CFB8, CKK_AES),
        Mode::Bits => (CKM_AES_CFB1, CKK_AES),
        Mode::Ofb => (CKM_AES_OFB, CKK_AES),
        Mode::Ctr => (CKM_AES_CTR, CKK_AES),
        Mode::Gcm => (CKM_AES_GCM, CKK_AES),
        Mode::Ccm => (CKM_AES_CCM, CKK_AES),
        Mode::Xts => (CKM_AES_XTS, CKK_AES_XTS),
        Mode::Wrap => (CKM_AES_KEY_WRAP, CKK_AES),
        Mode::Padded => (CKM_AES_KEY_WRAP_KWP, CKK_AES),
        Mode::Stream => (CKM_CHACHA20_POLY1305, CKK_CHACHA20),
    };
    Row { names, mechanism, mode, key, key_type }
}

#[rustfmt::skip]
pub(crate) static ROWS: [Row; 36] = [
    aes(c"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", Mode::Gcm, 16),
    aes(c"AES-192-GCM:id-aes192-GCM:2.16.840.1.101.3.4.1.26", Mode::Gcm, 24),
    aes(c"AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46", Mode::Gcm, 32),
    aes(c"AES-128-CCM:id-aes128-CCM:2.16.840.1.101.3.4.1.7", Mode::Ccm, 16),
    aes(c"AES-192-CCM:id-aes192-CCM:2.16.840.1.101.3.4.1.27", Mode::Ccm, 24),
    aes(c"AES-256-CCM:id-aes256-CCM:2.16.840.1.101.3.4.1.47", Mode::Ccm, 32),
    aes(c"ChaCha20-Poly1305", Mode::Stream, 32),
    aes(c"AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2", Mode::Cbc, 16),
    aes(c"AES-192-CBC:AES192:2.16.840.1.101.3.4.1.22", Mode::Cbc, 24),
    aes(c"AES-256-CBC:AES256:2.16.840.1.101.3.4.1.42", Mode::Cbc, 32),
    aes(c"AES-128-CTR", Mode::Ctr, 16),
    aes(c"AES-192-CTR", Mode::Ctr, 24),
    aes(c"AES-256-CTR", Mode::Ctr, 32),
    aes(c"AES-128-ECB:2.16.840.1.101.3.4.1.1", Mode::Ecb, 16),
    aes(c"AES-192-ECB:2.16.840.1.101.3.4.1.21", Mode::Ecb, 24),
    aes(c"AES-256-ECB:2.16.840.1.101.3.4.1.41", Mode::Ecb, 32),
    aes(c"AES-128-CFB:2.16.840.1.101.3.4.1.4", Mode::Cfb, 16),
    aes(c"AES-192-CFB:2.16.840.1.101.3.4.1.24", Mode::Cfb, 24),
    aes(c"AES-256-CFB:2.16.840.1.101.3.4.1.44", Mode::Cfb, 32),
    aes(c"AES-128-CFB8", Mode::Bytes, 16),
    aes(c"AES-192-CFB8", Mode::Bytes, 24),
    aes(c"AES-256-CFB8", Mode::Bytes, 32),
    aes(c"AES-128-CFB1", Mode::Bits, 16),
    aes(c"AES-192-CFB1", Mode::Bits, 24),
    aes(c"AES-256-CFB1", Mode::Bits, 32),
    aes(c"AES-128-OFB:2.16.840.1.101.3.4.1.3", Mode::Ofb, 16),
    aes(c"AES-192-OFB:2.16.840.1.101.3.4.1.23", Mode::Ofb, 24),
    aes(c"AES-256-OFB:2.16.840.1.101.3.4.1.43", Mode::Ofb, 32),
    aes(c"AES-128-XTS:1.3.111.2.1619.0.1.1", Mode::Xts, 32),
    aes(c"AES-256-XTS:1.3.111.2.1619.0.1.2", Mode::Xts, 64),
    aes(c"AES-128-WRAP:id-aes128-wrap:AES128-WRAP:2.16.840.1.101.3.4.1.5", Mode::Wrap, 16),
    aes(c"AES-192-WRAP:id-aes192-wrap:AES192-WRAP:2.16.840.1.101.3.4.1.25", Mode::Wrap, 24),
    aes(c"AES-256-WRAP:id-aes256-wrap:AES256-WRAP:2.16.840.1.101.3.4.1.45", Mode::Wrap, 32),
    aes(c"AES-128-WRAP-PAD:id-aes128-wrap-pad:AES128-WRAP-PAD:2.16.840.1.101.3.4.1.8", Mode::Padded, 16),
    aes(c"AES-192-WRAP-PAD:id-aes192-wrap-pad:AES192-WRAP-PAD:2.16.840.1.101.3.4.1.28", Mode::Padded, 24),
    aes(c"AES-256-WRAP-PAD:id-aes256-wrap-pad:AES256-WRAP-PAD:2.16.840.1.101.3.4.1.48", Mode::Padded, 32),
];

impl Row {
    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| is_named(row.names, name))
    }

    /// What libcrypto calls its block: 1 where any length is taken.
    pub(crate) const fn block(&self) -> usize {
        match self.mode {
            Mode::Ecb | Mode::Cbc => BLOCK,
            Mode::Wrap | Mode::Padded => HALF,
            _ => 1,
        }
    }

    /// Length of an IV where none is set.
    pub(crate) const fn iv(&self) -> usize {
        match self.mode {
            Mode::Ecb => 0,
            Mode::Gcm | Mode::Ccm | Mode::Stream => 12,
            Mode::Wrap => HALF,
            Mode::Padded => HALF / 2,
            _ => BLOCK,
        }
    }

    pub(crate) const fn is_aead(&self) -> bool {
        matches!(self.mode, Mode::Gcm | Mode::Ccm | Mode::Stream)
    }

    pub(crate) const fn wraps(&self) -> bool {
        matches!(self.mode, Mode::Wrap | Mode::Padded)
    }

    pub(crate) const fn form(&self) -> Form {
        (self.key_type, &[CKA_ENCRYPT, CKA_DECRYPT])
    }

    /// What it says of itself by libcrypto's name.
    pub(crate) fn answer(&self, name: &[u8]) -> Option<usize> {
        Some(match name {
            b"mode" if matches!(self.mode, Mode::Bytes | Mode::Bits) => Mode::Cfb as usize,
            b"mode" if self.wraps() => Mode::Wrap as usize,
            b"mode" => self.mode as usize,
            b"keylen" => self.key,
            b"ivlen" => self.iv(),
            b"blocksize" => self.block(),
            b"aead" => self.is_aead().into(),
            b"custom-iv" => (self.is_aead() || self.wraps() || self.mode == Mode::Xts).into(),
            b"cts" | b"tls-multi" | b"has-randkey" | b"encrypt-then-mac" => 0,
            _ => return None,
        })
    }

    /// The length of the key is set to what it is.
    ///
    /// # Errors
    /// To another one.
    pub(crate) fn keeps(&self, length: Given<'_>) -> Result<()> {
        let same =
            length.number().and_then(|length| usize::try_from(length).ok()) == Some(self.key);
        same.then_some(()).ok_or_else(|| Failure::input("the length of the key is another one"))
    }

    /// A key of the right length.
    ///
    /// # Errors
    /// It is of another one.
    pub(crate) fn checked<'a>(&self, key: &'a [u8]) -> Result<&'a [u8]> {
        if key.len() != self.key {
            return Err(Failure::input(format!(
                "a key of {} bytes is none of this cipher",
                key.len()
            )));
        }
        let (one, other) = key.split_at(key.len() / 2);
        if self.mode == Mode::Xts && one == other {
            return Err(Failure::input("both halves of the key are the same"));
        }
        Ok(key)
    }
}

/// What is put in, and where what comes out goes.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    pub(crate) data: &'a Input,
    pub(crate) length: usize,
    pub(crate) out: &'a mut Output,
    pub(crate) room: usize,
}

impl Pass<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.data.of(self.length)
    }

    /// Room for so many bytes; what was put in is not looked at any more, for it may be there.
    pub(crate) fn out(&mut self, length: usize) -> Result<&mut [u8]> {
        let out = self.out.of(self.room).and_then(|out| out.get_mut(..length));
        out.ok_or_else(|| Failure::input("there is too little room for the result"))
    }
}
