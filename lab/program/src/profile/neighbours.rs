// SPDX-License-Identifier: Apache-2.0
//! Who calls a function, and whom it calls, as a table.

use super::frame::{KERNEL, plain};
use super::functions::{Costed, cost, largest, place, shortened, unknown};
use crate::Result;
use crate::table::{Table, digits};

/// Who calls a function, and whom it calls.
pub(super) fn neighbours(costed: Costed<'_>, function: &str) -> Result<String> {
    let folded = &costed.profile.folded;
    let inclusive = folded.inclusive(function);
    if inclusive == 0 {
        return Err(unknown(folded, function));
    }
    let around = folded.neighbours(function);
    let total = folded.total().max(1) as f64;
    let mut table = Table::new(&["function", "in", "%", costed.unit]);
    let mut row = |mark: &str, name: &str, samples: u64| {
        let share = samples as f64 / total;
        let (name, place) = place(name);
        table.row(vec![
            format!("{mark} {}", shortened(name)),
            place.to_owned(),
            digits(100.0 * share),
            cost(share * costed.cost),
        ]);
    };
    for (name, samples) in largest(&around.callers) {
        row("from", name, samples);
    }
    row("  *", &around.name, inclusive);
    for (name, samples) in largest(&around.callees) {
        row("  to", name, samples);
    }
    let own = "(itself)".to_owned() + if plain(&around.name).1 { KERNEL } else { "" };
    row("  to", &own, around.own);
    Ok(table.render())
}
