// SPDX-License-Identifier: Apache-2.0
//! What a host does to descriptors and processes harms neither it nor an operation of the kernel's that is under way. Where the kernel
//! has nothing there is nothing to harm, and the provider says why.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_kernel::Kernel;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Direction, Provider};
use metaslot_spi::{Attributes, Bytes, Key, Material, Params, Secrets, Value};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

static KERNEL: Kernel = Kernel::beside(&AWSLC);

fn row(mechanism: CK_MECHANISM_TYPE) -> Option<&'static Algorithm> {
    KERNEL.algorithms().iter().find(|row| row.mechanism == mechanism)
}

/// Whether the kernel has what these tests use.
fn is_there() -> bool {
    let there = [CKM_SHA256, CKM_SHA256_HMAC, CKM_AES_CBC, CKM_AES_GCM].map(row);
    println!("{}", KERNEL.remark(CKM_SHA256));
    there.iter().all(Option::is_some)
}

fn digest(data: &[u8]) -> Result<Vec<u8>> {
    let mut out = vec![0; 32];
    row(CKM_SHA256).unwrap().digest.unwrap().digest(data, &mut out)?;
    Ok(out)
}

/// SHA-256 of `abc` (FIPS 180-2 B.1).
const ABC: [u8; 32] = [
    0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
];

fn key() -> Arc<Key> {
    let mut attributes = Attributes::new();
    attributes.set(CKA_CLASS, Value::Ulong(CKO_SECRET_KEY));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_AES));
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, Secret::copy_of(&[7; 32]));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

/// Encrypts and decrypts.
fn both_ways(mechanism: CK_MECHANISM_TYPE, params: &Params, data: &[u8]) -> Result<()> {
    let (row, key) = (row(mechanism).unwrap(), key());
    let (encrypt, decrypt) = (row.encrypt.unwrap(), row.decrypt.unwrap());
    let mut sealed = vec![0; encrypt.length(Direction::Forward, &key, params, data.len())?];
    let length = encrypt.run(Direction::Forward, &key, params, data, &mut sealed)?;
    let mut opened = vec![0; length];
    let length = decrypt.run(Direction::Backward, &key, params, &sealed, &mut opened)?;
    assert!(opened[..length] == *data);
    Ok(())
}

/// Every kind of operation, with results that are looked at.
fn everything() {
    assert_eq!(digest(b"abc").unwrap(), ABC);
    let mut stream = row(CKM_SHA256).unwrap().digest.unwrap().start().unwrap();
    b"abc".chunks(1).for_each(|byte| stream.update(byte).unwrap());
    let mut out = [0; 32];
    stream.finish(&mut out).unwrap();
    assert_eq!(out, ABC);
    let iv = |length| Bytes::from_vec(vec![3; length]);
    let gcm = Params::Gcm { iv: iv(12), aad: Bytes::new(), tag_bits: 128 };
    both_ways(CKM_AES_CBC, &Params::Iv(iv(16)), &[5; 9008]).unwrap();
    both_ways(CKM_AES_GCM, &gcm, &[5; 9001]).unwrap();
    let (hmac, key) = (row(CKM_SHA256_HMAC).unwrap(), key());
    let mut mac = [0; 32];
    hmac.sign.unwrap().sign(&key, &Params::None, b"abc", &mut mac).unwrap();
    assert_eq!(hmac.verify.unwrap().verify(&key, &Params::None, b"abc", &mac), Ok(()));
}

/// Runs `body` in a child, which must end well.
fn in_child(body: impl FnOnce() + std::panic::UnwindSafe) {
    // SAFETY: the child uses what this file and the provider have, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A child that waits for a lock of its parent's ends here.
        // SAFETY: only a time is set.
        unsafe { libc::alarm(60) };
        let fine = std::panic::catch_unwind(body).is_ok();
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    let mut status = -1;
    // SAFETY: `status` is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}

#[test]
fn a_mechanism_is_there_or_it_is_said_why_not() {
    let all: Vec<_> = (0..=CKM_AES_CMAC_GENERAL.max(CKM_CHACHA20_POLY1305))
        .filter(|mechanism| row(*mechanism).is_some() || !KERNEL.remark(*mechanism).is_empty())
        .collect();
    assert_eq!(all.len(), 35);
    for mechanism in all {
        let (there, remark) = (row(mechanism).is_some(), KERNEL.remark(mechanism));
        println!("{mechanism:#x} {there} {remark}");
        assert_eq!(there, remark.is_empty());
        let must = std::env::var_os("METASLOT_TEST_KERNEL").is_some();
        assert!(there || !must, "{mechanism:#x}: {remark}");
    }
}

#[test]
fn a_descriptor_that_the_host_closed_and_uses_is_left_alone() {
    if !is_there() {
        return;
    }
    in_child(|| {
        let mut streams: Vec<_> =
            (0..4).map(|_| row(CKM_SHA256).unwrap().digest.unwrap().start().unwrap()).collect();
        streams.iter_mut().for_each(|stream| stream.update(b"ab").unwrap());
        // SAFETY: nothing of this process that is open is used from here on.
        assert_eq!(unsafe { libc::close_range(3, u32::MAX, 0) }, 0);
        let mut hosts: Vec<_> = (0..4).map(|_| UnixStream::pair().unwrap()).collect();
        for stream in &mut streams {
            assert_eq!(stream.update(b"c"), Err(Error::DEVICE_ERROR));
            assert_eq!(stream.finish(&mut [0; 32]), Err(Error::DEVICE_ERROR));
        }
        drop(streams);
        for (one, other) in &mut hosts {
            one.set_nonblocking(true).unwrap();
            let nothing = one.read(&mut [0; 8]).unwrap_err();
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock, "it was closed, or written to");
            drop(other.try_clone().unwrap());
        }
        everything();
    });
}

#[test]
fn a_child_adds_nothing_to_what_its_parent_hashes() {
    if !is_there() {
        return;
    }
    let digest = row(CKM_SHA256).unwrap().digest.unwrap();
    let mut stream = digest.start().unwrap();
    stream.update(b"a").unwrap();
    let inherited = std::sync::Mutex::new(stream);
    in_child(|| {
        let mut stream = inherited.lock().unwrap();
        assert_eq!(stream.update(b"x"), Err(Error::DEVICE_ERROR));
        assert_eq!(stream.finish(&mut [0; 32]), Err(Error::DEVICE_ERROR));
        everything();
    });
    let mut stream = inherited.into_inner().unwrap();
    stream.update(b"bc").unwrap();
    let mut out = [0; 32];
    stream.finish(&mut out).unwrap();
    assert_eq!(out, ABC);
}

#[test]
fn without_descriptors_it_fails_as_a_device_does_and_works_again() {
    if !is_there() {
        return;
    }
    in_child(|| {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Nofile);
        let params = Params::Iv(Bytes::from_vec(vec![3; 16]));
        // With one descriptor an algorithm is there, and nothing can be done with it.
        for left in [0, 1] {
            // No number below the last is free.
            let held: Vec<_> = (0..64).map(|_| fs::File::open("/").unwrap()).collect();
            let last = held.iter().map(AsRawFd::as_raw_fd).max().unwrap();
            let limit = u64::try_from(last).unwrap() + 1 + left;
            setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..before }).unwrap();
            assert_eq!(digest(b"abc"), Err(Error::DEVICE_ERROR));
            assert_eq!(both_ways(CKM_AES_CBC, &params, &[0; 32]), Err(Error::DEVICE_ERROR));
            let digest = row(CKM_SHA256).unwrap().digest.unwrap();
            assert_eq!(digest.start().err(), Some(Error::DEVICE_ERROR));
            setrlimit(Resource::Nofile, before).unwrap();
        }
        everything();
    });
}

/// The kernel looks at no tag where it has nothing to give back.
#[test]
fn an_empty_message_is_authenticated_as_every_other() {
    let nonce = || Bytes::from_vec(vec![3; 12]);
    let gcm = |tag_bits| Params::Gcm { iv: nonce(), aad: Bytes::new(), tag_bits };
    let chacha = Params::ChaCha20Poly1305 { nonce: nonce(), aad: Bytes::new() };
    for (mechanism, params) in
        [(CKM_AES_GCM, gcm(128)), (CKM_AES_GCM, gcm(32)), (CKM_CHACHA20_POLY1305, chacha)]
    {
        let Some(row) = row(mechanism) else { continue };
        both_ways(mechanism, &params, &[]).unwrap();
        let (decrypt, forged) = (row.decrypt.unwrap(), [0; 16]);
        let forged = match params {
            Params::Gcm { tag_bits: 32, .. } => &forged[..4],
            _ => &forged,
        };
        let opened = decrypt.run(Direction::Backward, &key(), &params, forged, &mut []);
        assert_eq!(opened, Err(Error::ENCRYPTED_DATA_INVALID));
    }
}

#[test]
fn nothing_stays_open() {
    if !is_there() {
        return;
    }
    in_child(|| {
        let count = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = count();
        everything();
        assert_eq!(count(), before);
        let stream = row(CKM_SHA256).unwrap().digest.unwrap().start().unwrap();
        assert_eq!(count(), before + 1);
        drop(stream);
        assert_eq!(count(), before);
    });
}

/// Results are looked at: what the kernel wrote into a page that a fork had shared would be the child's.
#[test]
fn threads_and_children_of_a_busy_process_can_do_everything() {
    if !is_there() {
        return;
    }
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also where an assertion fails.
        let _stop = Stop(&stop);
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    everything();
                }
            });
        }
        for _ in 0..20 {
            in_child(|| {
                everything();
                in_child(everything);
            });
        }
    });
}
