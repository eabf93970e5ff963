// SPDX-License-Identifier: Apache-2.0
//! What a passphrase opens: PKCS #5 (RFC 8018) and OpenSSL's old PEM. The module does the cryptography, with keys of the
//! session.

use super::diversified::{Diversified, ENCRYPTION, Hash, IV, SHA1, diversified, wide};
use super::private::damaged;
use super::rc2;
use crate::encoding::der::{self, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE};
use crate::encoding::from_hex;
use crate::failure::{Failure, Result};
use crate::personality::material::{Purpose, Stretch, imported, stretched};
use crate::pin;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session};
use metaslot_memory::Secret;
use std::cell::{Cell, OnceCell};
use std::mem;

/// No file is worth more work than this, of all its keys together: ten seconds or so.
const MOST_ITERATIONS: u64 = 10_000_000;

/// What one iteration of PKCS #12 costs, in those of PBKDF2, which the module repeats by itself.
const COST_OF_PKCS12: u64 = 3;

/// A passphrase that is asked for when it is first needed, and the session that works with it.
#[derive(Debug)]
pub(crate) struct Opener<'a> {
    session: Option<&'a Session>,
    source: Option<&'a str>,
    pub(super) passphrase: OnceCell<Secret>,
    /// Iterations that may still be made.
    left: Cell<u64>,
}

/// A block cipher in CBC mode.
#[derive(Debug)]
pub(super) struct Cipher {
    identifier: &'static [u32],
    /// As `DEK-Info` of a PEM file calls it.
    name: &'static str,
    key_type: CK_KEY_TYPE,
    mechanism: CK_MECHANISM_TYPE,
    key: usize,
    block: usize,
}

const fn aes(identifier: &'static [u32], name: &'static str, key: usize) -> Cipher {
    let (key_type, mechanism) = (CKK_AES, CKM_AES_CBC_PAD);
    Cipher { identifier, name, key_type, mechanism, key, block: 16 }
}

/// Which no module has: the certificates of PKCS #12 files were under it for decades.
const fn rc2(identifier: &'static [u32], name: &'static str, key: usize) -> Cipher {
    let (key_type, mechanism) = (CKK_RC2, CKM_RC2_CBC_PAD);
    Cipher { identifier, name, key_type, mechanism, key, block: 8 }
}

const CIPHERS: &[Cipher] = &[
    aes(&[2, 16, 840, 1, 101, 3, 4, 1, 2], "AES-128-CBC", 16),
    aes(&[2, 16, 840, 1, 101, 3, 4, 1, 22], "AES-192-CBC", 24),
    aes(&[2, 16, 840, 1, 101, 3, 4, 1, 42], "AES-256-CBC", 32),
    Cipher {
        identifier: &[1, 2, 840, 113_549, 3, 7],
        name: "DES-EDE3-CBC",
        key_type: CKK_DES3,
        mechanism: CKM_DES3_CBC_PAD,
        key: 24,
        block: 8,
    },
    rc2(&[1, 2, 840, 113_549, 1, 12, 1, 5], "RC2-CBC", 16),
    rc2(&[1, 2, 840, 113_549, 1, 12, 1, 6], "RC2-40-CBC", 5),
];

const PBES2: &[u32] = &[1, 2, 840, 113_549, 1, 5, 13];
const PBKDF2: &[u32] = &[1, 2, 840, 113_549, 1, 5, 12];

/// The functions that PBKDF2 repeats.
const FUNCTIONS: &[(&[u32], CK_ULONG)] = &[
    (&[1, 2, 840, 113_549, 2, 7], CKP_PKCS5_PBKD2_HMAC_SHA1),
    (&[1, 2, 840, 113_549, 2, 8], CKP_PKCS5_PBKD2_HMAC_SHA224),
    (&[1, 2, 840, 113_549, 2, 9], CKP_PKCS5_PBKD2_HMAC_SHA256),
    (&[1, 2, 840, 113_549, 2, 10], CKP_PKCS5_PBKD2_HMAC_SHA384),
    (&[1, 2, 840, 113_549, 2, 11], CKP_PKCS5_PBKD2_HMAC_SHA512),
];

/// Schemes of PKCS #12 (RFC 7292, appendix C), by the cipher.
const PKCS12: &[(&[u32], &str)] = &[
    (&[1, 2, 840, 113_549, 1, 12, 1, 3], "DES-EDE3-CBC"),
    (&[1, 2, 840, 113_549, 1, 12, 1, 5], "RC2-CBC"),
    (&[1, 2, 840, 113_549, 1, 12, 1, 6], "RC2-40-CBC"),
];

/// What is known and not served.
const OTHERS: &[(&[u32], &str)] = &[
    (&[1, 2, 840, 113_549, 1, 12, 1, 1], "RC4"),
    (&[1, 2, 840, 113_549, 1, 12, 1, 2], "RC4"),
    (&[1, 2, 840, 113_549, 1, 12, 1, 4], "two-key triple DES"),
    (&[1, 2, 840, 113_549, 1, 5, 1], "DES"),
    (&[1, 2, 840, 113_549, 1, 5, 3], "DES"),
    (&[1, 2, 840, 113_549, 1, 5, 4], "RC2"),
    (&[1, 2, 840, 113_549, 1, 5, 6], "RC2"),
    (&[1, 2, 840, 113_549, 1, 5, 10], "DES"),
    (&[1, 2, 840, 113_549, 1, 5, 11], "RC2"),
    (&[1, 3, 6, 1, 4, 1, 11591, 4, 11], "a key of scrypt"),
    (&[1, 2, 840, 113_549, 3, 2], "RC2"),
    (&[1, 3, 14, 3, 2, 7], "DES"),
];

/// How a file says what it is encrypted by.
#[derive(Debug)]
struct Scheme<'a> {
    key: Key<'a>,
    cipher: &'static Cipher,
    iv: &'a [u8],
}

#[derive(Debug)]
enum Key<'a> {
    Pbkdf2(Pbkdf2<'a>),
    Pkcs12 { salt: &'a [u8], iterations: u64 },
}

/// `PBKDF2-params`
#[derive(Clone, Copy, Debug)]
pub(super) struct Pbkdf2<'a> {
    prf: CK_ULONG,
    salt: &'a [u8],
    iterations: u64,
    /// Of the key, in bytes.
    pub(super) length: Option<u64>,
}

impl<'a> Opener<'a> {
    pub(crate) const fn new(session: &'a Session, source: Option<&'a str>) -> Self {
        let left = Cell::new(MOST_ITERATIONS);
        Self { session: Some(session), source, passphrase: OnceCell::new(), left }
    }

    /// With a passphrase that is known, and no more than so much work; without a session nothing is opened by it.
    pub(super) fn known(session: Option<&'a Session>, passphrase: &[u8], work: u64) -> Self {
        let passphrase = OnceCell::from(Secret::copy_of(passphrase));
        Self { session, source: None, passphrase, left: Cell::new(work) }
    }

    pub(super) fn session(&self) -> Result<&'a Session> {
        self.session.ok_or_else(|| Failure::failed("there is no module"))
    }

    /// The passphrase.
    pub(super) fn passphrase(&self) -> Result<&Secret> {
        if let Some(known) = self.passphrase.get() {
            return Ok(known);
        }
        let passphrase =
            pin::passphrase(self.source, false).map_err(|failure| match self.source {
                Some(_) => failure,
                None => failure.hint("give the file's with --passphrase-source FILE"),
            })?;
        Ok(self.passphrase.get_or_init(|| passphrase))
    }

    /// What PKCS #12 makes of a passphrase, if that is not too much work.
    pub(super) fn diversified(
        &self,
        hash: &Hash,
        passphrase: &Secret,
        input: &Diversified<'_>,
    ) -> Result<Secret> {
        let blocks = input.length.div_ceil(hash.result) as u64;
        self.spend(input.iterations, blocks * COST_OF_PKCS12)?;
        diversified(self.session()?, hash, &wide(passphrase), input)
    }

    /// Counts so many iterations, each for so many blocks of what is made.
    pub(super) fn spend(&self, iterations: u64, blocks: u64) -> Result<()> {
        match self.left.get().checked_sub(iterations.saturating_mul(blocks)) {
            None => Err(Failure::failed("its passphrases are more work than is done for a file")),
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
        }
    }

    /// What an `AlgorithmIdentifier` says how to decrypt. Nothing says a wrong passphrase but what comes out.
    pub(super) fn decrypted(&self, algorithm: &[u8], data: &[u8]) -> Result<Secret> {
        let scheme = Scheme::read(algorithm)?;
        let (key, iv) = self.key(&scheme)?;
        let iv = if scheme.iv.is_empty() { iv.expose() } else { scheme.iv };
        self.cbc(scheme.cipher, &key, iv, data)
    }

    /// The key, and an IV where it is made like the key.
    fn key(&self, scheme: &Scheme<'_>) -> Result<(Secret, Secret)> {
        let (passphrase, cipher) = (self.passphrase()?, scheme.cipher);
        match scheme.key {
            Key::Pbkdf2(Pbkdf2 { length: Some(said), .. }) if said != cipher.key as u64 => {
                Err(cut())
            }
            Key::Pbkdf2(how) => {
                let key = self.stretched(passphrase, &how, cipher.key as u64)?;
                Ok((key, Secret::zeroed(0)))
            }
            Key::Pkcs12 { salt, iterations } => {
                let made = |id, length| {
                    let input = Diversified { id, salt, iterations, length };
                    self.diversified(&SHA1, passphrase, &input)
                };
                Ok((made(ENCRYPTION, cipher.key)?, made(IV, cipher.block)?))
            }
        }
    }

    /// A key of this length by PBKDF2.
    pub(super) fn stretched(
        &self,
        passphrase: &Secret,
        how: &Pbkdf2<'_>,
        length: u64,
    ) -> Result<Secret> {
        let Pbkdf2 { prf, salt, iterations, .. } = *how;
        let result = HMACS.iter().find(|row| row.0 == prf).map_or(1, |row| row.2 as u64);
        self.spend(iterations, length.div_ceil(result))?;
        let (how, session) = (Stretch { prf, salt, iterations, length }, self.session()?);
        match has(session, CKM_PKCS5_PBKD2)? {
            true => stretched(session, passphrase, &how),
            false => repeated(session, passphrase, &how),
        }
    }

    fn cbc(&self, cipher: &Cipher, key: &Secret, iv: &[u8], data: &[u8]) -> Result<Secret> {
        if cipher.key_type == CKK_RC2 {
            return rc2::decrypted(key, iv, data).ok_or_else(wrong_passphrase);
        }
        let mut key = Secret::copy_of(key.expose());
        if cipher.key_type == CKK_DES3 {
            key.expose_mut().iter_mut().for_each(|byte| *byte = with_parity(*byte));
        }
        let purpose = Purpose { key_type: cipher.key_type, usage: CKA_DECRYPT, lengths: &[] };
        let session = self.session()?;
        let handle = imported(session, &key, purpose)?;
        let mechanism = Mechanism::with(cipher.mechanism, Params::Bytes(iv));
        self.opened(handle, &mechanism, data)
    }

    /// What a key of the session's decrypts, which goes then.
    pub(super) fn opened(
        &self,
        handle: ObjectHandle,
        mechanism: &Mechanism<'_>,
        data: &[u8],
    ) -> Result<Secret> {
        let session = self.session()?;
        session.decrypt_init(mechanism, handle)?;
        let mut plain = Secret::zeroed(data.len());
        let opened = session.decrypt_into(data, plain.expose_mut());
        session.destroy(handle)?;
        match opened {
            Ok(length) => Ok(plain.truncated(length.min(data.len()))),
            Err(error) => match error.code {
                Error::ENCRYPTED_DATA_INVALID | Error::ENCRYPTED_DATA_LEN_RANGE => {
                    Err(wrong_passphrase())
                }
                _ => Err(error.into()),
            },
        }
    }

    /// A PEM file's content that OpenSSL encrypted before there was PKCS #8: `DEK-Info: AES-256-CBC,IV`.
    pub(super) fn traditional(&self, info: &str, data: &[u8]) -> Result<Secret> {
        let (name, iv) = info.split_once(',').unwrap_or((info, ""));
        let cipher = CIPHERS.iter().find(|cipher| cipher.name == name).ok_or_else(|| {
            Failure::failed(format!("it is encrypted by {name}, which is not supported"))
                .hint("'openssl pkey -in FILE -aes256' writes it in a form that is")
        })?;
        let iv = from_hex(iv).filter(|iv| iv.len() == cipher.block);
        let iv = iv.ok_or_else(|| Failure::failed(damaged("DEK-Info line")))?;
        let (session, passphrase) = (self.session()?, self.passphrase()?.expose());
        let mut key = Secret::zeroed(cipher.key.next_multiple_of(MD5_LENGTH));
        for at in (0..key.len()).step_by(MD5_LENGTH) {
            let (before, after) = key.expose_mut().split_at_mut(at);
            let previous = &before[at.saturating_sub(MD5_LENGTH)..];
            session.digest_init(&CKM_MD5.into())?;
            for part in [previous, passphrase, &iv[..8]] {
                session.digest_update(part)?;
            }
            let digest = Secret::taken(session.digest_final()?);
            after[..MD5_LENGTH].copy_from_slice(digest.expose());
        }
        self.cbc(cipher, &key.truncated(cipher.key), &iv, data)
    }
}

fn has(session: &Session, mechanism: CK_MECHANISM_TYPE) -> Result<bool> {
    let slot = session.info()?.slot;
    Ok(session.module().mechanisms(slot)?.contains(&mechanism))
}

/// HMAC as PBKDF2 and as a mechanism, and bytes of its results.
pub(super) type Hmac = (CK_ULONG, CK_MECHANISM_TYPE, usize);

const HMACS: &[Hmac] = &[
    (CKP_PKCS5_PBKD2_HMAC_SHA1, CKM_SHA_1_HMAC, 20),
    (CKP_PKCS5_PBKD2_HMAC_SHA224, CKM_SHA224_HMAC, 28),
    (CKP_PKCS5_PBKD2_HMAC_SHA256, CKM_SHA256_HMAC, 32),
    (CKP_PKCS5_PBKD2_HMAC_SHA384, CKM_SHA384_HMAC, 48),
    (CKP_PKCS5_PBKD2_HMAC_SHA512, CKM_SHA512_HMAC, 64),
];

/// PBKDF2 (RFC 8018, 5.2) of a module that has HMAC alone.
fn repeated(session: &Session, passphrase: &Secret, how: &Stretch<'_>) -> Result<Secret> {
    let row = HMACS.iter().find(|row| row.0 == how.prf);
    let (_, mechanism, result) = row.ok_or_else(cut)?;
    let purpose = Purpose { key_type: CKK_GENERIC_SECRET, usage: CKA_SIGN, lengths: &[] };
    // HMAC adds zeros itself, and some modules want keys as long as the result.
    let mut padded = Secret::zeroed(passphrase.len().max(*result));
    padded.expose_mut()[..passphrase.len()].copy_from_slice(passphrase.expose());
    let key = imported(session, &padded, purpose)?;
    let mechanism = Mechanism::new(*mechanism);
    let length = usize::try_from(how.length).unwrap_or(0);
    let mut made = Secret::zeroed(length.next_multiple_of(*result));
    let mut next = Secret::zeroed(*result);
    for (sum, number) in made.expose_mut().chunks_mut(*result).zip(1_u32..) {
        let mut last = Secret::copy_of(&[how.salt, &number.to_be_bytes()].concat());
        for _ in 0..how.iterations {
            session.sign_init(&mechanism, key)?;
            session.sign_into(last.expose(), next.expose_mut())?;
            sum.iter_mut().zip(next.expose()).for_each(|(sum, byte)| *sum ^= byte);
            match last.len() == next.len() {
                true => mem::swap(&mut last, &mut next),
                // The first one was longer, or shorter.
                false => last = Secret::copy_of(next.expose()),
            }
        }
    }
    session.destroy(key)?;
    Ok(made.truncated(length))
}

const MD5_LENGTH: usize = 16;

/// With an odd number of ones.
fn with_parity(byte: u8) -> u8 {
    let seven = byte & 0xfe;
    seven | u8::from(seven.count_ones().is_multiple_of(2))
}

/// That nothing came out as it should.
pub(super) fn wrong_passphrase() -> Failure {
    Failure::pin("the passphrase is wrong, or the file was changed")
}

fn cut() -> Failure {
    Failure::failed(damaged("description of how it is encrypted"))
}

impl<'a> Scheme<'a> {
    fn read(algorithm: &'a [u8]) -> Result<Self> {
        let (identifier, params) = identified(algorithm).ok_or_else(cut)?;
        if let Some((_, name)) = PKCS12.iter().find(|row| is(identifier, row.0)) {
            let (salt, iterations) = pkcs12_params(params).ok_or_else(cut)?;
            let cipher = CIPHERS.iter().find(|cipher| cipher.name == *name);
            let key = Key::Pkcs12 { salt, iterations: few(iterations)? };
            return Ok(Self { key, cipher: cipher.ok_or_else(cut)?, iv: &[] });
        }
        if !is(identifier, PBES2) {
            return Err(unsupported(identifier));
        }
        let mut both = der::take(&mut &*params, SEQUENCE).ok_or_else(cut)?;
        let derivation = der::next(&mut both).ok_or_else(cut)?.whole;
        let cipher = der::next(&mut both).ok_or_else(cut)?.whole;
        let key = Key::Pbkdf2(pbkdf2(derivation)?);
        let (identifier, params) = identified(cipher).ok_or_else(cut)?;
        let cipher = CIPHERS.iter().find(|cipher| is(identifier, cipher.identifier));
        let cipher = cipher.ok_or_else(|| unsupported(identifier))?;
        let iv = der::take(&mut &*params, OCTET_STRING).filter(|iv| iv.len() == cipher.block);
        Ok(Self { key, cipher, iv: iv.ok_or_else(cut)? })
    }
}

pub(super) fn pbkdf2(derivation: &[u8]) -> Result<Pbkdf2<'_>> {
    let (identifier, params) = identified(derivation).ok_or_else(cut)?;
    if !is(identifier, PBKDF2) {
        return Err(unsupported(identifier));
    }
    let mut params = der::take(&mut &*params, SEQUENCE).ok_or_else(cut)?;
    let salt = der::take(&mut params, OCTET_STRING).ok_or_else(cut)?;
    let iterations = count(&mut params).ok_or_else(cut)?;
    // The length of the key, which the cipher says, too.
    let length = count(&mut params);
    let function = der::next(&mut params).map_or(&[][..], |element| element.whole);
    let prf = match function {
        [] => Some(CKP_PKCS5_PBKD2_HMAC_SHA1),
        named => hmac(named).map(|row| row.0),
    };
    let prf =
        prf.ok_or_else(|| Failure::failed("the hash function of its passphrase is not supported"))?;
    Ok(Pbkdf2 { prf, salt, iterations: few(iterations)?, length })
}

/// An `AlgorithmIdentifier` of HMAC.
pub(super) fn hmac(algorithm: &[u8]) -> Option<&'static Hmac> {
    let (identifier, params) = identified(algorithm)?;
    let row = FUNCTIONS.iter().find(|row| is(identifier, row.0) && is_nothing(params))?;
    HMACS.iter().find(|hmac| hmac.0 == row.1)
}

pub(super) fn few(iterations: u64) -> Result<u64> {
    match iterations {
        0 => Err(cut()),
        1..=MOST_ITERATIONS => Ok(iterations),
        more => Err(Failure::failed(format!(
            "its passphrase takes {more} iterations, and no more than {MOST_ITERATIONS} are made for a file"
        ))),
    }
}

/// An algorithm that is not served, by its name where it has one.
fn unsupported(identifier: &[u8]) -> Failure {
    let name = OTHERS.iter().find(|row| is(identifier, row.0)).map(|row| row.1);
    let name = name.unwrap_or("an unknown algorithm");
    Failure::failed(format!("it is encrypted by {name}, which is not supported")).hint(
        "OpenSSL reads it: 'openssl pkey -in FILE -aes256', and 'openssl pkcs12 -legacy -in FILE -nodes' of a PKCS #12 file, \
         write what is",
    )
}

pub(super) fn is(identifier: &[u8], arcs: &[u32]) -> bool {
    identifier == der::identifier(arcs)
}

/// Whether the parameters of an algorithm are none: absent, or NULL.
pub(super) fn is_nothing(params: &[u8]) -> bool {
    matches!(params, [] | [5, 0])
}

/// The identifier of an `AlgorithmIdentifier` as a whole element, and its parameters.
pub(super) fn identified(algorithm: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut content = der::take(&mut &*algorithm, SEQUENCE)?;
    let identifier = der::next(&mut content).filter(|it| it.tag == OBJECT_IDENTIFIER)?;
    Some((identifier.whole, content))
}

/// A positive number of at most eight bytes.
pub(super) fn count(der: &mut &[u8]) -> Option<u64> {
    let integer = der::take(der, INTEGER)?;
    let is_small = integer.len() <= 8 && integer.first().is_some_and(|byte| byte & 0x80 == 0);
    is_small.then(|| integer.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// `pkcs-12PbeParams`
fn pkcs12_params(params: &[u8]) -> Option<(&[u8], u64)> {
    let mut params = der::take(&mut &*params, SEQUENCE)?;
    Some((der::take(&mut params, OCTET_STRING)?, count(&mut params)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_is_odd_and_changes_no_other_bit() {
        for byte in 0..=u8::MAX {
            assert_eq!(with_parity(byte).count_ones() % 2, 1);
            assert_eq!(with_parity(byte) & 0xfe, byte & 0xfe);
        }
    }

    #[test]
    fn every_cipher_has_one_identifier() {
        let all = CIPHERS.iter().map(|row| row.identifier).chain(OTHERS.iter().map(|row| row.0));
        let all: Vec<_> = all.chain([PBES2, PBKDF2, PKCS12[0].0]).map(der::identifier).collect();
        assert!(all.iter().enumerate().all(|(at, one)| !all[..at].contains(one)));
    }
}
