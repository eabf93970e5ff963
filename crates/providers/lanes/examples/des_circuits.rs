// SPDX-License-Identifier: Apache-2.0
//! Searches circuits of three-input gates for the S-boxes of DES and prints `src/des/circuits.rs`: `des_circuits SECONDS [SEED]`. Minutes
//! give some 220 gates for all eight boxes.
//!
//! A function is a truth table of 64 bits. It is built from what is already there: a gate of the same function; one new gate over three;
//! two new gates over five; or else the inputs are split in two by some gate, and both halves are built alone, with every gate made
//! for the first at hand for the second (Kwan: "Reducing the Gate Count of Bitslice DES", 2000). Orders and splits are drawn by lot, again
//! and again, and a try is given up as soon as it cannot be better than the best.

use std::time::{Duration, Instant};

/// FIPS 46-3, appendix 1: four rows of sixteen for each box.
const BOXES: [[u64; 4]; 8] = [
    [0xe4d1_2fb8_3a6c_5907, 0x0f74_e2d1_a6cb_9538, 0x41e8_d62b_fc97_3a50, 0xfc82_4917_5b3e_a06d],
    [0xf18e_6b34_972d_c05a, 0x3d47_f28e_c01a_69b5, 0x0e7b_a4d1_58c6_932f, 0xd8a1_3f42_b67c_05e9],
    [0xa09e_63f5_1dc7_b428, 0xd709_346a_285e_cbf1, 0xd649_8f30_b12c_5ae7, 0x1ad0_6987_4fe3_b52c],
    [0x7de3_069a_1285_bc4f, 0xd8b5_6f03_472c_1ae9, 0xa690_cb7d_f13e_5284, 0x3f06_a1d8_945b_c72e],
    [0x2c41_7ab6_853f_d0e9, 0xeb2c_47d1_50fa_3986, 0x421b_ad78_f9c5_630e, 0xb8c7_1e2d_6f09_a453],
    [0xc1af_9268_0d34_e75b, 0xaf42_7c95_61de_0b38, 0x9ef5_28c3_704a_1db6, 0x432c_95fa_be17_608d],
    [0x4b2e_f08d_3c97_5a61, 0xd0b7_491a_e35c_2f86, 0x14bd_c37e_af68_0592, 0x6bd8_14a7_950f_e23c],
    [0xd284_6fb1_a93e_50c7, 0x1fd8_a374_c56b_0e92, 0x7b41_9ce2_06ad_f358, 0x21e7_4a8d_fc90_356b],
];

/// Gates over six inputs, each of which is a truth table, how it was made, and from which others.
#[derive(Clone)]
struct Circuit {
    tables: Vec<u64>,
    made: Vec<(u8, [usize; 3])>,
}

/// Random numbers (Marsaglia's xorshift).
struct Lot(u64);

impl Lot {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).map_or(0, |number| number % limit)
    }
}

/// What a gate makes of three functions.
fn gate(table: u8, [a, b, c]: [u64; 3]) -> u64 {
    (0..8).filter(|at| (table >> at) & 1 == 1).fold(0, |sum, at| sum | cell(at, [a, b, c]))
}

/// Where three functions have the values that are the bits of `at`.
fn cell(at: u32, [a, b, c]: [u64; 3]) -> u64 {
    let side = |bit: u32, function: u64| if (at >> bit) & 1 == 1 { function } else { !function };
    side(2, a) & side(1, b) & side(0, c)
}

impl Circuit {
    /// The six inputs, the leftmost bit first.
    fn new() -> Self {
        let input = |bit: u32| {
            (0..64_u64).filter(|at| (at >> (5 - bit)) & 1 == 1).fold(0, |t, at| t | 1 << at)
        };
        Self { tables: (0..6).map(input).collect(), made: vec![(0, [0; 3]); 6] }
    }

    fn tables_of(&self, from: [usize; 3]) -> [u64; 3] {
        from.map(|at| self.tables[at])
    }

    /// Adds the gate over `from` that is `wanted` wherever `mask` says; elsewhere it falls as it may.
    fn add(&mut self, from: [usize; 3], wanted: u64, mask: u64, lot: &mut Lot) -> usize {
        let inputs = self.tables_of(from);
        let mut table = 0;
        for at in 0..8 {
            let cell = cell(at, inputs) & mask;
            if if cell == 0 { lot.below(2) == 1 } else { cell & wanted != 0 } {
                table |= 1 << at;
            }
        }
        self.tables.push(gate(table, inputs));
        self.made.push((table, from));
        self.tables.len() - 1
    }

    /// Three gates that tell apart where `wanted` is set and clear within `mask`.
    fn three(&self, wanted: u64, mask: u64, start: usize) -> Option<[usize; 3]> {
        let (set, clear) = (wanted & mask, !wanted & mask);
        let count = self.tables.len();
        for a in (0..count).map(|at| (at + start) % count) {
            for b in 0..a {
                let (x, y) = (self.tables[a], self.tables[b]);
                let quarters = [x & y, x & !y, !x & y, !x & !y];
                let parts = quarters.map(|quarter| (set & quarter, clear & quarter));
                let told = |c: u64, (set, clear): (u64, u64)| {
                    (set & !c == 0 && clear & c == 0) || (set & c == 0 && clear & !c == 0)
                };
                let single = |part: &(u64, u64)| part.0 == 0 || part.1 == 0;
                let open: Vec<_> = parts.into_iter().filter(|part| !single(part)).collect();
                if open.is_empty() {
                    return Some([a, b, if b == 0 { (a + 1) % count } else { 0 }]);
                }
                let third = (0..b).find(|c| open.iter().all(|part| told(self.tables[*c], *part)));
                if let Some(c) = third {
                    return Some([a, b, c]);
                }
            }
        }
        None
    }

    /// Two new gates: one over three, and one over that and two more.
    fn two(&mut self, wanted: u64, mask: u64, lot: &mut Lot) -> Option<usize> {
        let count = self.tables.len();
        let start = lot.below(count);
        for d in (0..count).map(|at| (at + start) % count) {
            for e in 0..d {
                let (x, y) = (self.tables[d], self.tables[e]);
                let quarters = [x & y, x & !y, !x & y, !x & !y].map(|quarter| quarter & mask);
                let mixed = |quarter: &u64| quarter & wanted != 0 && quarter & !wanted != 0;
                let open: Vec<_> = quarters.into_iter().filter(mixed).collect();
                let Some((_, others)) = open.split_first() else { continue };
                let within = open.iter().fold(0, |sum, quarter| sum | quarter);
                // Where the two gates stand, the first may be the wanted function or its opposite.
                for opposite in 0..1_u32 << others.len() {
                    let turned = others.iter().enumerate();
                    let turned = turned.filter(|(at, _)| (opposite >> at) & 1 == 1);
                    let first = turned.fold(wanted, |first, (_, quarter)| first ^ quarter);
                    if let Some(from) = self.three(first, within, start) {
                        let inner = self.add(from, first, within, lot);
                        return Some(self.add([inner, d, e], wanted, mask, lot));
                    }
                }
            }
        }
        None
    }

    /// A gate that is `wanted` within `mask`, made with at most `most` new ones.
    fn build(
        &mut self,
        (wanted, mask): (u64, u64),
        most: usize,
        tries: &[usize],
        lot: &mut Lot,
    ) -> Option<usize> {
        if let Some(at) = self.tables.iter().position(|table| (table ^ wanted) & mask == 0) {
            return Some(at);
        }
        if most == 0 {
            return None;
        }
        let start = lot.below(self.tables.len());
        if let Some(from) = self.three(wanted, mask, start) {
            return Some(self.add(from, wanted, mask, lot));
        }
        let found = if most >= 2 { self.two(wanted, mask, lot) } else { None };
        if found.is_some() || most < 3 {
            return found;
        }
        self.split((wanted, mask), most, tries, lot)
    }

    /// The best of some tries to build both sides of a gate alone and choose by it.
    fn split(
        &mut self,
        (wanted, mask): (u64, u64),
        mut most: usize,
        tries: &[usize],
        lot: &mut Lot,
    ) -> Option<usize> {
        let (tries, deeper) = tries.split_first()?;
        let before = self.tables.len();
        let mut best = None;
        for _ in 0..*tries {
            let among = if lot.below(8) == 0 { before } else { 6 };
            let by = lot.below(among);
            let turn = if lot.below(2) == 0 { 0 } else { u64::MAX };
            let side = self.tables[by] ^ turn;
            if side & mask == 0 || !side & mask == 0 || most < 3 {
                continue;
            }
            let mut copy = self.clone();
            let Some(one) = copy.build((wanted, mask & side), most - 2, deeper, lot) else {
                continue;
            };
            let left = (before + most).saturating_sub(copy.tables.len() + 1);
            // On the other side the first function may be added as well: it costs nothing.
            let added = if lot.below(3) == 0 { copy.tables[one] } else { 0 };
            let found = if let Some(from) = copy.three(wanted, mask, 0) {
                copy.add(from, wanted, mask, lot)
            } else {
                let other = copy.build((wanted ^ added, mask & !side), left, deeper, lot);
                let Some(other) = other else { continue };
                copy.add([by, one, other], wanted, mask, lot)
            };
            let cost = copy.tables.len() - before;
            if cost <= most {
                most = cost - 1;
                best = Some((copy, found));
            }
        }
        let (copy, found) = best?;
        *self = copy;
        Some(found)
    }
}

/// The four functions of an S-box.
fn wanted(rows: [u64; 4]) -> [u64; 4] {
    [3, 2, 1, 0].map(|bit: u32| {
        let value = |at: usize| rows[(at >> 5) * 2 + (at & 1)] >> (4 * (15 - ((at >> 1) & 15)));
        (0..64).filter(|at| (value(*at) >> bit) & 1 == 1).fold(0, |table, at| table | 1 << at)
    })
}

/// One try for a whole box, with fewer gates than `most`.
fn attempt(wanted: &[u64; 4], most: usize, lot: &mut Lot) -> Option<(Circuit, [usize; 4])> {
    let tries: [&[usize]; 4] =
        [&[1, 1, 1, 2, 2, 2], &[2; 6], &[4, 3, 2, 2, 2, 2], &[8, 3, 2, 2, 2, 2]];
    let tries = tries[lot.below(4)];
    let mut order = [0, 1, 2, 3];
    (1..4).for_each(|at| order.swap(at, lot.below(at + 1)));
    let mut circuit = Circuit::new();
    let mut outputs = [0; 4];
    for output in order {
        let left = (most + 5).saturating_sub(circuit.tables.len());
        outputs[output] = circuit.build((wanted[output], u64::MAX), left, tries, lot)?;
    }
    (circuit.tables.len() < most + 6).then_some((circuit, outputs))
}

fn print(circuits: &[(Circuit, [usize; 4])]) {
    let gates = |circuit: &Circuit| circuit.tables.len() - 6;
    let name = |at: usize| if at < 6 { format!("x[{at}]") } else { format!("g{at}") };
    println!("// SPDX-License-Identifier: Apache-2.0");
    println!(
        "//! Table: the S-boxes of DES (FIPS 46-3) as circuits of three-input gates, printed by `examples/des_circuits.rs`."
    );
    println!("//!");
    println!(
        "//! Inputs come in the standard's order, the leftmost of the six bits first; so do outputs. A gate's number is its truth table, as in the"
    );
    println!(
        "//! instruction VPTERNLOG: bit 4a + 2b + c is its value. {} gates in all.",
        circuits.iter().map(|(circuit, _)| gates(circuit)).sum::<usize>()
    );
    println!("\nuse super::word::Word;");
    for ((circuit, outputs), number) in circuits.iter().zip(1..) {
        println!("\n/// S{number}: {} gates.\n#[inline(always)]", gates(circuit));
        println!("pub(super) fn s{number}<W: Word>(x: [W; 6]) -> [W; 4] {{");
        for (at, (table, from)) in circuit.made.iter().enumerate().skip(6) {
            let from = from.map(name).join(", ");
            println!("    let g{at} = W::gate::<0x{table:02x}>({from});");
        }
        println!("    [{}]\n}}", outputs.map(name).join(", "));
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|number| number.parse().ok());
    let time = Duration::from_secs(numbers.next().unwrap_or(600));
    let mut lot = Lot(numbers.next().unwrap_or(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let begin = Instant::now();
    let mut best: [Option<(Circuit, [usize; 4])>; 8] = [const { None }; 8];
    while begin.elapsed() < time || best.iter().any(Option::is_none) {
        for (best, rows) in best.iter_mut().zip(BOXES) {
            let most = best.as_ref().map_or(60, |(circuit, _)| circuit.tables.len() - 6);
            if let Some(better) = attempt(&wanted(rows), most, &mut lot) {
                *best = Some(better);
            }
        }
    }
    print(&best.into_iter().flatten().collect::<Vec<_>>());
}
