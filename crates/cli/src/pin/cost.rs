// SPDX-License-Identifier: Apache-2.0
//! What a guess at a PIN costs with a copy of the token's file, in words.

use super::Role;
use crate::output::Output;
use metaslot_client::{PinCost, TokenCost};
use serde_json::{Value, json};

/// A shorter PIN is worth a warning: with a copy of the token's file it can be found.
pub(crate) const LONG_ENOUGH: usize = 8;

/// What is dangerous about the new PINs. Nothing is known of other modules.
pub(crate) fn warnings(cost: Option<TokenCost>, pins: &[(Role, usize)]) -> Vec<String> {
    let warning = |(role, length): &(Role, usize)| warning(*role, *length, role.cost(&cost?));
    pins.iter().filter_map(warning).collect()
}

/// Says what a guess at the PIN costs.
pub(crate) fn tell(output: Output, cost: Option<TokenCost>, role: Role) {
    if let Some(costs) = sentence(cost, role) {
        output.note(&costs);
    }
}

/// Nothing of a token that another process has: what its PINs cost is not told here.
fn sentence(cost: Option<TokenCost>, role: Role) -> Option<String> {
    let cost = role.cost(&cost?);
    (cost.passes > 0).then(|| format!("a guess at the {} costs {}", role.words(), words(cost)))
}

fn words(cost: PinCost) -> String {
    let PinCost { memory, passes, microseconds } = cost;
    let function = match (memory, memory % 1024) {
        (0, _) => format!("PBKDF2 with {passes} iterations"),
        (_, 0) => format!("Argon2id with {} MiB and {passes} passes", memory / 1024),
        _ => format!("Argon2id with {memory} KiB and {passes} passes"),
    };
    match microseconds {
        0 => function,
        _ => format!("{function}, {:.3} seconds of this processor", seconds(microseconds)),
    }
}

fn warning(role: Role, length: usize, cost: PinCost) -> Option<String> {
    if length >= LONG_ENOUGH || cost.microseconds == 0 {
        return None;
    }
    let each = seconds(cost.microseconds);
    let all = |digits: usize| time(each * 10_f64.powi(i32::try_from(digits).unwrap_or(0)));
    Some(format!(
        "the {} has {length} bytes: with a copy of the token's file a processor like this one tries \
         {} PINs a second, and all numbers of {length} digits in {}; 8 digits take {}",
        role.words(),
        number(1.0 / each),
        all(length),
        all(LONG_ENOUGH),
    ))
}

fn seconds(microseconds: u64) -> f64 {
    // A time of this size is exact to the microsecond.
    std::time::Duration::from_micros(microseconds).as_secs_f64()
}

fn number(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// In the largest unit of which there is one.
fn time(seconds: f64) -> String {
    let units = [("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)];
    let unit = units.into_iter().find(|(_, length)| seconds >= *length);
    let (name, length) = unit.unwrap_or(("seconds", 1.0));
    format!("{} {name}", number(seconds / length))
}

/// The stable form for programs.
pub(crate) fn json(cost: PinCost) -> Value {
    if cost.passes == 0 {
        return Value::Null;
    }
    let (function, memory) = match cost.memory {
        0 => ("pbkdf2", Value::Null),
        memory => ("argon2id", json!(memory)),
    };
    let time = Some(cost.microseconds).filter(|time| *time > 0);
    json!({
        "function": function,
        "memory_kib": memory,
        "passes": cost.passes,
        "microseconds": time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: PinCost = PinCost { memory: 65536, passes: 3, microseconds: 125_000 };

    #[test]
    fn a_short_pin_is_warned_of_with_what_a_copied_file_is_worth() {
        assert_eq!(
            warning(Role::User, 4, COST).as_deref(),
            Some(
                "the user PIN has 4 bytes: with a copy of the token's file a processor like this one \
                 tries 8.0 PINs a second, and all numbers of 4 digits in 21 minutes; 8 digits take \
                 145 days"
            )
        );
        assert!(warning(Role::So, 7, COST).is_some());
        assert_eq!(warning(Role::So, 8, COST), None);
        assert_eq!(warning(Role::So, 4, PinCost { microseconds: 0, ..COST }), None);
    }

    #[test]
    fn a_cost_is_said_in_words_and_for_programs() {
        assert_eq!(
            words(COST),
            "Argon2id with 64 MiB and 3 passes, 0.125 seconds of this processor"
        );
        let pbkdf2 = PinCost { memory: 0, passes: 600_000, microseconds: 0 };
        assert_eq!(words(pbkdf2), "PBKDF2 with 600000 iterations");
        assert_eq!(json(pbkdf2)["memory_kib"], Value::Null);
        assert_eq!(json(PinCost::default()), Value::Null);
    }

    #[test]
    fn of_a_pin_whose_cost_is_not_known_nothing_is_said() {
        let known = |user| Some(TokenCost { user, ..TokenCost::default() });
        let said = sentence(known(COST), Role::User);
        assert!(
            said.is_some_and(|said| said.starts_with("a guess at the user PIN costs Argon2id"))
        );
        assert_eq!(sentence(known(PinCost::default()), Role::User), None);
        assert_eq!(sentence(None, Role::User), None);
    }
}
