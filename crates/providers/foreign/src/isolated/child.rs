// SPDX-License-Identifier: Apache-2.0
//! The process that was started for a module, and its end.

use super::waiting::wait;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_send_signal, waitid,
};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// How long a process has to end by itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// A process that was started for its module.
#[derive(Debug)]
pub(super) struct Child {
    /// Of it, and of the group of processes that it leads.
    pub(super) id: Pid,
    /// A host may wait for any child, and the number of one that has ended may be another's.
    pub(super) pidfd: OwnedFd,
}

impl Child {
    /// With what it has begun. One that cannot be killed, as it is another user's by now or waits in the kernel, is left.
    pub(super) fn kill(self) {
        if !self.has_ended(Duration::ZERO) {
            kill_process_group(self.id, Signal::KILL).ok();
            pidfd_send_signal(&self.pidfd, Signal::KILL).ok();
            self.has_ended(PATIENCE);
        }
    }

    /// Whether it ends within this time. The host may have waited for it already.
    pub(super) fn has_ended(&self, patience: Duration) -> bool {
        let mut ends = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let ended = wait(&mut ends, Instant::now() + patience).is_ok();
        if ended {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            waitid(WaitId::PidFd(self.pidfd.as_fd()), options).ok();
        }
        ended
    }
}
