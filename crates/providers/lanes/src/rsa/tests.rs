// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::testing::{Random, disassembly, inputs, judge, lacks, spills};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::rsa::{Rsa, RsaNumber, RsaNumbers, RsaPadding, rsa_crt_values};
use serde_json::Value;

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
const N: usize = 0;
const E: usize = 1;
const P: usize = 3;
const Q: usize = 4;
const DP: usize = 5;
const DQ: usize = 6;
const QINV: usize = 7;
const F4: &[u8] = &[1, 0, 1];

fn numbers(of: &[Vec<u8>]) -> RsaNumbers<'_> {
    RsaNumbers {
        modulus: &of[N],
        public_exponent: &of[E],
        private_exponent: &of[2],
        prime_1: &of[P],
        prime_2: &of[Q],
        exponent_1: &of[DP],
        exponent_2: &of[DQ],
        coefficient: &of[QINV],
    }
}

/// A key of both libraries.
struct Pair {
    rsa: Rsa,
    key: PrivateKey,
    numbers: Vec<Vec<u8>>,
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

    /// AWS-LC's public operation.
    fn raised(&self, input: &[u8]) -> Vec<u8> {
        let mut raised = vec![0; input.len()];
        self.rsa.verify_raw(RsaPadding::None, input, &mut raised).unwrap();
        raised
    }
}

type Results = Vec<Result<Vec<u8>, Failed>>;

/// The kernel's private operation for keys and inputs.
fn sign(of: &[(&PrivateKey, &[u8])]) -> Results {
    let mut outputs: Vec<_> = of.iter().map(|(key, _)| vec![0; key.public().size()]).collect();
    let mut requests: Vec<_> = of
        .iter()
        .zip(&mut outputs)
        .map(|((key, input), output)| PrivateRequest { key, input, output, result: Ok(()) })
        .collect();
    private(&mut requests);
    let results: Vec<_> = requests.iter().map(|request| request.result).collect();
    results.into_iter().zip(outputs).map(|(result, output)| result.map(|()| output)).collect()
}

/// The kernel's public operation for keys and inputs.
fn raise(of: &[(&PublicKey, &[u8])]) -> Results {
    let mut outputs: Vec<_> = of.iter().map(|(key, _)| vec![0; key.size()]).collect();
    let mut requests: Vec<_> = of
        .iter()
        .zip(&mut outputs)
        .map(|((key, input), output)| PublicRequest { key, input, output, result: Ok(()) })
        .collect();
    public(&mut requests);
    let results: Vec<_> = requests.iter().map(|request| request.result).collect();
    results.into_iter().zip(outputs).map(|(result, output)| result.map(|()| output)).collect()
}

/// Random batches of random keys, full and partial. What AWS-LC raises our result to must be the input, and there is one such result
/// only; some are compared with its own.
fn agrees(bits: u32, keys: usize, count: usize) {
    if lacks(NEEDS) {
        return;
    }
    let random = &mut Random::new();
    let exponents: [&[u8]; 4] = [F4, F4, &[3], &[0x81, 0, 0, 1]];
    let pairs: Vec<_> = (0..keys).map(|index| Pair::new(bits, exponents[index % 4])).collect();
    let mut left = count;
    while left > 0 {
        let filled = left.min(if left.is_multiple_of(3) { 1 + random.below(WIDTH) } else { WIDTH });
        let chosen: Vec<_> = (0..filled).map(|_| &pairs[random.below(keys)]).collect();
        let inputs: Vec<_> = chosen.iter().map(|pair| pair.input(random)).collect();
        let of: Vec<_> =
            chosen.iter().zip(&inputs).map(|(pair, input)| (&pair.key, &input[..])).collect();
        let signed = sign(&of);
        let of: Vec<_> = of.iter().map(|(key, input)| (key.public(), *input)).collect();
        let raised = raise(&of);
        for (lane, pair) in chosen.into_iter().enumerate() {
            let (input, signed) = (&inputs[lane], signed[lane].as_ref().unwrap());
            assert_eq!(&pair.raised(signed), input, "private");
            assert_eq!(raised[lane].as_ref(), Ok(&pair.raised(input)), "public");
            if left.is_multiple_of(50) {
                let mut expected = vec![0; input.len()];
                pair.rsa.sign_raw(RsaPadding::None, input, &mut expected).unwrap();
                assert_eq!(signed, &expected);
            }
        }
        left -= filled;
    }
}

// Together a hundred thousand inputs; the larger keys are too slow for as many each.
#[test]
fn rsa_1024_agrees_with_awslc() {
    agrees(1024, 16, inputs(65_000));
}

#[test]
fn rsa_2048_agrees_with_awslc() {
    agrees(2048, 12, inputs(25_000));
}

#[test]
fn rsa_3072_agrees_with_awslc() {
    agrees(3072, 4, inputs(7_000));
}

#[test]
fn rsa_4096_agrees_with_awslc() {
    agrees(4096, 4, inputs(3_000));
}

/// The number plus `add`, in the same length.
fn plus(number: &[u8], add: i32) -> Vec<u8> {
    let mut carry = add;
    let mut sum: Vec<u8> = number
        .iter()
        .rev()
        .map(|byte| {
            carry += i32::from(*byte);
            let low = carry.rem_euclid(256);
            carry = carry.div_euclid(256);
            u8::try_from(low).unwrap()
        })
        .collect();
    sum.reverse();
    sum
}

fn padded(number: &[u8], length: usize) -> Vec<u8> {
    [vec![0; length - number.len()], number.to_vec()].concat()
}

#[test]
fn edges_of_the_input_are_right() {
    if lacks(NEEDS) {
        return;
    }
    for (bits, exponent) in [(1024, F4), (2048, &[3]), (3072, F4), (4096, F4)] {
        let pair = Pair::new(bits, exponent);
        let (n, size) = (&pair.numbers[N], bits as usize / 8);
        let [p, q] = [P, Q].map(|prime| padded(&pair.numbers[prime], size));
        let (zero, one, largest) = (vec![0; size], padded(&[1], size), plus(n, -1));
        let fixed = [&zero, &one, &largest].map(Clone::clone);
        let good = [zero, one, largest, p.clone(), q, plus(&p, 1), padded(&[0xff; 64], size)];
        let bad = [n.clone(), plus(n, 1), vec![0xff; size], vec![1; size - 1], vec![0; size + 1]];
        let all: Vec<_> = good.iter().chain(&bad).collect();
        let signed = sign(&all.iter().map(|input| (&pair.key, &input[..])).collect::<Vec<_>>());
        let public = pair.key.public();
        let raised = raise(&all.iter().map(|input| (public, &input[..])).collect::<Vec<_>>());
        for (index, input) in good.iter().enumerate() {
            assert_eq!(&pair.raised(signed[index].as_ref().unwrap()), input);
            assert_eq!(raised[index], Ok(pair.raised(input)));
        }
        assert_eq!(signed[..3], fixed.clone().map(Ok));
        assert_eq!(raised[..3], fixed.map(Ok));
        assert!(signed[good.len()..].iter().chain(&raised[good.len()..]).all(Result::is_err));
    }
}

#[test]
fn what_is_wrong_with_one_request_stays_with_it() {
    if lacks(NEEDS) {
        return;
    }
    let random = &mut Random::new();
    let pair = Pair::new(2048, F4);
    let faulty = |which: usize| {
        let mut numbers_of = pair.numbers.clone();
        numbers_of[which][100] ^= 4;
        PrivateKey::new(&numbers(&numbers_of)).unwrap()
    };
    let mut wiped = faulty(E + 1);
    wiped.wipe();
    let faulty = [faulty(P), faulty(Q), faulty(DP), faulty(DQ), faulty(QINV), wiped];
    let input = pair.input(random);
    for fault in &faulty {
        for filled in 1..=WIDTH {
            let place = random.below(filled);
            let of: Vec<_> = (0..filled)
                .map(|lane| (if lane == place { fault } else { &pair.key }, &input[..]))
                .collect();
            for (lane, result) in sign(&of).into_iter().enumerate() {
                if lane == place {
                    assert_eq!(result, Err(Failed));
                } else {
                    assert_eq!(pair.raised(&result.unwrap()), input);
                }
            }
        }
    }
}

#[test]
fn sizes_may_be_mixed_and_many() {
    if lacks(NEEDS) {
        return;
    }
    let random = &mut Random::new();
    let pairs = [1024, 2048, 1024, 3072].map(|bits| Pair::new(bits, F4));
    let chosen: Vec<_> = (0..30).map(|index| &pairs[index % 4 * (index % 7) % 4]).collect();
    let inputs: Vec<_> = chosen.iter().map(|pair| pair.input(random)).collect();
    let of: Vec<_> =
        chosen.iter().zip(&inputs).map(|(pair, input)| (&pair.key, &input[..])).collect();
    for ((pair, input), result) in chosen.iter().zip(&inputs).zip(sign(&of)) {
        assert_eq!(&pair.raised(&result.unwrap()), input);
    }
}

#[test]
fn long_public_exponents_are_products_of_short_ones() {
    if lacks(NEEDS) {
        return;
    }
    let random = &mut Random::new();
    let pair = Pair::new(2048, F4);
    for _ in 0..20 {
        let [one, other] = [(); 2].map(|()| random.word() >> 32 | 3);
        let key =
            |exponent: u64| PublicKey::new(&pair.numbers[N], &exponent.to_be_bytes()).unwrap();
        let (first, second, both) = (key(one), key(other), key(one * other));
        let input = pair.input(random);
        let results = raise(&[(&both, &input), (&first, &input), (pair.key.public(), &input)]);
        let step = results[1].as_ref().unwrap();
        assert_eq!(results[0], raise(&[(&second, step)])[0]);
        assert_eq!(results[2], Ok(pair.raised(&input)));
        let rsa = Rsa::public(&pair.numbers[N], &one.to_be_bytes()).unwrap();
        let mut expected = vec![0; input.len()];
        rsa.verify_raw(RsaPadding::None, &input, &mut expected).unwrap();
        assert_eq!(step, &expected);
    }
}

#[test]
fn keys_that_are_not_served_are_refused() {
    if lacks(NEEDS) {
        return;
    }
    let pair = Pair::new(2048, F4);
    let n = &pair.numbers[N];
    assert!(PublicKey::new(&[&[0, 0], &n[..]].concat(), &[0, 1, 0, 1]).is_ok());
    assert!(PublicKey::new(&plus(n, -1), F4).is_err(), "even");
    assert!(PublicKey::new(&n[1..], F4).is_err(), "short");
    let mut shorter = n.clone();
    shorter[0] &= 0x7f;
    assert!(PublicKey::new(&shorter, F4).is_err(), "2047 bits");
    for exponent in [&[][..], &[0], &[1], &[2], &[1, 0, 0, 0, 0, 0, 0, 0, 1]] {
        assert!(PublicKey::new(n, exponent).is_err());
    }
    for (which, number) in
        [(P, vec![]), (P, vec![0xff; 125]), (Q, vec![1]), (DP, vec![2]), (QINV, vec![1; 129])]
    {
        let mut of = pair.numbers.clone();
        of[which] = number;
        assert!(PrivateKey::new(&numbers(&of)).is_err());
    }
}

fn vectors(file: &str) -> Value {
    let path = format!("{}/../../../testdata/wycheproof/{file}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap().as_bytes();
    text.chunks(2)
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

#[test]
fn wycheproof_ciphertexts_come_out() {
    if lacks(NEEDS) {
        return;
    }
    let names = [
        "modulus",
        "publicExponent",
        "privateExponent",
        "prime1",
        "prime2",
        "exponent1",
        "exponent2",
        "coefficient",
    ];
    for file in ["rsa_pkcs1_2048_test", "rsa_pkcs1_4096_test"] {
        let file = vectors(file);
        let groups = list(&file, "testGroups").iter().map(|group| {
            let of: Vec<_> = names.iter().map(|name| hex(&group["privateKey"][name])).collect();
            (PrivateKey::new(&numbers(&of)).unwrap(), list(group, "tests"))
        });
        let groups: Vec<_> = groups.collect();
        let tests =
            groups.iter().flat_map(|(key, tests)| tests.iter().map(move |test| (key, test)));
        let tests: Vec<_> = tests.filter(|(_, test)| test["result"] == "valid").collect();
        assert!(tests.len() > 20);
        let inputs: Vec<_> = tests.iter().map(|(_, test)| hex(&test["ct"])).collect();
        let of: Vec<_> =
            tests.iter().zip(&inputs).map(|((key, _), input)| (*key, &input[..])).collect();
        for (result, (_, test)) in sign(&of).into_iter().zip(&tests) {
            let block = result.unwrap();
            assert!(block.starts_with(&[0, 2]));
            assert!(block.ends_with(&[&[0], &hex(&test["msg"])[..]].concat()), "{}", test["tcId"]);
        }
    }
}

fn hash_of(group: &Value) -> Option<Hash> {
    Some(match group["sha"].as_str()? {
        "SHA-1" => Hash::Sha1,
        "SHA-256" => Hash::Sha256,
        "SHA-384" => Hash::Sha384,
        "SHA-512" => Hash::Sha512,
        _ => return None,
    })
}

/// Raises good signatures: the block ends with the digest of the message.
#[test]
fn wycheproof_signatures_are_raised_and_made() {
    if lacks(NEEDS) {
        return;
    }
    let files = [
        "rsa_pkcs1_1024_sig_gen_test",
        "rsa_pkcs1_2048_sig_gen_test",
        "rsa_signature_3072_sha256_test",
        "rsa_signature_4096_sha512_test",
    ];
    for name in files {
        let file = vectors(name);
        for group in list(&file, "testGroups") {
            let Some(hash) = hash_of(group) else { continue };
            let generated = name.contains("gen");
            let key = &group[if generated { "privateKey" } else { "publicKey" }];
            let (n, e) = (hex(&key["modulus"]), hex(&key["publicExponent"]));
            let public = PublicKey::new(&n, &e).unwrap();
            let tests = list(group, "tests").iter().filter(|test| {
                test["result"] != "invalid" && hex(&test["sig"]).len() == public.size()
            });
            let tests: Vec<_> = tests.collect();
            let signatures: Vec<_> = tests.iter().map(|test| hex(&test["sig"])).collect();
            let of: Vec<_> = signatures.iter().map(|signature| (&public, &signature[..])).collect();
            let blocks: Vec<_> = raise(&of).into_iter().map(Result::unwrap).collect();
            for (block, test) in blocks.iter().zip(&tests) {
                let mut digest = vec![0; hash.length()];
                hash.digest(&hex(&test["msg"]), &mut digest).unwrap();
                assert!(
                    block.starts_with(&[0, 1, 0xff]) && block.ends_with(&digest),
                    "{name} {}",
                    test["tcId"]
                );
            }
            if !generated {
                continue;
            }
            let d = hex(&key["privateExponent"]);
            let rest = rsa_crt_values(&n, &e, &d, None).unwrap();
            let key = PrivateKey::new(&RsaNumbers {
                modulus: &n,
                public_exponent: &e,
                private_exponent: &d,
                prime_1: rest.prime_1.expose(),
                prime_2: rest.prime_2.expose(),
                exponent_1: rest.exponent_1.expose(),
                exponent_2: rest.exponent_2.expose(),
                coefficient: rest.coefficient.expose(),
            });
            let Ok(key) = key else {
                assert_eq!(e, [3], "the keys with this exponent have primes of other sizes");
                continue;
            };
            let of: Vec<_> = blocks.iter().map(|block| (&key, &block[..])).collect();
            assert_eq!(sign(&of), signatures.into_iter().map(Ok).collect::<Vec<_>>());
        }
    }
}

#[test]
fn time_does_not_depend_on_the_exponent() {
    if lacks(NEEDS) {
        return;
    }
    let random = &mut Random::new();
    let pair = Pair::new(1024, F4);
    // Neither is the key's exponent: both classes fail, after the same work.
    let key = |exponent: Vec<u8>| {
        let mut of = pair.numbers.clone();
        of[DP].clone_from(&exponent);
        of[DQ] = exponent;
        PrivateKey::new(&numbers(&of)).unwrap()
    };
    let mut other = random.bytes(64);
    other[63] |= 1;
    let keys = [key(vec![1]), key(other)];
    let input = pair.input(random);
    judge("RSA with a sparse and with a random exponent", random, 2_000, |class| {
        let results = sign(&[(&keys[class], &input[..]); WIDTH]);
        assert!(results.iter().all(Result::is_err));
    });
}

#[test]
fn multiplication_stays_in_registers() {
    // The squaring that looks a power up on its way has more values than there are registers. Its limit is the count of the code
    // that was measured at four fifths of the multipliers' rate; the hoisted loads that halve it are counted in hundreds more.
    for (name, one_in) in [("rsa::multiply::", 40), ("rsa::power::square_beside", 20)] {
        let (found, all) = (spills(name), disassembly(name).len());
        println!("{name}: {found} of {all}");
        assert!(
            found * one_in <= all,
            "{name} touches the stack {found} times in {all} instructions"
        );
    }
}
