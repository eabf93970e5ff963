// SPDX-License-Identifier: Apache-2.0
//! A provider that panics, and what a caller sees of it. Only in tests.

use crate::functions::*;
use metaslot_ck::*;
use metaslot_counters as counters;
use metaslot_engine::provider::{Algorithm, Digest, DigestStream, Provider};
use metaslot_engine::{Key, NewObject};
use metaslot_memory::Secret;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;

/// Has one mechanism, which works the first time and panics afterwards.
#[derive(Debug)]
pub(crate) struct Panicking;

static ROWS: &[Algorithm] =
    &[Algorithm { mechanism: CKM_MD5, digest: Some(&Panicking), ..Algorithm::NONE }];

impl Provider for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn algorithms(&self) -> &'static [Algorithm] {
        ROWS
    }

    fn random(&self, _: &mut [u8]) -> Result<()> {
        Err(Error::DEVICE_ERROR)
    }

    fn complete(&self, _: &mut NewObject) -> Result<()> {
        Err(Error::ATTRIBUTE_VALUE_INVALID)
    }

    fn encode_private_key(&self, _: &Key) -> Result<Secret> {
        Err(Error::KEY_NOT_WRAPPABLE)
    }

    fn decode_private_key(&self, _: &[u8]) -> Result<NewObject> {
        Err(Error::WRAPPED_KEY_INVALID)
    }
}

impl Digest for Panicking {
    fn length(&self) -> usize {
        16
    }

    fn digest(&self, _: &[u8], _: &mut [u8]) -> Result<()> {
        panic!("a provider panics")
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        Err(Error::DEVICE_ERROR)
    }

    fn restore(&self, _: &[u8]) -> Result<Box<dyn DigestStream>> {
        Err(Error::SAVED_STATE_INVALID)
    }
}

/// Standard error goes to a file while it lives.
struct Caught {
    file: File,
    stderr: libc::c_int,
}

impl Caught {
    fn new() -> Self {
        // SAFETY: flags and a name are all that is given; the descriptor is ours.
        let descriptor = unsafe { libc::memfd_create(c"stderr".as_ptr(), 0) };
        assert!(descriptor >= 0);
        // SAFETY: the descriptor was made above.
        let file = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: duplicates a descriptor.
        let stderr = unsafe { libc::dup(2) };
        // SAFETY: both descriptors are open.
        unsafe { libc::dup2(file.as_raw_fd(), 2) };
        Self { file, stderr }
    }

    fn end(mut self) -> String {
        // SAFETY: both descriptors are open.
        unsafe { libc::dup2(self.stderr, 2) };
        let mut text = String::new();
        self.file.rewind().expect("it can be rewound");
        self.file.read_to_string(&mut text).expect("it can be read");
        text
    }
}

fn open() -> CK_SESSION_HANDLE {
    let mut session = 0;
    // SAFETY: the place is ours.
    let rv =
        unsafe { C_OpenSession(0, CKF_SERIAL_SESSION, ptr::null_mut(), None, &raw mut session) };
    assert_eq!(rv, CKR_OK);
    session
}

fn digest(session: CK_SESSION_HANDLE, mechanism: CK_MECHANISM_TYPE) -> (CK_RV, CK_RV) {
    let (mut data, mut out) = ([0_u8; 3], [0_u8; 64]);
    let mut length = out.len() as CK_ULONG;
    let mut mechanism = CK_MECHANISM { mechanism, pParameter: ptr::null_mut(), ulParameterLen: 0 };
    // SAFETY: the mechanism is ours.
    let first = unsafe { C_DigestInit(session, &raw mut mechanism) };
    let (data, out) = (data.as_mut_ptr(), out.as_mut_ptr());
    // SAFETY: the buffers are ours and as long as is said.
    let second = unsafe { C_Digest(session, data, 3, out, &raw mut length) };
    (first, second)
}

#[test]
fn a_panic_is_an_error_code_and_ends_that_operation_only() {
    let hook = std::panic::take_hook();
    let caught = Caught::new();
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { C_Initialize(ptr::null_mut()) }, CKR_OK);
    let (session, other) = (open(), open());
    let panicked = digest(session, CKM_MD5);
    let while_broken = digest(other, CKM_SHA256);
    // SAFETY: no pointer is given.
    let closed = unsafe { C_CloseSession(session) };
    let afterwards = digest(open(), CKM_SHA256);
    let text = caught.end();
    std::panic::set_hook(hook);

    assert_eq!(panicked, (CKR_OK, CKR_GENERAL_ERROR));
    assert_eq!(while_broken, (CKR_OK, CKR_OK), "other sessions go on");
    assert_eq!(closed, CKR_OK, "the session can be closed");
    assert_eq!(afterwards, (CKR_OK, CKR_OK));
    assert_eq!(text, "", "nothing is printed");
    assert!(counters::path().is_none(), "nothing is made");
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { C_Finalize(ptr::null_mut()) }, CKR_OK);
}
