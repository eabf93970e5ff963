// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::testing::{Random, inputs};
use metaslot_awslc::rsa::{Rsa, RsaNumber, RsaNumbers, RsaPadding};

/// A key of both libraries.
struct Pair {
    rsa: Rsa,
    key: PrivateKey,
    numbers: Vec<Vec<u8>>,
}

const NUMBERS: [RsaNumber; 8] = [
    RsaNumber::Modulus,
    RsaNumber::PublicExponent,
    RsaNumber::PrivateExponent,
    RsaNumber::Prime1,
    RsaNumber::Prime2,
    RsaNumber::Exponent1,
    RsaNumber::Exponent2,
    RsaNumber::Coefficient,
];

fn numbers(of: &[Vec<u8>]) -> RsaNumbers<'_> {
    RsaNumbers {
        modulus: &of[0],
        public_exponent: &of[1],
        private_exponent: &of[2],
        prime_1: &of[3],
        prime_2: &of[4],
        exponent_1: &of[5],
        exponent_2: &of[6],
        coefficient: &of[7],
    }
}

impl Pair {
    fn new(bits: u32, public_exponent: &[u8]) -> Self {
        let rsa = Rsa::generate(bits, public_exponent).unwrap();
        let number = |which| {
            let mut bytes = vec![0; rsa.number_length(which).unwrap()];
            rsa.write_number(which, &mut bytes).unwrap();
            bytes
        };
        let list: Vec<_> = NUMBERS.into_iter().map(number).collect();
        let key = PrivateKey::new(&numbers(&list)).unwrap();
        Self { rsa, key, numbers: list }
    }

    /// A number below the modulus.
    fn input(&self, random: &mut Random) -> Vec<u8> {
        let mut input = random.bytes(self.rsa.size());
        input[0] &= 0x7f;
        input
    }
}

const F4: &[u8] = &[1, 0, 1];

fn private_agrees(bits: u32, keys: usize, count: usize) {
    let random = &mut Random::new();
    let pairs: Vec<_> = (0..keys)
        .map(|index| Pair::new(bits, if index % 4 == 3 { &[3] } else { F4 }))
        .collect();
    let mut left = count;
    while left > 0 {
        let filled = left.min(1 + random.below(WIDTH));
        left -= filled;
        let chosen: Vec<_> = (0..filled).map(|_| &pairs[random.below(keys)]).collect();
        let inputs: Vec<_> = chosen.iter().map(|pair| pair.input(random)).collect();
        let mut outputs = vec![vec![0; bits as usize / 8]; filled];
        let mut requests: Vec<_> = chosen
            .iter()
            .zip(&inputs)
            .zip(&mut outputs)
            .map(|((pair, input), output)| PrivateRequest {
                key: &pair.key,
                input,
                output,
                result: Ok(()),
            })
            .collect();
        private(&mut requests);
        for ((pair, input), request) in chosen.iter().zip(&inputs).zip(&requests) {
            assert_eq!(request.result, Ok(()));
            let mut expected = vec![0; input.len()];
            pair.rsa.sign_raw(RsaPadding::None, input, &mut expected).unwrap();
            assert_eq!(request.output, expected);
        }
    }
}

#[test]
fn private_1024_agrees() { private_agrees(1024, 8, inputs(100)); }
#[test]
fn private_2048_agrees() { private_agrees(2048, 8, inputs(100)); }
#[test]
fn private_3072_agrees() { private_agrees(3072, 3, inputs(100)); }
#[test]
fn private_4096_agrees() { private_agrees(4096, 3, inputs(100)); }
