// SPDX-License-Identifier: Apache-2.0
//! OpenSSH's private keys (its PROTOCOL.key), plain or under a passphrase.

use super::passphrase::{Opener, wrong_passphrase};
use super::private::{self, Pair, damaged};
use crate::encoding::{der, significant};
use crate::failure::{Failure, Result};
use crate::key::{ED25519_OID, Family, Kind};
use crate::personality::material::{Purpose, imported};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Template};
use metaslot_memory::Secret;

const MAGIC: &[u8] = b"openssh-key-v1\0";

/// What one round costs, in iterations of PBKDF2.
const COST_OF_ROUND: u64 = 10_000;

/// A cipher by its name: bytes of the key and of the IV, and the mode.
struct Cipher(&'static str, usize, usize, CK_MECHANISM_TYPE);

const CIPHERS: &[Cipher] = &[
    Cipher("aes256-ctr", 32, BLOCK, CKM_AES_CTR),
    Cipher("aes192-ctr", 24, BLOCK, CKM_AES_CTR),
    Cipher("aes128-ctr", 16, BLOCK, CKM_AES_CTR),
    Cipher("aes256-cbc", 32, BLOCK, CKM_AES_CBC),
    Cipher("aes192-cbc", 24, BLOCK, CKM_AES_CBC),
    Cipher("aes128-cbc", 16, BLOCK, CKM_AES_CBC),
    Cipher("aes256-gcm@openssh.com", 32, 12, CKM_AES_GCM),
    Cipher("aes128-gcm@openssh.com", 16, 12, CKM_AES_GCM),
];

const BLOCK: usize = 16;
const TAG: usize = 16;

fn cut() -> Failure {
    Failure::failed(damaged("OpenSSH key"))
}

/// A key that is written in another form by OpenSSH itself.
fn unsupported(what: &str) -> Failure {
    Failure::failed(format!("{what} is not supported"))
        .hint("'ssh-keygen -p -m PKCS8 -f COPY' rewrites a copy of the key in a form that is")
}

/// Takes a length of four bytes and so many bytes.
fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (string, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(string)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_be_bytes(*number))
}

/// The one key of a file.
pub(super) fn read(opener: &Opener<'_>, bytes: &[u8]) -> Result<Pair> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(cut)?;
    let mut next = || string(&mut rest).ok_or_else(cut);
    let (cipher, kdf, options) = (next()?, next()?, next()?);
    match number(&mut rest).ok_or_else(cut)? {
        0 => return Err(Failure::failed("there is no key in it")),
        1 => {}
        _ => return Err(unsupported("a file of several OpenSSH keys")),
    }
    string(&mut rest).ok_or_else(cut)?;
    let sealed = string(&mut rest).ok_or_else(cut)?;
    let data = (sealed, rest);
    if (cipher, kdf) == (b"none", b"none") {
        return parsed(sealed).map_err(|damage| damage.unwrap_or_else(cut));
    }
    let opened = decrypted(opener, (cipher, kdf, options), data)?;
    // What says that the passphrase is wrong is that it makes no sense.
    parsed(opened.expose()).map_err(|damage| damage.unwrap_or_else(wrong_passphrase))
}

fn decrypted(
    opener: &Opener<'_>,
    (cipher, kdf, mut options): (&[u8], &[u8], &[u8]),
    (sealed, tag): (&[u8], &[u8]),
) -> Result<Secret> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let known = CIPHERS.iter().find(|row| row.0.as_bytes() == cipher);
    let Cipher(_, key, iv, mechanism) =
        known.ok_or_else(|| unsupported(&format!("an OpenSSH key under {}", text(cipher))))?;
    if kdf != b"bcrypt" {
        return Err(unsupported(&format!("an OpenSSH key under a passphrase by {}", text(kdf))));
    }
    let salt = string(&mut options).ok_or_else(cut)?;
    let rounds = number(&mut options).filter(|rounds| *rounds > 0).ok_or_else(cut)?;
    opener.spend(rounds.into(), COST_OF_ROUND)?;
    let tagged = if *mechanism == CKM_AES_GCM { TAG } else { 0 };
    if !sealed.len().is_multiple_of(BLOCK) || sealed.is_empty() || tag.len() != tagged {
        return Err(cut());
    }
    let (session, mut made) = (opener.session()?, Secret::zeroed(key + iv));
    bcrypt_pbkdf::bcrypt_pbkdf(opener.passphrase()?.expose(), salt, rounds, made.expose_mut())
        .map_err(|_| cut())?;
    let (key, iv) = made.expose().split_at(*key);
    let purpose = Purpose { key_type: CKK_AES, usage: CKA_DECRYPT, lengths: &[] };
    let handle = imported(session, &Secret::copy_of(key), purpose)?;
    let params = match *mechanism {
        CKM_AES_CTR => Params::Ctr { bits: 128, block: iv.try_into().map_err(|_| cut())? },
        CKM_AES_GCM => Params::Gcm { iv, aad: &[], tag_bits: 8 * TAG as CK_ULONG },
        _ => Params::Bytes(iv),
    };
    opener.opened(handle, &Mechanism::with(*mechanism, params), &[sealed, tag].concat())
}

/// What is inside; `Err(None)` says that it is no key at all.
type Parsed = std::result::Result<Pair, Option<Failure>>;

fn parsed(plain: &[u8]) -> Parsed {
    let mut rest = plain;
    let (one, two) = (number(&mut rest).ok_or(None)?, number(&mut rest).ok_or(None)?);
    if one != two {
        return Err(None);
    }
    let kind = string(&mut rest).ok_or(None)?;
    let pair = key(kind, &mut rest)?;
    let name = string(&mut rest).ok_or(None)?;
    // Padding counts: 1, 2, 3, …
    if rest.len() > 255 || !rest.iter().copied().eq((1..=u8::MAX).take(rest.len())) {
        return Err(None);
    }
    let name = Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty());
    Ok(Pair { name, ..pair })
}

fn key(kind: &[u8], rest: &mut &[u8]) -> Parsed {
    match kind {
        b"ssh-rsa" => rsa(rest).ok_or(None),
        b"ssh-ed25519" => ed25519(rest).ok_or(None),
        b"ecdsa-sha2-nistp256" | b"ecdsa-sha2-nistp384" | b"ecdsa-sha2-nistp521" => {
            ecdsa(kind, rest).ok_or(None)
        }
        other => {
            let name = String::from_utf8_lossy(other);
            Err(Some(match name.starts_with("sk-") {
                true => Failure::failed(format!(
                    "{name}: the key is in a security key, and not in this file"
                )),
                false => {
                    Failure::failed(format!("OpenSSH keys of the type {name} are not supported"))
                }
            }))
        }
    }
}

fn rsa(rest: &mut &[u8]) -> Option<Pair> {
    // The module computes the exponents of the primes; the file has none.
    const ORDER: [CK_ATTRIBUTE_TYPE; 6] = [
        CKA_MODULUS,
        CKA_PUBLIC_EXPONENT,
        CKA_PRIVATE_EXPONENT,
        CKA_COEFFICIENT,
        CKA_PRIME_1,
        CKA_PRIME_2,
    ];
    let mut values = Template::new();
    for attribute in ORDER {
        values = values.bytes(attribute, significant(string(rest)?));
    }
    Some(private::rsa(values))
}

fn ed25519(rest: &mut &[u8]) -> Option<Pair> {
    let public = string(rest).filter(|public| public.len() == 32)?;
    let both = string(rest).filter(|both| both.len() == 64)?;
    let (seed, again) = both.split_at(32);
    let info = der::edwards_public_key(ED25519_OID, public);
    let pair = private::modern(Family::Edwards, CKK_EC_EDWARDS, ED25519_OID, seed, Some(info));
    (public == again).then_some(pair)
}

fn ecdsa(kind: &[u8], rest: &mut &[u8]) -> Option<Pair> {
    let curve = string(rest)?;
    let name = curve.strip_prefix(b"nist").filter(|_| kind.ends_with(curve))?;
    let named: Kind = format!("ec:{}", str::from_utf8(name).ok()?).parse().ok()?;
    let params = named.params()?;
    let (point, value) = (string(rest)?, string(rest)?);
    let info = der::ec_public_key(&params, point);
    Some(private::ec(&params, significant(value), Some(info)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key without a passphrase, with so much padding.
    fn sample(padding: u8) -> Vec<u8> {
        let string = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).expect("it is short").to_be_bytes();
            [&length, bytes].concat()
        };
        let key = [
            &[7; 8],
            &*string(b"ssh-ed25519"),
            &string(&[2; 32]),
            &string(&[[1; 32], [2; 32]].concat()),
            &string(b"me"),
            &(1..=padding).collect::<Vec<u8>>(),
        ];
        let none = [string(b"none"), string(b"none"), string(b"")].concat();
        [MAGIC, &none, &[0, 0, 0, 1], &string(b""), &string(&key.concat())].concat()
    }

    #[test]
    fn padding_counts_to_255_at_most() {
        let opener = Opener::known(None, b"", 0);
        for padding in [0, 1, 7, 254, 255] {
            let pair = read(&opener, &sample(padding)).expect("a key");
            assert_eq!(pair.name.as_deref(), Some("me"));
        }
        let mut wrong = sample(7);
        *wrong.last_mut().expect("it has padding") = 6;
        assert!(read(&opener, &wrong).is_err());
    }
}
