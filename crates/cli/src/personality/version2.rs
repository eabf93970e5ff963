// SPDX-License-Identifier: Apache-2.0
//! Version 2 of the format of encrypted files (docs/commands/encrypt.md): a header with a key of the file's own,
//! sealed under the user's, and chunks that say by their nonces where they stand and which is the last.

use super::material::{Purpose, Stretch, imported};
use crate::failure::{Failure, Result};
use metaslot_ck::{self as ck, CK_ATTRIBUTE_TYPE, ObjectHandle};
use metaslot_client::{Mechanism, Params, Session};
use metaslot_memory::Secret;
use std::ops::Range;

pub(super) const VERSION: u32 = 2;

/// Bytes of the data in a chunk, and with the tag.
pub(super) const CHUNK: usize = 64 * 1024;
pub(super) const SEALED: usize = CHUNK + TAG;

/// Of the header.
pub(super) const LENGTH: usize = 84;

const TAG: usize = 16;
const FILE_KEY: usize = 32;

const ITERATIONS: Range<usize> = 4..8;
const SALT: Range<usize> = 8..24;
const NONCE: Range<usize> = 24..36;
const KEY: Range<usize> = 36..LENGTH;

/// How often a new passphrase is hashed, and how often a file may want it.
const COST: u32 = 600_000;
const MOST: u32 = 10_000_000;

/// What the user's key is for, and what the file's own is.
pub(super) const fn purpose(usage: CK_ATTRIBUTE_TYPE) -> Purpose {
    Purpose { key_type: ck::CKK_AES, usage, lengths: &[16, 24, 32] }
}

/// The first bytes of a file.
#[derive(Debug)]
pub(super) struct Header([u8; LENGTH]);

impl Header {
    /// That of a new file, without its key.
    pub(super) fn new(session: &Session, passphrase: bool) -> Result<Self> {
        let mut bytes = [0; LENGTH];
        session.random(&mut bytes[SALT.start..NONCE.end])?;
        bytes[..ITERATIONS.start].copy_from_slice(&VERSION.to_be_bytes());
        let cost = if passphrase { COST } else { 0 };
        bytes[ITERATIONS].copy_from_slice(&cost.to_be_bytes());
        Ok(Self(bytes))
    }

    /// That of a file that is there; the caller has seen that it is version 2.
    pub(super) fn read(bytes: [u8; LENGTH], passphrase: bool) -> Result<Self> {
        let header = Self(bytes);
        match (header.iterations(), passphrase) {
            (0, true) => {
                Err(Failure::failed("the file was encrypted with a key, not a passphrase")
                    .hint("give the key with -k FILE or -K LABEL"))
            }
            (1.., false) => Err(Failure::failed("the file was encrypted with a passphrase")
                .hint("leave out -k and -K")),
            (iterations, _) if iterations > MOST => Err(Failure::failed(format!(
                "the file wants its passphrase hashed {iterations} times, which is more than {MOST}"
            ))),
            _ => Ok(header),
        }
    }

    pub(super) const fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// How a passphrase becomes the user's key.
    pub(super) fn stretch(&self) -> Stretch<'_> {
        Stretch {
            prf: ck::CKP_PKCS5_PBKD2_HMAC_SHA256,
            salt: &self.0[SALT],
            iterations: self.iterations().into(),
            length: 32,
        }
    }

    /// Makes the file's key and seals it under `key`.
    pub(super) fn seal<'a>(
        &mut self,
        session: &'a Session,
        key: ObjectHandle,
    ) -> Result<Chunks<'a>> {
        let mut file_key = Secret::zeroed(FILE_KEY);
        session.random(file_key.expose_mut())?;
        let mut sealed = [0; FILE_KEY + TAG];
        session.encrypt_init(&self.mechanism(), key)?;
        let length = session.encrypt_into(file_key.expose(), &mut sealed)?;
        complete(length, sealed.len())?;
        self.0[KEY].copy_from_slice(&sealed);
        Chunks::new(session, &file_key, ck::CKA_ENCRYPT)
    }

    /// Opens the file's key with `key`.
    pub(super) fn open<'a>(&self, session: &'a Session, key: ObjectHandle) -> Result<Chunks<'a>> {
        // Some modules want room for the tag too.
        let mut file_key = Secret::zeroed(FILE_KEY + TAG);
        session.decrypt_init(&self.mechanism(), key)?;
        let opened = session.decrypt_into(&self.0[KEY], file_key.expose_mut());
        let length = opened.map_err(|error| {
            let what = if self.iterations() == 0 { "key" } else { "passphrase" };
            changed(error, &format!("the {what} is not this file's, or its header was changed"))
        })?;
        complete(length, FILE_KEY)?;
        Chunks::new(session, &file_key.truncated(FILE_KEY), ck::CKA_DECRYPT)
    }

    fn iterations(&self) -> u32 {
        let bytes = &self.0[ITERATIONS];
        bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    /// The nonce is authenticated as such; version, iterations and salt are besides.
    fn mechanism(&self) -> Mechanism<'_> {
        gcm(&self.0[NONCE], &self.0[..NONCE.start])
    }
}

/// The chunks of a file, in their order.
#[derive(Debug)]
pub(super) struct Chunks<'a> {
    session: &'a Session,
    key: ObjectHandle,
    number: u64,
    buffer: Secret,
}

impl<'a> Chunks<'a> {
    fn new(session: &'a Session, key: &Secret, usage: CK_ATTRIBUTE_TYPE) -> Result<Self> {
        let key = imported(session, key, purpose(usage))?;
        Ok(Self { session, key, number: 0, buffer: Secret::zeroed(SEALED) })
    }

    /// The next chunk, sealed.
    pub(super) fn seal(&mut self, data: &[u8], last: bool) -> Result<&[u8]> {
        let nonce = nonce(self.number, last)?;
        self.session.encrypt_init(&gcm(&nonce, &[]), self.key)?;
        let length = self.session.encrypt_into(data, self.buffer.expose_mut())?;
        complete(length, data.len() + TAG)?;
        self.number += 1;
        Ok(&self.buffer.expose()[..length])
    }

    /// The next chunk, opened.
    pub(super) fn open(&mut self, sealed: &[u8], last: bool) -> Result<&[u8]> {
        // Only an empty file has an empty chunk.
        let least = if self.number == 0 { TAG } else { TAG + 1 };
        if sealed.len() < least {
            return Err(Failure::failed(format!("the file was cut within chunk {}", self.number)));
        }
        let length = match self.opened(sealed, last)? {
            Ok(length) => length,
            Err(error) => return Err(changed(error, &self.what_is_wrong(sealed, last)?)),
        };
        complete(length, sealed.len() - TAG)?;
        self.number += 1;
        Ok(&self.buffer.expose()[..length])
    }

    fn opened(&mut self, sealed: &[u8], last: bool) -> Result<metaslot_client::Result<usize>> {
        let nonce = nonce(self.number, last)?;
        self.session.decrypt_init(&gcm(&nonce, &[]), self.key)?;
        Ok(self.session.decrypt_into(sealed, self.buffer.expose_mut()))
    }

    /// Whether the chunk would be right if the file went on, or ended here.
    fn what_is_wrong(&mut self, sealed: &[u8], last: bool) -> Result<String> {
        let number = self.number;
        Ok(match (self.opened(sealed, !last)?.is_ok(), last) {
            (true, true) => format!("the file was cut after chunk {number}"),
            (true, false) => format!("there is more after the file's last chunk, {number}"),
            (false, _) => format!("chunk {number} was changed or cut, or is not in its place"),
        })
    }
}

/// Every key has one file only, so that the place of the chunk is nonce enough.
fn nonce(number: u64, last: bool) -> Result<[u8; 12]> {
    let number = u32::try_from(number);
    let number = number.map_err(|_| Failure::failed("a file cannot be longer than 256 TiB"))?;
    let mut nonce = [0; 12];
    nonce[7..11].copy_from_slice(&number.to_be_bytes());
    nonce[11] = u8::from(last);
    Ok(nonce)
}

const fn gcm<'a>(iv: &'a [u8], aad: &'a [u8]) -> Mechanism<'a> {
    Mechanism::with(ck::CKM_AES_GCM, Params::Gcm { iv, aad, tag_bits: 8 * TAG as u64 })
}

/// The module's word for a tag that does not match, in ours; any other error as it is.
fn changed(error: metaslot_client::Error, words: &str) -> Failure {
    let about_data = [
        ck::Error::ENCRYPTED_DATA_INVALID,
        ck::Error::ENCRYPTED_DATA_LEN_RANGE,
        ck::Error::AEAD_DECRYPT_FAILED,
        // SoftHSM's.
        ck::Error::GENERAL_ERROR,
    ];
    let failure = Failure::from(error);
    if about_data.contains(&error.code) { failure.saying(words) } else { failure }
}

/// A module that says less than it must is not trusted with the rest.
fn complete(length: usize, expected: usize) -> Result<()> {
    if length == expected {
        return Ok(());
    }
    Err(Failure::failed(format!("the module returned {length} bytes, not {expected}")))
}
