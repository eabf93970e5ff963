// SPDX-License-Identifier: Apache-2.0
//! RSA keys: generation, import and the prepared form (PKCS#11 3.2 §6.1).

use crate::failure::device_error;
use crate::public_key;
use metaslot_awslc_wrapper::rsa::{Rsa, RsaNumber, RsaNumbers, rsa_crt_values};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::der;
use metaslot_spi::key_info;
use metaslot_spi::provider::GeneratePair;
use metaslot_spi::{Attributes, Key, NewObject, Params, Secrets, Value};

/// Moduli that are served, in bits. Which may be made is for the policy to say.
pub(crate) const SIZES: (u64, u64) = (512, 8192);

/// The longest block, in bytes.
pub(crate) const MAX_BLOCK: usize = 1024;

/// The prepared form of a public or private key.
pub(crate) fn prepared(key: &Key) -> Result<&Rsa> {
    key.prepared(|key| {
        let rsa = if key.class() == CKO_PRIVATE_KEY {
            private(key.attributes(), key.secrets())?
        } else {
            public(key.attributes())?
        };
        size_fits(&rsa)?;
        Ok(rsa)
    })
}

fn size_fits(rsa: &Rsa) -> Result<()> {
    let bits = rsa.bits() as u64;
    if (SIZES.0..=SIZES.1).contains(&bits) { Ok(()) } else { Err(Error::KEY_SIZE_RANGE) }
}

/// Whether a block of the length of the modulus is 0, 1 or n−1, which are their own powers: the library
/// refuses them, because no blinding hides them.
pub(crate) fn is_trivial(rsa: &Rsa, block: &[u8]) -> Result<bool> {
    let mut last = vec![0; rsa.size()];
    rsa.write_number(RsaNumber::Modulus, &mut last).map_err(device_error)?;
    // The modulus is odd.
    if let Some(byte) = last.last_mut() {
        *byte -= 1;
    }
    Ok(matches!(der::without_zeros(block), [] | [1]) || block == last)
}

fn public(attributes: &Attributes) -> Result<Rsa> {
    let modulus = attributes.bytes(CKA_MODULUS).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
    let exponent = attributes.bytes(CKA_PUBLIC_EXPONENT).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
    Rsa::public(modulus, exponent).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)
}

fn private(attributes: &Attributes, secrets: &Secrets) -> Result<Rsa> {
    let shown = |number| attributes.bytes(number).ok_or(Error::KEY_TYPE_INCONSISTENT);
    let secret = |number| secrets.get(number).ok_or(Error::KEY_TYPE_INCONSISTENT);
    Rsa::private(&RsaNumbers {
        modulus: shown(CKA_MODULUS)?,
        public_exponent: shown(CKA_PUBLIC_EXPONENT)?,
        private_exponent: secret(CKA_PRIVATE_EXPONENT)?,
        prime_1: secret(CKA_PRIME_1)?,
        prime_2: secret(CKA_PRIME_2)?,
        exponent_1: secret(CKA_EXPONENT_1)?,
        exponent_2: secret(CKA_EXPONENT_2)?,
        coefficient: secret(CKA_COEFFICIENT)?,
    })
    .map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)
}

/// Completes an imported public key.
pub(crate) fn complete_public(object: &mut NewObject) -> Result<()> {
    for number in [CKA_MODULUS, CKA_PUBLIC_EXPONENT] {
        minimal(&mut object.attributes, number)?;
    }
    let rsa = public(&object.attributes)?;
    size_fits(&rsa).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
    let bits = rsa.bits() as u64;
    if object.attributes.ulong(CKA_MODULUS_BITS).is_some_and(|said| said != bits) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    object.attributes.set(CKA_MODULUS_BITS, Value::Ulong(bits));
    key_info::set_public(&mut object.attributes, info(&rsa)?)
}

/// Completes an imported private key: what is missing of the CRT values is computed, from the
/// primes or from the two exponents; then all of it is checked.
pub(crate) fn complete_private(object: &mut NewObject) -> Result<()> {
    for number in [CKA_MODULUS, CKA_PUBLIC_EXPONENT] {
        minimal(&mut object.attributes, number)?;
    }
    let NewObject { attributes, secrets } = object;
    let modulus = attributes.bytes(CKA_MODULUS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let exponent = attributes.bytes(CKA_PUBLIC_EXPONENT).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    // Nothing is computed with numbers that cannot be a key's. (One byte more may be a zero.)
    let longest = secrets.iter().map(|(_, value)| value.len()).chain([exponent.len()]).max();
    if modulus.len() > MAX_BLOCK || longest > Some(modulus.len() + 1) {
        return Err(Error::ATTRIBUTE_VALUE_INVALID);
    }
    const CRT: [CK_ATTRIBUTE_TYPE; 5] =
        [CKA_PRIME_1, CKA_PRIME_2, CKA_EXPONENT_1, CKA_EXPONENT_2, CKA_COEFFICIENT];
    if CRT.iter().any(|number| secrets.get(*number).is_none()) {
        let d = secrets.get(CKA_PRIVATE_EXPONENT).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let primes = secrets.get(CKA_PRIME_1).zip(secrets.get(CKA_PRIME_2));
        let found = rsa_crt_values(modulus, exponent, d, primes)
            .map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
        let values =
            [found.prime_1, found.prime_2, found.exponent_1, found.exponent_2, found.coefficient];
        for (number, value) in CRT.into_iter().zip(values) {
            secrets.set(number, value);
        }
    }
    let d = secrets.get(CKA_PRIVATE_EXPONENT).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    // The library takes such a key and then computes nothing with it (RFC 8017 §3.2: d is below n).
    if der::without_zeros(d).len() > modulus.len() {
        return Err(Error::ATTRIBUTE_VALUE_INVALID);
    }
    let rsa = private(attributes, secrets)?;
    size_fits(&rsa).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
    key_info::set_public(attributes, info(&rsa)?)
}

/// Takes leading zeros off a big integer, so that equal keys have equal attributes.
fn minimal(attributes: &mut Attributes, number: CK_ATTRIBUTE_TYPE) -> Result<()> {
    let bytes = attributes.bytes(number).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let rest = der::without_zeros(bytes).to_vec();
    attributes.set(number, Value::Bytes(rest));
    Ok(())
}

fn shown(rsa: &Rsa, number: RsaNumber) -> Result<Vec<u8>> {
    let length = rsa.number_length(number).map_err(device_error)?;
    let mut bytes = vec![0; length];
    rsa.write_number(number, &mut bytes).map_err(device_error)?;
    Ok(bytes)
}

fn secret(rsa: &Rsa, number: RsaNumber) -> Result<Secret> {
    let length = rsa.number_length(number).map_err(device_error)?;
    let mut bytes = Secret::zeroed(length);
    rsa.write_number(number, bytes.expose_mut()).map_err(device_error)?;
    Ok(bytes)
}

fn info(rsa: &Rsa) -> Result<Vec<u8>> {
    let modulus = shown(rsa, RsaNumber::Modulus)?;
    Ok(public_key::rsa(&modulus, &shown(rsa, RsaNumber::PublicExponent)?))
}

#[derive(Debug)]
pub(crate) struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        let bits = template.ulong(CKA_MODULUS_BITS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        if !(SIZES.0..=SIZES.1).contains(&bits) {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let exponent = template.bytes(CKA_PUBLIC_EXPONENT).unwrap_or(&[1, 0, 1]);
        // With 1 the library would look for a key for ever.
        match der::without_zeros(exponent) {
            [] | [1] => return Err(Error::ATTRIBUTE_VALUE_INVALID),
            [.., last] if last % 2 == 0 => return Err(Error::ATTRIBUTE_VALUE_INVALID),
            _ => {}
        }
        let bits_32 = u32::try_from(bits).map_err(|_| Error::KEY_SIZE_RANGE)?;
        let rsa = Rsa::generate(bits_32, exponent).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
        let shared: Attributes = [
            (CKA_MODULUS, Value::Bytes(shown(&rsa, RsaNumber::Modulus)?)),
            (CKA_PUBLIC_EXPONENT, Value::Bytes(shown(&rsa, RsaNumber::PublicExponent)?)),
            (CKA_PUBLIC_KEY_INFO, Value::Bytes(info(&rsa)?)),
        ]
        .into_iter()
        .collect();
        let mut public = NewObject { attributes: shared.clone(), secrets: Secrets::new() };
        public.attributes.set(CKA_MODULUS_BITS, Value::Ulong(bits));
        let mut secrets = Secrets::new();
        for (attribute, number) in [
            (CKA_PRIVATE_EXPONENT, RsaNumber::PrivateExponent),
            (CKA_PRIME_1, RsaNumber::Prime1),
            (CKA_PRIME_2, RsaNumber::Prime2),
            (CKA_EXPONENT_1, RsaNumber::Exponent1),
            (CKA_EXPONENT_2, RsaNumber::Exponent2),
            (CKA_COEFFICIENT, RsaNumber::Coefficient),
        ] {
            secrets.set(attribute, secret(&rsa, number)?);
        }
        Ok((public, NewObject { attributes: shared, secrets }))
    }
}
