// SPDX-License-Identifier: Apache-2.0
//! Numbers as people read them: short, and of the same width for the same size.

use metaslot_counters::layout::{BUCKET_COUNT, bucket_end};
use metaslot_counters::read::Cell;

/// A count in seconds, as so many a second.
pub(in crate::command) fn rate(count: u64, seconds: f64) -> String {
    short(float(count) / seconds)
}

/// Four digits at most, then `K`, `M`, `G` or `T`.
pub(in crate::command) fn short(number: f64) -> String {
    if number > 0.0 && number < 9.95 {
        return format!("{number:.1}");
    }
    if number < 99_999.5 {
        return format!("{number:.0}");
    }
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")];
    let (scale, unit) =
        units.into_iter().find(|unit| number >= 0.9995 * unit.0).unwrap_or(units[3]);
    format!("{}{unit}", three_digits(number / scale))
}

/// Bytes in seconds, as megabytes a second.
pub(in crate::command) fn megabytes(bytes: u64, seconds: f64) -> String {
    let rate = float(bytes) / 1e6 / seconds;
    if rate < 999.95 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// The time below which so many in a hundred operations stayed; empty where none was timed.
pub(in crate::command) fn quantile(cell: &Cell, percent: u64) -> String {
    match (cell.quantile(percent), cell.timed()) {
        (Some(end), _) => duration(end),
        (None, 0) => String::new(),
        (None, _) => bucket_end(BUCKET_COUNT - 2)
            .map(duration)
            .map_or_else(String::new, |end| format!(">{end}")),
    }
}

/// Three digits and a unit.
pub(in crate::command) fn duration(nanoseconds: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let time = float(nanoseconds);
    let unit = units.into_iter().find(|unit| time >= unit.0);
    unit.map_or_else(
        || format!("{nanoseconds}ns"),
        |(scale, unit)| format!("{}{unit}", three_digits(time / scale)),
    )
}

fn three_digits(number: f64) -> String {
    let digits = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.digits$}")
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(in crate::command) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let rows = [(7, "7ns"), (1234, "1.23us"), (12_345, "12.3us"), (123_456_789, "123ms")];
        for (nanoseconds, text) in rows {
            assert_eq!(duration(nanoseconds), text);
        }
    }

    #[test]
    fn rates_are_short() {
        let rows = [
            (0, "0"),
            (7, "7.0"),
            (10, "10"),
            (99_999, "99999"),
            (123_456, "123K"),
            (1_234_567, "1.23M"),
        ];
        for (count, text) in rows {
            assert_eq!(rate(count, 1.0), text);
        }
        assert_eq!(rate(1, 2.0), "0.5");
        assert_eq!(short(999_999.0), "1.00M");
    }

    #[test]
    fn a_time_in_the_last_bucket_is_longer_than_all_others() {
        let mut cell = Cell::default();
        assert_eq!(quantile(&cell, 50), "");
        cell.buckets[BUCKET_COUNT - 1] = 1;
        assert_eq!(quantile(&cell, 50), ">67.1ms");
    }
}
