// SPDX-License-Identifier: Apache-2.0
//! From a PIN to the key that wraps the master key.

use crate::crypto;
use crate::error::{Error, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use metaslot_awslc_wrapper::{digest::Hash, pbkdf2};
use metaslot_memory::Secret;
use metaslot_spi::store::PinCost;
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// How expensive a PIN that is set from now on shall be to guess.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cost {
    /// Argon2id with 64 MiB, and as many passes as take a tenth of a second on this machine.
    Argon2id,
    /// PBKDF2, with as many iterations as take a tenth of a second on this machine.
    Pbkdf2,
    /// These parameters, for tests: nothing is measured.
    Fixed(Kdf),
}

/// The time of one processor that a guess is worth.
const WORTH: Duration = Duration::from_millis(100);

/// The least, however slow the machine: what RFC 9106 recommends (second choice), and OWASP.
const LEAST_ARGON2ID: Kdf = Kdf::Argon2id { memory_kib: 64 * 1024, passes: 3, lanes: 1 };
const LEAST_PBKDF2: Kdf = Kdf::Pbkdf2HmacSha256 { iterations: 600_000 };

/// And the most, however fast: other machines have to open the token too.
const MAX_MEASURED_PASSES: u32 = 32;
const MAX_MEASURED_ITERATIONS: u32 = 6_000_000;

impl Cost {
    /// The parameters; measured at the first call of the process.
    pub(crate) fn kdf(self) -> Result<Kdf> {
        static ARGON2ID: OnceLock<Kdf> = OnceLock::new();
        static PBKDF2: OnceLock<Kdf> = OnceLock::new();
        let (known, least) = match self {
            Self::Argon2id => (&ARGON2ID, LEAST_ARGON2ID),
            Self::Pbkdf2 => (&PBKDF2, LEAST_PBKDF2),
            Self::Fixed(kdf) => return Ok(kdf),
        };
        match known.get() {
            Some(kdf) => Ok(*kdf),
            None => least.until(WORTH).map(|kdf| *known.get_or_init(|| kdf)),
        }
    }
}

/// What this process's last derivation was, and what it took of a processor: one word, because a
/// forked child may find it at any moment. Memory, passes, tenths of milliseconds.
static LAST: AtomicU64 = AtomicU64::new(0);
const TENTH: u64 = 100;
const TENTHS: u32 = 20;

/// Length of an encoded [`Kdf`], in bytes.
pub(crate) const ENCODED: usize = 13;
/// Length of a salt, in bytes.
pub(crate) const SALT: usize = 16;

/// What stored parameters may demand, so that a file cannot make a login take the machine: this
/// much memory, in KiB,
const MAX_MEMORY_KIB: u32 = 512 * 1024;
/// this much memory in all passes together, in KiB, which is what the time goes with (seconds),
const MAX_WORK_KIB: u64 = 4 << 20;
/// this many lanes, or, with PBKDF2, this many iterations.
const MAX_LANES: u32 = 16;
const MAX_ITERATIONS: u32 = 10_000_000;

impl Kdf {
    /// With so many passes or iterations more that a derivation is worth `time`.
    fn until(mut self, time: Duration) -> Result<Self> {
        loop {
            // The first of two may have paid for cold memory.
            let taken = self.measure()?.min(self.measure()?);
            let more = self.grown(time.as_secs_f64() / taken.as_secs_f64());
            if taken >= time || more == self {
                return Ok(self);
            }
            self = more;
        }
    }

    /// Some more than `factor` times as expensive, up to the most.
    fn grown(self, factor: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number from 0 on, and what is too large becomes the largest"
        )]
        let more = |times: u32| (f64::from(times) * factor * 1.05).ceil() as u32;
        match self {
            Self::Argon2id { memory_kib, passes, lanes } => {
                let passes = more(passes).max(passes + 1).min(MAX_MEASURED_PASSES);
                Self::Argon2id { memory_kib, passes, lanes }
            }
            Self::Pbkdf2HmacSha256 { iterations } => {
                let iterations = more(iterations).max(iterations + 1).min(MAX_MEASURED_ITERATIONS);
                Self::Pbkdf2HmacSha256 { iterations }
            }
        }
    }

    fn measure(self) -> Result<Duration> {
        self.key(b"a PIN to measure with", &[0; SALT]).map(|(_, time)| time)
    }

    /// As the token tells it; the time if this process derived like this last.
    pub(crate) fn cost(self) -> PinCost {
        let last = LAST.load(Ordering::Relaxed);
        let time = if last >> TENTHS == self.word() { last & ((1 << TENTHS) - 1) } else { 0 };
        let (memory_kib, passes) = self.memory_and_passes();
        let microseconds = u32::try_from(time * TENTH).unwrap_or(u32::MAX);
        PinCost { memory_kib, passes, microseconds }
    }

    fn remember(self, time: Duration) {
        let tenths = u64::try_from(time.as_micros()).unwrap_or(u64::MAX) / TENTH;
        let word = self.word() << TENTHS | tenths.min((1 << TENTHS) - 1);
        LAST.store(word, Ordering::Relaxed);
    }

    /// In 44 bits, which is enough for all that [`Self::check`] admits.
    fn word(self) -> u64 {
        let (memory_kib, passes) = self.memory_and_passes();
        u64::from(memory_kib) << 24 | u64::from(passes)
    }

    const fn memory_and_passes(self) -> (u32, u32) {
        match self {
            Self::Argon2id { memory_kib, passes, .. } => (memory_kib, passes),
            Self::Pbkdf2HmacSha256 { iterations } => (0, iterations),
        }
    }

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
                memory_kib <= MAX_MEMORY_KIB
                    && lanes <= MAX_LANES
                    && u64::from(memory_kib) * u64::from(passes) <= MAX_WORK_KIB,
            ),
            Self::Pbkdf2HmacSha256 { iterations } => (iterations > 0, iterations <= MAX_ITERATIONS),
        };
        match (possible, affordable) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::not_token(&format!("a PIN's key derivation is {self}"))),
            (_, false) => Err(Error::not_token(&format!(
                "a PIN's key derivation is {self}, and a login takes at most {} MiB, {} GiB in all \
                 passes, {MAX_LANES} lanes, or {MAX_ITERATIONS} iterations",
                MAX_MEMORY_KIB / 1024,
                MAX_WORK_KIB >> 20,
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
        let (key, time) = self.key(pin, salt)?;
        self.remember(time);
        Ok(key)
    }

    /// The key, and the time of one processor that it took.
    fn key(self, pin: &[u8], salt: &[u8; SALT]) -> Result<(Secret, Duration)> {
        let mut key = Secret::zeroed(32);
        let begun = processor_time();
        match self {
            Self::Argon2id { memory_kib, passes, lanes } => {
                argon2id(memory_kib, passes, lanes, pin, salt, key.expose_mut())?;
            }
            Self::Pbkdf2HmacSha256 { iterations } => {
                pbkdf2::derive(Hash::Sha256, pin, salt, iterations, key.expose_mut())?;
            }
        }
        Ok((key, processor_time().saturating_sub(begun)))
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

/// On this thread's account, so that what else the machine does makes no PIN cheaper.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
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
    memory.try_reserve_exact(params.block_count()).map_err(|_| Error::Memory)?;
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
        for kdf in [LEAST_ARGON2ID, LEAST_PBKDF2] {
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
    fn a_guess_is_worth_a_tenth_of_a_second_and_no_less_than_is_recommended() {
        for (cost, least) in [(Cost::Argon2id, LEAST_ARGON2ID), (Cost::Pbkdf2, LEAST_PBKDF2)] {
            let kdf = cost.kdf().unwrap();
            assert!(kdf.cost().passes >= least.cost().passes, "{kdf}");
            assert_eq!(kdf.cost().memory_kib, least.cost().memory_kib);
            assert_eq!(cost.kdf(), Ok(kdf), "it is measured once");
            assert_eq!(Kdf::decode(&kdf.encode()), Ok(kdf), "every login takes it");
        }
        let slow = LEAST_ARGON2ID.grown(1.0);
        assert_eq!(slow, Kdf::Argon2id { memory_kib: 64 * 1024, passes: 4, lanes: 1 });
        let fast = LEAST_ARGON2ID.grown(f64::INFINITY);
        assert_eq!(fast, Kdf::Argon2id { memory_kib: 64 * 1024, passes: 32, lanes: 1 });
        assert_eq!(fast.grown(9.0), fast);
    }

    #[test]
    fn passes_are_added_until_a_derivation_is_worth_it() {
        let cheap = Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 };
        let worth = Duration::from_micros(200);
        let kdf = cheap.until(worth).unwrap();
        assert!(kdf.cost().passes > 1 || cheap.measure().unwrap() >= worth, "{kdf}");
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
