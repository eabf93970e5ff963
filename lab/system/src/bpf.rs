// SPDX-License-Identifier: Apache-2.0
//! Small BPF programs and maps: to learn whether the kernel takes them from this user, and to send what
//! one socket writes past TCP to another one.

use crate::opened;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Where a program would run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// On each packet of a socket.
    SocketFilter,
    /// At each hit of a tracepoint.
    Tracepoint,
    /// On each message that is sent on a socket of a sockmap.
    Message,
}

/// A program that the kernel has checked and taken. It returns 1 and does nothing else.
#[derive(Debug)]
pub struct Program(OwnedFd);

#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// What `BPF_PROG_LOAD` takes, as far as it is used.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    first: *const Instruction,
    license: *const libc::c_char,
    log: [u64; 2],
    version: u32,
    flags: u32,
}

/// What `BPF_MAP_CREATE` takes, as far as it is used.
#[repr(C)]
struct Create {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
}

/// What `BPF_MAP_UPDATE_ELEM` and `BPF_MAP_DELETE_ELEM` take.
#[repr(C)]
struct Element {
    map: u32,
    key: *const u32,
    value: *const u32,
    flags: u64,
}

/// What `BPF_PROG_ATTACH` takes, as far as it is used.
#[repr(C)]
struct Attach {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

/// The structures that the system call takes: each is all that its command reads.
trait Attributes {}
impl Attributes for Load {}
impl Attributes for Create {}
impl Attributes for Element {}
impl Attributes for Attach {}

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const MAP_DELETE: libc::c_long = 3;
const PROG_LOAD: libc::c_long = 5;
const PROG_ATTACH: libc::c_long = 8;
const MAP_OF_SOCKETS: u32 = 15;
/// A program of a map of sockets, which decides where their messages go.
const MESSAGE_VERDICT: u32 = 7;
/// `r0 = 1; exit`
static INSTRUCTIONS: [Instruction; 2] = [
    Instruction { code: 0xb7, registers: 0, offset: 0, value: 1 },
    Instruction { code: 0x95, registers: 0, offset: 0, value: 0 },
];

/// Does a command.
fn bpf(command: libc::c_long, attributes: &impl Attributes) -> libc::c_long {
    let (attributes, size) = (std::ptr::from_ref(attributes), size_of_val(attributes));
    // SAFETY: the structure lives during the call; so does what it points to, which this module's
    // functions own or hold until the call is over.
    unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) }
}

impl Program {
    /// Gives the kernel a program.
    ///
    /// # Errors
    /// The kernel's: EPERM for a user who may not, EINVAL for a kind that it does not know.
    pub fn load(kind: Kind) -> io::Result<Self> {
        Self::of(kind, &INSTRUCTIONS)
    }

    fn of(kind: Kind, instructions: &[Instruction]) -> io::Result<Self> {
        let load = Load {
            kind: match kind {
                Kind::SocketFilter => 1,
                Kind::Tracepoint => 5,
                Kind::Message => 16,
            },
            instructions: u32::try_from(instructions.len()).unwrap_or(0),
            first: instructions.as_ptr(),
            license: c"Dual BSD/GPL".as_ptr(),
            log: [0; 2],
            version: 0,
            flags: 0,
        };
        let result = bpf(PROG_LOAD, &load);
        // SAFETY: this call opens a descriptor.
        unsafe { opened(result) }.map(Self)
    }

    /// What the kernel knows it by.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes a map of one socket, and lets it go.
///
/// # Errors
/// The kernel's.
pub fn sockmap() -> io::Result<()> {
    map(1).map(drop)
}

fn map(entries: u32) -> io::Result<OwnedFd> {
    let result = bpf(MAP_CREATE, &Create { kind: MAP_OF_SOCKETS, key: 4, value: 4, entries });
    // SAFETY: this call opens a descriptor.
    unsafe { opened(result) }
}

/// What one TCP socket sends is put into another one's queue, past TCP, as long as this lives. Let it go
/// when everything was read and before a socket is closed: what is still in the queue is lost, and a
/// reader of a closed connection would wait for ever.
#[derive(Debug)]
pub struct Redirect {
    map: OwnedFd,
    _program: Program,
}

impl Redirect {
    /// From one connected socket to another.
    ///
    /// # Errors
    /// The kernel's: EPERM for a user who may not.
    pub fn new(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<Self> {
        let map = map(2)?;
        let program = Program::of(Kind::Message, &redirecting(&map))?;
        let attach = Attach {
            target: number(map.as_fd()),
            program: number(program.descriptor()),
            kind: MESSAGE_VERDICT,
            flags: 0,
        };
        answered(bpf(PROG_ATTACH, &attach))?;
        let redirect = Self { map, _program: program };
        // The target first: from its own entry on, the writer's messages go there.
        redirect.element(MAP_UPDATE, TO, to)?;
        redirect.element(MAP_UPDATE, FROM, from)?;
        Ok(redirect)
    }

    fn element(&self, command: libc::c_long, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let (map, value) = (number(self.map.as_fd()), number(socket));
        answered(bpf(
            command,
            &Element { map, key: &raw const key, value: &raw const value, flags: 0 },
        ))
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        // The value is not looked at. A socket that was closed before has left the map already.
        for key in [FROM, TO] {
            self.element(MAP_DELETE, key, self.map.as_fd()).ok();
        }
    }
}

/// Places in the map.
const FROM: u32 = 0;
const TO: u32 = 1;

/// `return msg_redirect_map(message, map, TO, BPF_F_INGRESS)`
fn redirecting(map: &OwnedFd) -> [Instruction; 6] {
    const REDIRECT: i32 = 60;
    /// The second operand's register says that the value is a map's descriptor.
    const MAP: u8 = 1 << 4;
    let set = |register, value| Instruction { code: 0xb7, registers: register, offset: 0, value };
    [
        Instruction { code: 0x18, registers: 2 | MAP, offset: 0, value: map.as_raw_fd() },
        Instruction { code: 0, registers: 0, offset: 0, value: 0 },
        set(3, TO.cast_signed()),
        set(4, 1),
        Instruction { code: 0x85, registers: 0, offset: 0, value: REDIRECT },
        Instruction { code: 0x95, registers: 0, offset: 0, value: 0 },
    ]
}

fn number(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

fn answered(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn what_is_redirected_arrives_in_its_order() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut reader = listener.accept().unwrap().0;
        let redirect = match Redirect::new(writer.as_fd(), reader.as_fd()) {
            // A user without the right to it has nothing to test.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return,
            redirect => redirect.unwrap(),
        };
        let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let mut received = vec![0; sent.len()];
        for (sent, received) in sent.chunks(1000).zip(received.chunks_mut(1000)) {
            writer.write_all(sent).unwrap();
            reader.read_exact(received).unwrap();
        }
        assert_eq!(sent, received);
        drop(redirect);
        writer.write_all(b"by TCP").unwrap();
        drop(writer);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "by TCP");
    }
}
