// SPDX-License-Identifier: Apache-2.0
//! New groups for DSA and Diffie-Hellman (PKCS#11 3.2 §6.2, §6.4). Those of DSA, and of X9.42, are made as FIPS 186-4 has it; those of PKCS #3,
//! which do not say an order, have a safe prime, so that no subgroup of theirs is small.

use crate::failure::device_error;
use crate::field::{bits, group, kind, of_template};
use crate::generate::random;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::domain::{self, Primes};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Generate};
use metaslot_spi::{Attributes, Bytes, NewObject, Params, Value, detail};

/// Smallest and largest prime that is made, in bits: each doubling takes ten to thirty times as long.
const SIZES: (u64, u64) = (512, 4096);
/// The largest safe prime, which takes a minute or more.
const LARGEST_SAFE: u64 = 3072;
/// Of DSA, lengths of both primes (FIPS 186-4 §4.2); those of one step shorter than 1024 bits are of its predecessors.
const DSA: (u64, u64) = (512, 3072);

pub(crate) const ROWS: [Algorithm; 6] = [
    row(CKM_DSA_PARAMETER_GEN, DSA, &Made::Group),
    row(CKM_DH_PKCS_PARAMETER_GEN, (SIZES.0, LARGEST_SAFE), &Made::Safe),
    row(CKM_X9_42_DH_PARAMETER_GEN, SIZES, &Made::Group),
    row(CKM_DSA_PROBABLISTIC_PARAMETER_GEN, DSA, &Made::Primes(domain::probable, 1)),
    row(CKM_DSA_SHAWE_TAYLOR_PARAMETER_GEN, DSA, &Made::Primes(domain::provable, 3)),
    row(CKM_DSA_FIPS_G_GEN, DSA, &Made::Base),
];

const fn row(
    mechanism: CK_MECHANISM_TYPE,
    key_sizes: (u64, u64),
    generate: &'static Made,
) -> Algorithm {
    Algorithm { mechanism, key_sizes, generate: Some(generate), ..Algorithm::NONE }
}

/// What makes primes of a seed.
type By = fn(Hash, [usize; 2], &[u8]) -> metaslot_awslc_wrapper::Result<Option<Primes>>;

/// What is made.
#[derive(Debug)]
enum Made {
    /// A safe prime, and a base.
    Safe,
    /// Two primes, and a base.
    Group,
    /// Two primes; the seed is told, so many times as long as the order: that of provable ones is three (A.1.2).
    Primes(By, usize),
    /// A base, for two primes and their seed.
    Base,
}

/// As `Provider::complete`, of a group that is brought.
pub(crate) fn complete(object: &mut NewObject) -> Result<()> {
    let kind = kind(&object.attributes)?;
    let (shown, group) = group(kind, &object.attributes).map_err(of_template)?;
    for (attribute, value) in shown {
        object.attributes.set(attribute, value);
    }
    object.attributes.set(CKA_PRIME_BITS, Value::Ulong(group.bits() as u64));
    if let Some(bits) = group.order_bits() {
        object.attributes.set(CKA_SUBPRIME_BITS, Value::Ulong(bits as u64));
    }
    Ok(())
}

/// The lengths that a template says, or that follow from one (§6.2), in bits.
fn lengths(template: &Attributes) -> Result<[u64; 2]> {
    let length = template.ulong(CKA_PRIME_BITS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let said = template.ulong(CKA_SUBPRIME_BITS);
    if template.ulong(CKA_KEY_TYPE) != Some(CKK_DSA) {
        // ANSI X9.42 has no shorter order, and this no hash function for a longer one.
        let short = said.ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let fits = (SIZES.0..=SIZES.1).contains(&length) && (160..=512).contains(&short);
        return if fits && short < length {
            Ok([length, short])
        } else {
            Err(Error::KEY_SIZE_RANGE)
        };
    }
    let usual = match length {
        ..=1024 => 160,
        2048 => 224,
        _ => 256,
    };
    of_dsa(length, said.unwrap_or(usual))
}

/// The lengths of two primes where DSA has them, in bits.
const fn of_dsa(length: u64, short: u64) -> Result<[u64; 2]> {
    match (length, short) {
        (512..=1024, 160) if length.is_multiple_of(64) => Ok([length, short]),
        (2048, 224 | 256) | (3072, 256) => Ok([length, short]),
        _ => Err(Error::KEY_SIZE_RANGE),
    }
}

/// Two primes by a way of making them, and the whole seed, of as many bits as the order has.
fn primes(by: By, hash: Hash, lengths: [u64; 2]) -> Result<(Primes, Vec<u8>)> {
    let lengths = lengths.map(|length| usize::try_from(length).unwrap_or(0));
    let mut seed = vec![0; lengths[1].div_ceil(8)];
    loop {
        random(&mut seed)?;
        // Of the number that C.6 begins with; A.1.1.2 takes any.
        if let Some(first) = seed.first_mut() {
            *first |= 0x80;
        }
        if let Some(found) = by(hash, lengths, &seed).map_err(device_error)? {
            seed.extend_from_slice(&found.seed);
            return Ok((found, seed));
        }
    }
}

fn shown(prime: Vec<u8>, order: Option<Vec<u8>>, base: Option<Vec<u8>>) -> NewObject {
    let mut made = NewObject::default();
    made.attributes.set(CKA_PRIME_BITS, Value::Ulong(bits(&prime)));
    made.attributes.set(CKA_PRIME, Value::Bytes(prime));
    if let Some(order) = order {
        made.attributes.set(CKA_SUBPRIME_BITS, Value::Ulong(bits(&order)));
        made.attributes.set(CKA_SUBPRIME, Value::Bytes(order));
    }
    if let Some(base) = base {
        made.attributes.set(CKA_BASE, Value::Bytes(base));
    }
    made
}

/// The functions that FIPS 186-4 lets be named.
fn hash(number: CK_MECHANISM_TYPE) -> Result<Hash> {
    match number {
        CKM_SHA_1 | CKM_SHA224 | CKM_SHA256 | CKM_SHA384 | CKM_SHA512 => {
            crate::digest::hash(number).ok_or(Error::MECHANISM_PARAM_INVALID)
        }
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

impl Generate for Made {
    fn generate(&self, params: &Params, template: &Attributes) -> Result<NewObject> {
        match (self, params) {
            (Self::Safe, _) => {
                let bits = template.ulong(CKA_PRIME_BITS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
                let says = |attribute| template.get(attribute).is_some();
                if says(CKA_SUBPRIME) || says(CKA_SUBPRIME_BITS) {
                    return Err(Error::TEMPLATE_INCONSISTENT);
                }
                let fits = (SIZES.0..=LARGEST_SAFE).contains(&bits);
                let bits = usize::try_from(bits).ok().filter(|_| fits);
                let bits = bits.ok_or(Error::KEY_SIZE_RANGE)?;
                let prime = domain::safe_prime(bits).map_err(device_error)?;
                // A square: of the two large orders that there are, of the one that is prime.
                Ok(shown(prime, None, Some(vec![4])))
            }
            (Self::Group, _) => {
                let lengths = lengths(template)?;
                let hash = if lengths[1] > 256 { Hash::Sha512 } else { Hash::Sha256 };
                let (Primes { prime, order, .. }, seed) = primes(domain::probable, hash, lengths)?;
                let base = domain::base(hash, &prime, &order, &seed, 1).map_err(device_error)?;
                Ok(shown(prime, Some(order), Some(base)))
            }
            (Self::Primes(by, seeds), Params::DsaSeed(asked)) => {
                let (lengths, hash) = (lengths(template)?, hash(asked.hash)?);
                let each =
                    usize::try_from(lengths[1].div_ceil(8)).map_err(|_| Error::KEY_SIZE_RANGE)?;
                let length = seeds * each;
                if asked.beside.length < length || (hash.length() as u64) * 8 < lengths[1] {
                    detail::set(format_args!(
                        "the hash function is as long as the subprime at least, and the seed has {length} bytes, for which pSeed has room"
                    ));
                    return Err(Error::MECHANISM_PARAM_INVALID);
                }
                let (Primes { prime, order, .. }, seed) = primes(*by, hash, lengths)?;
                let told = asked.beside.told.set(Bytes::from_slice(&seed));
                told.map_err(|_| Error::DEVICE_ERROR)?;
                Ok(shown(prime, Some(order), None))
            }
            (Self::Base, Params::DsaSeed(asked)) => {
                let number =
                    |attribute| template.bytes(attribute).ok_or(Error::TEMPLATE_INCOMPLETE);
                let (prime, order) = (number(CKA_PRIME)?, number(CKA_SUBPRIME)?);
                let hash = hash(asked.hash)?;
                let index =
                    u8::try_from(asked.index).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
                of_dsa(bits(prime), bits(order))?;
                if asked.seed.is_empty() {
                    return Err(Error::MECHANISM_PARAM_INVALID);
                }
                let base = domain::base(hash, prime, order, &asked.seed, index);
                let base = base.map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
                Ok(shown(prime.to_vec(), Some(order.to_vec()), Some(base)))
            }
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }
}
