// SPDX-License-Identifier: Apache-2.0
//! S7 and S9 as equations: each output bit is a sum of products of input bits, of at most three in S7
//! and two in S9 (3GPP TS 35.202, section 4.5). Computed from the tables, and checked against them.
//! Every bit is a word, so that 64 values are looked up at once, by the same instructions whatever they
//! are.

/// S7 of 64 values; bit `n` of each is in `x[n]`.
pub(super) fn s7(x: [u64; 7]) -> [u64; 7] {
    let [x0, x1, x2, x3, x4, x5, x6] = x;
    let [p01, p02, p03, p04, p05, p06] = [x1, x2, x3, x4, x5, x6].map(|x| x0 & x);
    let [p12, p13, p14, p15, p16] = [x2, x3, x4, x5, x6].map(|x| x1 & x);
    let [p23, p24, p25, p26] = [x3, x4, x5, x6].map(|x| x2 & x);
    let [p34, p35, p36] = [x4, x5, x6].map(|x| x3 & x);
    let [p45, p46] = [x5, x6].map(|x| x4 & x);
    let p56 = x5 & x6;
    [
        x4 ^ x5
            ^ x6
            ^ p13
            ^ p25
            ^ p06
            ^ p16
            ^ p36
            ^ (p01 & x4)
            ^ (p34 & x5)
            ^ (p24 & x6)
            ^ (p15 & x6)
            ^ (p45 & x6),
        !(x5 ^ x6 ^ p01 ^ p04 ^ p24 ^ p36 ^ (p12 & x5) ^ (p03 & x5) ^ (p02 & x6) ^ (p45 & x6)),
        !(x0 ^ p03
            ^ p23
            ^ p15
            ^ p06
            ^ p26
            ^ p46
            ^ (p12 & x4)
            ^ (p03 & x4)
            ^ (p02 & x5)
            ^ (p01 & x6)),
        x1 ^ p14 ^ p34 ^ p05 ^ p26 ^ (p01 & x2) ^ (p01 & x5) ^ (p23 & x5) ^ (p14 & x5) ^ (p13 & x6),
        !(x3 ^ p02
            ^ p13
            ^ p14
            ^ p05
            ^ p16
            ^ p36
            ^ p56
            ^ (p01 & x4)
            ^ (p23 & x4)
            ^ (p13 & x5)
            ^ (p04 & x5)
            ^ (p03 & x6)),
        !(x2 ^ p02
            ^ p03
            ^ p05
            ^ p25
            ^ p45
            ^ p16
            ^ (p12 & x3)
            ^ (p02 & x4)
            ^ (p12 & x6)
            ^ (p03 & x6)
            ^ (p34 & x6)
            ^ (p25 & x6)),
        x6 ^ p12 ^ p04 ^ p15 ^ p35 ^ (p01 & x3) ^ (p01 & x6) ^ (p23 & x6) ^ (p14 & x6) ^ (p05 & x6),
    ]
}

/// S9 of 64 values; bit `n` of each is in `x[n]`.
pub(super) fn s9(x: [u64; 9]) -> [u64; 9] {
    let [x0, x1, x2, x3, x4, x5, x6, x7, x8] = x;
    let [p01, p02, p03, p04, p05, p06, p07, p08] = [x1, x2, x3, x4, x5, x6, x7, x8].map(|x| x0 & x);
    let [p12, p13, p14, p15, p16, p17, p18] = [x2, x3, x4, x5, x6, x7, x8].map(|x| x1 & x);
    let [p23, p24, p25, p26, p27, p28] = [x3, x4, x5, x6, x7, x8].map(|x| x2 & x);
    let [p34, p35, p36, p37, p38] = [x4, x5, x6, x7, x8].map(|x| x3 & x);
    let [p45, p46, p47, p48] = [x5, x6, x7, x8].map(|x| x4 & x);
    let [p56, p57, p58] = [x6, x7, x8].map(|x| x5 & x);
    let [p67, p68] = [x7, x8].map(|x| x6 & x);
    let p78 = x7 & x8;
    [
        !(x3 ^ p02 ^ p25 ^ p56 ^ p07 ^ p17 ^ p27 ^ p48 ^ p58 ^ p78),
        !(x1 ^ x6 ^ p01 ^ p23 ^ p04 ^ p14 ^ p05 ^ p35 ^ p17 ^ p27 ^ p58),
        !(x1 ^ x8 ^ p03 ^ p34 ^ p05 ^ p26 ^ p36 ^ p56 ^ p47 ^ p57 ^ p67 ^ p08),
        x0 ^ x5 ^ p12 ^ p03 ^ p24 ^ p06 ^ p16 ^ p47 ^ p08 ^ p18 ^ p78,
        x4 ^ p01 ^ p13 ^ p05 ^ p36 ^ p07 ^ p67 ^ p18 ^ p28 ^ p38,
        !(x2 ^ p14 ^ p45 ^ p06 ^ p16 ^ p37 ^ p47 ^ p67 ^ p58 ^ p68 ^ p78),
        x0 ^ x7 ^ p23 ^ p15 ^ p25 ^ p45 ^ p36 ^ p46 ^ p56 ^ p18 ^ p38 ^ p58 ^ p78,
        !(x3 ^ x8 ^ p01 ^ p02 ^ p12 ^ p03 ^ p23 ^ p45 ^ p26 ^ p36 ^ p27 ^ p57),
        x2 ^ x7 ^ p01 ^ p12 ^ p34 ^ p15 ^ p25 ^ p16 ^ p46 ^ p28 ^ p38,
    ]
}
