// SPDX-License-Identifier: Apache-2.0
//! RSA: AWS-LC one request at a time beside the kernel with one to eight lanes filled, and how near that is to what the
//! multiplier of the machine can do. Thread CPU time, medians of short batches, all measured in turn; results are compared.
//! Arguments are the sizes to measure, in bits; all without.

use metaslot_awslc_wrapper::random;
use metaslot_awslc_wrapper::rsa::{Rsa, RsaNumber, RsaNumbers, RsaPadding};
use metaslot_lanes::rsa::{
    PrivateKey, PrivateRequest, PublicKey, PublicRequest, WIDTH, available, private, public,
};

const ROUNDS: usize = 31;
const EXPONENT: [u8; 3] = [1, 0, 1];

fn main() {
    if !available() {
        println!("this machine has no AVX-512 IFMA");
        return;
    }
    println!(
        "microseconds for one operation; the limit is what vpmadd52 alone would take, measured in between\n"
    );
    let chosen: Vec<usize> =
        std::env::args().skip(1).filter_map(|bits| bits.parse().ok()).collect();
    for bits in [1024, 2048, 3072, 4096] {
        if chosen.is_empty() || chosen.contains(&bits) {
            measure(bits);
        }
    }
}

/// One size, both operations.
fn measure(bits: usize) {
    let keys: Vec<_> = (0..WIDTH.min(8192 / bits)).map(|_| Key::new(bits)).collect();
    let mut lanes: Vec<_> = (0..WIDTH).map(|lane| Lane::new(&keys[lane % keys.len()])).collect();
    let mut private_times = vec![Vec::new(); WIDTH + 1];
    let mut public_times = private_times.clone();
    let mut multiplications = Vec::new();
    for _ in 0..ROUNDS {
        multiplications.push(multiplication());
        private_times[0].push(time(2, || lanes[0].sign()));
        public_times[0].push(time(20, || lanes[0].verify()));
        for filled in 1..=WIDTH {
            private_times[filled].push(time(1, || sign(&mut lanes[..filled])) / filled as f64);
            public_times[filled].push(time(5, || verify(&mut lanes[..filled])) / filled as f64);
        }
    }
    for lane in &mut lanes {
        lane.sign();
        assert_eq!(lane.output, lane.expected, "the kernel and AWS-LC differ");
        lane.verify();
        assert_eq!(lane.input, lane.raised, "what was signed does not come back");
    }
    let each = median(multiplications);
    report(&format!("{bits} private"), private_times, private_count(bits) / 8.0 * each);
    report(&format!("{bits} public"), public_times, public_count(bits) / 8.0 * each);
    println!("{:13} {:.2} G vpmadd52/s\n", "", 1e-9 / each);
}

fn report(what: &str, times: Vec<Vec<f64>>, limit: f64) {
    let medians: Vec<_> = times.into_iter().map(median).collect();
    let (single, full) = (medians[0], medians[WIDTH]);
    print!("{what:13} AWS-LC {:8.1}   lanes", single * 1e6);
    for time in &medians[1..] {
        print!(" {:7.1}", time * 1e6);
    }
    println!(
        "   {:5.2} x   {:7.0}/s   limit {:7.1} us, reached {:3.0} %",
        single / full,
        1.0 / full,
        limit * 1e6,
        100.0 * limit / full
    );
}

/// Multiplications of 52 bits that a batch of eight private operations takes: exponentiation modulo both primes, blinding,
/// recombination and the check.
fn private_count(bits: usize) -> f64 {
    let n = (bits / 1024 * 10) as f64;
    let windows = (bits as f64 / 2.0 / 5.0).ceil();
    let powers = 15.0 * (square(n) + product(n)) + (windows - 1.0) * (5.0 * square(n) + product(n));
    let blinding = 16.0 * square(n) + 5.0 * product(n) + 2.0 * n * n;
    2.0 * (powers + blinding) + 2.0 * product(n) + 4.0 * n * n + public_count(bits)
}

fn public_count(bits: usize) -> f64 {
    let n = (bits / 1024 * 20) as f64;
    2.0 * product(n) + 16.0 * square(n)
}

fn product(n: f64) -> f64 {
    4.0 * n * n
}

fn square(n: f64) -> f64 {
    n * (n + 1.0) + 2.0 * n * n
}

struct Key {
    rsa: Rsa,
    private: PrivateKey,
    public: PublicKey,
}

impl Key {
    fn new(bits: usize) -> Self {
        let bits = u32::try_from(bits).expect("sizes are small");
        let rsa = Rsa::generate(bits, &EXPONENT).expect("a key can be made");
        let number = |which| {
            let mut bytes = vec![0; rsa.number_length(which).expect("keys have all numbers")];
            rsa.write_number(which, &mut bytes).expect("it fits");
            bytes
        };
        let private = PrivateKey::new(&RsaNumbers {
            modulus: &number(RsaNumber::Modulus),
            public_exponent: &EXPONENT,
            private_exponent: &[],
            prime_1: &number(RsaNumber::Prime1),
            prime_2: &number(RsaNumber::Prime2),
            exponent_1: &number(RsaNumber::Exponent1),
            exponent_2: &number(RsaNumber::Exponent2),
            coefficient: &number(RsaNumber::Coefficient),
        });
        let public = PublicKey::new(&number(RsaNumber::Modulus), &EXPONENT);
        Self { private: private.expect("it is good"), public: public.expect("it is good"), rsa }
    }
}

struct Lane<'a> {
    key: &'a Key,
    input: Vec<u8>,
    output: Vec<u8>,
    expected: Vec<u8>,
    raised: Vec<u8>,
}

impl<'a> Lane<'a> {
    fn new(key: &'a Key) -> Self {
        let zeros = vec![0; key.rsa.size()];
        let mut input = zeros.clone();
        random::fill(&mut input[1..]).expect("random numbers");
        Self { key, input, output: zeros.clone(), expected: zeros.clone(), raised: zeros }
    }

    fn sign(&mut self) {
        self.key
            .rsa
            .sign_raw(RsaPadding::None, &self.input, &mut self.expected)
            .expect("AWS-LC signs");
    }

    fn verify(&mut self) {
        self.key
            .rsa
            .verify_raw(RsaPadding::None, &self.expected, &mut self.raised)
            .expect("AWS-LC raises");
    }
}

fn sign(lanes: &mut [Lane<'_>]) {
    let mut requests: Vec<_> = lanes
        .iter_mut()
        .map(|lane| PrivateRequest {
            key: &lane.key.private,
            input: &lane.input,
            output: &mut lane.output,
            result: Ok(()),
        })
        .collect();
    private(&mut requests);
    assert!(requests.iter().all(|request| request.result.is_ok()));
}

fn verify(lanes: &mut [Lane<'_>]) {
    let mut requests: Vec<_> = lanes
        .iter_mut()
        .map(|lane| PublicRequest {
            key: &lane.key.public,
            input: &lane.input,
            output: &mut lane.raised,
            result: Ok(()),
        })
        .collect();
    public(&mut requests);
    assert!(requests.iter().all(|request| request.result.is_ok()));
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn time(count: usize, mut run: impl FnMut()) -> f64 {
    let before = clock();
    (0..count).for_each(|_| run());
    (clock() - before) / count as f64
}

/// This thread's CPU time, in seconds.
fn clock() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Time of a multiplication of 512 bits when only their number counts.
fn multiplication() -> f64 {
    const TURNS: u32 = 50_000;
    time(1, || multiply(TURNS.into())) / 16.0 / f64::from(TURNS)
}

/// Sixteen independent chains.
#[cfg(target_arch = "x86_64")]
fn multiply(turns: u64) {
    // SAFETY: only registers that are named as changed are written; the caller asked for the instructions.
    unsafe {
        std::arch::asm!(
            "2:",
            "vpmadd52luq zmm0, zmm31, zmm31", "vpmadd52luq zmm1, zmm31, zmm31",
            "vpmadd52luq zmm2, zmm31, zmm31", "vpmadd52luq zmm3, zmm31, zmm31",
            "vpmadd52luq zmm4, zmm31, zmm31", "vpmadd52luq zmm5, zmm31, zmm31",
            "vpmadd52luq zmm6, zmm31, zmm31", "vpmadd52luq zmm7, zmm31, zmm31",
            "vpmadd52huq zmm16, zmm31, zmm31", "vpmadd52huq zmm17, zmm31, zmm31",
            "vpmadd52huq zmm18, zmm31, zmm31", "vpmadd52huq zmm19, zmm31, zmm31",
            "vpmadd52huq zmm20, zmm31, zmm31", "vpmadd52huq zmm21, zmm31, zmm31",
            "vpmadd52huq zmm22, zmm31, zmm31", "vpmadd52huq zmm23, zmm31, zmm31",
            "dec {turns}",
            "jnz 2b",
            turns = inout(reg) turns => _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
            out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
            out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
            options(nomem, nostack),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn multiply(_turns: u64) {}
