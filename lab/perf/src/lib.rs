// SPDX-License-Identifier: Apache-2.0
//! Counters and samples of `perf_event_open`, and the names of the addresses in them. What they mean is
//! the lab's business.

mod counter;
mod event;
mod family;
mod record;
mod recorded;
mod recording;
mod ring;
mod spaces;
mod symbols;

pub use counter::{Counter, Reading, Samples};
pub use event::{Event, Scope};
pub use record::{Mapping, Record, Records, Taken};
pub use recorded::Recorded;
pub use recording::{Recording, Target};
pub use spaces::{CodePlace, Placed, Stack};
pub use symbols::{Line, Named, Symbols};
