// SPDX-License-Identifier: Apache-2.0
//! Whether the time of a multiple depends on the scalar.

use crate::binary::curve::{Curve, Kind, Task, on};
use crate::binary::field::{Field, LANES};
use crate::binary::form::Form;
use crate::binary::params::{Affine, Params};
use crate::binary::point::multiply;
use crate::testing::{Random, judge};
use std::hint::black_box;

/// The inputs of a class, read alike for both: where one of them crosses a cache line and the other does not, the time
/// of reading them tells them apart.
fn chosen<const W: usize>(classes: &[[[u64; W]; LANES]; 2], class: usize) -> [[u64; W]; LANES] {
    let second = black_box(class as u64).wrapping_neg();
    let word = |lane: usize, at: usize| {
        let [a, b] = [0, 1].map(|class| classes[class][lane][at]);
        a ^ (second & (a ^ b))
    };
    std::array::from_fn(|lane| std::array::from_fn(|at| word(lane, at)))
}

struct Timing(Curve, Kind);

impl Task for Timing {
    type Answer = ();

    fn run<A: Form<F, W>, F: Field<W>, const W: usize>(self, form: A, curve: &'static Params<W>) {
        let mut random = Random::new();
        let mut sparse = [0; W];
        sparse[0] = 1;
        let classes = [[sparse; LANES], [curve.order.reduce(&[u64::MAX; W]); LANES]];
        judge(&format!("{} {:?}", self.0.name(), self.1), &mut random, 400, |class| {
            let (scalars, mut out) = (chosen(&classes, class), [Affine::ZERO; LANES]);
            multiply(form, curve, &[curve.base; LANES], black_box(&scalars), &mut out);
            black_box(out);
        });
        judge(&format!("{} inverse", self.0.name()), &mut random, 1000, |class| {
            let mut values = black_box(chosen(&classes, class));
            curve.order.invert(&mut values);
            black_box(values);
        });
    }
}

#[test]
fn scalars_with_few_and_with_many_bits_take_the_same_time() {
    for curve in [Curve::Sect163k1, Curve::Sect233r1] {
        for kind in Kind::all() {
            on(curve, kind, Timing(curve, kind));
        }
    }
}

/// Larger fields than that of 163 bits do not fit into the registers; what goes to the stack must at least not split cache lines.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_ladder_keeps_what_it_can_in_registers() {
    use crate::testing::{disassembly, spills};

    let aligned = disassembly("binary::vector::ladder");
    let aligned = aligned.iter().filter(|line| line.contains("and ") && line.contains(",%rsp"));
    let (functions, found) = (aligned.count(), spills("binary::vector::ladder"));
    println!("{functions} ladders, {found} accesses of the stack");
    assert_eq!(functions, 5);
    assert!(found < 2_500, "{found} spills in the ladders");
    assert_eq!(spills("binary::vector::square_times"), 0);
}
