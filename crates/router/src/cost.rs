// SPDX-License-Identifier: Apache-2.0
//! What operations cost, as lines over the size of their data, and the file that has them.

use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{CK_MECHANISM_TYPE, mechanism_name};
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// A later provider is taken for a tenth less or better, not for what the next measurement may turn round,
const WORTH: f32 = 0.9;
/// and for so many nanoseconds less: to compare costs takes some itself.
const LEAST: f32 = 50.0;

/// Whether a time is so much less than another that it is worth a choice.
#[must_use]
pub fn is_clearly_less(time: f32, other: f32) -> bool {
    time < other * WORTH && time + LEAST < other
}

/// The first words of a file of costs.
const HEAD: &str = "metaslot costs 1";

/// The cost of one operation by one provider: time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// `CKF_…` of the operation.
    pub operation: u64,
    /// Bits of an asymmetric key; 0 for every other key, and where no line fits better.
    pub key_bits: u32,
    /// With no data, while no other thread asks.
    pub fixed: f32,
    /// For each byte of data.
    pub per_byte: f32,
    /// As `fixed`, while [`crowd`] threads ask for the same.
    pub crowded: f32,
    /// As `per_byte`, while they do.
    pub crowded_per_byte: f32,
}

/// Threads that are a crowd: one for each processor, and enough to fill the batches of every kernel.
#[must_use]
pub fn crowd() -> u32 {
    processors().max(FILLS)
}

/// Processors that this process may use; more than so many tell nothing else.
#[must_use]
pub fn processors() -> u32 {
    match PROCESSORS.load(Ordering::Relaxed) {
        0 => count_processors(),
        known => known,
    }
}

/// What was counted, 0 before: a forked child may use what its parent may, and to count reads files of the system.
static PROCESSORS: AtomicU32 = AtomicU32::new(0);

#[cold]
fn count_processors() -> u32 {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let all = u32::try_from(all).unwrap_or(MOST).min(MOST);
    PROCESSORS.store(all, Ordering::Relaxed);
    all
}

/// Two batches of the widest kernels: one is computed while the other gathers.
const FILLS: u32 = 16;
/// Most processors that are told apart.
const MOST: u32 = 256;

impl Line {
    /// The time that an operation is expected to take, in nanoseconds; `load` is how crowded it is, from 0 to 1.
    #[must_use]
    pub fn expected(&self, bytes: usize, load: f32) -> f32 {
        let between = |alone: f32, crowded: f32| alone + (crowded - alone) * load;
        let per_byte = between(self.per_byte, self.crowded_per_byte);
        // The mantissa has 24 bits: more than a measurement.
        between(self.fixed, self.crowded) + per_byte * bytes as f32
    }
}

/// A line with whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The provider's name.
    pub provider: String,
    /// `CKM_…`
    pub mechanism: CK_MECHANISM_TYPE,
    /// What it costs.
    pub line: Line,
}

/// Names of the operations that can be chosen for, by their flags.
const OPERATIONS: [(u64, &str); 5] = [
    (metaslot_ck::CKF_DIGEST, "digest"),
    (metaslot_ck::CKF_ENCRYPT, "encrypt"),
    (metaslot_ck::CKF_DECRYPT, "decrypt"),
    (metaslot_ck::CKF_SIGN, "sign"),
    (metaslot_ck::CKF_VERIFY, "verify"),
];

/// Most that a file of costs has, in bytes: ten times what a measurement writes.
pub const MOST_BYTES: usize = 1 << 18;

/// Reads a file of costs. Lines that begin with `#` are comments.
///
/// # Errors
/// The number of the line, from 1, and what is wrong in it.
pub fn parse(text: &str) -> Result<Vec<Cost>, (usize, String)> {
    if text.len() > MOST_BYTES {
        return Err((1, format!("the file is longer than {MOST_BYTES} bytes")));
    }
    let mut lines = (1..).zip(text.lines());
    let head = lines.next().map(|(_, line)| line.trim_start_matches(['#', ' ']));
    if head != Some(HEAD) {
        return Err((1, format!("it does not begin with \"# {HEAD}\"")));
    }
    let mut costs = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        costs.push(cost(line).map_err(|what| (number, what))?);
    }
    Ok(costs)
}

fn cost(line: &str) -> Result<Cost, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [provider, mechanism, operation, key_bits, fixed, per_byte, crowded, ref last @ ..] =
        fields[..]
    else {
        return Err(format!("{} fields and not 8", fields.len()));
    };
    let crowded_per_byte = match last {
        // As it was written before crowds were measured with much data.
        [] => per_byte,
        [crowded] => crowded,
        more => return Err(format!("{} fields and not 8", 7 + more.len())),
    };
    let is_it = |row: &&MechanismRow| mechanism_name(row.number) == Some(mechanism);
    let row = MechanismRow::all().iter().find(is_it);
    let number = row.ok_or_else(|| format!("{mechanism} is not known"))?.number;
    let flag = OPERATIONS.iter().find(|(_, name)| *name == operation);
    let flag = flag.ok_or_else(|| format!("{operation:?} is no operation"))?.0;
    let bits = match key_bits {
        "-" => 0,
        bits => bits.parse().map_err(|_| format!("{bits:?} is no number of bits"))?,
    };
    let line = Line {
        operation: flag,
        key_bits: bits,
        fixed: nanoseconds(fixed)?,
        per_byte: nanoseconds(per_byte)?,
        crowded: nanoseconds(crowded)?,
        crowded_per_byte: nanoseconds(crowded_per_byte)?,
    };
    Ok(Cost { provider: provider.to_owned(), mechanism: number, line })
}

fn nanoseconds(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("{text:?} is no time in nanoseconds")),
    }
}

/// A file of costs, with remarks at its beginning.
#[must_use]
pub fn format(remarks: &[String], costs: &[Cost]) -> String {
    let mut text = format!("# {HEAD}\n");
    let mut add = |line: std::fmt::Arguments<'_>| {
        // A string takes everything.
        let _unfailing = writeln!(text, "{line}");
    };
    for remark in remarks {
        add(format_args!("# {remark}"));
    }
    let titles = "fixed-ns ns-per-byte crowded-ns crowded-ns-per-byte";
    add(format_args!("# provider mechanism operation key-bits {titles}"));
    for Cost { provider, mechanism, line } in costs {
        let Some(name) = mechanism_name(*mechanism) else { continue };
        let operation = OPERATIONS.iter().find(|(flag, _)| *flag == line.operation);
        let operation = operation.map_or("-", |(_, name)| name);
        let bits = match line.key_bits {
            0 => String::from("-"),
            bits => bits.to_string(),
        };
        let Line { fixed, per_byte, crowded, crowded_per_byte, .. } = line;
        add(format_args!(
            "{provider} {name} {operation} {bits} {fixed:.0} {per_byte:.4} {crowded:.0} {crowded_per_byte:.4}"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKF_DIGEST, CKF_SIGN, CKM_ECDSA, CKM_SHA256};

    fn some() -> Vec<Cost> {
        let alone = Line { operation: CKF_DIGEST, fixed: 90.0, per_byte: 0.5, ..Line::default() };
        let line = Line { crowded: 100.0, crowded_per_byte: 0.25, ..alone };
        let sign = Line { operation: CKF_SIGN, key_bits: 256, ..line };
        vec![
            Cost { provider: "awslc".to_owned(), mechanism: CKM_SHA256, line },
            Cost { provider: "lanes".to_owned(), mechanism: CKM_ECDSA, line: sign },
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let text = format(&["measured somewhere".to_owned()], &some());
        assert_eq!(parse(&text), Ok(some()));
        assert_eq!(parse("# metaslot costs 1\n"), Ok(Vec::new()));
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        let head = "# metaslot costs 1\n\n";
        for (line, what) in [
            ("awslc CKM_SHA256 digest - 1 1", "6 fields and not 8"),
            ("awslc CKM_SHA256 digest - 1 1 1 1 1", "9 fields and not 8"),
            ("awslc CKM_NOTHING digest - 1 1 1", "CKM_NOTHING is not known"),
            ("awslc CKM_SHA256 dance - 1 1 1", "\"dance\" is no operation"),
            ("awslc CKM_SHA256 digest x 1 1 1", "\"x\" is no number of bits"),
            ("awslc CKM_SHA256 digest - -1 1 1", "\"-1\" is no time in nanoseconds"),
            ("awslc CKM_SHA256 digest - inf 1 1", "\"inf\" is no time in nanoseconds"),
        ] {
            assert_eq!(parse(&format!("{head}{line}")), Err((3, what.to_owned())));
        }
        assert!(parse("").is_err() && parse("# metaslot costs 2\n").is_err());
        let long = format!("{head}{}", "#\n".repeat(MOST_BYTES / 2));
        assert_eq!(parse(&long).unwrap_err().0, 1);
    }

    #[test]
    fn a_crowd_costs_what_was_measured_for_one() {
        let alone = Line { fixed: 100.0, per_byte: 1.0, ..Line::default() };
        let line = Line { crowded: 300.0, crowded_per_byte: 3.0, ..alone };
        assert_eq!([0.0, 0.5, 1.0].map(|load| line.expected(50, load)), [150.0, 300.0, 450.0]);
    }

    #[test]
    fn a_file_from_before_has_one_cost_of_a_byte() {
        let read = parse("# metaslot costs 1\nawslc CKM_SHA256 digest - 90 0.5 100\n").unwrap();
        assert_eq!((read[0].line.per_byte, read[0].line.crowded_per_byte), (0.5, 0.5));
    }
}
