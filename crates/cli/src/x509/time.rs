// SPDX-License-Identifier: Apache-2.0
//! Times of certificates.

use crate::encoding::der::{self, Element, GENERALIZED_TIME, UTC_TIME};
use crate::failure::{Failure, Result};
use std::time::{SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 60 * 60;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `YYYYMMDDHHMMSS`, in UTC; later ones are greater.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Time(String);

impl Time {
    /// So many seconds from now.
    pub(crate) fn from_now(seconds: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self::from_epoch(now.saturating_add(seconds))
    }

    fn from_epoch(seconds: u64) -> Self {
        let (days, rest) = (seconds / DAY, seconds % DAY);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        Self(format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"))
    }

    /// UTCTime from 1950 to 2049, as RFC 5280 wants it.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        match self.0.get(2..).filter(|_| ("1950".."2050").contains(&self.0.as_str())) {
            Some(short) => der::element(UTC_TIME, format!("{short}Z").as_bytes()),
            None => der::element(GENERALIZED_TIME, format!("{}Z", self.0).as_bytes()),
        }
    }

    pub(crate) fn read(element: Element<'_>) -> Option<Self> {
        let text = str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
        let text = match element.tag {
            UTC_TIME if text < "50" => format!("20{text}"),
            UTC_TIME => format!("19{text}"),
            GENERALIZED_TIME => text.to_owned(),
            _ => return None,
        };
        let is_time = text.len() == 14 && text.bytes().all(|c| c.is_ascii_digit());
        is_time.then_some(Self(text))
    }
}

impl Time {
    /// RFC 3339, which sorts.
    pub(crate) fn iso(&self) -> String {
        let part = |from: usize, to: usize| self.0.get(from..to).unwrap_or_default();
        let (date, time) =
            ([part(0, 4), part(4, 6), part(6, 8)], [part(8, 10), part(10, 12), part(12, 14)]);
        format!("{}T{}Z", date.join("-"), time.join(":"))
    }
}

impl std::fmt::Display for Time {
    /// As OpenSSL shows it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |from: usize, to: usize| self.0.get(from..to).unwrap_or_default();
        let month =
            part(4, 6).parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
        let day = part(6, 8).trim_start_matches('0');
        let (hour, minute, second) = (part(8, 10), part(10, 12), part(12, 14));
        let month = month.copied().unwrap_or("???");
        write!(f, "{month} {day:>2} {hour}:{minute}:{second} {} GMT", part(0, 4))
    }
}

/// Year, month and day of a day since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

/// `N-hour`, `N-day` or `N-year`, in seconds.
pub(crate) fn seconds(lifetime: &str) -> Result<u64> {
    let units = [("hour", 3600), ("day", DAY), ("year", 365 * DAY)];
    let found = lifetime.split_once('-').and_then(|(number, unit)| {
        let number = number.parse::<u64>().ok().filter(|number| (1..=100_000).contains(number))?;
        let unit = units.iter().find(|row| row.0.eq_ignore_ascii_case(unit))?.1;
        number.checked_mul(unit).filter(|seconds| *seconds < 7000 * 365 * DAY)
    });
    found.ok_or_else(|| {
        Failure::usage(format!("'{lifetime}' is no lifetime"))
            .hint("for example 12-hour, 30-day or 2-year")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let rows = [
            (0, "Jan  1 00:00:00 1970 GMT"),
            (951_782_399, "Feb 28 23:59:59 2000 GMT"),
            (951_782_400, "Feb 29 00:00:00 2000 GMT"),
            (1_795_427_421, "Nov 23 09:50:21 2026 GMT"),
            (2_524_607_999, "Dec 31 23:59:59 2049 GMT"),
            (2_524_608_000, "Jan  1 00:00:00 2050 GMT"),
            (4_102_444_800, "Jan  1 00:00:00 2100 GMT"),
        ];
        for (seconds, shown) in rows {
            let time = Time::from_epoch(seconds);
            assert_eq!(time.to_string(), shown);
            let encoded = time.encoded();
            let element = der::next(&mut &*encoded).expect("an element");
            assert_eq!(element.tag == UTC_TIME, seconds < 2_524_608_000, "{shown}");
            assert_eq!(Time::read(element), Some(time));
        }
    }

    #[test]
    fn times_sort_as_they_are_shown() {
        assert_eq!(Time::from_epoch(951_782_399).iso(), "2000-02-28T23:59:59Z");
    }

    #[test]
    fn lifetimes_have_a_unit() {
        assert_eq!(seconds("2-hour").ok(), Some(7200));
        assert_eq!(seconds("1-Year").ok(), Some(365 * DAY));
        for bad in ["", "1", "1-month", "0-day", "-1-day", "99999-year"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
