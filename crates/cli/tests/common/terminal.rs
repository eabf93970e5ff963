// SPDX-License-Identifier: Apache-2.0
//! A terminal for one command: what is shown on it, and what is typed.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};

const SIZE: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };

/// A terminal on which one command runs.
pub(crate) struct Terminal {
    pub(crate) master: File,
    pub(crate) child: Child,
    screen: String,
}

impl Terminal {
    pub(crate) fn start(mut program: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal can be made");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it opens");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let name = name.into_string().expect("the name is text");
        let slave = OpenOptions::new().read(true).write(true).open(name).expect("it opens");
        program.stdin(slave.try_clone().expect("a descriptor"));
        program.stdout(slave.try_clone().expect("a descriptor")).stderr(slave);
        tcsetwinsize(&master, SIZE).expect("it has a size");
        let child = program.spawn().expect("it runs");
        Self { master: File::from(master), child, screen: String::new() }
    }

    /// Waits until `text` is on the screen, and takes everything up to it away.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        self.expect_one(&[text]);
        let at = self.screen.find(text).expect("it is there");
        let rest = self.screen.split_off(at + text.len());
        std::mem::replace(&mut self.screen, rest)
    }

    /// Waits until one of `texts` is on the screen, and says which.
    pub(crate) fn expect_one(&mut self, texts: &[&str]) -> usize {
        loop {
            if let Some(found) = texts.iter().position(|text| self.screen.contains(text)) {
                return found;
            }
            assert!(self.read_more(), "{texts:?} did not come, but {:?}", self.screen);
        }
    }

    fn read_more(&mut self) -> bool {
        self.read_within(Timespec { tv_sec: 60, tv_nsec: 0 })
    }

    fn read_within(&mut self, limit: Timespec) -> bool {
        let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
        if poll(&mut ready, Some(&limit)).expect("the terminal can be polled") == 0 {
            return false;
        }
        let mut bytes = [0; 1024];
        // Reading fails when the last program has closed its side.
        let read = self.master.read(&mut bytes).unwrap_or(0);
        self.screen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        read > 0
    }

    pub(crate) fn answer(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("the answer is typed");
    }

    /// The rest of the screen and the exit code.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        // The terminal's other side is still open here, so its end shows in the child; which waits until what it writes is read.
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("the command ends") {
                break status.code();
            }
            self.read_within(Timespec { tv_sec: 0, tv_nsec: 20_000_000 });
        };
        while self.read_more() {}
        (self.screen, code)
    }
}
