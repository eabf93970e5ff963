// SPDX-License-Identifier: Apache-2.0
//! A connection to another machine, and what it carries to and from a Unix socket here. One thread does both directions, and
//! has in memory no more than a record or two of each: who does not read is not read from.

use super::Trouble;
use metaslot_client::Message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustls::Connection;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// What is carried at once: the content of a record.
const ROOM: usize = 1 << 14;
/// What is left of a connection may take so long to be said.
const LEAVE: Duration = Duration::from_secs(30);
/// An alert is given so long to arrive, and so many bytes that cross it are read: a reset would take it away.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 1 << 16);
/// A machine that is silent for so long is asked whether it is there, so often, and so many times.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(5), 6);
/// What was sent is acknowledged within so many milliseconds, or the other machine has gone. So it has where it was silent for as
/// long and the last question is not answered: the kernel counts no questions where it has this limit.
const ACKNOWLEDGED: u32 = 60_000;

/// A connection to another machine that both sides know each other by.
pub(crate) struct Far {
    connection: Connection,
    tcp: TcpStream,
}

impl Far {
    /// Makes it.
    ///
    /// # Errors
    /// Why the other side is not who it should be, takes this one not to be, or is too slow.
    pub(crate) fn made(
        connection: impl Into<Connection>,
        tcp: TcpStream,
        until: Instant,
    ) -> Result<Self, Trouble> {
        tcp.set_nonblocking(true)?;
        tcp.set_nodelay(true)?;
        let (idle, interval, times) = KEEPALIVE;
        sockopt::set_socket_keepalive(&tcp, true).map_err(io::Error::from)?;
        sockopt::set_tcp_keepidle(&tcp, idle).map_err(io::Error::from)?;
        sockopt::set_tcp_keepintvl(&tcp, interval).map_err(io::Error::from)?;
        sockopt::set_tcp_keepcnt(&tcp, times).map_err(io::Error::from)?;
        sockopt::set_tcp_user_timeout(&tcp, ACKNOWLEDGED).map_err(io::Error::from)?;
        let mut far = Self { connection: connection.into(), tcp };
        match far.handshake(until) {
            Ok(()) => Ok(far),
            // Who says nothing is told nothing.
            Err(Trouble::Stalled) => Err(Trouble::Stalled),
            Err(trouble) => {
                far.part();
                Err(trouble)
            }
        }
    }

    fn handshake(&mut self, until: Instant) -> Result<(), Trouble> {
        while self.connection.is_handshaking() || self.connection.wants_write() {
            if self.send()? {
                continue;
            }
            let wanted = self.wanted(self.connection.is_handshaking());
            if !self.wait(wanted, until)? {
                return Err(Trouble::Stalled);
            }
            if self.connection.is_handshaking() {
                self.receive()?;
            }
        }
        Ok(())
    }

    /// Sends a byte, and waits for one: whether there is a daemon behind the other end that serves this one.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn greet(mut self, version: u8, until: Instant) -> Result<(), Trouble> {
        self.connection.writer().write_all(&[version])?;
        let mut answer = [0];
        let greeted = loop {
            match self.plaintext(&mut answer) {
                Ok(Some(0)) => break Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(Some(_)) => break Ok(()),
                Ok(None) => {}
                Err(error) => break Err(error.into()),
            }
            if let Err(trouble) = self.step(until) {
                break Err(trouble);
            }
        };
        self.connection.send_close_notify();
        self.part();
        greeted
    }

    fn step(&mut self, until: Instant) -> Result<(), Trouble> {
        self.send()?;
        match self.wait(self.wanted(true), until)? {
            true => self.receive(),
            false => Err(Trouble::Stalled),
        }
    }

    /// Ends it: this side does not serve the other one.
    pub(crate) fn refuse(mut self) {
        self.leave();
        self.part();
    }

    /// Carries all that comes, until one of both sides has ended. `heard` is called when the other machine has said something.
    ///
    /// # Errors
    /// Where the other machine does not end it as it should, or ends it before it has said anything.
    pub(crate) fn carry(mut self, near: &UnixStream, heard: impl FnOnce()) -> Result<(), Trouble> {
        near.set_nonblocking(true)?;
        let carried = self.carry_all(near, heard);
        self.part();
        carried
    }

    fn carry_all(&mut self, near: &UnixStream, heard: impl FnOnce()) -> Result<(), Trouble> {
        let room = || Message::zeroed(ROOM).ok_or_else(|| io::Error::from(ErrorKind::OutOfMemory));
        let (mut inward, mut outward) = (room()?, room()?);
        let mut heard = Some(heard);
        // What is for this side and was not taken yet.
        let mut there: Range<usize> = 0..0;
        // How long what this side has said last may take to arrive.
        let mut until = None;
        loop {
            if there.is_empty() {
                match self.plaintext(inward.as_mut())? {
                    // It has not served this one: why, only its own side knows.
                    Some(0) if heard.is_some() => {
                        return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
                    }
                    Some(0) => return Ok(()),
                    Some(length) => {
                        there = 0..length;
                        heard.take().into_iter().for_each(|heard| heard());
                    }
                    None => {}
                }
            }
            if !there.is_empty() {
                let waiting = &inward.as_ref()[there.clone()];
                let Ok(taken) = ready((&mut &*near).write(waiting)) else { break };
                inward.as_mut()[there.clone()][..taken.unwrap_or(0)].fill(0);
                there.start += taken.unwrap_or(0);
                if taken.is_some() && there.is_empty() {
                    continue;
                }
            }
            while self.send()? {}
            let far = self.wanted(there.is_empty());
            let mut here = PollFlags::empty();
            here.set(PollFlags::OUT, !there.is_empty());
            here.set(PollFlags::IN, !self.connection.wants_write());
            // One that has gone is told once where nothing is read of it: it would be told again and again.
            let mut all = [PollFd::new(&self.tcp, far), PollFd::new(near, here)];
            let looked_at = if until.is_some() && here.is_empty() { 1 } else { 2 };
            let first = usize::from(far.is_empty());
            if !wait(&mut all[first..looked_at], until)? {
                return Ok(());
            }
            if all[1].revents().contains(PollFlags::HUP) {
                until.get_or_insert_with(|| Instant::now() + LEAVE);
            }
            if far.contains(PollFlags::IN) {
                self.receive()?;
            }
            if here.contains(PollFlags::IN) {
                match ready((&mut &*near).read(outward.as_mut())) {
                    Ok(None) => {}
                    Ok(Some(0)) | Err(_) => break,
                    Ok(Some(length)) => {
                        let sent = &mut outward.as_mut()[..length];
                        self.connection.writer().write_all(sent)?;
                        sent.fill(0);
                    }
                }
            }
        }
        self.leave();
        Ok(())
    }

    /// This side has ended: what it has said arrives, if the other one reads it.
    fn leave(&mut self) {
        self.connection.send_close_notify();
        let until = Instant::now() + LEAVE;
        while let Ok(sent) = self.send()
            && self.connection.wants_write()
        {
            if !sent && !self.wait(PollFlags::OUT, until).unwrap_or(false) {
                return;
            }
        }
    }

    /// What is waited for: something to send is sent, and something to receive is looked for where there is room.
    fn wanted(&self, receives: bool) -> PollFlags {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, receives);
        wanted.set(PollFlags::OUT, self.connection.wants_write());
        wanted
    }

    fn wait(&self, wanted: PollFlags, until: Instant) -> io::Result<bool> {
        wait(&mut [PollFd::new(&self.tcp, wanted)], Some(until))
    }

    /// Whether something was sent.
    fn send(&mut self) -> io::Result<bool> {
        if !self.connection.wants_write() {
            return Ok(false);
        }
        Ok(ready(self.connection.write_tls(&mut self.tcp))?.is_some())
    }

    /// Takes what is there.
    fn receive(&mut self) -> Result<(), Trouble> {
        let Some(length) = ready(self.connection.read_tls(&mut self.tcp))? else { return Ok(()) };
        self.connection.process_new_packets()?;
        if length == 0 && self.connection.is_handshaking() {
            return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    /// What has arrived; nothing yet, or 0 bytes at the end. An end that is not said is one, too: what is cut off is no whole message.
    fn plaintext(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self.connection.reader().read(room) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Some(0)),
            read => ready(read),
        }
    }

    /// Ends it so that what was said last arrives.
    fn part(&mut self) {
        while self.send().unwrap_or(false) {}
        if self.tcp.shutdown(Shutdown::Write).is_err() {
            return;
        }
        let (until, mut rest) = (Instant::now() + LINGER.0, LINGER.1);
        let mut passed = [0; 1 << 12];
        while rest > 0 && self.wait(PollFlags::IN, until).unwrap_or(false) {
            match ready(self.tcp.read(&mut passed)) {
                Ok(Some(0)) | Err(_) => return,
                read => rest = rest.saturating_sub(read.ok().flatten().unwrap_or(0)),
            }
        }
    }
}

/// `None` where nothing can be done now.
fn ready(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Waits until one of these can be used; whether one can.
fn wait(all: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<bool> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Ok(false);
    }
    let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
    match poll(all, left.as_ref()) {
        Err(Errno::INTR) => Ok(true),
        polled => Ok(polled? > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::server::{ClientHello, ResolvesServerCert};
    use rustls::sign::CertifiedKey;
    use rustls::{ServerConfig, ServerConnection};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::thread::{self, sleep};

    #[derive(Debug)]
    struct Nothing;

    impl ResolvesServerCert for Nothing {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            None
        }
    }

    #[test]
    fn a_silent_machine_is_asked_as_often_as_is_said() {
        let (idle, interval, times) = KEEPALIVE;
        assert_eq!((idle + interval * times).as_millis(), u128::from(ACKNOWLEDGED));
    }

    #[test]
    fn who_says_nothing_or_a_byte_now_and_then_is_given_up() {
        let config = ServerConfig::builder_with_provider(super::super::provider());
        let config = config.with_protocol_versions(&[&rustls::version::TLS13]);
        let config = config.expect("it is spoken").with_no_client_auth();
        let config = Arc::new(config.with_cert_resolver(Arc::new(Nothing)));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        for says in [&[][..], &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]] {
            let mut theirs = TcpStream::connect(address).expect("it listens");
            let (ours, _) = listener.accept().expect("it has come");
            let drips = thread::spawn(move || {
                for byte in says.iter().cycle().take(100) {
                    sleep(Duration::from_millis(5));
                    theirs.write_all(&[*byte]).ok();
                }
                theirs
            });
            let begun = Instant::now();
            let connection = ServerConnection::new(Arc::clone(&config)).expect("it is right");
            let made = Far::made(connection, ours, begun + Duration::from_millis(50));
            assert!(matches!(made, Err(Trouble::Stalled)));
            assert!(begun.elapsed() < Duration::from_secs(5));
            drop(drips.join());
        }
    }
}
