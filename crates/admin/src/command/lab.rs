// SPDX-License-Identifier: Apache-2.0
//! `metaslot lab`: the experiments are the lab's own.

use crate::app::App;
use crate::failure::{Failure, Result};
use metaslot_lab::Command;
use std::path::Path;

pub(crate) fn run(app: &App, mut command: Command) -> Result<()> {
    let module = match &mut command {
        // These look at the machine only.
        Command::Probe(_) | Command::Local(_) | Command::Aa(_) => None,
        Command::Speed(options) => Some(&mut options.module),
        Command::Store(options) => Some(&mut options.module),
        Command::Kill(options) => Some(&mut options.module),
        Command::Lanes(options) => Some(&mut options.module),
    };
    if let Some(module) = module {
        *module = module.take().or_else(|| app.named_module().map(Path::to_path_buf));
    }
    metaslot_lab::run(&command).map_err(|failure| {
        let failed = Failure::failed(failure.message);
        match failure.hint {
            Some(hint) => failed.hint(hint),
            None => failed,
        }
    })
}
