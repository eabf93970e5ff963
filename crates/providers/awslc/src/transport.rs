// SPDX-License-Identifier: Apache-2.0
//! Keys of any length wrapped under a new AES key (RFC 5649), which goes along: encrypted by RSA OAEP
//! (`CKM_RSA_AES_KEY_WRAP`, PKCS#11 3.2 §6.1), or agreed on with a new key pair of which the point goes along
//! (`CKM_ECDH_AES_KEY_WRAP` and its kind, §6.3).

use crate::failure::device_error;
use crate::rsa_cipher::RsaCipher;
use crate::{ec, ecdh, generate, montgomery, rsa_key};
use metaslot_awslc_wrapper::aes::Keys;
use metaslot_awslc_wrapper::curve25519::x25519_public;
use metaslot_awslc_wrapper::ec::EcKey;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::provider::{Algorithm, Direction, Wrap, checked};
use metaslot_spi::{Key, Params};

const fn row(mechanism: CK_MECHANISM_TYPE, key_sizes: (u64, u64), by: &'static By) -> Algorithm {
    Algorithm { mechanism, key_sizes, wrap: Some(by), unwrap: Some(by), ..Algorithm::NONE }
}

// Every curve here has cofactor 1, as in `ecdh`.
pub(crate) const ROWS: [Algorithm; 4] = checked([
    row(CKM_ECDH_AES_KEY_WRAP, ec::SIZES, &By::Agreement),
    row(CKM_RSA_AES_KEY_WRAP, rsa_key::SIZES, &By::Oaep),
    row(CKM_ECDH_X_AES_KEY_WRAP, (255, 255), &By::Agreement),
    row(CKM_ECDH_COF_AES_KEY_WRAP, ec::SIZES, &By::Agreement),
]);

/// How the AES key goes along.
#[derive(Debug)]
enum By {
    Oaep,
    Agreement,
}

/// The parameter: bytes of the AES key, and the parameter of the mechanism by which it goes along.
fn fields(params: &Params) -> Result<(usize, &Params)> {
    let Params::Transport { bits, by } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    match bits {
        128 => Ok((16, by)),
        192 => Ok((24, by)),
        256 => Ok((32, by)),
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

fn padded(transport: &Secret) -> Result<Keys> {
    Keys::new(transport.expose()).map_err(device_error)
}

/// The AES key of a shared secret.
fn agreed(by: &Params, length: usize, agree: impl FnOnce() -> Result<Secret>) -> Result<Secret> {
    let mut made = Agreement::read(by)?.derive(&[length], agree, ecdh::expand)?;
    made.pop().ok_or(Error::DEVICE_ERROR)
}

impl By {
    /// How much goes before the wrapped key, in bytes.
    fn head(&self, key: &Key) -> Result<usize> {
        match self {
            Self::Oaep => Ok(rsa_key::prepared(key)?.size()),
            Self::Agreement => ecdh::public_length(key),
        }
    }

    /// A new AES key, and what goes along into `head`.
    fn send(&self, key: &Key, params: &Params, head: &mut [u8]) -> Result<Secret> {
        let (length, by) = fields(params)?;
        match (self, key.key_type()) {
            (Self::Oaep, _) => {
                let mut transport = Secret::zeroed(length);
                generate::random(transport.expose_mut())?;
                Wrap::wrap(&RsaCipher::Oaep, key, by, transport.expose(), head)?;
                Ok(transport)
            }
            (Self::Agreement, CKK_EC_MONTGOMERY) => {
                let mut own = Secret::zeroed(montgomery::LENGTH);
                generate::random(own.expose_mut())?;
                let scalar = own.expose().try_into().map_err(|_| Error::DEVICE_ERROR)?;
                head.copy_from_slice(&x25519_public(scalar));
                let point = key.bytes(CKA_EC_POINT)?;
                agreed(by, length, || montgomery::agree_by(own.expose(), point))
            }
            (Self::Agreement, _) => {
                let peer = ec::prepared(key)?;
                let own = EcKey::generate(peer.curve()).map_err(device_error)?;
                own.write_point(head).map_err(device_error)?;
                let mut point = vec![0; head.len()];
                peer.write_point(&mut point).map_err(device_error)?;
                agreed(by, length, || ecdh::agree_by(&own, &point))
            }
        }
    }

    /// The AES key that `head` brought.
    fn receive(&self, key: &Key, params: &Params, head: &[u8]) -> Result<Secret> {
        let (length, by) = fields(params)?;
        match self {
            Self::Oaep => {
                let transport = Wrap::unwrap(&RsaCipher::Oaep, key, by, head)?;
                match transport.len() == length {
                    true => Ok(transport),
                    false => Err(Error::WRAPPED_KEY_INVALID),
                }
            }
            Self::Agreement => agreed(by, length, || ecdh::agree(key, head)).map_err(|error| {
                match error {
                    // The point is a part of what was wrapped.
                    Error::MECHANISM_PARAM_INVALID => Error::WRAPPED_KEY_INVALID,
                    other => other,
                }
            }),
        }
    }
}

impl Wrap for By {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        let (length, by) = fields(params)?;
        key.check_class(direction.cipher_class())?;
        match self {
            Self::Oaep => Wrap::length(&RsaCipher::Oaep, key, by, length).map(drop),
            Self::Agreement => {
                let plain = Agreement::read(by)?.is_plain();
                // Of a secret that is cut, the AES key would be the end; a shorter one gives none.
                let short = match key.key_type() {
                    CKK_EC_MONTGOMERY => montgomery::LENGTH,
                    _ => ec::prepared(key)?.curve().length(),
                } < length;
                if plain && short { Err(Error::MECHANISM_PARAM_INVALID) } else { Ok(()) }
            }
        }
    }

    fn length(&self, key: &Key, _: &Params, plain: usize) -> Result<usize> {
        if plain == 0 || u32::try_from(plain).is_err() {
            return Err(Error::KEY_SIZE_RANGE);
        }
        Ok(self.head(key)? + Keys::padded_length(plain))
    }

    fn wrap(&self, key: &Key, params: &Params, plain: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = self.length(key, params, plain.len())?;
        let (head, wrapped) = out[..length].split_at_mut(self.head(key)?);
        let transport = self.send(key, params, head)?;
        padded(&transport)?.wrap_padded(None, plain, wrapped).map_err(|_| Error::KEY_SIZE_RANGE)?;
        Ok(length)
    }

    fn unwrap(&self, key: &Key, params: &Params, wrapped: &[u8]) -> Result<Secret> {
        let short = Error::WRAPPED_KEY_LEN_RANGE;
        let (head, wrapped) = wrapped.split_at_checked(self.head(key)?).ok_or(short)?;
        if wrapped.len() < 16 || !wrapped.len().is_multiple_of(8) {
            return Err(short);
        }
        let transport = self.receive(key, params, head)?;
        let mut plain = Secret::try_zeroed(wrapped.len() - 8).ok_or(Error::DEVICE_MEMORY)?;
        let length = padded(&transport)?
            .unwrap_padded(None, wrapped, plain.expose_mut())
            .map_err(|_| Error::WRAPPED_KEY_INVALID)?;
        Ok(plain.truncated(length))
    }
}
