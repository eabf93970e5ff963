// SPDX-License-Identifier: Apache-2.0
//! What hosts were promised holds for OpenSSL too: forks at any moment, small stacks, protected keys, and nothing that runs by itself.
#![cfg(all(feature = "library", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_openssl::{OPENSSL, fork};
use metaslot_spi::provider::{Algorithm, Direction, Provider};
use metaslot_spi::{Attributes, Bytes, Key, Material, Params, Secrets, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn row(mechanism: CK_MECHANISM_TYPE) -> &'static Algorithm {
    OPENSSL.algorithms().iter().find(|row| row.mechanism == mechanism).unwrap()
}

fn secret(value: Secret) -> Arc<Key> {
    let attributes: Attributes =
        [(CKA_CLASS, Value::Ulong(CKO_SECRET_KEY)), (CKA_KEY_TYPE, Value::Ulong(CKK_AES))]
            .into_iter()
            .collect();
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, value);
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

/// Parameters, of which a mechanism takes the first that its check lets pass.
fn params() -> Vec<Params> {
    let nonce = |length| Bytes::from_vec(vec![7; length]);
    let aad = Bytes::new;
    vec![
        Params::None,
        Params::Ulong(10),
        Params::Iv(nonce(16)),
        Params::Ctr { bits: 128, block: [7; 16] },
        Params::Gcm { iv: nonce(12), aad: aad(), tag_bits: 128 },
        Params::Ccm { data_length: 32, nonce: nonce(12), aad: aad(), mac_length: 16 },
        Params::ChaCha20Poly1305 { nonce: nonce(12), aad: aad() },
        Params::Iv(nonce(12)),
    ]
}

/// Every operation with this key, in parts where it has them.
fn everything_with(key: &Arc<Key>) {
    let (params, data) = (params(), [9; 32]);
    for row in OPENSSL.algorithms() {
        if let Some(digest) = row.digest {
            let mut out = vec![0; digest.length()];
            digest.digest(&data, &mut out).unwrap();
            digest.start().unwrap().update(&data).unwrap();
        }
        if let Some(sign) = row.sign {
            let fits = |params: &&Params| sign.check(Direction::Forward, key, params).is_ok();
            let Some(params) = params.iter().find(fits) else { continue };
            let mut out = vec![0; sign.length(key, params)];
            sign.sign(key, params, &data, &mut out).unwrap();
            let mut stream = sign.start(Direction::Forward, key, params).unwrap();
            stream.update(&data).unwrap();
            stream.sign(&mut out).unwrap();
        }
        if let Some(cipher) = row.encrypt {
            let fits = |params: &&Params| cipher.check(Direction::Forward, key, params).is_ok();
            let Some(params) = params.iter().find(fits) else { continue };
            let (forward, backward) = (Direction::Forward, Direction::Backward);
            let mut out = vec![0; cipher.length(forward, key, params, data.len()).unwrap()];
            let length = cipher.run(forward, key, params, &data, &mut out).unwrap();
            let mut back = vec![0; cipher.length(backward, key, params, length).unwrap()];
            let length =
                row.decrypt.unwrap().run(backward, key, params, &out[..length], &mut back).unwrap();
            assert_eq!(back[..length], data);
        }
    }
}

fn everything() {
    let value: Vec<u8> = (1..=32).collect();
    everything_with(&secret(Secret::copy_of(&value)));
}

/// Runs `body` in a child, which must end well.
fn in_child(body: impl FnOnce() + std::panic::UnwindSafe) {
    fork::before();
    // SAFETY: the child uses this crate's own state and exits.
    let child = unsafe { libc::fork() };
    fork::after();
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
fn children_of_a_busy_process_can_do_everything() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    everything();
                }
            });
        }
        for _ in 0..50 {
            in_child(|| {
                everything();
                in_child(everything);
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn small_stacks_are_large_enough() {
    let small = thread::Builder::new().stack_size(128 * 1024).spawn(everything).unwrap();
    small.join().unwrap();
}

#[test]
fn one_thread_does_the_work_and_no_file_is_open() {
    in_child(|| {
        let count = |directory| std::fs::read_dir(directory).unwrap().count();
        let before = (count("/proc/self/task"), count("/proc/self/fd"));
        everything();
        assert_eq!((count("/proc/self/task"), count("/proc/self/fd")), before);
    });
}

/// What the library keeps would be wiped in a child if it lay in the arena, and a key would not if it lay elsewhere.
#[test]
fn keys_and_states_are_in_the_arena_and_nothing_else_is() {
    // A child has an arena of its own, and no thread beside this one.
    in_child(|| {
        let live = || metaslot_memory::stats().live;
        let value: Vec<u8> = (1..=32).collect();
        let key = secret(Secret::copy_of(&value));
        let bare = live();
        everything_with(&key);
        assert!(live() > bare, "its forms are in the arena");
        drop(key);
        assert_eq!(live(), 0, "and go with it");
        let digest = row(CKM_SHA256).digest.unwrap().start().unwrap();
        assert!(live() > 0);
        drop(digest);
        assert_eq!(live(), 0);
    });
}
