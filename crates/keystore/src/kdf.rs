// SPDX-License-Identifier: Apache-2.0
//! From a PIN to the key that wraps the master key.

use crate::crypto;
use crate::error::{Error, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use metaslot_awslc_wrapper::{digest::Hash, pbkdf2};
use metaslot_memory::Secret;
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

/// A stored parameter may not make a login take the whole machine: 1 GiB, 2²⁶ iterations.
const MOST_MEMORY_KIB: u32 = 1 << 20;
const MOST_ITERATIONS: u32 = 1 << 26;

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

    /// `None` for a function or parameters that this release does not take.
    pub(crate) fn decode(bytes: &[u8; ENCODED]) -> Option<Self> {
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let (first, second, third) = (number(1), number(5), number(9));
        match bytes[0] {
            1 if first <= MOST_MEMORY_KIB
                && (1..=1024).contains(&second)
                && (1..=64).contains(&third)
                && first >= 8 * third =>
            {
                Some(Self::Argon2id { memory_kib: first, passes: second, lanes: third })
            }
            2 if (1..=MOST_ITERATIONS).contains(&first) && second == 0 && third == 0 => {
                Some(Self::Pbkdf2HmacSha256 { iterations: first })
            }
            _ => None,
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
            assert_eq!(Kdf::decode(&kdf.encode()), Some(kdf));
        }
    }

    #[test]
    fn parameters_that_would_take_the_machine_are_refused() {
        let huge = Kdf::Argon2id { memory_kib: u32::MAX, passes: 2, lanes: 1 };
        assert_eq!(Kdf::decode(&huge.encode()), None);
        let none = Kdf::Pbkdf2HmacSha256 { iterations: 0 };
        assert_eq!(Kdf::decode(&none.encode()), None);
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
