// SPDX-License-Identifier: Apache-2.0
//! What the experiment says of RSA: versions, a profile by function, and why.

use super::super::findings::Findings;
use super::super::page::versions;
use super::super::view::{Clock, View};
use super::versions::{BITS, CALLS, FUSED, LANES, LIBRARY, ROWS_32, ROWS_64, SIZES, TIME};
use crate::experiment::Sample;
use crate::table::{Table, digits, nanoseconds};

pub(crate) fn findings(view: &View<'_>) -> Findings {
    let [small, large] =
        SIZES.map(|bits| view.cell(&[(BITS, &bits.to_string())]).unwrap_or_default());
    let shown = [("RSA-1024", small.clone()), ("RSA-2048", large)];
    let mut tables = versions(
        view,
        "Private operation, one thread: ticks of the time stamp for an operation; CPU cost over the first \
         version with RSA-1024",
        &shown,
    );
    for (name, cell) in &shown {
        tables += &profile(view, name, cell);
    }
    tables += "Calls are counted in one operation, and each function is timed alone in a loop beside every \
               sample;\nunknown is the operation's time less the sum: reductions' ends, windows, the CRT, and \
               what a function\ncosts more or less in its place than alone.\n";
    Findings { tables, sun: sun(), effects: effects(view, &small), reason: reason(view, &small) }
}

fn sun() -> Vec<String> {
    [
        "RSA-1024 private in a bignum library: 493,544 ns (Xeon 5450), 557,934 ns (Opteron 885), \
         606,147 ns (Opteron 280); OpenSSL on a Xeon X5560 1,760 operations/s with 1 thread, 14,048 with \
         16; an UltraSPARC T2 37,000/s",
        "64-bit limbs gave 1.8 times, tuning of the products 10 %, Montgomery in assembly 3 times \
         (OpenSSL 0.9.8a to 0.9.8j)",
        "profile of the benchmark: big_mul_add_vec 26.9 of 52.0 s (52 %), big_mont_mul 9.2 (18 %), \
         big_sqr_vec 5.0 (10 %)",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The functions of one version, by name.
fn functions(view: &View<'_>, cell: &str, arm: &str) -> Vec<String> {
    let sample = view.experiment.of(cell, arm).next();
    let names = sample.into_iter().flat_map(|sample| sample.measured.counters.keys());
    names.filter_map(|name| Some(name.strip_prefix(TIME)?.to_owned())).collect()
}

/// A counter for one operation; no number where it was not counted.
fn counted(view: &View<'_>, cell: &str, arm: &str, name: &str) -> f64 {
    let typical = view.experiment.typical(cell, arm, |sample| sample.counted_each(name));
    typical.unwrap_or(f64::NAN)
}

/// Where the time of both versions with functions goes.
fn profile(view: &View<'_>, name: &str, cell: &str) -> String {
    let mut table = Table::new(&["function", "calls", "each", "all calls", "of the operation"]);
    for arm in [ROWS_32, ROWS_64] {
        let whole = view.typical(cell, arm, Sample::cpu_each);
        let mut known = 0.0;
        for function in functions(view, cell, arm) {
            let calls = counted(view, cell, arm, &format!("{CALLS}{function}"));
            let all = counted(view, cell, arm, &format!("{TIME}{function}"));
            known += all;
            table.row(vec![
                function,
                format!("{calls:.0}"),
                nanoseconds(all / calls),
                nanoseconds(all),
                share(all / whole),
            ]);
        }
        let unknown = whole - known;
        let row = |what: String, time: f64| {
            vec![what, String::new(), String::new(), nanoseconds(time), share(time / whole)]
        };
        table.row(row(format!("unknown, {arm}"), unknown));
        table.row(row(format!("the operation, {arm}"), whole));
    }
    format!("Profile by function, {name}\n\n{}\n", table.render())
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn effects(view: &View<'_>, cell: &str) -> Vec<String> {
    let planned = [
        ("64-bit limbs instead of 32-bit", [ROWS_64, ROWS_32]),
        ("reduction in the loop of the product", [FUSED, ROWS_64]),
        ("the library's assembly", [LIBRARY, FUSED]),
        ("eight operations side by side", [LANES, LIBRARY]),
    ];
    let there = planned.into_iter().filter(|(_, arms)| arms.iter().all(|arm| view.has(arm)));
    there
        .map(|(what, arms)| view.effect(&format!("{what}, RSA-1024"), cell, arms, Clock::Cpu))
        .collect()
}

fn reason(view: &View<'_>, cell: &str) -> [String; 2] {
    let row = |arm: &str| {
        let function = functions(view, cell, arm).into_iter().next().unwrap_or_default();
        let calls = counted(view, cell, arm, &format!("{CALLS}{function}"));
        (calls, counted(view, cell, arm, &format!("{TIME}{function}")) / calls)
    };
    let ((many, narrow), (few, wide)) = (row(ROWS_32), row(ROWS_64));
    let time = |arm: &str| nanoseconds(view.typical(cell, arm, Sample::cpu_each));
    let lanes = if view.has(LANES) {
        format!(
            "; eight operations that share every instruction take {} each, {} times the rate of one \
             that has them alone",
            time(LANES),
            digits(1.0 / view.ratio(cell, LANES, LIBRARY)),
        )
    } else {
        String::new()
    };
    [
        format!(
            "RSA-1024 multiplies {many:.0} rows of 32-bit limbs at {} each, or {few:.0} rows of half as \
             many 64-bit limbs at {}: a quarter of the products is {} times the rate, not four times, \
             since a row of half as many limbs takes {} of the time and other work stays as it is.",
            nanoseconds(narrow),
            nanoseconds(wide),
            digits(1.0 / view.ratio(cell, ROWS_64, ROWS_32)),
            digits(wide / narrow),
        ),
        format!(
            "An operation takes {} with rows that are stored and loaded again for the reduction, {} with \
             both in one loop of known length, and {} in the library's assembly, with its blinding and \
             its check{lanes}.",
            time(ROWS_64),
            time(FUSED),
            time(LIBRARY),
        ),
    ]
}
