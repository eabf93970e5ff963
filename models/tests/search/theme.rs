// SPDX-License-Identifier: Apache-2.0
//! Sequences about one thing. Two ways to one value, one for each of two purposes, take more steps than
//! chance finds among everything that there is.

use crate::alphabet::{self, Mechanism};
use crate::chooser::Chooser;
use crate::compose::{any_key, follow, named};
use crate::game::Game;
use crate::stage::Facts;
use crate::step::{Data, Function, Step};
use metaslot_ck::*;

/// What a sequence is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Theme {
    Everything,
    /// HKDF's steps, one by one and together, and wraps of what is derived from.
    Derivation,
    /// Wraps under a key that the SO trusts some time, and under copies of it.
    Trust,
    /// ECDH with and without a KDF, by a key that hides what it agrees on.
    Agreement,
}

const DERIVED: &[(u64, &[&str])] = &[
    (4, &["+derive"]),
    (3, &["+sign"]),
    (3, &[]),
    (1, &["+derive", "derives-deriving"]),
    (1, &["+derive", "derives-wrapping"]),
    (3, &["public"]),
];

impl Theme {
    pub(crate) fn of(chooser: &mut Chooser) -> Self {
        let themes =
            [(6, Self::Everything), (3, Self::Derivation), (2, Self::Trust), (1, Self::Agreement)];
        chooser.weighted(&themes)
    }

    /// In how many of a hundred steps the SO trusts a key while the attacker is at work.
    pub(crate) const fn trusting(self) -> u64 {
        if matches!(self, Self::Trust) { 15 } else { 5 }
    }

    /// A base key, or a pair; then a key that carries it.
    pub(crate) fn owners(self, chooser: &mut Chooser, number: usize) -> Option<Step> {
        let carries = number > 1;
        let function =
            if self == Self::Agreement && !carries { Function::Pair } else { Function::Generate };
        let mut step = Step::new(number, true, function);
        if self == Self::Trust {
            step.mechanism = Mechanism::named(if carries { "generic-gen" } else { "aes-gen" });
            let limits = [(2, "with-trusted"), (1, "-sign"), (1, "+derive"), (3, "sensitive")];
            let limit = chooser.weighted(&limits);
            let imposed = [(3, "public"), (1, "unwraps-deriving"), (1, "unwraps-wrapping")];
            let said: &[&str] = match carries {
                true => &["length-32", "sensitive", "extractable", limit],
                false => &["length-32", "public", "+wrap", "+unwrap", "sensitive", "kept"],
            };
            step.words = alphabet::words(said);
            if !carries {
                step.words.extend(alphabet::words(&[chooser.weighted(&imposed)]));
            }
        } else if carries {
            step.mechanism = Mechanism::named("aes-gen");
            let imposed: &[(u64, &[&str])] = &[(1, &[]), (1, &["unwraps-deriving"])];
            let said = ["length-32", "+wrap", "+unwrap", "sensitive", "kept"];
            step.words = alphabet::words(&[&said[..], chooser.weighted(imposed)].concat());
        } else if self == Self::Agreement {
            step.mechanism = Mechanism::named("ec-gen");
            step.words = alphabet::words(&["p256"]);
            let imposed = [(3, "derives-hidden"), (1, "derives-deriving"), (1, "derives-signing")];
            let imposed = chooser.weighted(&imposed);
            step.private = alphabet::words(&["+derive", "sensitive", "kept", imposed]);
        } else {
            step.mechanism = Mechanism::named("generic-gen");
            let protection: &[(u64, &[&str])] = &[
                (2, &[]),
                (1, &["derives-deriving"]),
                (1, &["derives-imposing"]),
                (1, &["derives-unsigning"]),
            ];
            let kept = chooser.weighted(&[(1, "kept"), (1, "extractable")]);
            let said = ["length-32", "+derive", "sensitive", kept];
            step.words = alphabet::words(&[&said[..], chooser.weighted(protection)].concat());
        }
        Some(step)
    }

    /// The attacker's next step.
    pub(crate) fn attackers(
        self,
        game: &Game<'_>,
        chooser: &mut Chooser,
        number: usize,
    ) -> Option<Step> {
        let functions: &[(u64, Function)] = match self {
            Self::Agreement => &[(5, Function::Derive), (3, Function::Digest), (1, Function::Sign)],
            Self::Trust => &[
                (2, Function::Copy),
                (2, Function::Generate),
                (5, Function::Wrap),
                (5, Function::Unwrap),
                (1, Function::Derive),
                (1, Function::Sign),
            ],
            _ => &[
                (12, Function::Derive),
                (6, Function::Sign),
                (2, Function::Wrap),
                (3, Function::Unwrap),
                (1, Function::Digest),
            ],
        };
        let mut step = Step::new(number, false, chooser.weighted(functions));
        let secret = |facts: &Facts| facts.class == CKO_SECRET_KEY;
        match step.function {
            Function::Derive => self.derive(game, chooser, &mut step)?,
            Function::Copy => {
                step.keys = vec![any_key(game, chooser, |facts| facts.has(CKA_WRAP))?];
                let changes: &[(u64, &[&str])] = &[(1, &[]), (1, &["private"])];
                step.words = alphabet::words(chooser.weighted(changes));
            }
            Function::Generate => {
                step.mechanism = Mechanism::named("aes-gen");
                step.words = alphabet::words(&["length-32", "+wrap", "+unwrap", "kept"]);
            }
            Function::Sign => {
                step.mechanism = Mechanism::named("hmac");
                step.keys = vec![any_key(game, chooser, |facts| facts.has(CKA_SIGN))?];
                step.data = vec![named("info-1")?];
            }
            Function::Digest => {
                step.mechanism = Mechanism::named("sha256");
                step.keys = vec![any_key(game, chooser, secret)?];
                step.data = vec![named("nothing")?, named("counter-1")?];
            }
            Function::Wrap => {
                step.mechanism = Mechanism::named(chooser.weighted(&[(1, "kwp"), (1, "bound")]));
                let by = any_key(game, chooser, |facts| facts.has(CKA_WRAP))?;
                step.keys = vec![by, any_key(game, chooser, secret)?];
            }
            _ => {
                let wraps: Vec<usize> = game.truth.wraps.iter().map(|wrap| wrap.step).collect();
                step.mechanism = Mechanism::named("kwp");
                step.keys = vec![any_key(game, chooser, |facts| facts.has(CKA_UNWRAP))?];
                step.data = vec![Data::whole(chooser.one_of(&wraps)?)];
                follow(game, chooser, &mut step);
                let trust: &[&str] = &["generic", "sensitive", "extractable"];
                step.words = said(if self == Self::Trust { trust } else { &["generic"] }, chooser);
            }
        }
        Some(step)
    }

    fn derive(self, game: &Game<'_>, chooser: &mut Chooser, step: &mut Step) -> Option<()> {
        let agrees = self == Self::Agreement;
        let from = if agrees { CKO_PRIVATE_KEY } else { CKO_SECRET_KEY };
        let base = |facts: &Facts| facts.class == from && facts.has(CKA_DERIVE);
        step.keys = vec![any_key(game, chooser, base)?];
        step.mechanism = Mechanism::named(match agrees {
            true => chooser.weighted(&[(1, "ecdh"), (1, "ecdh-kdf")]),
            false => chooser.weighted(&[(2, "extract"), (3, "expand"), (2, "extract-expand")]),
        });
        step.words = said(&["generic", "length-32", "sensitive", "kept"], chooser);
        Some(())
    }
}

fn said(all: &[&str], chooser: &mut Chooser) -> Vec<&'static alphabet::Word> {
    alphabet::words(&[all, chooser.weighted(DERIVED)].concat())
}
