// SPDX-License-Identifier: Apache-2.0
//! The generator's processes: this program once more, as the sender, as the receiver, or as another
//! program that must not outlive the lab either.

use super::control::{Answer, Control};
use super::load::Load;
use super::{receiver, sender};
use crate::{Failure, Result};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Which process it is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Part {
    /// Connects and writes.
    Sender(SenderOf),
    /// Listens and reads.
    Receiver(ReceiverOf),
    /// Becomes another program, which is killed when the lab ends.
    Becomes { program: String, arguments: Vec<String> },
}

/// The sender's load.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SenderOf(pub(super) Load);

/// The receiver's load.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ReceiverOf(pub(super) Load);

impl Part {
    /// The whole life of such a process.
    pub(crate) fn play(self) -> Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| Failure::new(format!("a process that ends with the lab: {error}")))?;
        let mut control = Control::default();
        let played = match self {
            Self::Sender(SenderOf(load)) => sender::play(&load, &mut control),
            Self::Receiver(ReceiverOf(load)) => receiver::play(&load, &mut control),
            Self::Becomes { program, arguments } => {
                let error = Command::new(&program).args(arguments).exec();
                return Err(Failure::new(format!("{program}: {error}")));
            }
        };
        if let Err(failure) = played {
            let Failure { message, hint } = failure;
            // A lab that has gone wants no reason.
            control.answer(&Answer::Failed { message, hint }).ok();
        }
        Ok(())
    }
}
