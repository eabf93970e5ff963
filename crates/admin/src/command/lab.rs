// SPDX-License-Identifier: Apache-2.0
//! `metaslot lab`: the experiments are the lab's own.

use crate::failure::{Failure, Result};

pub(crate) fn run(command: &metaslot_lab::Command) -> Result<()> {
    metaslot_lab::run(command).map_err(|failure| {
        let failed = Failure::failed(failure.message);
        match failure.hint {
            Some(hint) => failed.hint(hint),
            None => failed,
        }
    })
}
