// SPDX-License-Identifier: Apache-2.0
//! What this process knows of rows from their self tests.

use metaslot_ck::{CK_MECHANISM_TYPE, Error};
use metaslot_memory::PerProcess;
use metaslot_spi::provider::{
    Algorithm, Cipher, Derive, Digest, Encapsulation, Generate, GeneratePair, Recover, Signature,
    Wrap,
};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is tested of a row at once: a bit. [`NOTHING`] is tested of what has no known answer.
pub type Kind = u8;

/// What has no test of its own.
pub const NOTHING: Kind = 0;
/// A hash.
pub const DIGEST: Kind = 1;
/// Encryption and decryption.
pub const CIPHER: Kind = 2;
/// Signatures, and verification.
pub const SIGNATURE: Kind = 4;

/// An operation of a row, and what is tested before it is used.
pub trait Tested {
    /// One of the bits.
    const KIND: Kind = NOTHING;
}

impl<T: Tested + ?Sized> Tested for &T {
    const KIND: Kind = T::KIND;
}

impl Tested for dyn Digest {
    const KIND: Kind = DIGEST;
}

impl Tested for dyn Cipher {
    const KIND: Kind = CIPHER;
}

impl Tested for dyn Signature {
    const KIND: Kind = SIGNATURE;
}

impl Tested for dyn Recover {
    const KIND: Kind = SIGNATURE;
}

// A key is wrapped by the cipher of its row.
impl Tested for dyn Wrap {
    const KIND: Kind = CIPHER;
}

impl Tested for dyn Derive {}
impl Tested for dyn Encapsulation {}
impl Tested for dyn Generate {}
impl Tested for dyn GeneratePair {}

/// A row of the table of known answers, in 8 bytes.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) mechanism: u16,
    pub(crate) kind: Kind,
    pub(crate) answer: u32,
}

/// Of this mechanism.
#[expect(clippy::cast_possible_truncation, reason = "it is looked at before")]
pub(crate) const fn known(mechanism: CK_MECHANISM_TYPE, kind: Kind, answer: u32) -> Answer {
    assert!(mechanism < 1 << 16, "no mechanism of the standard's own");
    Answer { mechanism: mechanism as u16, kind, answer }
}

/// What is known of one row: the bits of what is good, and above them those of what is bad.
#[derive(Debug, Default)]
pub(crate) struct State(AtomicU8);

const BAD: u32 = 4;

/// Each bit.
pub(crate) const ALL_KINDS: Kind = DIGEST | CIPHER | SIGNATURE;

impl State {
    /// Whether a test said so of what is tested, and none said anything else.
    #[inline]
    pub(crate) fn is_good(&self, kind: Kind, tested: Kind) -> bool {
        self.0.load(Ordering::Relaxed) & (kind << BAD | kind & tested) == kind & tested
    }

    pub(crate) fn is_bad(&self, kind: Kind) -> bool {
        self.0.load(Ordering::Relaxed) & (kind << BAD) != 0
    }

    /// Says whether no other test said anything else.
    pub(crate) fn good(&self, kind: Kind) -> bool {
        self.0.fetch_or(kind, Ordering::Relaxed) & (kind << BAD) == 0
    }

    /// Says whether that is new.
    pub(crate) fn bad(&self, kind: Kind) -> bool {
        let bad = kind << BAD;
        self.0.fetch_or(bad, Ordering::Relaxed) & bad == 0
    }
}

/// The states of a provider's rows.
type States = &'static [State];

/// Where tables of rows are, and their states. They are there for as long as the tables, which is until the process ends; a
/// forked child has its parent's.
static ALL: PerProcess<Mutex<Vec<(usize, States)>>> = PerProcess::new(|parents| {
    // A lock that a thread of the parent held stays locked in the child: then rows are tested again.
    let known = parents.and_then(|parents| parents.try_lock().ok().map(|all| all.clone()));
    Mutex::new(known.unwrap_or_default())
});

/// What is known of these rows, by whichever caller asked first.
pub(crate) fn states(rows: &'static [Algorithm]) -> States {
    let place = rows.as_ptr().addr();
    let mut all = ALL.get().lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.iter().find(|one| (one.0, one.1.len()) == (place, rows.len()));
    if let Some((_, states)) = known {
        return states;
    }
    let states: States = Vec::leak(rows.iter().map(|_| State::default()).collect());
    all.push((place, states));
    states
}

/// What failed in its self test while a call looked for a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failed {
    /// A bit for the place of each: one is tested once in a call.
    places: u64,
    /// A provider's place, and why. One that got no answer comes before one that computes wrong: tried again, it may get one.
    pub(crate) why: Option<(usize, Error)>,
}

impl Failed {
    pub(crate) fn add(&mut self, place: usize, provider: usize, error: Error) {
        self.places |= Self::bit(place);
        if self.why.is_none_or(|(_, known)| known == Error::FIPS_SELF_TEST_FAILED) {
            self.why = Some((provider, error));
        }
    }

    pub(crate) fn has(self, place: usize) -> bool {
        self.places & Self::bit(place) != 0
    }

    fn bit(place: usize) -> u64 {
        u32::try_from(place).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_one_state_whoever_asks_and_both_bits_stay() {
        static ROWS: [Algorithm; 2] = [Algorithm::NONE; 2];
        assert!(states(&ROWS)[0].bad(DIGEST));
        let again = states(&ROWS);
        assert!(again[0].is_bad(ALL_KINDS) && !again[0].bad(DIGEST), "it was told before");
        assert!(again[0].good(CIPHER) && again[0].is_good(CIPHER, ALL_KINDS));
        assert!(again[0].is_good(NOTHING, ALL_KINDS) && !again[0].is_good(DIGEST, ALL_KINDS));
        assert!(!again[0].good(DIGEST), "two threads tested it at once");
        for tested in [ALL_KINDS, NOTHING] {
            assert!(!again[0].is_good(DIGEST, tested), "and what is wrong stays so");
        }
        assert!(again[1].is_good(DIGEST, NOTHING) && !again[1].is_good(DIGEST, ALL_KINDS));
    }
}
