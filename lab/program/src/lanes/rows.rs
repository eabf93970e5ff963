// SPDX-License-Identifier: Apache-2.0
//! Table of what is measured: one row per operation.

use serde::{Deserialize, Serialize};

/// What an operation with lanes has to reach.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// Speed over the plain library's, one at a time.
    OverRaw(f64),
    /// Speed over the module's own without lanes.
    OverPlain(f64),
}

/// The load's table of operations.
pub(super) const LOAD: &str = include_str!("../../../../examples/lanes_load/work.c");

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// On a token with the policy `legacy`: the default one refuses such keys.
    pub(crate) legacy: bool,
    /// OpenSSL's name of the curve and of the operation, where AWS-LC has none to compare with.
    pub(crate) openssl: Option<(&'static str, &'static str)>,
    /// Operations that one thread keeps in flight in asynchronous sessions.
    pub(crate) depth: usize,
    /// Speed of full lanes over the plain library's, where there is a goal.
    pub(crate) kernel: Option<f64>,
    /// With 16 threads that wait, or more.
    pub(crate) blocking: Goal,
    /// With one thread per processor and asynchronous sessions.
    pub(crate) asynchronous: Goal,
    /// Where the rest goes when a kernel stays below 60 % of the limit.
    pub(crate) note: &'static str,
}

/// Noise and all, it must not be slower than without lanes.
const PLAIN: Goal = Goal::OverPlain(0.98);

const fn row(name: &'static str, depth: usize) -> Operation {
    Operation {
        name,
        legacy: false,
        openssl: None,
        depth,
        kernel: None,
        blocking: PLAIN,
        asynchronous: PLAIN,
        note: "",
    }
}

impl Operation {
    /// The mechanism, as the load has it.
    pub(crate) fn mechanism(&self) -> &'static str {
        let row =
            LOAD.lines().find_map(|line| line.trim().strip_prefix("{\"")?.strip_prefix(self.name));
        let words = row.and_then(|row| row.strip_prefix("\", ")).unwrap_or_default();
        words.split(", ").nth(1).unwrap_or_default()
    }

    const fn goals(mut self, kernel: f64, blocking: Goal, asynchronous: f64) -> Self {
        self.kernel = Some(kernel);
        self.blocking = blocking;
        self.asynchronous = Goal::OverRaw(asynchronous);
        self
    }

    const fn legacy(mut self) -> Self {
        self.legacy = true;
        self
    }

    const fn openssl(mut self, curve: &'static str, what: &'static str) -> Self {
        self.openssl = Some((curve, what));
        self
    }

    const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}

const SMALL_NUMBERS: &str = "numbers of ten limbs: the scan of the table in constant time, the hand-over of carries \
     between limbs and the way into vectors and back weigh more than with longer ones";
const CURVE: &str = "numbers of five limbs: additions, subtractions and carries between the products, which the \
     multiplier waits for, and the scan of tables in constant time";
const BINARY: &str = "the reduction after each product and the squarings are logic and permutations in the same units";
const CHAIN: &str = "each block waits for the one before it: sixteen streams are four registers in flight, which hardly cover \
     the time that a round takes";
const BITS: &str = "more bits and keys than registers: every round loads and stores vectors, and a store takes as long as \
     several operations";
const ATTEMPTS: &str = "each attempt hashes its commitment in one stream, decodes masks and encodes what is hashed, byte by byte, and \
     waits for the one before it";
const SWAPS: &str = "each byte's two stores are read again a few bytes later: the way through memory, not the number \
     of loads";

const QUARTERS: &str = "a round of the stream is four chains of operations that wait for one another, and a block of the sum waits for the carries of the one before it";

/// A speed over the plain library's.
const fn over(goal: f64) -> Goal {
    Goal::OverRaw(goal)
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Operation] = &[
    row("rsa1024-sign", 64).goals(5.5, over(4.3), 5.0).legacy().note(SMALL_NUMBERS),
    row("rsa2048-sign", 32).goals(3.4, over(3.0), 3.3),
    row("rsa3072-sign", 16).goals(2.5, over(2.3), 2.4),
    row("rsa4096-sign", 16).goals(2.2, over(2.1), 2.2),
    row("rsa2048-verify", 64).goals(3.8, PLAIN, 3.0),
    row("sect233k1-sign", 64).goals(35.0, over(18.0), 30.0).openssl("sect233k1", "sign").note(BINARY),
    row("sect233k1-ecdh", 64).goals(35.0, over(18.0), 30.0).openssl("sect233k1", "ecdh").note(BINARY),
    row("sect571r1-sign", 32).goals(20.0, over(18.0), 19.0).openssl("sect571r1", "sign").note(BINARY),
    row("sect571r1-ecdh", 64).goals(20.0, over(18.0), 19.0).openssl("sect571r1", "ecdh").note(BINARY),
    row("p256-sign", 128).goals(6.0, over(1.8), 3.0).note(CURVE),
    row("p256-verify", 128).goals(2.6, over(1.6), 2.4).note(CURVE),
    row("p256-ecdh", 64).note(CURVE),
    row("p384-sign", 64).note(CURVE),
    row("x25519", 64).goals(3.5, over(1.9), 3.0).note(CURVE),
    row("ed25519-sign", 128).goals(2.3, PLAIN, 2.0).note(CURVE),
    row("ed25519-verify", 128).goals(3.0, over(1.6), 2.6).note(CURVE),
    row("ml-dsa-65-sign", 64).goals(1.5, PLAIN, 1.5).note(ATTEMPTS),
    row("aes128-cbc-encrypt-8k", 32).goals(8.0, PLAIN, 6.0).note(CHAIN),
    row("aes128-ctr-8k", 16).goals(2.2, over(2.0), 2.0),
    row("aes128-cbc-decrypt-8k", 16).goals(2.2, over(2.0), 2.0),
    row("chacha20-poly1305-8k", 16).note(QUARTERS),
    row("md5-8k", 64).goals(12.0, over(2.0), 8.0),
    row("sha1-8k", 32),
    row("sha256-8k", 32).goals(1.9, PLAIN, 1.7),
    row("sha512-8k", 32).goals(3.5, over(1.5), 3.0),
    row("sha3-256-8k", 32),
    row("hmac-sha256-8k", 32),
    row("rc4-8k", 16).legacy().note(SWAPS),
    row("3des-cbc-encrypt-8k", 512).legacy().note(BITS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_a_mechanism_in_the_load() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(metaslot_ck::mechanism_by_name(row.mechanism()).is_some(), "{}", row.name);
            assert!(ROWS[..at].iter().all(|other| other.name != row.name));
        }
    }
}
