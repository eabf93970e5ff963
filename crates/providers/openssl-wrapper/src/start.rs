// SPDX-License-Identifier: Apache-2.0
//! The library's start, at first use: everything that it makes once and keeps is made here, so that later calls write nothing
//! that threads share.

use crate::curve::EdDsa;
use crate::hash::Hash;
use crate::mode::{CIPHERS, Mode};
use crate::raw::{self, EVP_CIPHER, EVP_MAC, EVP_MD, EVP_SIGNATURE, RandMethod};
use crate::{Failed, Result, check, memory, not_null, warm};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_uchar};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What was fetched from the library; it stays.
#[derive(Debug)]
pub(crate) struct Methods {
    digests: [NonNull<EVP_MD>; Hash::ALL.len()],
    pub(crate) hmac: NonNull<EVP_MAC>,
    pub(crate) cmac: NonNull<EVP_MAC>,
    ciphers: [NonNull<EVP_CIPHER>; CIPHERS.len()],
    signatures: [NonNull<EVP_SIGNATURE>; EdDsa::ALL.len()],
}

// SAFETY: the library counts references with atomics and changes nothing else of a method.
unsafe impl Send for Methods {}
// SAFETY: as above.
unsafe impl Sync for Methods {}

static METHODS: OnceLock<Methods> = OnceLock::new();

/// Where the start is: not begun (or given up by a thread that forked), under way, over.
static STATE: AtomicU32 = AtomicU32::new(NEW);
const NEW: u32 = 0;
const UNDER_WAY: u32 = 1;
const READY: u32 = 2;
const FAILED: u32 = 3;

/// How long a thread waits for another that starts the library. It takes milliseconds, unless that thread is one of a parent whose
/// fork was not announced: then this one never starts it.
const PATIENCE: Duration = Duration::from_secs(5);

thread_local! {
    /// Whether this thread keeps others from starting the library while it forks.
    static FORKS: Cell<bool> = const { Cell::new(false) };
}

impl Methods {
    pub(crate) fn digest(&self, hash: Hash) -> *const EVP_MD {
        self.digests[hash as usize].as_ptr()
    }

    /// The cipher of a mode for keys of this length, if there is one.
    pub(crate) fn cipher(&self, mode: Mode, key: usize) -> Option<*const EVP_CIPHER> {
        let at = CIPHERS.iter().position(|cipher| (cipher.0, cipher.1) == (mode, key))?;
        Some(self.ciphers[at].as_ptr())
    }

    pub(crate) fn signature(&self, form: EdDsa) -> NonNull<EVP_SIGNATURE> {
        self.signatures[form as usize]
    }

    fn fetch() -> Result<Self> {
        let mut digests = [NonNull::dangling(); Hash::ALL.len()];
        for (place, hash) in digests.iter_mut().zip(Hash::ALL) {
            let name = hash.name().as_ptr();
            // SAFETY: a string; the default library and no properties.
            *place = not_null(unsafe { raw::EVP_MD_fetch(ptr::null_mut(), name, ptr::null()) })?;
        }
        let mut ciphers = [NonNull::dangling(); CIPHERS.len()];
        for (place, (_, _, name)) in ciphers.iter_mut().zip(CIPHERS) {
            let name = name.as_ptr();
            // SAFETY: a string; the default library and no properties.
            *place =
                not_null(unsafe { raw::EVP_CIPHER_fetch(ptr::null_mut(), name, ptr::null()) })?;
        }
        let mut signatures = [NonNull::dangling(); EdDsa::ALL.len()];
        for (place, form) in signatures.iter_mut().zip(EdDsa::ALL) {
            let name = form.name().as_ptr();
            // SAFETY: a string; the default library and no properties.
            *place =
                not_null(unsafe { raw::EVP_SIGNATURE_fetch(ptr::null_mut(), name, ptr::null()) })?;
        }
        Ok(Self { digests, hmac: mac(c"HMAC")?, cmac: mac(c"CMAC")?, ciphers, signatures })
    }
}

fn mac(name: &CStr) -> Result<NonNull<EVP_MAC>> {
    // SAFETY: a string; the default library and no properties.
    not_null(unsafe { raw::EVP_MAC_fetch(ptr::null_mut(), name.as_ptr(), ptr::null()) })
}

/// What the library has; it is started when it was not yet.
pub(crate) fn methods() -> Result<&'static Methods> {
    match METHODS.get() {
        Some(methods) => Ok(methods),
        None => start(),
    }
}

#[cold]
fn start() -> Result<&'static Methods> {
    if take() {
        let started = begin();
        let state = if started.is_ok() { READY } else { FAILED };
        if let Ok(methods) = started {
            METHODS.get_or_init(|| methods);
        }
        STATE.store(state, Ordering::Release);
    }
    METHODS.get().ok_or(Failed)
}

/// Whether the library is this thread's to start. Where it is not, the start is over, or was waited for in vain.
fn take() -> bool {
    let begin = Instant::now();
    loop {
        match STATE.compare_exchange(NEW, UNDER_WAY, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => return true,
            // No sleep: a thread could be cancelled there.
            Err(UNDER_WAY) if begin.elapsed() < PATIENCE => std::thread::yield_now(),
            Err(_) => return false,
        }
    }
}

fn begin() -> Result<Methods> {
    memory::serve()?;
    let options = raw::OPENSSL_INIT_NO_LOAD_CONFIG
        | raw::OPENSSL_INIT_NO_ATEXIT
        | raw::OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS
        | raw::OPENSSL_INIT_NO_ADD_ALL_CIPHERS
        | raw::OPENSSL_INIT_NO_ADD_ALL_DIGESTS;
    // SAFETY: the library's first call after its allocations were set; no settings.
    check(unsafe { raw::OPENSSL_init_crypto(options, ptr::null()) })?;
    // SAFETY: a static, whose functions need nothing.
    check(unsafe { raw::RAND_set_rand_method(&raw const RANDOM) })?;
    let methods = Methods::fetch()?;
    warm::everything(|form| methods.signature(form))?;
    Ok(methods)
}

/// AWS-LC's random bytes, which no child has in common with its parent.
static RANDOM: RandMethod = RandMethod {
    seed: None,
    bytes: Some(random),
    cleanup: None,
    add: None,
    pseudorand: Some(random),
    status: Some(is_random),
};

/// # Safety
/// `out` is writable for `length`.
unsafe extern "C" fn random(out: *mut c_uchar, length: c_int) -> c_int {
    let Ok(length) = usize::try_from(length) else { return 0 };
    if length == 0 {
        return 1;
    }
    // SAFETY: the caller's promise.
    let out = unsafe { std::slice::from_raw_parts_mut(out, length) };
    c_int::from(metaslot_awslc_wrapper::random::fill(out).is_ok())
}

extern "C" fn is_random() -> c_int {
    1
}

/// A fork waits for a start that is under way, and none begins before it is over.
pub(crate) fn before_fork() {
    FORKS.set(take());
}

pub(crate) fn after_fork() {
    if FORKS.take() {
        STATE.store(NEW, Ordering::Release);
    }
}
