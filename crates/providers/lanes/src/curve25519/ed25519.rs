// SPDX-License-Identifier: Apache-2.0
//! Ed25519 (RFC 8032 §5.1). Signing looks up the base point's multiples without addresses that depend on the nonce;
//! verification is of public numbers, and accepts what AWS-LC accepts: s below the order, a canonical and decodable key, and an R
//! that is, byte for byte, the encoding of s·B − k·A.

use super::edwards::{Order, Point, encode};
use super::field::{Element, invert_all};
use super::key::PublicKey;
use super::request::{SignRequest, VerifyRequest};
use super::table::{BaseTable, KeyTable, minus_times_key};
use crate::field52::bytes::{less, little_endian, put, take, write_big_endian};
use crate::field52::modulus::Modulus;
use crate::field52::montgomery::{enter, leave, mul};
use crate::field52::{Columns, LANES, Num, Workspace};
use metaslot_awslc_wrapper::curve25519::KEY_LENGTH;
use metaslot_awslc_wrapper::digest::{Hash, Stream};
use metaslot_awslc_wrapper::{Failed, Result, cleanse};

/// How many requests share their inversion.
const BATCH: usize = 16 * LANES;
/// Messages up to this length are hashed in one call, in bytes.
const SHORT: usize = 1024;
/// Fewer new keys than this are not worth their tables at once.
const FEW: usize = 4;

/// Signs all requests.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn sign(requests: &mut [SignRequest<'_>]) {
    for batch in requests.chunks_mut(BATCH) {
        sign_batch(batch);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn sign_batch(batch: &mut [SignRequest<'_>]) {
    let groups = batch.len().div_ceil(LANES);
    let mut workspace = Workspace::new::<5>(5 * groups);
    let (nonces, rest) = workspace.numbers().split_at_mut(groups);
    let (xs, rest) = rest.split_at_mut(groups);
    let (ys, rest) = rest.split_at_mut(groups);
    let (zs, scratch) = rest.split_at_mut(groups);
    for (group, requests) in batch.chunks_mut(LANES).enumerate() {
        let mut hashes = [[0; LANES]; 10];
        for (lane, request) in requests.iter_mut().enumerate() {
            let hash = sha512(&[request.key.prefix(), request.message]);
            request.result = hash.map(|hash| put(&mut hashes, lane, &little_endian::<10>(&hash)));
        }
        nonces[group] = reduced(&hashes);
        let point = BaseTable::shared().add_multiple(&Point::neutral(), &nonces[group]);
        (xs[group], ys[group], zs[group]) = (point.x, point.y, point.z);
    }
    invert_all(zs, &mut scratch[..groups], |_, _| ());
    for (group, requests) in batch.chunks_mut(LANES).enumerate() {
        let point = Point { x: xs[group], y: ys[group], z: zs[group], t: zs[group] };
        complete(requests, &encode(&point, &zs[group]), &nonces[group]);
    }
}

/// S = r + k·s modulo the order, and the signatures written.
#[target_feature(enable = "avx512f,avx512ifma")]
fn complete(requests: &mut [SignRequest<'_>], points: &[[u8; 32]; LANES], nonce: &Num<5>) {
    let mut hashes = [[0; LANES]; 10];
    let mut keys = [[0; LANES]; 5];
    for (lane, request) in requests.iter_mut().enumerate() {
        let hash = sha512(&[&points[lane], request.key.public(), request.message]);
        let hash = hash.map(|hash| put(&mut hashes, lane, &little_endian::<10>(&hash)));
        request.result = request.result.and(hash);
        put(&mut keys, lane, &little_endian(request.key.scalar()));
    }
    let k = enter::<Order, 5>(&reduced(&hashes));
    let sum = mul::<Order, 5>(&k, &Num::load(&keys)).plus(nonce).carried();
    let s = leave::<Order, 5>(&enter::<Order, 5>(&sum)).store();
    for (lane, request) in requests.iter_mut().enumerate() {
        let (to_r, to_s) = request.signature.split_at_mut(KEY_LENGTH);
        if request.result.is_ok() {
            to_r.copy_from_slice(&points[lane]);
            write_big_endian(&take(&s, lane), to_s);
            to_s.reverse();
        }
    }
}

/// Eight numbers of 520 bits modulo the order: the lower half, and the upper half times 2^260.
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduced(hashes: &Columns<10>) -> Num<5> {
    let (halves, _) = hashes.as_chunks::<5>();
    let low = enter::<Order, 5>(&Num::load(&halves[0]));
    let high = mul::<Order, 5>(&Num::load(&halves[1]), &Num::splat(&Order::R3));
    leave::<Order, 5>(&low.plus(&high).carried())
}

/// SHA-512 of the parts one after the other.
fn sha512(parts: &[&[u8]]) -> Result<[u8; 64]> {
    let mut out = [0; 64];
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length <= SHORT {
        let mut buffer = [0; SHORT];
        let mut end = 0;
        for part in parts {
            buffer[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        let hashed = Hash::Sha512.digest(&buffer[..length], &mut out);
        cleanse(&mut buffer[..length]);
        hashed?;
    } else {
        let mut stream = Stream::new(Hash::Sha512)?;
        parts.iter().try_for_each(|part| stream.update(part))?;
        stream.finish(&mut out)?;
    }
    Ok(out)
}

/// Checks all requests.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn verify(requests: &mut [VerifyRequest<'_>]) {
    for batch in requests.chunks_mut(BATCH) {
        prepare(batch);
        verify_batch(batch);
    }
}

/// Gives the keys their tables, eight at a time; but when there are few new ones, only to those that were seen
/// before: a table costs as much as a few signatures.
#[target_feature(enable = "avx512f,avx512ifma")]
fn prepare(batch: &[VerifyRequest<'_>]) {
    let mut fresh: Vec<&PublicKey> = Vec::new();
    for request in batch {
        let known = |key: &&PublicKey| std::ptr::eq(*key, request.key);
        if request.key.table.get().is_none() && !fresh.iter().any(known) {
            fresh.push(request.key);
        }
    }
    if fresh.len() < FEW {
        fresh.retain(|key| key.seen_before());
    }
    for keys in fresh.chunks(LANES) {
        let mut encoded = [[0; KEY_LENGTH]; LANES];
        for (encoded, key) in encoded.iter_mut().zip(keys) {
            *encoded = key.bytes;
        }
        let (points, good) = Point::decode(&encoded);
        for (lane, (key, table)) in keys.iter().zip(KeyTable::eight(&points)).enumerate() {
            key.table.get_or_init(|| ((good >> lane) & 1 == 1).then_some(table));
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn verify_batch(batch: &mut [VerifyRequest<'_>]) {
    let eights: Vec<(Point, [By; LANES])> =
        batch.chunks(LANES).map(|eight| expected(eight)).collect();
    let mut inverses: Vec<Element> = eights.iter().map(|(point, _)| point.z).collect();
    let mut scratch = inverses.clone();
    invert_all(&mut inverses, &mut scratch, |_, _| ());
    for ((requests, (point, by)), inverse) in batch.chunks_mut(LANES).zip(&eights).zip(&inverses) {
        let encoded = encode(point, inverse);
        for ((request, by), encoded) in requests.iter_mut().zip(by).zip(&encoded) {
            match by {
                By::Library => request.by_library(),
                By::Neither => request.result = Err(Failed),
                By::Kernel => {
                    let good = request.signature.first_chunk() == Some(encoded);
                    request.result = if good { Ok(()) } else { Err(Failed) };
                }
            }
        }
    }
}

/// Who says whether a signature is good. Another thread may give a key its table at any moment, so that is asked once.
#[derive(Clone, Copy)]
enum By {
    Kernel,
    Library,
    /// It cannot be good.
    Neither,
}

/// s·B − k·A, for the lanes that are the kernel's.
#[target_feature(enable = "avx512f,avx512ifma")]
fn expected(requests: &[VerifyRequest<'_>]) -> (Point, [By; LANES]) {
    let mut by = [By::Neither; LANES];
    let mut keys = [None; LANES];
    let mut hashes = [[0; LANES]; 10];
    let mut scalars = [[0; LANES]; 5];
    for (lane, request) in requests.iter().enumerate() {
        let Some(table) = request.key.table.get() else {
            by[lane] = By::Library;
            continue;
        };
        let Some(table) = table else { continue };
        let Some((r, s)) = request.signature.split_first_chunk::<KEY_LENGTH>() else { continue };
        let scalar = little_endian(s.get(..KEY_LENGTH).unwrap_or(&[0xff; KEY_LENGTH]));
        if s.len() != KEY_LENGTH || !less(&scalar, &Order::M) {
            continue;
        }
        let Ok(hash) = sha512(&[r, &request.key.bytes, request.message]) else { continue };
        put(&mut hashes, lane, &little_endian::<10>(&hash));
        put(&mut scalars, lane, &scalar);
        keys[lane] = Some(table);
        by[lane] = By::Kernel;
    }
    if keys.iter().all(Option::is_none) {
        return (Point::neutral(), by);
    }
    let sum = minus_times_key(&reduced(&hashes), &keys);
    (BaseTable::shared().add_multiple(&sum, &Num::load(&scalars)), by)
}
