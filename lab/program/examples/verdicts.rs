// SPDX-License-Identifier: Apache-2.0
//! How often a verdict is wrong, and how many pairs it takes: the tables of `docs/lab-verdicts.md`.
//!
//! `cargo run --release -p metaslot-lab --example verdicts [RUNS]`: so many experiments for each row
//! of the first table, 2,000 if not said; the others take a part of them.

use metaslot_lab::verdict::Margin;
use metaslot_lab::verdict::simulate::{Noise, Tally, World};

const SEED: u64 = 1963;
const ENOUGH: f64 = 0.8;
const PAIRS: [usize; 15] = [6, 8, 10, 12, 15, 20, 25, 30, 40, 60, 80, 120, 160, 240, 320];

fn main() {
    let runs = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2_000);
    identical(runs);
    at_the_margin(runs);
    power(runs / 2);
    needed((runs / 4).max(1));
    advice((runs / 4).max(1));
}

fn world(noise: Noise, spread: f64, percent: f64) -> World {
    World { noise, spread: spread / 100.0, effect: (percent / 100.0).ln_1p() }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

fn head(text: &str, columns: &[&str]) {
    println!("\n### {text}\n");
    println!("| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

fn identical(runs: usize) {
    head(
        &format!("Two identical arms, {runs} experiments a row, spread 3 %"),
        &["noise", "pairs", "faster or slower", "interval without zero", "same", "unresolved"],
    );
    for noise in Noise::ALL {
        for pairs in [10, 20, 40, 80] {
            let tally = world(noise, 3.0, 0.0).tally(pairs, runs, Margin::new(None), SEED);
            let wrong = tally.faster + tally.slower;
            let open = runs - wrong - tally.same;
            let mut cells = vec![noise.word().to_owned(), pairs.to_string()];
            cells.extend([wrong, tally.missed, tally.same, open].map(|n| percent(tally.share(n))));
            row(&cells);
        }
    }
}

fn at_the_margin(runs: usize) {
    head(
        &format!("A true difference of exactly the margin, {runs} experiments a row, spread 3 %"),
        &["noise", "pairs", "slower", "same", "faster", "interval without the truth"],
    );
    for noise in Noise::ALL {
        for pairs in [20, 80] {
            let tally = world(noise, 3.0, 2.0).tally(pairs, runs, Margin::new(None), SEED);
            let mut cells = vec![noise.word().to_owned(), pairs.to_string()];
            let counts = [tally.slower, tally.same, tally.faster, tally.missed];
            cells.extend(counts.map(|n| percent(tally.share(n))));
            row(&cells);
        }
    }
}

fn power(runs: usize) {
    const DIFFERENCES: [f64; 6] = [0.0, 3.0, 4.0, 5.0, 7.0, 10.0];
    let columns =
        ["noise", "pairs", "same, if alike", "slower, if 3 %", "4 %", "5 %", "7 %", "10 %"];
    head(&format!("Power: right verdicts, {runs} experiments a cell, spread 3 %"), &columns);
    for noise in Noise::ALL {
        for pairs in [6, 10, 15, 20, 30, 40, 60, 80, 120, 160] {
            let mut cells = vec![noise.word().to_owned(), pairs.to_string()];
            for difference in DIFFERENCES {
                let world = world(noise, 3.0, difference);
                let tally = world.tally(pairs, runs, Margin::new(None), SEED);
                let right = if difference == 0.0 { tally.same } else { tally.slower };
                cells.push(format!("{:.0} %", tally.share(right) * 100.0));
            }
            row(&cells);
        }
    }
}

fn needed(runs: usize) {
    head(
        &format!("Pairs for the right answer in four of five, {runs} experiments a try"),
        &["noise", "spread", "same, if alike", "2 % seen", "slower, if 5 %", "slower, if 10 %"],
    );
    for noise in Noise::ALL {
        for spread in [1.0, 3.0, 10.0] {
            let fewest = |difference: f64, right: fn(&Tally) -> usize| {
                let world = world(noise, spread, difference);
                let enough = |pairs: &usize| {
                    let tally = world.tally(*pairs, runs, Margin::new(None), SEED);
                    tally.share(right(&tally)) >= ENOUGH
                };
                let at = PAIRS.partition_point(|pairs| !enough(pairs));
                PAIRS.get(at).map_or_else(|| "> 320".to_owned(), usize::to_string)
            };
            row(&[
                noise.word().to_owned(),
                format!("{spread} %"),
                fewest(0.0, |tally| tally.same),
                fewest(2.0, |tally| tally.seen),
                fewest(5.0, |tally| tally.slower),
                fewest(10.0, |tally| tally.slower),
            ]);
        }
    }
}

fn advice(runs: usize) {
    head(
        &format!(
            "10 pairs, and as many more as the verdict says, {runs} experiments a row, spread 3 %"
        ),
        &["noise", "truth", "right", "wrong", "still unresolved"],
    );
    for noise in Noise::ALL {
        for difference in [0.0, 5.0, 10.0] {
            let tally = world(noise, 3.0, difference).advised(10, 320, runs, SEED);
            let all = tally.faster + tally.slower + tally.same;
            let right = if difference == 0.0 { tally.same } else { tally.slower };
            let mut cells = vec![noise.word().to_owned(), format!("{difference} %")];
            let counts = [right, all - right, runs - all];
            cells.extend(counts.map(|n| percent(tally.share(n))));
            row(&cells);
        }
    }
}
