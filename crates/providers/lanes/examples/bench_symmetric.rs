// SPDX-License-Identifier: Apache-2.0
//! AES, RC4 and triple DES: AWS-LC one message at a time, and the kernels, turn about in the same run. Prints MB/s (10^6 bytes
//! per second of the thread's CPU time, median of short batches). `bench_symmetric aes` runs what is so named.

#![expect(clippy::unwrap_used, reason = "a benchmark may fail")]

use metaslot_awslc_wrapper::aes as reference;
use metaslot_lanes::aes::{self, Counter, Stream};
use metaslot_lanes::data::{Data, Way};
use metaslot_lanes::des;
use metaslot_lanes::rc4::{self, Rc4};

/// Batches measured of each contestant.
const BATCHES: usize = 41;

/// Nanoseconds of CPU time that a batch takes, about.
const BATCH: f64 = 400_000.0;

/// The thread's CPU time, in nanoseconds.
fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on Linux, and `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds per call of each, the median of batches taken in turn.
fn race(contestants: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let rounds: Vec<usize> = contestants
        .iter_mut()
        .map(|run| {
            let mut rounds = 1;
            loop {
                let begin = now();
                (0..rounds).for_each(|_| run());
                let spent = now() - begin;
                if spent > BATCH {
                    return rounds;
                }
                rounds *= 2;
            }
        })
        .collect();
    let mut times = vec![Vec::new(); contestants.len()];
    for _ in 0..BATCHES {
        for ((run, rounds), times) in contestants.iter_mut().zip(&rounds).zip(&mut times) {
            let begin = now();
            (0..*rounds).for_each(|_| run());
            times.push((now() - begin) / *rounds as f64);
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    times.iter().map(|times| times[times.len() / 2]).collect()
}

/// One line: AWS-LC's rate and each kernel's, with the ratio.
fn line(what: &str, bytes: &[usize], times: &[f64]) {
    let rates: Vec<f64> =
        bytes.iter().zip(times).map(|(bytes, time)| *bytes as f64 * 1e3 / time).collect();
    print!("{what:<34}{:>9.0}", rates[0]);
    for rate in &rates[1..] {
        print!("{rate:>10.0} ({:>5.2}x)", rate / rates[0]);
    }
    println!();
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251).to_le_bytes()[0]).collect()
}

fn single(bits: usize, length: usize) {
    let key = text(bits / 8);
    let (ours, theirs) = (aes::Key::new(&key).unwrap(), reference::Keys::new(&key).unwrap());
    let plain = text(length);
    let (mut a, mut b) = (plain.clone(), plain.clone());

    let times = race(&mut [
        &mut || theirs.ctr(&mut reference::Counter::new([9; 16]), &plain, &mut a),
        &mut || ours.ctr(&mut Counter::new([9; 16], 128), Data::between(&plain, &mut b)),
    ]);
    assert_eq!(a, b);
    line(&format!("AES-{bits}-CTR {length}"), &[length; 2], &times);

    let times = race(&mut [
        &mut || theirs.cbc(reference::Way::Decrypt, &mut [9; 16], &plain, &mut a),
        &mut || ours.cbc_decrypt(&mut [9; 16], Data::between(&plain, &mut b)),
    ]);
    assert_eq!(a, b);
    line(&format!("AES-{bits}-CBC decrypt {length}"), &[length; 2], &times);

    for (way, theirs_way) in
        [(Way::Encrypt, reference::Way::Encrypt), (Way::Decrypt, reference::Way::Decrypt)]
    {
        let mut few = a.clone();
        let times = race(&mut [
            &mut || reference::ecb(&key, theirs_way, &plain, &mut a).unwrap(),
            &mut || theirs.ecb(theirs_way, &plain, &mut few),
            &mut || ours.ecb(way, Data::between(&plain, &mut b)),
        ]);
        assert_eq!(a, b);
        line(&format!("AES-{bits}-ECB {way:?} {length}"), &[length; 3], &times);
    }
}

fn many(bits: usize, length: usize) {
    let keys: Vec<_> = (0..32)
        .map(|at| {
            let key = vec![at; bits / 8];
            (aes::Key::new(&key).unwrap(), reference::Keys::new(&key).unwrap())
        })
        .collect();
    let plain = text(length);
    let mut alone = plain.clone();
    let lanes = [1, 2, 4, 8, 12, 16, 32];
    let mut outs = vec![vec![plain.clone(); 32]; lanes.len()];
    let mut kernels: Vec<_> = outs
        .iter_mut()
        .zip(lanes)
        .map(|(outs, lanes)| {
            let (keys, plain) = (&keys, &plain);
            move || {
                let mut ivs = [[9; 16]; 32];
                let mut streams: Vec<_> = outs
                    .iter_mut()
                    .zip(&mut ivs)
                    .zip(keys)
                    .take(lanes)
                    .map(|((out, iv), key)| Stream {
                        key: &key.0,
                        iv,
                        data: Data::between(plain, out),
                    })
                    .collect();
                aes::cbc_encrypt(&mut streams);
            }
        })
        .collect();
    let mut one = || keys[0].1.cbc(reference::Way::Encrypt, &mut [9; 16], &plain, &mut alone);
    let mut contestants: Vec<&mut dyn FnMut()> = vec![&mut one];
    contestants.extend(kernels.iter_mut().map(|kernel| kernel as &mut dyn FnMut()));
    let times = race(&mut contestants);
    drop(kernels);
    for outs in &outs {
        assert_eq!(alone, outs[0]);
    }
    let bytes: Vec<_> = [1].iter().chain(&lanes).map(|lanes| lanes * length).collect();
    line(&format!("AES-{bits}-CBC encrypt {length}"), &bytes, &times);
}

/// AWS-LC's triple DES in CBC mode.
fn reference_des(key: &[u8; 24], encrypt: bool, input: &[u8], out: &mut [u8]) {
    let schedules: Vec<aws_lc_sys::DES_key_schedule> =
        key.as_chunks::<8>().0.iter().map(schedule).collect();
    let mut iv = aws_lc_sys::DES_cblock { bytes: [9; 8] };
    // SAFETY: as many bytes are written as read; schedules are readable, the IV writable.
    unsafe {
        aws_lc_sys::DES_ede3_cbc_encrypt(
            input.as_ptr(),
            out.as_mut_ptr(),
            input.len(),
            &raw const schedules[0],
            &raw const schedules[1],
            &raw const schedules[2],
            &raw mut iv,
            i32::from(encrypt),
        );
    }
}

fn schedule(key: &[u8; 8]) -> aws_lc_sys::DES_key_schedule {
    let key = aws_lc_sys::DES_cblock { bytes: *key };
    let mut schedule = std::mem::MaybeUninit::uninit();
    // SAFETY: the key is readable, the schedule writable.
    unsafe { aws_lc_sys::DES_set_key_unchecked(&raw const key, schedule.as_mut_ptr()) };
    // SAFETY: it was written.
    unsafe { schedule.assume_init() }
}

fn des_single(length: usize) {
    let raw: [u8; 24] = text(24).try_into().unwrap();
    let key = des::Key::new(&raw).unwrap();
    let plain = text(length);
    let (mut a, mut b, mut c) = (plain.clone(), plain.clone(), plain.clone());
    let times = race(&mut [
        &mut || reference_des(&raw, false, &plain, &mut a),
        &mut || key.cbc_decrypt(&mut [9; 8], Data::between(&plain, &mut b)),
        &mut || key.ecb(Way::Encrypt, Data::between(&plain, &mut c)),
    ]);
    assert_eq!(a, b);
    line(&format!("3DES-CBC decrypt {length}, ECB"), &[length; 3], &times);
}

fn des_many(length: usize) {
    let raw: Vec<[u8; 24]> =
        (0..512_u32).map(|at| text(24 + at as usize)[at as usize..].try_into().unwrap()).collect();
    let keys: Vec<_> = raw.iter().map(|raw| des::Key::new(raw).unwrap()).collect();
    let plain = text(length);
    let mut alone = plain.clone();
    let lanes = [8, 16, 32, 128, 256, 512];
    let mut outs = vec![vec![plain.clone(); 512]; lanes.len()];
    let mut rooms: Vec<_> = lanes.iter().map(|_| des::Lanes::new()).collect();
    let mut kernels: Vec<_> = outs
        .iter_mut()
        .zip(&mut rooms)
        .zip(lanes)
        .map(|((outs, room), lanes)| {
            let (keys, plain) = (&keys, &plain);
            move || {
                let mut ivs = [[9; 8]; 512];
                let mut streams: Vec<_> = outs
                    .iter_mut()
                    .zip(&mut ivs)
                    .zip(keys)
                    .take(lanes)
                    .map(|((out, iv), key)| des::Stream {
                        key,
                        iv,
                        data: Data::between(plain, out),
                    })
                    .collect();
                room.cbc_encrypt(&mut streams);
            }
        })
        .collect();
    let mut one = || reference_des(&raw[7], true, &plain, &mut alone);
    let mut contestants: Vec<&mut dyn FnMut()> = vec![&mut one];
    contestants.extend(kernels.iter_mut().map(|kernel| kernel as &mut dyn FnMut()));
    let times = race(&mut contestants);
    drop(kernels);
    for outs in &outs {
        assert_eq!(alone, outs[7]);
    }
    let bytes: Vec<_> = [1].iter().chain(&lanes).map(|lanes| lanes * length).collect();
    line(&format!("3DES-CBC encrypt {length}"), &bytes, &times);
}

/// AWS-LC's RC4 from the start of the key stream.
fn reference_rc4(state: &mut aws_lc_sys::RC4_KEY, input: &[u8], out: &mut [u8]) {
    // SAFETY: as many bytes are written as read; the state was made.
    unsafe { aws_lc_sys::RC4(state, input.len(), input.as_ptr(), out.as_mut_ptr()) };
}

fn rc4_all(length: usize) {
    let mut theirs = std::mem::MaybeUninit::<aws_lc_sys::RC4_KEY>::uninit();
    // SAFETY: the key is readable, the state writable.
    unsafe { aws_lc_sys::RC4_set_key(theirs.as_mut_ptr(), 16, text(16).as_ptr()) };
    // SAFETY: it was written.
    let mut theirs = unsafe { theirs.assume_init() };
    let plain = text(length);
    let mut check = (plain.clone(), plain.clone());
    reference_rc4(&mut theirs.clone(), &plain, &mut check.0);
    Rc4::new(&text(16)).unwrap().apply(Data::between(&plain, &mut check.1));
    assert_eq!(check.0, check.1);

    let mut alone = plain.clone();
    let lanes = [1, 2, 3, 4, 8];
    let mut outs = vec![vec![plain.clone(); 8]; lanes.len()];
    let mut states: Vec<Vec<_>> = lanes
        .iter()
        .map(|lanes| (0..*lanes).map(|at| Rc4::new(&text(16 + at)[at..]).unwrap()).collect())
        .collect();
    let mut kernels: Vec<_> = outs
        .iter_mut()
        .zip(&mut states)
        .map(|(outs, states)| {
            let plain = &plain;
            move || {
                let streams = outs.iter_mut().zip(states.iter_mut());
                let mut streams: Vec<_> = streams
                    .map(|(out, state)| rc4::Stream { state, data: Data::between(plain, out) })
                    .collect();
                rc4::apply(&mut streams);
            }
        })
        .collect();
    let mut one = || reference_rc4(&mut theirs, &plain, &mut alone);
    let mut contestants: Vec<&mut dyn FnMut()> = vec![&mut one];
    contestants.extend(kernels.iter_mut().map(|kernel| kernel as &mut dyn FnMut()));
    let times = race(&mut contestants);
    let bytes: Vec<_> = [1].iter().chain(&lanes).map(|lanes| lanes * length).collect();
    line(&format!("RC4 {length}"), &bytes, &times);
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let run = |what: &str| wanted.is_empty() || wanted == what;
    if run("aes") {
        println!("{:<34}{:>9}{:>10}", "MB/s", "AWS-LC", "kernel");
        for bits in [128, 192, 256] {
            for length in [16, 64, 256, 1024, 8192, 65536] {
                single(bits, length);
            }
        }
    }
    if run("cbc") {
        println!("\nstreams side by side                 1, 2, 4, 8, 12, 16, 32");
        for bits in [128, 256] {
            for length in [16, 64, 256, 1024, 8192] {
                many(bits, length);
            }
        }
    }
    if run("rc4") {
        println!("\nstreams interleaved                 1, 2, 3, 4, 8");
        for length in [64, 1024, 8192] {
            rc4_all(length);
        }
    }
    if run("des") {
        println!("\ntriple DES, one message");
        for length in [64, 128, 1024, 4096, 8192, 65536] {
            des_single(length);
        }
        println!("streams side by side               8, 16, 32, 128, 256, 512");
        for length in [64, 1024, 8192] {
            des_many(length);
        }
    }
}
