// SPDX-License-Identifier: Apache-2.0
//! The smallest BPF programs and maps, to learn whether the kernel takes them from this user.

use crate::opened;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

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

const MAP_CREATE: libc::c_long = 0;
const PROG_LOAD: libc::c_long = 5;
const MAP_OF_SOCKETS: u32 = 15;
/// `r0 = 1; exit`
static INSTRUCTIONS: [Instruction; 2] = [
    Instruction { code: 0xb7, registers: 0, offset: 0, value: 1 },
    Instruction { code: 0x95, registers: 0, offset: 0, value: 0 },
];

impl Program {
    /// Gives the kernel a program.
    ///
    /// # Errors
    /// The kernel's: EPERM for a user who may not, EINVAL for a kind that it does not know.
    pub fn load(kind: Kind) -> io::Result<Self> {
        let load = Load {
            kind: match kind {
                Kind::SocketFilter => 1,
                Kind::Tracepoint => 5,
                Kind::Message => 16,
            },
            instructions: 2,
            first: INSTRUCTIONS.as_ptr(),
            license: c"Dual BSD/GPL".as_ptr(),
            log: [0; 2],
            version: 0,
            flags: 0,
        };
        let (load, size) = (&raw const load, size_of::<Load>());
        // SAFETY: the structure, the instructions and the text live during the call.
        let result = unsafe { libc::syscall(libc::SYS_bpf, PROG_LOAD, load, size) };
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
    let create = Create { kind: MAP_OF_SOCKETS, key: 4, value: 4, entries: 1 };
    let (create, size) = (&raw const create, size_of::<Create>());
    // SAFETY: the structure lives during the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, MAP_CREATE, create, size) };
    // SAFETY: this call opens a descriptor.
    unsafe { opened(result) }.map(drop)
}
