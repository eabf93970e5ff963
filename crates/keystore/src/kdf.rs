// SPDX-License-Identifier: Apache-2.0
//! From a PIN to the key that wraps the master key.

use crate::crypto;
use crate::error::{Error, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use metaslot_awslc_wrapper::{digest::Hash, pbkdf2};
use metaslot_memory::Secret;
use std::fmt;
use std::hint::black_box;

/// The function that makes guessing a PIN expensive, with its parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kdf {
    /// Argon2id, version 0x13 (RFC 9106).
    Argon2id {
        /// Memory, in KiB.
        memory_kib: u32,
        /// Passes over the memory.
        passes: u32,
        /// Lanes (computed one after the other).
        lanes: u32,
    },
    /// PBKDF2 with HMAC-SHA-256 (RFC 8018), where a policy demands it.
    Pbkdf2HmacSha256 {
        /// How often.
        iterations: u32,
    },
}

/// 19 MiB and two passes: what a server that forks a hundred workers can pay in each of them.
pub const DEFAULT_KDF: Kdf = Kdf::Argon2id { memory_kib: 19 * 1024, passes: 2, lanes: 1 };

/// The usual strength of PBKDF2 with SHA-256.
pub const PBKDF2: Kdf = Kdf::Pbkdf2HmacSha256 { iterations: 600_000 };

/// Length of an encoded [`Kdf`], in bytes.
pub(crate) const ENCODED: usize = 13;
/// Length of a salt, in bytes.
pub(crate) const SALT: usize = 16;

/// What stored parameters may demand, so that a file cannot make a login take the machine: this
/// much memory, in KiB,
const MOST_MEMORY_KIB: u32 = 512 * 1024;
/// this much memory in all passes together, in KiB, which is what the time goes with (seconds),
const MOST_WORK_KIB: u64 = 4 << 20;
/// this many lanes, or, with PBKDF2, this many iterations.
const MOST_LANES: u32 = 16;
const MOST_ITERATIONS: u32 = 10_000_000;

impl Kdf {
    pub(crate) fn encode(self) -> [u8; ENCODED] {
        let (kind, numbers) = match self {
            Self::Argon2id { memory_kib, passes, lanes } => (1, [memory_kib, passes, lanes]),
            Self::Pbkdf2HmacSha256 { iterations } => (2, [iterations, 0, 0]),
        };
        let mut out = [kind; ENCODED];
        for (place, number) in out[1..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// The function that was stored, unless this release does not know it or its parameters demand
    /// more than a login may take: nothing is derived then.
    pub(crate) fn decode(bytes: &[u8; ENCODED]) -> Result<Self> {
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let (first, second, third) = (number(1), number(5), number(9));
        let kdf = match bytes[0] {
            1 => Self::Argon2id { memory_kib: first, passes: second, lanes: third },
            2 if second == 0 && third == 0 => Self::Pbkdf2HmacSha256 { iterations: first },
            _ => return Err(Error::not_token("a PIN's key derivation is unknown here")),
        };
        kdf.check().map(|()| kdf)
    }

    fn check(self) -> Result<()> {
        let (possible, affordable) = match self {
            Self::Argon2id { memory_kib, passes, lanes } => (
                passes > 0 && lanes > 0 && memory_kib / 8 >= lanes,
                memory_kib <= MOST_MEMORY_KIB
                    && lanes <= MOST_LANES
                    && u64::from(memory_kib) * u64::from(passes) <= MOST_WORK_KIB,
            ),
            Self::Pbkdf2HmacSha256 { iterations } => {
                (iterations > 0, iterations <= MOST_ITERATIONS)
            }
        };
        match (possible, affordable) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::not_token(&format!("a PIN's key derivation is {self}"))),
            (_, false) => Err(Error::not_token(&format!(
                "a PIN's key derivation is {self}, and a login takes at most {} MiB, {} GiB in all \
                 passes, {MOST_LANES} lanes, or {MOST_ITERATIONS} iterations",
                MOST_MEMORY_KIB / 1024,
                MOST_WORK_KIB >> 20,
            ))),
        }
    }

    /// The key for `pin`. With a pepper, what is hashed is HMAC-SHA-256(pepper, PIN).
    pub(crate) fn derive(
        self,
        pin: &[u8],
        salt: &[u8; SALT],
        pepper: Option<&Secret>,
    ) -> Result<Secret> {
        let peppered = pepper.map(|pepper| crypto::hmac(pepper.expose(), &[pin])).transpose()?;
        let pin = peppered.as_ref().map_or(pin, |secret| secret.expose());
        let mut key = Secret::zeroed(32);
        match self {
            Self::Argon2id { memory_kib, passes, lanes } => {
                argon2id(memory_kib, passes, lanes, pin, salt, key.expose_mut())?;
            }
            Self::Pbkdf2HmacSha256 { iterations } => {
                pbkdf2::derive(Hash::Sha256, pin, salt, iterations, key.expose_mut())?;
            }
        }
        Ok(key)
    }
}

impl fmt::Display for Kdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argon2id { memory_kib, passes, lanes } => {
                write!(f, "Argon2id with {memory_kib} KiB, {passes} passes, {lanes} lanes")
            }
            Self::Pbkdf2HmacSha256 { iterations } => {
                write!(f, "PBKDF2-HMAC-SHA-256 with {iterations} iterations")
            }
        }
    }
}

/// Argon2id in memory that is wiped afterwards.
fn argon2id(
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    pin: &[u8],
    salt: &[u8],
    key: &mut [u8],
) -> Result<()> {
    let params =
        Params::new(memory_kib, passes, lanes, Some(key.len())).map_err(|_| Error::Cryptography)?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(params.block_count()).map_err(|_| Error::Cryptography)?;
    memory.resize(params.block_count(), Block::new());
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hashed = argon2.hash_password_into_with_memory(pin, salt, key, &mut memory);
    for block in &mut memory {
        block.as_mut().fill(0);
    }
    black_box(&mut memory);
    metaslot_memory::wipe_stack();
    hashed.map_err(|_| Error::Cryptography)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_back_from_their_encoding() {
        for kdf in [DEFAULT_KDF, PBKDF2] {
            assert_eq!(Kdf::decode(&kdf.encode()), Ok(kdf));
        }
    }

    #[test]
    fn parameters_that_would_take_the_machine_are_refused() {
        let argon = |memory_kib, passes, lanes| Kdf::Argon2id { memory_kib, passes, lanes };
        let pbkdf2 = |iterations| Kdf::Pbkdf2HmacSha256 { iterations };
        for kdf in [argon(512 * 1024, 8, 16), argon(64 * 1024, 64, 1), pbkdf2(10_000_000)] {
            assert_eq!(Kdf::decode(&kdf.encode()), Ok(kdf));
        }
        for kdf in [
            argon(1 << 20, 1024, 1),
            argon(u32::MAX, u32::MAX, u32::MAX),
            argon(512 * 1024 + 1, 1, 1),
            argon(512 * 1024, 9, 1),
            argon(64, u32::MAX, 1),
            argon(1024, 1, 17),
            argon(1024, 0, 1),
            argon(1024, 1, 0),
            argon(15, 1, 2),
            pbkdf2(0),
            pbkdf2(10_000_001),
        ] {
            assert!(Kdf::decode(&kdf.encode()).is_err(), "{kdf}");
        }
    }

    #[test]
    fn a_pepper_changes_the_key() {
        let kdf = Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 };
        let plain = kdf.derive(b"1234", &[7; SALT], None).unwrap();
        let pepper = Secret::copy_of(&[9; 32]);
        let peppered = kdf.derive(b"1234", &[7; SALT], Some(&pepper)).unwrap();
        assert_ne!(plain.expose(), peppered.expose());
    }
}
