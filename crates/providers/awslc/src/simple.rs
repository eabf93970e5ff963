// SPDX-License-Identifier: Apache-2.0
//! Derivations of one step: bytes beside or over a key, or cut out of it (PKCS#11 3.2 §6.43), its digest (§6.20–§6.26), and
//! data encrypted under it. What may be derived so, and by whom it may be read, is policy.

use crate::block::BlockCipher;
use crate::failure::device_error;
use crate::{aes, des};
use metaslot_awslc_wrapper::aes::Way;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::shake::{Function, Shake};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Derive, Keys};
use metaslot_spi::{Key, Params};

pub(crate) const ROWS: [Algorithm; 24] = [
    row(CKM_CONCATENATE_BASE_AND_KEY, &Step::BaseAndKey),
    row(CKM_CONCATENATE_BASE_AND_DATA, &Step::BaseAndData),
    row(CKM_CONCATENATE_DATA_AND_BASE, &Step::DataAndBase),
    row(CKM_XOR_BASE_AND_DATA, &Step::Xor),
    row(CKM_EXTRACT_KEY_FROM_KEY, &Step::Extract),
    row(CKM_MD5_KEY_DERIVATION, &Step::Digest(Hash::Md5)),
    row(CKM_SHA1_KEY_DERIVATION, &Step::Digest(Hash::Sha1)),
    row(CKM_SHA224_KEY_DERIVATION, &Step::Digest(Hash::Sha224)),
    row(CKM_SHA256_KEY_DERIVATION, &Step::Digest(Hash::Sha256)),
    row(CKM_SHA384_KEY_DERIVATION, &Step::Digest(Hash::Sha384)),
    row(CKM_SHA512_KEY_DERIVATION, &Step::Digest(Hash::Sha512)),
    row(CKM_SHA512_224_KEY_DERIVATION, &Step::Digest(Hash::Sha512_224)),
    row(CKM_SHA512_256_KEY_DERIVATION, &Step::Digest(Hash::Sha512_256)),
    row(CKM_SHA3_224_KEY_DERIVE, &Step::Digest(Hash::Sha3_224)),
    row(CKM_SHA3_256_KEY_DERIVE, &Step::Digest(Hash::Sha3_256)),
    row(CKM_SHA3_384_KEY_DERIVE, &Step::Digest(Hash::Sha3_384)),
    row(CKM_SHA3_512_KEY_DERIVE, &Step::Digest(Hash::Sha3_512)),
    row(CKM_SHAKE_128_KEY_DERIVE, &Step::Shake(Function::Shake128)),
    row(CKM_SHAKE_256_KEY_DERIVE, &Step::Shake(Function::Shake256)),
    block_row(CKM_AES_ECB_ENCRYPT_DATA, aes::KEYS, &Step::Encrypt(encrypt::<aes::Aes, 16>)),
    block_row(CKM_AES_CBC_ENCRYPT_DATA, aes::KEYS, &Step::Encrypt(encrypt::<aes::Aes, 16>)),
    block_row(CKM_DES3_ECB_ENCRYPT_DATA, des::KEYS, &Step::Encrypt(encrypt::<des::Des, 8>)),
    block_row(CKM_DES3_CBC_ENCRYPT_DATA, des::KEYS, &Step::Encrypt(encrypt::<des::Des, 8>)),
    // The engine makes the public half of what the private one shows.
    block_row(CKM_PUB_KEY_FROM_PRIV_KEY, (0, 8192), &Step::Public),
];

const fn row(mechanism: CK_MECHANISM_TYPE, step: &'static Step) -> Algorithm {
    block_row(mechanism, (1, 8192), step)
}

const fn block_row(
    mechanism: CK_MECHANISM_TYPE,
    key_sizes: (u64, u64),
    step: &'static Step,
) -> Algorithm {
    Algorithm { mechanism, key_sizes, derive: Some(step), ..Algorithm::NONE }
}

#[derive(Debug)]
enum Step {
    BaseAndKey,
    BaseAndData,
    DataAndBase,
    Xor,
    Extract,
    Digest(Hash),
    Shake(Function),
    Encrypt(fn(&Key, &[u8], &[u8]) -> Result<Secret>),
    Public,
}

fn data(params: &Params) -> Result<(&[u8], &[u8])> {
    match params {
        Params::Data { iv, data } => Ok((iv, data)),
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

fn joined(parts: [&[u8]; 2]) -> Result<Secret> {
    let length = parts[0].len() + parts[1].len();
    let mut whole = Secret::try_zeroed(length).ok_or(Error::DEVICE_MEMORY)?;
    let (first, second) = whole.expose_mut().split_at_mut(parts[0].len());
    first.copy_from_slice(parts[0]);
    second.copy_from_slice(parts[1]);
    Ok(whole)
}

/// Whole blocks, chained where there is an IV.
fn encrypt<C: BlockCipher<N>, const N: usize>(key: &Key, iv: &[u8], data: &[u8]) -> Result<Secret> {
    let mut out = Secret::try_zeroed(data.len()).ok_or(Error::DEVICE_MEMORY)?;
    if iv.is_empty() {
        C::ecb(key, Way::Encrypt, data, out.expose_mut())?;
    } else {
        let mut iv = iv.try_into().map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
        C::cbc(C::keys(key)?, Way::Encrypt, &mut iv, data, out.expose_mut());
    }
    Ok(out)
}

/// Bits from `first` on, the most significant one of the first byte being 0; behind the last comes the first.
fn extracted(value: &[u8], first: usize, length: usize) -> Secret {
    let mut out = Secret::zeroed(length);
    let (start, shift) = (first / 8, first % 8);
    for (at, byte) in out.expose_mut().iter_mut().enumerate() {
        let pair = [0, 1].map(|next| value[(start + at + next) % value.len()]);
        let pair = u16::from_be_bytes(pair) << shift;
        *byte = pair.to_be_bytes()[0];
    }
    out
}

impl Step {
    fn derived(
        &self,
        key: &Key,
        params: &Params,
        length: usize,
        keys: &dyn Keys,
    ) -> Result<Secret> {
        let value = || key.secret(CKA_VALUE);
        let whole = match self {
            Self::BaseAndKey => {
                let Params::Key(other) = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
                joined([value()?, keys.key(*other)?.secret(CKA_VALUE)?])?
            }
            Self::BaseAndData => joined([value()?, data(params)?.1])?,
            Self::DataAndBase => joined([data(params)?.1, value()?])?,
            Self::Xor => {
                let (value, data) = (value()?, data(params)?.1);
                let mut out = Secret::zeroed(value.len().min(data.len()));
                for ((out, key), byte) in out.expose_mut().iter_mut().zip(value).zip(data) {
                    *out = key ^ byte;
                }
                out
            }
            Self::Extract => {
                let value = value()?;
                if length > value.len() {
                    return Err(Error::KEY_SIZE_RANGE);
                }
                return Ok(extracted(value, first_bit(value, params)?, length));
            }
            Self::Digest(hash) => {
                let mut out = Secret::zeroed(hash.length());
                hash.digest(value()?, out.expose_mut()).map_err(device_error)?;
                out
            }
            Self::Shake(function) => {
                let mut out = Secret::try_zeroed(length).ok_or(Error::DEVICE_MEMORY)?;
                let mut shake = Shake::new(*function).map_err(device_error)?;
                shake.update(value()?).map_err(device_error)?;
                shake.finish(out.expose_mut()).map_err(device_error)?;
                return Ok(out);
            }
            Self::Encrypt(encrypt) => {
                let (iv, data) = data(params)?;
                encrypt(key, iv, data)?
            }
            Self::Public => return Err(Error::FUNCTION_NOT_SUPPORTED),
        };
        match whole.len().checked_sub(length) {
            None if matches!(self, Self::Encrypt(_)) => Err(Error::DATA_LEN_RANGE),
            None => Err(Error::KEY_SIZE_RANGE),
            // What is too much goes from the end.
            Some(_) => Ok(whole.truncated(length)),
        }
    }
}

fn first_bit(value: &[u8], params: &Params) -> Result<usize> {
    let Params::Ulong(first) = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
    let first = usize::try_from(*first).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    if first < value.len() * 8 { Ok(first) } else { Err(Error::MECHANISM_PARAM_INVALID) }
}

impl Derive for Step {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        let value = key.secret(CKA_VALUE)?;
        match self {
            Self::BaseAndKey => Ok(()),
            Self::Extract => first_bit(value, params).map(drop),
            Self::BaseAndData | Self::DataAndBase | Self::Xor => data(params).map(drop),
            Self::Digest(_) | Self::Shake(_) => match params {
                Params::None => Ok(()),
                _ => Err(Error::MECHANISM_PARAM_INVALID),
            },
            Self::Encrypt(_) => {
                let block = if key.key_type() == CKK_AES { 16 } else { 8 };
                match data(params)? {
                    (_, data) if data.is_empty() || !data.len().is_multiple_of(block) => {
                        Err(Error::MECHANISM_PARAM_INVALID)
                    }
                    (iv, _) if !iv.is_empty() && iv.len() != block => {
                        Err(Error::MECHANISM_PARAM_INVALID)
                    }
                    _ => Ok(()),
                }
            }
            Self::Public => Err(Error::FUNCTION_NOT_SUPPORTED),
        }
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        let value = key.secret(CKA_VALUE).ok()?.len();
        let data = data(params).map(|(_, data)| data.len());
        match self {
            Self::BaseAndData | Self::DataAndBase => Some(value + data.ok()?),
            Self::Xor => Some(value.min(data.ok()?)),
            Self::Digest(hash) => Some(hash.length()),
            // As much as the function's security allows (FIPS 202, table 4).
            Self::Shake(Function::Shake128) => Some(32),
            Self::Shake(Function::Shake256) => Some(64),
            Self::Encrypt(_) => data.ok(),
            Self::BaseAndKey | Self::Extract | Self::Public => None,
        }
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        keys: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let [length] = lengths else { return Err(Error::MECHANISM_PARAM_INVALID) };
        Ok(vec![self.derived(key, params, *length, keys)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PKCS#11 3.2 §6.43's own example.
    #[test]
    fn extraction_begins_at_the_bit_and_goes_round() {
        assert_eq!(extracted(&[0x32, 0x9f, 0x84, 0xa9], 21, 2).expose(), [0x95, 0x26]);
        assert_eq!(extracted(&[0x32, 0x9f, 0x84, 0xa9], 0, 4).expose(), [0x32, 0x9f, 0x84, 0xa9]);
        assert_eq!(extracted(&[0x80], 7, 1).expose(), [0x40]);
    }
}
