// SPDX-License-Identifier: Apache-2.0
//! Table of the kernels: one row an operation.

use crate::row::{Count, KernelRow, Result, Work};
use crate::{binary, ciphers, curve25519, hashes, lattices, nist, rsa};
use metaslot_lanes::cpu::{Cpu, cpu};
use metaslot_lanes::peak::Port;

const EIGHT: &[usize] = &[1, 2, 4, 8];
const SIXTEEN: &[usize] = &[1, 2, 4, 8, 16];
const THIRTY_TWO: &[usize] = &[1, 2, 4, 8, 16, 32];
const MANY: &[usize] = &[1, 2, 4, 8, 16, 32, 64, nist::MAX_BATCH];
const ONE: &[usize] = &[1];

const MULTIPLY: &[Port] = &[Port::Multiply52];
const CARRYLESS: &[Port] = &[Port::Carryless];
const AES: &[Port] = &[Port::Aes];
const LOGIC: &[Port] = &[Port::Vector, Port::Shift];

/// Loads for one message of 8 KiB: three for each byte of the key stream, and the message, eight bytes at a time.
fn rc4_loads() -> f64 {
    8192.0 * (3.0 + 1.0 / 8.0)
}

type Make = fn() -> Result<Box<dyn Work>>;

const fn row(
    name: &'static str,
    available: fn() -> bool,
    lanes: &'static [usize],
    kinds: &'static [Port],
    count: Count,
    make: Make,
) -> KernelRow {
    KernelRow { name, available, lanes, kinds, count, raw: true, make }
}

const fn rsa(name: &'static str, count: fn() -> f64, make: Make) -> KernelRow {
    row(name, metaslot_lanes::rsa::available, EIGHT, MULTIPLY, Count::Formula(count), make)
}

const fn binary(name: &'static str, make: Make) -> KernelRow {
    let count = Count::Steps { small: 4, large: 8, full: 8, operations: 8 };
    let available = metaslot_lanes::binary::available;
    KernelRow { raw: false, ..row(name, available, EIGHT, CARRYLESS, count, make) }
}

/// Batches share inversions: what a request costs depends on how many there are.
const fn curve(name: &'static str, available: fn() -> bool, make: Make) -> KernelRow {
    let count =
        Count::Steps { small: 8, large: 16, full: nist::MAX_BATCH, operations: nist::MAX_BATCH };
    row(name, available, MANY, MULTIPLY, count, make)
}

/// The lanes and the instructions of these rows are those of AVX-512; of the kernels with half as many nothing is measured.
fn has_all_lanes() -> bool {
    metaslot_lanes::hash::available() && cpu().has(Cpu::AVX512)
}

/// Messages of two lengths are counted, whole blocks of every function, SHA-3 included.
const fn hash(name: &'static str, lanes: &'static [usize], make: Make) -> KernelRow {
    let operations = lanes[lanes.len() - 1];
    let count = Count::Steps { small: 1088, large: 2176, full: 8192, operations };
    row(name, has_all_lanes, lanes, LOGIC, count, make)
}

const fn aes(name: &'static str, lanes: &'static [usize], make: Make) -> KernelRow {
    let operations = lanes[lanes.len() - 1];
    let count = Count::Steps { small: 1024, large: 2048, full: 8192, operations };
    row(name, metaslot_lanes::aes::available, lanes, AES, count, make)
}

/// Whole rounds of the stream, but for the block of the sum's key.
const CHACHA: KernelRow = row(
    "chacha20-poly1305-8k",
    metaslot_lanes::chacha::available,
    ONE,
    &[Port::Vector, Port::Shift, Port::Multiply52],
    Count::Steps { small: 4096 - 64, large: 8192 - 64, full: 8192 - 64, operations: 1 },
    ciphers::seal,
);

const RC4: KernelRow = row(
    "rc4-8k",
    metaslot_lanes::rc4::available,
    &[1, 2, 4],
    &[Port::Load],
    Count::Formula(rc4_loads),
    ciphers::stream_cipher,
);

const TRIPLE_DES: KernelRow = row(
    "3des-cbc-encrypt-8k",
    metaslot_lanes::des::available,
    &[1, 8, 64, 256, 512],
    LOGIC,
    Count::Steps { small: 16, large: 32, full: 8192, operations: metaslot_lanes::des::LANES },
    ciphers::triple_des,
);

/// Keccak's lanes and the rounds of polynomials are any vector instructions; products of coefficients have the multiplier alone. Only
/// the form of 512 bits has a limit here.
const ML_DSA: KernelRow = row(
    "ml-dsa-65-sign",
    || metaslot_lanes::ml_dsa::available() && Port::Vector.available(),
    ONE,
    &[Port::Multiply32, Port::Vector, Port::Shift],
    Count::Steps {
        small: 1,
        large: lattices::MESSAGES,
        full: lattices::MESSAGES,
        operations: lattices::MESSAGES,
    },
    lattices::sign,
);

pub(crate) const ROWS: &[KernelRow] = &[
    rsa("rsa1024-sign", rsa::private_count::<1024>, rsa::sign::<1024>),
    rsa("rsa2048-sign", rsa::private_count::<2048>, rsa::sign::<2048>),
    rsa("rsa3072-sign", rsa::private_count::<3072>, rsa::sign::<3072>),
    rsa("rsa4096-sign", rsa::private_count::<4096>, rsa::sign::<4096>),
    rsa("rsa2048-verify", rsa::public_count::<2048>, rsa::verify::<2048>),
    binary("sect233k1-sign", binary::signer::<{ binary::SECT233K1 }>),
    binary("sect233k1-ecdh", binary::deriver::<{ binary::SECT233K1 }>),
    binary("sect571r1-sign", binary::signer::<{ binary::SECT571R1 }>),
    binary("sect571r1-ecdh", binary::deriver::<{ binary::SECT571R1 }>),
    curve("p256-sign", metaslot_lanes::p256::available, nist::sign_p256),
    curve("p256-verify", metaslot_lanes::p256::available, nist::verify_p256),
    curve("p256-ecdh", metaslot_lanes::p256::available, nist::derive_p256),
    curve("p384-sign", metaslot_lanes::p384::available, nist::sign_p384),
    curve("x25519", metaslot_lanes::curve25519::available, curve25519::agree),
    curve("ed25519-sign", metaslot_lanes::curve25519::available, curve25519::sign),
    curve("ed25519-verify", metaslot_lanes::curve25519::available, curve25519::verify),
    ML_DSA,
    aes("aes128-cbc-encrypt-8k", SIXTEEN, ciphers::cbc_encrypt),
    aes("aes128-ctr-8k", ONE, ciphers::single::<true>),
    aes("aes128-cbc-decrypt-8k", ONE, ciphers::single::<false>),
    CHACHA,
    hash("md5-8k", THIRTY_TWO, hashes::digest::<{ hashes::MD5 }>),
    hash("sha1-8k", SIXTEEN, hashes::digest::<{ hashes::SHA1 }>),
    hash("sha256-8k", SIXTEEN, hashes::digest::<{ hashes::SHA256 }>),
    hash("sha512-8k", EIGHT, hashes::digest::<{ hashes::SHA512 }>),
    hash("sha3-256-8k", EIGHT, hashes::digest::<{ hashes::SHA3_256 }>),
    hash("hmac-sha256-8k", SIXTEEN, hashes::mac::<{ hashes::SHA256 }>),
    RC4,
    TRIPLE_DES,
];
