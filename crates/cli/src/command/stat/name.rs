// SPDX-License-Identifier: Apache-2.0
//! What is counted, by name.

use metaslot_ck::{CK_MECHANISM_TYPE, CK_RV, mechanism_name, rv_name};
use metaslot_counters::Event;
use metaslot_counters::layout::{OTHERS, SIZE_LIMITS};

pub(in crate::command) fn event(event: Event) -> &'static str {
    Event::ALL.iter().find(|row| row.0 == event).map_or("", |row| row.1)
}

pub(in crate::command) fn mechanism(number: CK_MECHANISM_TYPE) -> String {
    match mechanism_name(number) {
        _ if number == OTHERS => "others".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("0x{number:x}"),
    }
}

pub(in crate::command) fn code(rv: CK_RV) -> String {
    rv_name(rv).map_or_else(|| format!("0x{rv:x}"), str::to_owned)
}

/// A size class, as its limit.
pub(in crate::command) fn size(class: usize) -> String {
    let short = |bytes: usize| match bytes {
        bytes if bytes >= 1024 => format!("{}K", bytes / 1024),
        bytes => bytes.to_string(),
    };
    match (SIZE_LIMITS.get(class), SIZE_LIMITS.last()) {
        (Some(limit), _) => format!("<= {}", short(*limit)),
        (None, Some(last)) => format!("> {}", short(*last)),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_by_their_limit() {
        assert_eq!(size(0), "<= 64");
        assert_eq!(size(1), "<= 1K");
        assert_eq!(size(SIZE_LIMITS.len()), "> 256K");
    }
}
