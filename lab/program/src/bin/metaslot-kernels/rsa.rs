// SPDX-License-Identifier: Apache-2.0
//! RSA: the private operation with blinding and its check, and the public one.

use crate::lanes::{Lanes, requests};
use crate::row::{Result, Work, each, failed, random};
use metaslot_awslc_wrapper::rsa::{Rsa, RsaNumber, RsaNumbers, RsaPadding};
use metaslot_lanes::rsa::{
    PrivateKey, PrivateRequest, PublicKey, PublicRequest, WIDTH, private, public,
};

const EXPONENT: [u8; 3] = [1, 0, 1];

struct Key {
    rsa: Rsa,
    private: PrivateKey,
    public: PublicKey,
}

impl Key {
    fn new(bits: u32) -> Result<Self> {
        let rsa = Rsa::generate(bits, &EXPONENT).map_err(failed("an RSA key"))?;
        let number = |which| {
            let mut bytes = vec![0; rsa.number_length(which)?];
            rsa.write_number(which, &mut bytes)?;
            Ok(bytes)
        };
        let numbers = || -> metaslot_awslc_wrapper::Result<_> {
            let modulus = number(RsaNumber::Modulus)?;
            let private = PrivateKey::new(&RsaNumbers {
                modulus: &modulus,
                public_exponent: &EXPONENT,
                private_exponent: &[],
                prime_1: &number(RsaNumber::Prime1)?,
                prime_2: &number(RsaNumber::Prime2)?,
                exponent_1: &number(RsaNumber::Exponent1)?,
                exponent_2: &number(RsaNumber::Exponent2)?,
                coefficient: &number(RsaNumber::Coefficient)?,
            })?;
            Ok((private, PublicKey::new(&modulus, &EXPONENT)?))
        };
        let (private, public) = numbers().map_err(failed("a key for the kernel"))?;
        Ok(Self { rsa, private, public })
    }
}

/// A key for each lane, as far as they are quickly made.
fn keys(bits: u32) -> Result<Vec<Key>> {
    (0..WIDTH.min(8192 / bits as usize)).map(|_| Key::new(bits)).collect()
}

/// Messages below every modulus.
fn messages(bits: u32) -> Result<Vec<Vec<u8>>> {
    each(WIDTH, |_| {
        let mut message = random(bits as usize / 8)?;
        message[0] = 0;
        Ok(message)
    })
}

pub(crate) fn sign<const BITS: u32>() -> Result<Box<dyn Work>> {
    let inputs = messages(BITS)?;
    let (library, keys) = keys(BITS)?.into_iter().map(|key| (key.rsa, key.private)).unzip();
    Ok(Box::new(Lanes {
        library,
        keys,
        out: inputs.clone(),
        alone: inputs[0].clone(),
        inputs,
        length: 0,
        what: "an RSA signature",
        plain: |key: &Rsa, message, out| key.sign_raw(RsaPadding::None, message, out).is_ok(),
        kernel: |keys, messages, out, _| {
            let mut requests = requests(keys, messages, out, |key, input, output| PrivateRequest {
                key,
                input,
                output,
                result: Ok(()),
            });
            private(&mut requests);
            requests.iter().all(|request| request.result.is_ok())
        },
    }))
}

pub(crate) fn verify<const BITS: u32>() -> Result<Box<dyn Work>> {
    let inputs = messages(BITS)?;
    let (library, keys) = keys(BITS)?.into_iter().map(|key| (key.rsa, key.public)).unzip();
    Ok(Box::new(Lanes {
        library,
        keys,
        out: inputs.clone(),
        alone: inputs[0].clone(),
        inputs,
        length: 0,
        what: "an RSA verification",
        plain: |key: &Rsa, message, out| key.verify_raw(RsaPadding::None, message, out).is_ok(),
        kernel: |keys, messages, out, _| {
            let mut requests = requests(keys, messages, out, |key, input, output| PublicRequest {
                key,
                input,
                output,
                result: Ok(()),
            });
            public(&mut requests);
            requests.iter().all(|request| request.result.is_ok())
        },
    }))
}

/// Multiplications of 52 bits for a private operation in full lanes: exponentiation modulo both primes with windows of five bits,
/// blinding, recombination, and the check with the public exponent.
pub(crate) fn private_count<const BITS: u32>() -> f64 {
    let n = f64::from(BITS / 1024 * 10);
    let windows = (f64::from(BITS) / 2.0 / 5.0).ceil();
    let powers = 15.0 * (square(n) + product(n)) + (windows - 1.0) * (5.0 * square(n) + product(n));
    let blinding = 16.0 * square(n) + 5.0 * product(n) + 2.0 * n * n;
    let rest = 2.0 * product(n) + 4.0 * n * n;
    (2.0 * (powers + blinding) + rest) / 8.0 + public_count::<BITS>()
}

/// The same for a public operation with the exponent 65537.
pub(crate) fn public_count<const BITS: u32>() -> f64 {
    let n = f64::from(BITS / 1024 * 20);
    (2.0 * product(n) + 16.0 * square(n)) / 8.0
}

/// Multiplications in a product of `n` limbs with its reduction, low and high halves.
fn product(n: f64) -> f64 {
    4.0 * n * n
}

fn square(n: f64) -> f64 {
    n * (n + 1.0) + 2.0 * n * n
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_lanes::peak::{Port, count};

    /// The formula is an upper bound of what is needed, and what is executed comes near to it.
    #[test]
    fn the_formula_says_what_is_executed() {
        if !Port::Multiply52.available() {
            return;
        }
        let mut work = sign::<1024>().unwrap();
        let executed = count(&[Port::Multiply52], || work.batch(WIDTH)).unwrap()[0] as f64 / 8.0;
        let ratio = executed / private_count::<1024>();
        assert!((0.95..1.05).contains(&ratio), "{executed} executed, {ratio} of the formula");
    }
}
