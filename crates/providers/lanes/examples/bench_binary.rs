// SPDX-License-Identifier: Apache-2.0
//! The rates of the binary curves with 1 to 8 requests in a batch, against OpenSSL's of one request at a time (`openssl speed`, in
//! the same run). Thread's CPU clock, medians of short batches; results are checked.
//! `bench_binary [curve]`

use metaslot_lanes::binary::{
    BATCH, Curve, Derive, PrivateKey, PublicKey, Sign, Verify, derive, generate, sign, verify,
};
use std::process::Command;

/// The curves by SEC 2's and by `openssl speed`'s names.
const CURVES: [(Curve, &str); 5] = [
    (Curve::Sect163k1, "k163"),
    (Curve::Sect233k1, "k233"),
    (Curve::Sect283k1, "k283"),
    (Curve::Sect571k1, "k571"),
    (Curve::Sect571r1, "b571"),
];
const COUNTS: [usize; 5] = [1, 2, 3, 4, BATCH];

fn main() {
    println!("side by side: {}", metaslot_lanes::binary::available());
    println!(
        "per second        OpenSSL {}     ratio at 4, at 8",
        COUNTS.map(|n| format!("{n:>9}")).concat()
    );
    let wanted = std::env::args().nth(1);
    for (curve, name) in CURVES {
        if wanted.as_ref().is_some_and(|wanted| wanted != curve.name()) {
            continue;
        }
        let Ok(pairs) = generate(curve, BATCH) else { return };
        let (signing, verifying) = openssl(&format!("ecdsa{name}"));
        let (deriving, _) = openssl(&format!("ecdh{name}"));
        line(curve, "sign", signing, |count| sign_some(curve, &pairs[..count]));
        line(curve, "ECDH", deriving, |count| derive_some(curve, &pairs[..count]));
        let signatures = sign_some(curve, &pairs);
        line(curve, "verify", verifying, |count| verify_some(&pairs[..count], &signatures));
        line(curve, "generate", f64::NAN, |count| {
            assert_eq!(generate(curve, count).map(|keys| keys.len()), Ok(count));
        });
    }
}

type Pair = (PrivateKey, PublicKey);

fn sign_some(curve: Curve, pairs: &[Pair]) -> Vec<Vec<u8>> {
    let mut out = vec![vec![0; 2 * curve.order_length()]; pairs.len()];
    let mut requests: Vec<_> = pairs
        .iter()
        .zip(&mut out)
        .map(|((key, _), out)| Sign::new(key, &[0x5a; 32], out))
        .collect();
    sign(&mut requests);
    assert!(requests.iter().all(|request| request.answer.is_ok()));
    out
}

fn derive_some(curve: Curve, pairs: &[Pair]) {
    let mut out = vec![vec![0; curve.field_length()]; pairs.len()];
    let (_, peer) = &pairs[0];
    let requests = pairs.iter().zip(&mut out);
    let mut requests: Vec<_> =
        requests.map(|((key, _), out)| Derive::new(key, peer, false, out)).collect();
    derive(&mut requests);
    assert!(requests.iter().all(|request| request.answer.is_ok()));
}

fn verify_some(pairs: &[Pair], signatures: &[Vec<u8>]) {
    let requests = pairs.iter().zip(signatures);
    let mut requests: Vec<_> =
        requests.map(|((_, key), signature)| Verify::new(key, &[0x5a; 32], signature)).collect();
    verify(&mut requests);
    assert!(requests.iter().all(|request| request.answer.is_ok()));
}

fn line<T>(curve: Curve, what: &str, openssl: f64, mut run: impl FnMut(usize) -> T) {
    let rates = COUNTS.map(|count| rate(count, || drop(run(count))));
    let columns = rates.map(|rate| format!("{rate:9.0}")).concat();
    println!(
        "{:<10}{what:<9}{openssl:7.0} {columns}   {:8.1} {:8.1}",
        curve.name(),
        rates[3] / openssl,
        rates[4] / openssl
    );
}

/// Operations per second, of which a call does `count`: the median of 60 batches of about 3 ms.
fn rate(count: usize, mut run: impl FnMut()) -> f64 {
    let mut time = |calls: u32| {
        let before = thread_seconds();
        for _ in 0..calls {
            run();
        }
        (thread_seconds() - before) / f64::from(calls)
    };
    time(3);
    let estimate = time(5);
    let calls = (1..=10_000).find(|calls| f64::from(*calls) * estimate > 0.003).unwrap_or(1);
    let mut times: Vec<f64> = (0..60).map(|_| time(calls)).collect();
    times.sort_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "at most eight")]
    let count = count as f64;
    count / times[times.len() / 2]
}

/// The last two numbers that `openssl speed` prints: for ECDSA the signatures and the verifications per second, for ECDH
/// the second one is the rate.
fn openssl(what: &str) -> (f64, f64) {
    let out = Command::new("openssl").args(["speed", "-seconds", "1", what]).output();
    let text = out.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    let last = text.lines().last().unwrap_or_default();
    let numbers: Vec<f64> = last.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [.., first, second] if what.starts_with("ecdsa") => (first, second),
        [.., rate] => (rate, f64::NAN),
        [] => (f64::NAN, f64::NAN),
    }
}

fn thread_seconds() -> f64 {
    #[repr(C)]
    struct Time {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Time) -> i32;
    }
    const THREAD: i32 = 3;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: Linux's timespec on 64-bit machines, writable.
    unsafe { clock_gettime(THREAD, &raw mut time) };
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let seconds = time.seconds as f64 + time.nanoseconds as f64 * 1e-9;
    seconds
}
