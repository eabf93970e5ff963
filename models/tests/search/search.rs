// SPDX-License-Identifier: Apache-2.0
//! Plays one sequence after another, and keeps what is found: one sequence of each kind, the shortest.

use crate::chooser::{Chooser, Odometer};
use crate::compose;
use crate::game::Game;
use crate::stage::Stock;
use crate::step::Step;
use crate::theme::Theme;
use crate::verdict::{self, Finding};
use metaslot_models::chance::Chance;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What of the owner's and the attacker's at most.
#[derive(Clone, Copy, Debug)]
struct Size {
    owners: usize,
    attackers: usize,
}

/// By chance, long; in turn, short.
const LONG: Size = Size { owners: 4, attackers: 12 };
const SHORT: Size = Size { owners: 1, attackers: 2 };

/// What was found of one kind.
#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) count: u64,
    /// After so many sequences.
    pub(crate) first: u64,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) stock: Stock,
    pub(crate) sequences: u64,
    pub(crate) calls: u64,
    /// Calls that succeeded.
    pub(crate) successes: u64,
    pub(crate) found: BTreeMap<&'static str, Attack>,
    chance: Chooser,
    every: Chooser,
    /// Whether every short sequence has been played.
    exhausted: bool,
    pub(crate) begun: Instant,
}

impl Search {
    pub(crate) fn new(stock: Stock, seed: u64) -> Self {
        Self {
            stock,
            sequences: 0,
            calls: 0,
            successes: 0,
            found: BTreeMap::new(),
            chance: Chooser::Chance(Chance::new(seed)),
            every: Chooser::Every(Odometer::default()),
            exhausted: false,
            begun: Instant::now(),
        }
    }

    /// Which part of the short sequences has been played.
    pub(crate) fn of_every(&self) -> f64 {
        match &self.every {
            Chooser::Every(odometer) if !self.exhausted => odometer.done(),
            _ => 1.0,
        }
    }

    /// How many of the kinds that were found people had thought of.
    pub(crate) fn named(&self) -> usize {
        verdict::NAMED.iter().filter(|kind| self.found.contains_key(*kind)).count()
    }

    /// Plays as long as it is `wanted`; `show` is told now and then.
    pub(crate) fn run(&mut self, wanted: impl Fn(&Self) -> bool, mut show: impl FnMut(&Self)) {
        let mut shown = Instant::now();
        while wanted(self) {
            self.sequence();
            if shown.elapsed() > Duration::from_secs(10) {
                shown = Instant::now();
                show(self);
            }
        }
    }

    fn sequence(&mut self) {
        self.sequences += 1;
        let short = !self.exhausted && self.sequences.is_multiple_of(4);
        let (chooser, size) =
            if short { (&mut self.every, SHORT) } else { (&mut self.chance, LONG) };
        let mut game = Game::new(&self.stock);
        let mut steps = Vec::new();
        let mut found = None;
        let theme = if short { Theme::Everything } else { Theme::of(chooser) };
        let owners = match theme {
            _ if short => size.owners,
            Theme::Everything => 1 + chooser.below(size.owners),
            Theme::Trust => 2,
            _ => 1 + chooser.below(2),
        };
        for number in 1..=owners + size.attackers {
            let next = match (theme, number <= owners) {
                (_, false) if chooser.rarely(theme.trusting()) => {
                    compose::trusts(&game, chooser, number, owners)
                }
                (Theme::Everything, true) => compose::owners(&game, chooser, number),
                (Theme::Everything, false) => compose::attackers(&game, chooser, number, &steps),
                (theme, true) => theme.owners(chooser, number),
                (theme, false) => theme.attackers(&game, chooser, number),
            };
            let Some(step) = next else { continue };
            self.calls += 1;
            let Ok(finding) = game.play(&step) else { continue };
            self.successes += 1;
            steps.push(step);
            if finding.is_some() {
                found = finding;
                break;
            }
        }
        if short && let Chooser::Every(odometer) = &mut self.every {
            self.exhausted = !odometer.turn();
        }
        if let Some(finding) = found {
            self.keep(finding, steps);
        }
    }

    fn keep(&mut self, finding: Finding, steps: Vec<Step>) {
        let kind = verdict::kind(finding, &steps);
        let known = self.found.get_mut(kind);
        if let Some(attack) = known
            && (attack.count >= 3 && attack.steps.len() <= steps.len())
        {
            attack.count += 1;
            return;
        }
        let (finding, steps) = shortest(&self.stock, finding, steps);
        let kind = verdict::kind(finding, &steps);
        let first = self.sequences;
        let attack = self.found.entry(kind).or_insert_with(|| Attack {
            count: 0,
            first,
            steps: steps.clone(),
        });
        attack.count += 1;
        if steps.len() < attack.steps.len() {
            attack.steps = steps;
        }
    }
}

/// The sequence without every step and every word that the finding does not need.
fn shortest(stock: &Stock, finding: Finding, steps: Vec<Step>) -> (Finding, Vec<Step>) {
    let mut best = (finding, steps);
    let same = |steps: &[Step]| {
        let (found, count) = Game::replay(stock, steps)?;
        (found == finding).then(|| (found, steps[..count].to_vec()))
    };
    loop {
        let all = &best.1;
        let without_step = (0..all.len()).rev().map(|at| {
            let mut fewer = all.clone();
            fewer.remove(at);
            fewer
        });
        let without_word = (0..all.len()).flat_map(|at| {
            let words = all[at].words.len();
            (0..words + all[at].private.len()).map(move |word| {
                let mut fewer = all.clone();
                if word < words {
                    fewer[at].words.remove(word);
                } else {
                    fewer[at].private.remove(word - words);
                }
                fewer
            })
        });
        match without_step.chain(without_word).find_map(|fewer| same(&fewer)) {
            Some(shorter) => best = shorter,
            None => return best,
        }
    }
}
