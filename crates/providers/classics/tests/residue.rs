// SPDX-License-Identifier: Apache-2.0
//! Nothing of a key stays in the process once it is gone: not on the heap, not on the stack, not in the arena.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_classics::CLASSICS;
use metaslot_spi::provider::{Algorithm, Direction, Keys, Provider};
use metaslot_spi::{Attributes, Bytes, Key, Material, Params, Value};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Patterns are kept masked, so that the search does not find itself.
const MASK: u8 = 0xa5;
/// As much of a key as is looked for, in bytes.
const WINDOW: usize = 8;
const PAGE: usize = 4096;

/// Where the beginnings of keys are in writable memory.
fn search(masked: &[[u8; WINDOW]]) -> Vec<String> {
    let memory = File::open("/proc/self/mem").unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut firsts = [false; 256];
    masked.iter().for_each(|pattern| firsts[usize::from(pattern[0] ^ MASK)] = true);
    let fits = |window: &[u8]| {
        masked.iter().any(|pattern| window.iter().zip(pattern).all(|(a, b)| a ^ MASK == *b))
    };
    let mut hits = Vec::new();
    let mut buffer = vec![0; PAGE + WINDOW - 1];
    let own = buffer.as_ptr() as u64..buffer.as_ptr() as u64 + buffer.len() as u64;
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (range, name) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        for page in (start..end).step_by(PAGE) {
            // A little of the next page too, for what crosses the boundary.
            let Ok(length) = memory.read_at(&mut buffer, page) else { break };
            if buffer[..length].starts_with(&[0; PAGE]) {
                continue;
            }
            for at in 0..length.saturating_sub(WINDOW - 1) {
                let place = page + at as u64;
                if firsts[usize::from(buffer[at])]
                    && fits(&buffer[at..at + WINDOW])
                    && !own.contains(&place)
                {
                    hits.push(format!("{place:x} in {name}"));
                }
            }
        }
    }
    hits
}

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

fn made(row: &Algorithm, key_type: CK_KEY_TYPE) -> Arc<Key> {
    let mut template = Attributes::new();
    template.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    template.set(CKA_CLASS, Value::Ulong(CKO_SECRET_KEY));
    let generate = row.generate.unwrap();
    let new = generate.generate(&Params::None, &template).unwrap_or_else(|_| {
        template.set(CKA_VALUE_LEN, Value::Ulong(16));
        generate.generate(&Params::None, &template).unwrap()
    });
    Arc::new(Key::new(Arc::new(template), Arc::new(Material::new(new.secrets))))
}

fn params(row: &MechanismRow) -> Params {
    let bytes = |length| Bytes::from_elem(7, length);
    let tuned = |by, iv, mac| Params::Tuned { by, iv, mac };
    match row.shape {
        Shape::Iv(length) => Params::Iv(bytes(length)),
        Shape::Ulong => Params::Ulong(8),
        Shape::Ctr => Params::Ctr { bits: 64, block: [7; 16] },
        Shape::StringData => Params::Data { iv: Bytes::new(), data: bytes(32) },
        Shape::CbcData(length) => Params::Data { iv: bytes(length), data: bytes(32) },
        Shape::Salsa20 => Params::Salsa20 { counter: 0, nonce: bytes(24) },
        Shape::Rc2 => tuned([128, 0], Bytes::new(), 0),
        Shape::Rc2Cbc => tuned([128, 0], bytes(8), 0),
        Shape::Rc2Mac => tuned([128, 0], Bytes::new(), 8),
        Shape::Rc5 => tuned([4, 12], Bytes::new(), 0),
        Shape::Rc5Cbc => tuned([4, 12], bytes(8), 0),
        Shape::Rc5Mac => tuned([4, 12], Bytes::new(), 8),
        _ => Params::None,
    }
}

fn uses(row: &Algorithm, key: &Arc<Key>, params: &Params) {
    let (data, forward) = ([0x42; 64], Direction::Forward);
    if let Some(cipher) = row.encrypt {
        let length = cipher.length(forward, key, params, data.len()).unwrap();
        let mut sealed = vec![0; length];
        cipher.run(forward, key, params, &data, &mut sealed).unwrap();
        let mut opened = vec![0; length];
        cipher.run(Direction::Backward, key, params, &sealed, &mut opened).unwrap();
        // Wrong padding, where there is any.
        cipher.run(Direction::Backward, key, params, &data, &mut opened).ok();
        let mut stream = cipher.start(forward, key, params).unwrap();
        let mut out = vec![0; stream.update_length(40)];
        stream.update(&data[..40], &mut out).unwrap();
        // Left in the middle.
    }
    if let Some(mac) = row.sign {
        let mut out = vec![0; mac.length(key, params)];
        mac.sign(key, params, &data, &mut out).unwrap();
        mac.start(forward, key, params).unwrap().update(&data[..9]).unwrap();
    }
    if let Some(derive) = row.derive {
        drop(derive.derive(key, params, &[16], &NoKeys).unwrap());
    }
}

/// How deep the stack is looked at, in bytes.
const DEPTH: usize = 32 * 1024;

/// Whether the beginning of a key is below this frame, where `run` has been.
#[inline(never)]
fn leaves_in_stack(masked: [u8; WINDOW], run: impl FnOnce()) -> bool {
    let memory = File::open("/proc/self/mem").unwrap();
    let mut below = vec![0; DEPTH];
    let here = std::hint::black_box(0_u8);
    let end = (&raw const here).addr() as u64;
    run();
    memory.read_exact_at(&mut below, end - DEPTH as u64).unwrap();
    below.windows(WINDOW).any(|window| window.iter().zip(masked).all(|(a, b)| a ^ MASK == b))
}

/// A key that was used in every way: what to look for.
fn used(generates: &Algorithm) -> [u8; WINDOW] {
    let key_type = MechanismRow::find(generates.mechanism).unwrap().keys[0];
    let key = made(generates, key_type);
    let masked = std::array::from_fn(|at| key.secret(CKA_VALUE).unwrap()[at] ^ MASK);
    for row in CLASSICS.algorithms() {
        let known = MechanismRow::find(row.mechanism).unwrap();
        if known.keys.contains(&key_type) && row.generate.is_none() {
            let params = params(known);
            let left = leaves_in_stack(masked, || uses(row, &key, &params));
            assert!(!left, "{:?} leaves its key in the stack", mechanism_name(row.mechanism));
            let mut stream = None;
            let left = leaves_in_stack(masked, || {
                stream = row.encrypt.map(|it| it.start(Direction::Forward, &key, &params));
            });
            assert!(!left, "{:?} leaves its key in the stack", mechanism_name(row.mechanism));
        }
    }
    if key_type == CKK_CAMELLIA {
        assert!(!search(&[masked]).is_empty(), "a living key is found");
    }
    masked
}

#[test]
fn a_dropped_key_leaves_nothing() {
    let rows = CLASSICS.algorithms().iter().filter(|row| row.generate.is_some());
    let masked: Vec<_> = rows.map(used).collect();
    let left = search(&masked);
    assert!(left.is_empty(), "{left:#?}");
}
