// SPDX-License-Identifier: Apache-2.0
//! `lab speed`: the raw library, this module and a rival, interleaved in one run.

mod all;
mod finding;
mod mix;
mod openssl;
mod options;
mod overhead;
mod part;
mod subject;
mod sun;
mod through;

pub(crate) use all::text as all_text;
pub(crate) use finding::sentence as finding;
pub(crate) use mix::text as mix_text;
pub use options::Options;
pub(crate) use overhead::{
    earlier as earlier_overhead, finding as overhead_finding, json as overhead_json,
    text as overhead_text,
};
pub(crate) use part::Part;
pub(crate) use sun::{json as sun_json, text as sun_text};
pub(crate) use through::{Shape, json as through_json, loops, text as through_text};

use crate::scenario::Made;
use crate::{Failure, Result};

/// Lists, or measures.
pub(crate) fn run(options: &Options) -> Result<Option<Made>> {
    check(options)?;
    if options.sun {
        return sun::run(options).map(Some);
    }
    if options.through_openssl {
        return through::run(options).map(Some);
    }
    if options.mix {
        return mix::run(options).map(Some);
    }
    if options.all {
        return all::run(options).map(Some);
    }
    overhead::run(options)
}

fn check(options: &Options) -> Result<()> {
    if options.threads.contains(&0) {
        return Err(
            Failure::new("--threads wants numbers from 1").hint("for example --threads 1,2")
        );
    }
    let seconds = options.seconds.unwrap_or(1.0);
    if options.repetitions == Some(0) || seconds.is_nan() || seconds <= 0.0 {
        return Err(Failure::new("--repetitions and --seconds must be above zero"));
    }
    Ok(())
}
