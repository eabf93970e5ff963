// SPDX-License-Identifier: Apache-2.0
//! Digests. A short message is kept, so that the token hashes it in one call; a long one goes to a session as it comes.

use super::key::Hidden;
use super::names::is_named;
use super::sessions::{Held, Whose as _};
use super::{Owner, Work};
use crate::failure::{Failure, Result};
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Session};
use std::ffi::CStr;
use std::ops::Deref;
use std::sync::Arc;

/// A message that is longer is not kept.
const SHORT: usize = 2048;

/// Of one that is no longer than this, no memory is asked for.
const SHORTEST: usize = 64;

/// What fails, in words.
const WHAT: &str = "hash";

/// A hash function, as libcrypto names it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) names: &'static CStr,
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) hmac: CK_MECHANISM_TYPE,
    /// In bytes, as the next one.
    pub(crate) length: usize,
    pub(crate) block: usize,
    /// Whether an `AlgorithmIdentifier` of it has no parameters.
    pub(crate) bare: bool,
}

const fn row(
    names: &'static CStr,
    (mechanism, hmac): (CK_MECHANISM_TYPE, CK_MECHANISM_TYPE),
    length: usize,
    block: usize,
) -> Row {
    let bare = !matches!(mechanism, CKM_MD5 | CKM_RIPEMD160);
    Row { names, mechanism, hmac, length, block, bare }
}

#[rustfmt::skip]
pub(crate) static ROWS: [Row; 13] = [
    row(c"SHA1:SHA-1:SSL3-SHA1:1.3.14.3.2.26", (CKM_SHA_1, CKM_SHA_1_HMAC), 20, 64),
    row(c"SHA2-224:SHA-224:SHA224:2.16.840.1.101.3.4.2.4", (CKM_SHA224, CKM_SHA224_HMAC), 28, 64),
    row(c"SHA2-256:SHA-256:SHA256:2.16.840.1.101.3.4.2.1", (CKM_SHA256, CKM_SHA256_HMAC), 32, 64),
    row(c"SHA2-384:SHA-384:SHA384:2.16.840.1.101.3.4.2.2", (CKM_SHA384, CKM_SHA384_HMAC), 48, 128),
    row(c"SHA2-512:SHA-512:SHA512:2.16.840.1.101.3.4.2.3", (CKM_SHA512, CKM_SHA512_HMAC), 64, 128),
    row(c"SHA2-512/224:SHA-512/224:SHA512-224:2.16.840.1.101.3.4.2.5", (CKM_SHA512_224, CKM_SHA512_224_HMAC), 28, 128),
    row(c"SHA2-512/256:SHA-512/256:SHA512-256:2.16.840.1.101.3.4.2.6", (CKM_SHA512_256, CKM_SHA512_256_HMAC), 32, 128),
    row(c"SHA3-224:2.16.840.1.101.3.4.2.7", (CKM_SHA3_224, CKM_SHA3_224_HMAC), 28, 144),
    row(c"SHA3-256:2.16.840.1.101.3.4.2.8", (CKM_SHA3_256, CKM_SHA3_256_HMAC), 32, 136),
    row(c"SHA3-384:2.16.840.1.101.3.4.2.9", (CKM_SHA3_384, CKM_SHA3_384_HMAC), 48, 104),
    row(c"SHA3-512:2.16.840.1.101.3.4.2.10", (CKM_SHA3_512, CKM_SHA3_512_HMAC), 64, 72),
    row(c"MD5:SSL3-MD5:1.2.840.113549.2.5", (CKM_MD5, CKM_MD5_HMAC), 16, 64),
    row(c"RIPEMD-160:RIPEMD160:RIPEMD:RMD160:1.3.36.3.2.1", (CKM_RIPEMD160, CKM_RIPEMD160_HMAC), 20, 64),
];

/// A message that is being hashed.
#[derive(Debug)]
pub(crate) struct Digest {
    provider: Owner,
    row: &'static Row,
    /// What came; in the end, what came after what is elsewhere.
    bytes: Message,
    rest: Rest,
}

/// What of the message is no longer in `bytes`.
#[derive(Debug)]
enum Rest {
    Nothing,
    /// The module cannot copy what it hashes: all of it stays in `bytes`.
    Kept,
    /// In a session.
    Running(Held),
    /// As a session said it, which has gone on meanwhile.
    Saved(Hidden),
}

/// Bytes of a message.
#[derive(Debug)]
struct Message {
    /// All of it, while nothing is in `long`.
    short: [u8; SHORTEST],
    length: usize,
    long: Hidden,
}

impl Message {
    #[inline(always)]
    const fn new() -> Self {
        Self { short: [0; SHORTEST], length: 0, long: Hidden::taken(Vec::new()) }
    }

    /// Whether it has room for it without more memory, and has taken it.
    #[inline(always)]
    fn takes(&mut self, part: &[u8]) -> bool {
        let end = self.length + part.len();
        match self.short.get_mut(self.length..end) {
            Some(place) if self.long.is_empty() => {
                place.copy_from_slice(part);
                self.length = end;
                true
            }
            _ => false,
        }
    }

    fn push(&mut self, part: &[u8]) {
        if self.takes(part) {
            return;
        }
        if self.length > 0 {
            self.long.push(&self.short[..self.length]);
            self.wipe();
        }
        self.long.push(part);
    }

    fn clear(&mut self) {
        self.wipe();
        self.long.clear();
    }

    fn wipe(&mut self) {
        if self.length > 0 {
            self.short.fill(0);
            std::hint::black_box(&self.short);
            self.length = 0;
        }
    }
}

impl Deref for Message {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        if self.length > 0 { &self.short[..self.length] } else { &self.long }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Clone for Message {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        // It is moved to its place, and leaves nothing behind. HMAC copies the block of its key, and goes on with something short.
        copy.long = Hidden::with_room(self, SHORTEST);
        copy
    }
}

impl Row {
    /// The one of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Self> {
        let unknown = || Failure::unsupported(format!("the hash function {name} is not supported"));
        ROWS.iter().find(|row| is_named(row.names, name)).ok_or_else(unknown)
    }
}

impl Work for Digest {
    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }
}

impl Digest {
    #[inline(always)]
    pub(crate) fn new(provider: Owner, row: &'static Row) -> Self {
        Self { provider, row, bytes: Message::new(), rest: Rest::Nothing }
    }

    /// A new message.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.bytes.clear();
        if !matches!(self.rest, Rest::Nothing) {
            self.rest = Rest::Nothing;
        }
    }

    #[inline(always)]
    pub(crate) fn update(&mut self, part: &[u8]) -> Result<()> {
        if matches!(self.rest, Rest::Nothing) && self.bytes.takes(part) {
            return Ok(());
        }
        self.update_longer(part)
    }

    #[inline(never)]
    fn update_longer(&mut self, part: &[u8]) -> Result<()> {
        if matches!(self.rest, Rest::Nothing) && self.bytes.len() + part.len() > SHORT {
            self.provider.bulk().again(|| self.start())?;
        }
        if let Rest::Running(held) = &self.rest {
            return held.call(&self.provider, WHAT, |session| session.digest_update(part));
        }
        self.bytes.push(part);
        if matches!(self.rest, Rest::Saved(_)) && self.bytes.len() > SHORT {
            self.provider.bulk().again(|| self.restore())?;
        }
        Ok(())
    }

    /// Has a session hash what came so far, if the message can be copied from there.
    fn start(&mut self) -> Result<()> {
        let held = self.provider.bulk().session(&self.provider)?;
        let is_copied = held.call(&self.provider, WHAT, |session| {
            session.digest_init(&Mechanism::new(self.row.mechanism))?;
            if !self.bytes.is_empty() {
                session.digest_update(&self.bytes)?;
            }
            Ok(session.module().is_metaslot() || session.operation_state().is_ok())
        })?;
        self.rest = Rest::Kept;
        if is_copied {
            self.bytes.clear();
            self.rest = Rest::Running(held);
        }
        Ok(())
    }

    /// Goes on where the session was that this was copied from.
    fn restore(&mut self) -> Result<()> {
        let Rest::Saved(state) = &self.rest else { return Ok(()) };
        let held = self.provider.bulk().session(&self.provider)?;
        held.call(&self.provider, WHAT, |session| {
            session.set_operation_state(state, ObjectHandle(0), ObjectHandle(0))?;
            session.digest_update(&self.bytes)
        })?;
        self.bytes.clear();
        self.rest = Rest::Running(held);
        Ok(())
    }

    /// The digest; how long it is.
    #[inline(always)]
    pub(crate) fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let room = out.get_mut(..self.row.length);
        let room = room.ok_or_else(too_little)?;
        if matches!(self.rest, Rest::Nothing) {
            once(&self.provider, self.row, &self.bytes, room)?;
        } else {
            self.finish_longer(room)?;
        }
        Ok(self.row.length)
    }

    #[inline(never)]
    fn finish_longer(&mut self, room: &mut [u8]) -> Result<()> {
        if matches!(self.rest, Rest::Saved(_)) {
            self.provider.bulk().again(|| self.restore())?;
        }
        if !matches!(self.rest, Rest::Running(_)) {
            once(&self.provider, self.row, &self.bytes, room)?;
            self.rest = Rest::Nothing;
        } else if let Rest::Running(held) = std::mem::replace(&mut self.rest, Rest::Nothing) {
            held.call(&self.provider, WHAT, |session| session.digest_final_into(room))?;
            held.back();
        }
        Ok(())
    }

    /// A copy, which goes on for itself.
    pub(crate) fn copy(&self) -> Result<Self> {
        let rest = match &self.rest {
            Rest::Nothing => Rest::Nothing,
            Rest::Kept => Rest::Kept,
            Rest::Saved(state) => Rest::Saved(state.clone()),
            Rest::Running(held) => {
                let state = held.call(&self.provider, WHAT, Session::operation_state)?;
                Rest::Saved(Hidden::taken(state))
            }
        };
        let (provider, bytes) = (self.provider, self.bytes.clone());
        Ok(Self { provider, row: self.row, bytes, rest })
    }
}

#[cold]
#[inline(never)]
pub(crate) fn too_little() -> Failure {
    Failure::input("there is too little room for the digest")
}

/// The digest of a whole message; `room` is as long as it.
pub(crate) fn once(provider: &Provider, row: &Row, message: &[u8], room: &mut [u8]) -> Result<()> {
    provider.bulk().hash(provider, &Mechanism::new(row.mechanism), message, room)
}
