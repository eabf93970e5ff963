// SPDX-License-Identifier: Apache-2.0
//! Work in a child process, which takes its namespaces with it when it ends.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How long a child may take; then it is killed.
const LIMIT: Duration = Duration::from_millis(700);
/// The exit code of a child that failed without the kernel's reason.
const NO_REASON: i32 = 255;

/// Does `work` in a forked child and brings back its error.
///
/// # Errors
/// That of `work`, or why there was no child.
pub(crate) fn in_child(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: the child does a few system calls and ends without returning. The C library makes
    // its allocator usable in a child, and no other lock is taken.
    let number = unsafe { libc::fork() };
    match number {
        -1 => Err(io::Error::last_os_error()),
        0 => end(work),
        number => Pid::from_raw(number).map_or_else(|| Err(io::ErrorKind::Other.into()), wait),
    }
}

/// The child's whole life: nothing may unwind into what belongs to the parent.
fn end(work: impl FnOnce() -> io::Result<()>) -> ! {
    let code = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => error.raw_os_error().unwrap_or(NO_REASON),
        Err(_) => NO_REASON,
    };
    // SAFETY: ends this process without running what the parent has registered for its own end.
    unsafe { libc::_exit(code) }
}

fn wait(child: Pid) -> io::Result<()> {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        if let Some((_, status)) = waitpid(Some(child), WaitOptions::NOHANG)? {
            return match status.exit_status() {
                Some(0) => Ok(()),
                Some(code) if code != NO_REASON => Err(io::Error::from_raw_os_error(code)),
                _ => Err(io::Error::other("the child ended without a reason")),
            };
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    kill_process(child, Signal::KILL)?;
    waitpid(Some(child), WaitOptions::empty())?;
    Err(io::ErrorKind::TimedOut.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_brings_back_its_error() {
        in_child(|| Ok(())).unwrap();
        let error = in_child(|| Err(io::Error::from_raw_os_error(libc::EPERM))).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_child_that_sleeps_is_killed() {
        let error = in_child(|| {
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
