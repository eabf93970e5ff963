// SPDX-License-Identifier: Apache-2.0
//! Version 1 of the format of encrypted files, the original's: read only. Nothing in it is authenticated.

use super::algorithm::Algorithm;
use super::material::{KeyArg, Purpose, Stretch, any_session, fitting, imported, stretched};
use crate::app::App;
use crate::command::payload::Payload;
use crate::failure::{Failure, Result};
use metaslot_ck::{self as ck, CK_KEY_TYPE, ObjectHandle};
use metaslot_client::{Mechanism, Params, Session};
use metaslot_memory::Secret;

pub(super) const VERSION: u32 = 1;

const SALT: usize = 16;

/// The original wrote 1000.
const MOST: u32 = 10_000_000;

/// What an algorithm's files and keys look like.
#[derive(Debug)]
struct Shape {
    key_type: CK_KEY_TYPE,
    iv: usize,
    /// Bytes of a key that is made from a passphrase.
    length: u64,
    /// Bytes of a key in a file.
    lengths: &'static [usize],
    /// What is in a key file is treated as a passphrase: the key stream would be the same for every file.
    stretches_files: bool,
}

impl Shape {
    fn of(algorithm: &Algorithm) -> Self {
        let (key_type, iv, length, lengths): (_, _, _, &[usize]) = match algorithm.name {
            "arcfour" => (ck::CKK_RC4, 0, 16, &[]),
            "des" => (ck::CKK_DES3, 8, 8, &[8]),
            "3des" => (ck::CKK_DES3, 8, 24, &[24]),
            _ => (ck::CKK_AES, 16, 16, &[16, 24, 32]),
        };
        Self { key_type, iv, length, lengths, stretches_files: key_type == ck::CKK_RC4 }
    }
}

/// The rest of the header, after the version.
#[derive(Debug)]
pub(super) struct Header {
    shape: Shape,
    iterations: u32,
    rest: Vec<u8>,
}

impl Header {
    pub(super) fn read(payload: &mut Payload, algorithm: &Algorithm) -> Result<Self> {
        let shape = Shape::of(algorithm);
        let mut iterations = [0; 4];
        let mut rest = vec![0; shape.iv + SALT];
        if payload.fill(&mut iterations)? < 4 || payload.fill(&mut rest)? < rest.len() {
            return Err(Failure::failed("the file was cut within its header"));
        }
        Ok(Self { shape, iterations: u32::from_be_bytes(iterations), rest })
    }

    pub(super) const fn purpose(&self) -> Purpose {
        let Shape { key_type, lengths, .. } = self.shape;
        Purpose { key_type, usage: ck::CKA_DECRYPT, lengths }
    }

    /// A session, and the key in it.
    pub(super) fn key(
        &self,
        app: &App,
        key: &KeyArg,
        algorithm: &Algorithm,
    ) -> Result<(Session, ObjectHandle)> {
        let purpose = self.purpose();
        if key.is_in_token() {
            if algorithm.name == "des" {
                return Err(Failure::failed("no token has keys for single DES"));
            }
            return key.open(app, purpose, &self.stretch()?, false);
        }
        let session = any_session(app)?;
        let value = match key.file() {
            Some(path) if !self.shape.stretches_files => fitting(path, purpose)?,
            Some(path) => stretched(&session, &super::material::read(path)?, &self.stretch()?)?,
            None => stretched(&session, &key.passphrase(false)?, &self.stretch()?)?,
        };
        let value = if purpose.key_type == ck::CKK_DES3 { three_parts(&value) } else { value };
        let key = imported(&session, &value, purpose)?;
        Ok((session, key))
    }

    /// Decrypts the rest of the file.
    pub(super) fn decrypt(
        &self,
        algorithm: &Algorithm,
        (session, key): (&Session, ObjectHandle),
        payload: &mut Payload,
        mut each: impl FnMut(&[u8], usize) -> Result<()>,
    ) -> Result<()> {
        let params = match self.shape.iv {
            0 => Params::None,
            length => Params::Bytes(&self.rest[..length]),
        };
        let wrong = |failure: metaslot_client::Error| -> Failure {
            let wrong_end = failure.code == ck::Error::ENCRYPTED_DATA_INVALID
                || failure.code == ck::Error::ENCRYPTED_DATA_LEN_RANGE;
            let failure = Failure::from(failure);
            match wrong_end {
                true => {
                    failure.saying("the key is not this file's, or the file was changed or cut")
                }
                false => failure,
            }
        };
        session.decrypt_init(&Mechanism::with(algorithm.mechanism, params), key)?;
        payload.pieces(super::version2::CHUNK, |piece, _| {
            let opened = session.decrypt_update(piece).map_err(wrong)?;
            each(Secret::taken(opened).expose(), piece.len())
        })?;
        each(Secret::taken(session.decrypt_final().map_err(wrong)?).expose(), 0)
    }

    fn stretch(&self) -> Result<Stretch<'_>> {
        match self.iterations {
            1..=MOST => Ok(Stretch {
                prf: ck::CKP_PKCS5_PBKD2_HMAC_SHA1,
                salt: &self.rest[self.shape.iv..],
                iterations: self.iterations.into(),
                length: self.shape.length,
            }),
            wanted => Err(Failure::failed(format!(
                "the file wants its passphrase hashed {wanted} times, which is not 1 to {MOST}"
            ))),
        }
    }
}

/// A key for triple DES: one for single DES is its three parts, which is the same cipher. Bits of parity are
/// not bits of the key, and tokens want them right.
fn three_parts(value: &Secret) -> Secret {
    let mut whole = Secret::zeroed(24);
    for (byte, from) in whole.expose_mut().iter_mut().zip(value.expose().iter().cycle()) {
        let odd = from.count_ones() & 1 == 1;
        *byte = if odd { *from } else { from ^ 1 };
    }
    whole
}
