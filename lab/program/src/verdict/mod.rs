// SPDX-License-Identifier: Apache-2.0
//! What a comparison of two arms, A and B, allows to say: `faster`, `slower`, `same`, or how many more
//! pairs would be needed.
//!
//! **Signs.** A sample is a cost: time, ticks, energy for the same work, less is better. A pair gives
//! the logarithm of A's cost over B's. Below zero A costs less, and a verdict speaks of A:
//! [`Verdict::Faster`] is an interval below the margin's negative, [`Verdict::Slower`] one above the
//! margin. Of rates, where more is better, [`Pairs::of_rates`] makes costs. On the scale of
//! logarithms neither arm is preferred: exchanging A and B exchanges signs and nothing else.
//!
//! **Why it holds.** Which arm of a pair runs first is thrown by a coin. So, if the arms are alike,
//! each difference could as well have had the other sign, whatever the noise looks like and however
//! much one pair resembles the next: that is all that the signed-rank test asks for.
//!
//! This module knows numbers only: where they come from is the business of [`crate::experiment`].

mod comparison;
mod family;
mod judge;
pub mod simulate;
mod words;

pub use crate::ranks::Ranks;
pub use crate::statistics::Estimate;
pub use comparison::{Comparer, Comparison, Pairs};
pub use family::{Family, Headline, fewest, holm};
pub use judge::{Margin, Verdict};
