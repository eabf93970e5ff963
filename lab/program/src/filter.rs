// SPDX-License-Identifier: Apache-2.0
//! What is left of everything that has a name.

use crate::{Failure, Result};

/// Everything whose name contains one of the texts, or all where there are none.
///
/// # Errors
/// Nothing is left.
pub(crate) fn wanted<T: Copy>(
    all: &[T],
    name: impl Fn(&T) -> &'static str,
    filter: &[String],
    what: &str,
) -> Result<Vec<T>> {
    let has = |row: &&T| filter.is_empty() || filter.iter().any(|text| name(row).contains(text));
    let left: Vec<T> = all.iter().filter(has).copied().collect();
    if left.is_empty() {
        let names: Vec<&str> = all.iter().map(name).collect();
        return Err(Failure::new(format!("no {what} matches {}", filter.join(",")))
            .hint(format!("there are {}", names.join(", "))));
    }
    Ok(left)
}
