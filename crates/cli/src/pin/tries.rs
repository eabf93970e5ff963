// SPDX-License-Identifier: Apache-2.0
//! How many tries a PIN has left, in words.

use super::Role;
use metaslot_ck::{self as ck, CK_FLAGS};
use metaslot_client::PinStatus;
use std::time::{SystemTime, UNIX_EPOCH};

/// Why no PIN would be tried now, if that is so.
pub(crate) fn in_vain(pin: PinStatus) -> Option<String> {
    (pin.left == 0 || wait(pin) > 0).then(|| exact(pin))
}

/// Seconds until a PIN is tried again.
fn wait(pin: PinStatus) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    pin.retry_at.saturating_sub(now)
}

/// What Metaslot says.
pub(crate) fn exact(pin: PinStatus) -> String {
    let left = match pin.left {
        0 => return "the PIN is locked now".to_owned(),
        1 => "one try is left before the PIN is locked".to_owned(),
        left => format!("{left} tries are left before the PIN is locked"),
    };
    match wait(pin) {
        0 => left,
        1 => format!("{left}; the next one in a second"),
        wait => format!("{left}; the next one in {wait} seconds"),
    }
}

/// The SO's flags are the user's, four bits further up.
const SO_SHIFT: u32 =
    ck::CKF_SO_PIN_LOCKED.trailing_zeros() - ck::CKF_USER_PIN_LOCKED.trailing_zeros();

/// What a token says by its flag.
pub(crate) const LOCKED: &str = "the PIN is locked now";

/// What is known where a token says that wrong PINs were tried, and not how many.
pub(crate) const WRONG_BEFORE: &str = "there were wrong PINs before; a right one clears the count";

/// All that the standard lets a token say, by its `CKF_…`.
pub(crate) const fn roughly(role: Role, flags: CK_FLAGS) -> &'static str {
    let flags = match role {
        Role::User => flags,
        Role::So => flags >> SO_SHIFT,
    };
    if flags & ck::CKF_USER_PIN_LOCKED != 0 {
        LOCKED
    } else if flags & ck::CKF_USER_PIN_FINAL_TRY != 0 {
        "one try is left before the PIN is locked"
    } else if flags & ck::CKF_USER_PIN_COUNT_LOW != 0 {
        WRONG_BEFORE
    } else {
        "check the PIN and the token's name"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tries_that_are_left_are_said_in_words() {
        let status = |left, retry_at| PinStatus { failures: 1, left, retry_at };
        assert_eq!(exact(status(0, 0)), "the PIN is locked now");
        assert_eq!(exact(status(1, 0)), "one try is left before the PIN is locked");
        assert_eq!(exact(status(9, 0)), "9 tries are left before the PIN is locked");
        assert!(exact(status(4, u64::MAX)).contains("; the next one in "));
    }

    #[test]
    fn nothing_is_asked_for_that_would_not_be_tried() {
        let status = |left, retry_at| PinStatus { failures: 7, left, retry_at };
        assert_eq!(in_vain(status(3, 0)), None);
        assert_eq!(in_vain(status(3, 1)), None, "that time is over");
        assert!(in_vain(status(3, u64::MAX)).is_some());
        assert!(in_vain(status(0, 0)).is_some());
    }

    #[test]
    fn the_flags_of_both_pins_say_the_same() {
        let rows = [
            (ck::CKF_USER_PIN_LOCKED, ck::CKF_SO_PIN_LOCKED),
            (ck::CKF_USER_PIN_FINAL_TRY, ck::CKF_SO_PIN_FINAL_TRY),
            (ck::CKF_USER_PIN_COUNT_LOW, ck::CKF_SO_PIN_COUNT_LOW),
        ];
        for (user, so) in rows {
            assert_eq!(roughly(Role::User, user), roughly(Role::So, so));
        }
    }
}
