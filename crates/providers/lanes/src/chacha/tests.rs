// SPDX-License-Identifier: Apache-2.0
//! ChaCha20-Poly1305 against AWS-LC.

use super::*;
use crate::testing::{Random, inputs, judge, lacks, spills};
use metaslot_awslc_wrapper::aead;

fn array<const N: usize>(random: &mut Random) -> [u8; N] {
    random.bytes(N).try_into().unwrap()
}

/// Usually short; around the lengths at which another round, a part or the lanes begin; or long.
fn length(random: &mut Random) -> usize {
    match random.below(8) {
        0..4 => random.below(200),
        4 => 960 + random.below(130) - 65,
        5 => PART - 64 + random.below(200) - 100,
        6 => 370 + random.below(40),
        _ => random.below(20_000),
    }
}

#[test]
fn what_is_sealed_is_what_awslc_seals_and_is_opened() {
    if lacks(NEEDS) {
        return;
    }
    let mut random = Random::new();
    for turn in 0..inputs(30_000) {
        let (key, nonce): ([u8; KEY], [u8; NONCE]) = (array(&mut random), array(&mut random));
        let most = [1, 20, 600][random.below(3)];
        let aad = random.below(most);
        let (length, aad) = (length(&mut random), random.bytes(aad));
        let text = random.bytes(length);
        let mut expected = vec![0; length + TAG];
        let theirs = aead::Key::chacha20_poly1305(&key).unwrap();
        theirs.seal(&nonce, &aad, &text, &mut expected).unwrap();
        let mut sealed = vec![0; length];
        let mut tag = seal(&key, &nonce, &aad, &text, &mut sealed);
        assert!(sealed == expected[..length] && tag == expected[length..], "{turn}: {length}");
        let (mut parts, mut at) = (Sealing::new(&key, &nonce, &aad), 0);
        let mut joined = vec![0; length];
        while at < length {
            let most = [30, 600, 10_000][random.below(3)];
            let end = length.min(at + random.below(most));
            assert!(parts.update(&text[at..end], &mut joined[at..end]));
            at = end;
        }
        assert!(parts.finish() == tag && joined == sealed, "{turn}: {length} in parts");
        let mut opened = vec![0; length];
        assert!(open(&key, &nonce, &aad, &sealed, &tag, &mut opened) && opened == text, "{turn}");
        tag[random.below(TAG)] ^= 1 << random.below(8);
        let mut untouched = vec![7; length];
        assert!(!open(&key, &nonce, &aad, &sealed, &tag, &mut untouched), "{turn}");
        assert!(untouched.iter().all(|byte| *byte == 7), "{turn}: written with a wrong tag");
    }
}

/// A number below 2¹⁹², least word first.
type Number = [u64; 3];

/// 2¹³⁰ - 5.
const PRIME: Number = [u64::MAX - 4, u64::MAX, 3];

fn plus(x: Number, y: Number) -> (Number, bool) {
    let mut carry = false;
    let sum = [0, 1, 2].map(|at| {
        let (sum, over) = x[at].overflowing_add(y[at]);
        let (sum, more) = sum.overflowing_add(u64::from(carry));
        carry = over || more;
        sum
    });
    (sum, carry)
}

/// `x + y` modulo the prime, from numbers below it.
fn sum(x: Number, y: Number) -> Number {
    let (sum, _) = plus(x, y);
    // More by 2¹⁹² less the prime.
    match plus(sum, [5, 0, u64::MAX - 3]) {
        (less, true) => less,
        _ => sum,
    }
}

/// The tag as the RFC writes it down, bit by bit (§2.5.1).
fn plain_tag(key: &[u8; BLOCK], data: &[u8]) -> [u8; TAG] {
    let half = |at| u128::from_le_bytes(key[at..at + 16].try_into().unwrap());
    let factor = half(0) & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
    let mut all = [0; 3];
    for block in data.as_chunks::<8>().0.as_chunks::<2>().0 {
        let [low, high] = block.map(u64::from_le_bytes);
        let with = sum(all, [low, high, 1]);
        all = (0..128).rev().fold([0; 3], |product, bit| {
            let twice = sum(product, product);
            if factor >> bit & 1 == 1 { sum(twice, with) } else { twice }
        });
    }
    let low = u128::from(all[0]) | u128::from(all[1]) << 64;
    low.wrapping_add(half(16)).to_le_bytes()
}

/// Limbs that carry everywhere: blocks beside powers of two and beside the prime, and factors that leave them as they are. AWS-LC's own
/// Poly1305 (0.47) is wrong by 2⁵² at some of these.
#[test]
fn sums_at_the_edges_of_limbs_are_right() {
    let mut random = Random::new();
    let edges = [u128::MAX, u128::MAX - 4, u128::MAX - 5, 0, 1, 5, 1 << 44, (1 << 88) - 1];
    assert_eq!(plus(PRIME, [5, 0, u64::MAX - 3]), ([0; 3], true));
    for turn in 0..inputs(3_000) {
        let mut key = [0xff; BLOCK];
        match turn % 4 {
            0 => {}
            1 => key = array(&mut random),
            // One, or nothing.
            other => key[..16].copy_from_slice(&u128::from(other == 2).to_le_bytes()),
        }
        let blocks = 1 + random.below(60);
        let data = (0..blocks).flat_map(|_| edges[random.below(edges.len())].to_le_bytes());
        let data: Vec<u8> = data.collect();
        let mut ours = Poly1305::ZERO;
        ours.begin(&key);
        let mut tag = [0; TAG];
        let (one, other) = data.split_at(random.below(data.len() + 1));
        ours.update(one);
        ours.update(other);
        ours.finish(&mut tag);
        assert_eq!(tag, plain_tag(&key, &data), "{turn}");
    }
}

#[test]
fn the_time_does_not_tell_keys_apart() {
    if lacks(NEEDS) {
        return;
    }
    let mut random = Random::new();
    let keys: [[u8; KEY]; 2] = [[0; KEY], array(&mut random)];
    let (text, mut out) = ([0x5a; 700], [0; 700]);
    judge("sealing", &mut random, 20_000, |class| {
        black_box(seal(&keys[class], &[9; NONCE], &[], &text, &mut out));
    });
    let tag = seal(&keys[0], &[9; NONCE], &[], &text, &mut out);
    let sealed = out;
    let tags = [0, 15].map(|at| {
        let mut wrong = tag;
        wrong[at] ^= 1;
        wrong
    });
    judge("a wrong tag", &mut random, 20_000, |class| {
        black_box(open(&keys[0], &[9; NONCE], &[], &sealed, &tags[class], &mut out));
    });
}

#[test]
#[should_panic = "a stream that was begun"]
fn what_a_forked_child_finds_lets_no_text_through() {
    let mut work = Work::ZERO;
    work.encrypt(&[7; 20], &mut [0; 20]);
}

#[test]
fn a_message_ends_with_nothing_of_it() {
    if lacks(NEEDS) {
        return;
    }
    let mut work = std::mem::ManuallyDrop::new(InStack(Work::ZERO));
    work.0.begin(&[3; KEY], &[4; NONCE], &[5; 400]);
    work.0.tag(400, 0);
    // SAFETY: it is dropped once.
    unsafe { std::mem::ManuallyDrop::drop(&mut work) };
    // Numbers, which stay numbers.
    assert!(work.0.stream.is_zero() && work.0.poly.is_zero());
}

#[test]
fn registers_stay_off_the_stack() {
    for (name, most) in [("chacha::stream::blocks", 24), ("chacha::poly1305::summed", 0)] {
        let spills = spills(name);
        println!("{name}: {spills} stack references");
        assert!(spills <= most, "{name}: {spills}");
    }
}
