// SPDX-License-Identifier: Apache-2.0
//! What the samples say: which kernel is best where, from which size on memory is better written past the
//! cache, what large pages change, and how our kernels stand beside the C library's.

use super::distance::{Distance, distances};
use super::words::{Cell, Consumer, Group, PageSize, State, shown};
use crate::crossover::{Crossover, crossover};
use crate::experiment::{Experiment, Sample};
use crate::random::Random;
use crate::scenario;
use crate::verdict::{Comparer, Comparison, Family, Margin, Pairs, Verdict};
use std::collections::BTreeMap;

/// What others are compared with.
pub(super) const LIBC: &str = "libc";
/// The one that chooses by the size.
pub(super) const OURS: &str = "ours";

/// What a sample costs: CPU time, or the latency of a copy alone.
type Cost = fn(&Sample) -> f64;

/// Wall time of a copy alone; not a number where it was not measured.
fn latency(sample: &Sample) -> f64 {
    sample.measured.counters.get("latency_ns").copied().unwrap_or(f64::NAN)
}

/// An experiment, by groups of cells that differ by the size only.
pub(super) struct Findings<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) margin: Margin,
    pub(super) groups: Vec<Sizes>,
    /// By the words of the sizes, and the cell.
    pasts: BTreeMap<(String, String), Past>,
}

/// A group's cells, by size; where another core reads, at one distance of the two.
#[derive(Clone)]
pub(super) struct Sizes {
    pub(super) group: Group,
    pub(super) cells: Vec<(usize, String)>,
    distance: Option<Distance>,
}

impl Sizes {
    /// The group's name, in a few words.
    pub(super) fn words(&self) -> String {
        let distance = self.distance.map(|distance| format!(", {}", distance.words()));
        self.group.words() + &distance.unwrap_or_default()
    }

    /// The group's name, in full.
    pub(super) fn title(&self) -> String {
        let distance = self.distance.map(|distance| format!(", {} away", distance.words()));
        self.group.to_string() + &distance.unwrap_or_default()
    }

    /// The distance, if there are several.
    pub(super) fn distance(&self) -> Option<String> {
        self.distance.map(Distance::words)
    }

    /// A cost, which is no number for samples at another distance.
    fn cost(&self, by: Cost) -> impl Fn(&Sample) -> f64 {
        let distance = self.distance;
        move |sample| match distance {
            Some(distance) if !distance.holds(sample) => f64::NAN,
            _ => by(sample),
        }
    }
}

/// The best kernel past the cache, compared with the best one into it.
pub(super) struct Past {
    pub(super) past: String,
    pub(super) into: String,
    pub(super) comparison: Comparison,
    /// With all cells in view.
    pub(super) verdict: Verdict,
}

/// Comparisons by size, each with its verdict.
pub(super) type Ratios = BTreeMap<usize, (Comparison, Verdict)>;

/// Whether a kernel writes past the cache. A name is all that an experiment from elsewhere has.
fn is_past(kernel: &str) -> bool {
    kernel.starts_with("nt-")
}

fn is_into(kernel: &str) -> bool {
    !is_past(kernel) && kernel != OURS
}

impl<'a> Findings<'a> {
    pub(super) fn of(experiment: &'a Experiment) -> Self {
        let mut groups: Vec<Sizes> = Vec::new();
        for name in experiment.plan.cells() {
            let Some(cell) = Cell::parse(&name) else { continue };
            match groups.iter_mut().find(|sizes| sizes.group == cell.group()) {
                Some(sizes) => sizes.cells.push((cell.size, name)),
                None => {
                    let cells = vec![(cell.size, name)];
                    groups.push(Sizes { group: cell.group(), cells, distance: None });
                }
            }
        }
        let groups = by_distance(groups, &distances(experiment));
        let margin = scenario::margin(experiment);
        let mut findings = Self { experiment, margin, groups, pasts: BTreeMap::new() };
        findings.pasts = findings.judge();
        findings
    }

    /// The best kernel past the cache over the best one into it, everywhere.
    fn judge(&self) -> BTreeMap<(String, String), Past> {
        let mut pasts = BTreeMap::new();
        let mut compared = Vec::new();
        for sizes in &self.groups {
            for (_, cell) in &sizes.cells {
                if let Some(past) = self.compare(sizes, cell) {
                    compared.push((cell.clone(), past.comparison.clone()));
                    pasts.insert((sizes.words(), cell.clone()), (compared.len() - 1, past));
                }
            }
        }
        let verdicts = Family::new(compared, self.margin).verdicts();
        let judged =
            |(name, (at, past)): (_, (usize, Past))| (name, Past { verdict: verdicts[at], ..past });
        pasts.into_iter().map(judged).collect()
    }

    /// Bytes in a nanosecond of CPU time, which are GB in a second.
    pub(super) fn rate(&self, sizes: &Sizes, cell: &str, kernel: &str) -> Option<f64> {
        self.typical(cell, kernel, sizes.cost(Sample::cpu_each)).map(|cost| 1.0 / cost)
    }

    fn typical(&self, cell: &str, kernel: &str, cost: impl Fn(&Sample) -> f64) -> Option<f64> {
        self.experiment.typical(cell, kernel, |sample| Some(cost(sample)).filter(|c| c.is_finite()))
    }

    /// The kernel with the least median cost among some.
    pub(super) fn best(
        &self,
        sizes: &Sizes,
        cell: &str,
        among: impl Fn(&str) -> bool,
    ) -> Option<&'a str> {
        self.best_by(cell, &sizes.cost(Sample::cpu_each), among)
    }

    fn best_by(
        &self,
        cell: &str,
        cost: &dyn Fn(&Sample) -> f64,
        among: impl Fn(&str) -> bool,
    ) -> Option<&'a str> {
        let arms = self.experiment.plan.arms.iter().map(String::as_str);
        let typical = |arm| self.typical(cell, arm, cost);
        let costs = arms.filter(|arm| among(arm)).filter_map(|arm| Some((arm, typical(arm)?)));
        costs.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(arm, _)| arm)
    }

    /// The best kernel past the cache over the best one into it.
    pub(super) fn past(&self, sizes: &Sizes, cell: &str) -> Option<&Past> {
        self.pasts.get(&(sizes.words(), cell.to_owned()))
    }

    fn compare(&self, sizes: &Sizes, cell: &str) -> Option<Past> {
        let cost = sizes.cost(Sample::cpu_each);
        let past = self.best_by(cell, &cost, is_past)?;
        let into = self.best_by(cell, &cost, is_into)?;
        let comparison = Comparison::of(&self.experiment.pairs_of(cell, [past, into], cost))?;
        let verdict = comparison.verdict(self.margin);
        Some(Past { past: past.to_owned(), into: into.to_owned(), comparison, verdict })
    }

    /// The kernels of a row that surely cost no more than any other of it, the same within the margin
    /// among them; none where that cannot be told, or where all are the same.
    pub(super) fn cheapest(&self, sizes: &Sizes, cell: &str) -> Vec<&'a str> {
        let arms = || self.experiment.plan.arms.iter().map(String::as_str);
        let mut comparer = Comparer::default();
        let is_one = |arm: &&str| {
            let others = arms().filter(|other| other != arm);
            let mut over = |other| {
                let cost = sizes.cost(Sample::cpu_each);
                comparer.compare(&self.experiment.pairs_of(cell, [*arm, other], cost))
            };
            let compared = others.filter_map(|other| Some((other.to_owned(), over(other)?)));
            let verdicts = Family::new(compared.collect(), self.margin).verdicts();
            verdicts.contains(&Verdict::Faster)
                && verdicts.iter().all(|verdict| matches!(verdict, Verdict::Faster | Verdict::Same))
        };
        arms().filter(is_one).collect()
    }

    /// From which size on a stream of copies is better written past the cache.
    pub(super) fn crossover(&self, sizes: &Sizes) -> Option<Crossover> {
        self.crossover_by(sizes, Sample::cpu_each, true)
    }

    /// The same of copies alone, by their latency.
    pub(super) fn crossover_alone(&self, sizes: &Sizes) -> Option<Crossover> {
        self.crossover_by(sizes, latency, false)
    }

    /// Cells where a stream and a copy alone are both faster or slower past the cache, by those verdicts.
    pub(super) fn stream_and_alone(&self) -> Vec<(String, Verdict, Verdict)> {
        let differs = |verdict: &Verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
        let (mut streams, mut alone) = (Vec::new(), Vec::new());
        for sizes in &self.groups {
            for (size, cell) in &sizes.cells {
                let Some(past) = self.past(sizes, cell) else { continue };
                let arms = [past.past.as_str(), past.into.as_str()];
                let one = Comparison::of(&self.experiment.pairs_of(cell, arms, latency));
                let name = format!("{} {}", sizes.words(), shown(*size));
                if let Some(one) = one {
                    alone.push((name, one));
                    streams.push(past.verdict);
                }
            }
        }
        let names: Vec<String> = alone.iter().map(|(name, _)| name.clone()).collect();
        let alone = Family::new(alone, self.margin).verdicts();
        let both = names.into_iter().zip(streams).zip(alone);
        let mut found: Vec<(String, Verdict, Verdict)> =
            both.map(|((name, stream), alone)| (name, stream, alone)).collect();
        found.retain(|(_, stream, alone)| differs(stream) && differs(alone));
        found
    }

    fn crossover_by(&self, sizes: &Sizes, by: Cost, stream: bool) -> Option<Crossover> {
        let cost = sizes.cost(by);
        let logs = |cell: &String| {
            let past = self.best_by(cell, &cost, is_past);
            let arms = past.zip(self.best_by(cell, &cost, is_into));
            let pairs = arms.map(|arms| self.experiment.pairs_of(cell, arms.into(), &cost));
            pairs.map_or_else(Vec::new, |pairs| pairs.logs().to_vec())
        };
        let logs: Vec<Vec<f64>> = sizes.cells.iter().map(|(_, cell)| logs(cell)).collect();
        let values: Vec<f64> = sizes.cells.iter().map(|(size, _)| *size as f64).collect();
        let verdicts = self.carrying(sizes, &logs, stream);
        let random = &mut Random::new(self.experiment.plan.seed);
        Some(crossover(&values, &logs, random)?.carried(&values, &verdicts))
    }

    /// The verdicts that carry a crossover: of streams those of the table, of copies alone those of their
    /// row.
    fn carrying(&self, sizes: &Sizes, logs: &[Vec<f64>], stream: bool) -> Vec<Verdict> {
        let open = Verdict::Unresolved { more: None };
        if stream {
            let verdict = |(_, cell): &(usize, String)| {
                self.past(sizes, cell).map_or(open, |past| past.verdict)
            };
            return sizes.cells.iter().map(verdict).collect();
        }
        let compared: Vec<Option<Comparison>> =
            logs.iter().map(|logs| Comparison::of(&Pairs::of_logs(logs.clone()))).collect();
        let some = compared.iter().flatten().map(|one| (String::new(), one.clone())).collect();
        let mut verdicts = Family::new(some, self.margin).verdicts().into_iter();
        compared
            .iter()
            .map(|one| one.as_ref().and_then(|_| verdicts.next()).unwrap_or(open))
            .collect()
    }

    /// Kernels over the C library's, each in its cell.
    fn over_libc(&self, kernel: impl Fn(&Sizes, &str) -> Option<&'a str>) -> Family {
        let mut compared = Vec::new();
        for sizes in &self.groups {
            let cost = sizes.cost(Sample::cpu_each);
            compared.extend(sizes.cells.iter().filter_map(|(size, cell)| {
                let pairs = self.experiment.pairs_of(cell, [kernel(sizes, cell)?, LIBC], &cost);
                let name = format!("{} {}", sizes.words(), shown(*size));
                Some((name, Comparison::of(&pairs)?))
            }));
        }
        Family::new(compared, self.margin)
    }

    /// The best of our kernels in each cell over the C library's. Chosen by the samples that judge it, so a
    /// little too good.
    pub(super) fn best_over_libc(&self) -> Family {
        self.over_libc(|sizes, cell| self.best(sizes, cell, |kernel| kernel != LIBC))
    }

    /// The one that chooses by size, over the C library's; `None` if it did not run.
    pub(super) fn ours_over_libc(&self) -> Option<Family> {
        let ours = self.experiment.plan.arms.iter().find(|arm| *arm == OURS)?;
        Some(self.over_libc(|_, _| Some(ours.as_str())))
    }

    /// By state and size: the C library's copy in large pages over the same in small ones, where
    /// nobody reads. Pairs are of one repetition.
    pub(super) fn large_over_small(&self) -> Vec<(State, Ratios)> {
        let of = |state, pages| {
            let group = Group { state, pages, consumer: Consumer::Nobody };
            self.groups.iter().find(move |sizes| sizes.group == group)
        };
        let states = self.groups.iter().map(|sizes| sizes.group.state);
        let mut states: Vec<State> = states.collect();
        states.dedup();
        let mut rows: Vec<(State, BTreeMap<usize, Comparison>)> = Vec::new();
        for state in states {
            let both = of(state, PageSize::Large).zip(of(state, PageSize::Small));
            let Some((large, small)) = both else { continue };
            if rows.iter().any(|(other, _)| *other == state) {
                continue;
            }
            let compared = large.cells.iter().filter_map(|(size, cell)| {
                let (_, other) = small.cells.iter().find(|(other, _)| other == size)?;
                Some((*size, Comparison::of(&self.between(cell, other))?))
            });
            rows.push((state, compared.collect()));
        }
        self.judged(rows)
    }

    /// The same with verdicts, all of them in view.
    fn judged(&self, rows: Vec<(State, BTreeMap<usize, Comparison>)>) -> Vec<(State, Ratios)> {
        let all = rows.iter().flat_map(|(_, row)| row.values());
        let all = all.map(|comparison| (String::new(), comparison.clone())).collect();
        let mut verdicts = Family::new(all, self.margin).verdicts().into_iter();
        let mut ratios = |row: BTreeMap<usize, Comparison>| -> Ratios {
            let with = |(size, comparison)| Some((size, (comparison, verdicts.next()?)));
            row.into_iter().filter_map(with).collect()
        };
        rows.into_iter().map(|(state, row)| (state, ratios(row))).collect()
    }

    /// The pairs of two cells, of the kernel that both have first.
    fn between(&self, cell: &str, other: &str) -> Pairs {
        let arm = self.experiment.plan.arms.first().map_or("", String::as_str);
        let costs = |cell: &str| -> BTreeMap<usize, f64> {
            let samples = self.experiment.of(cell, arm);
            samples.map(|sample| (sample.run.repetition, sample.cpu_each())).collect()
        };
        let (a, b) = (costs(cell), costs(other));
        let both = a.iter().filter_map(|(at, cost)| Some((*cost, *b.get(at)?)));
        let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
        Pairs::of_costs(&a, &b)
    }
}

/// Groups that another core reads, once for each distance, if there are several.
fn by_distance(groups: Vec<Sizes>, distances: &[Distance]) -> Vec<Sizes> {
    let several = distances.len() > 1;
    let each = |sizes: Sizes| -> Vec<Sizes> {
        if !several || sizes.group.consumer != Consumer::Other {
            return vec![sizes];
        }
        let at = |distance: &Distance| Sizes { distance: Some(*distance), ..sizes.clone() };
        distances.iter().map(at).collect()
    };
    groups.into_iter().flat_map(each).collect()
}
