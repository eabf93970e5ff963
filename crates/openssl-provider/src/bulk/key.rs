// SPDX-License-Identifier: Apache-2.0
//! Secrets of the program's: their bytes, and the object of a session that a token uses in their place.

use super::sessions::{Bulk, Whose as _};
use crate::abi::deep;
use crate::failure::{Failure, Gone, Result};
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Session, Template, Whole};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// In bytes.
const WORD: usize = size_of::<u64>();

/// Bytes that are zeroised in the end. They are not in the protected arena, which is wiped in a forked child: a context goes on there.
#[derive(Default)]
pub(crate) struct Hidden(Vec<u8>);

impl Hidden {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The same, with room for so many more.
    pub(crate) fn with_room(bytes: &[u8], more: usize) -> Self {
        let mut room = Vec::with_capacity(bytes.len() + more);
        room.extend_from_slice(bytes);
        Self(room)
    }

    /// Takes them over, without a copy.
    pub(crate) const fn taken(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Room for so many bytes, in the place of what was there.
    pub(crate) fn room(&mut self, length: usize) -> &mut [u8] {
        if self.0.capacity() < length {
            *self = Self(vec![0; length]);
        }
        // What is left over is wiped with the rest.
        if self.0.len() < length {
            self.0.resize(length, 0);
        }
        &mut self.0[..length]
    }

    /// One more part.
    pub(crate) fn push(&mut self, part: &[u8]) {
        let length = self.0.len() + part.len();
        if self.0.capacity() < length {
            let mut larger = Vec::with_capacity(length.max(2 * self.0.capacity()));
            larger.extend_from_slice(&self.0);
            *self = Self(larger);
        }
        self.0.extend_from_slice(part);
    }

    pub(crate) fn clear(&mut self) {
        self.wipe();
        self.0.clear();
    }

    /// Where there is nothing, a processor may take long to write that.
    fn wipe(&mut self) {
        if !self.0.is_empty() {
            self.0.fill(0);
            std::hint::black_box(&self.0);
        }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Clone for Hidden {
    fn clone(&self) -> Self {
        Self::of(self)
    }
}

impl Deref for Hidden {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// Whether both are the same, in the same time for any that are as long.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let ((ones, one_rest), (others, other_rest)) =
        (one.as_chunks::<WORD>(), other.as_chunks::<WORD>());
    let words = ones.iter().zip(others);
    let words = words.map(|(one, other)| u64::from_ne_bytes(*one) ^ u64::from_ne_bytes(*other));
    let bytes = one_rest.iter().zip(other_rest).map(|(one, other)| u64::from(one ^ other));
    let difference = words.chain(bytes).fold(0, |sum, more| std::hint::black_box(sum | more));
    difference == 0 && one.len() == other.len()
}

/// A key that the program gave.
#[derive(Debug)]
pub(crate) struct Key {
    provider: Arc<Provider>,
    bytes: Hidden,
    form: Form,
    made: Option<Made>,
}

/// Whose an object is, in which generation.
type Made = (&'static Bulk, usize, ObjectHandle);

/// What type it has, and what it is for.
pub(crate) type Form = (CK_KEY_TYPE, &'static [CK_ATTRIBUTE_TYPE]);

impl Key {
    pub(crate) fn new(provider: &Arc<Provider>, form: Form, bytes: &[u8]) -> Self {
        Self { provider: Arc::clone(provider), bytes: Hidden::of(bytes), form, made: None }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Has `place` have a key of these bytes; whether that is another one than was there.
    pub(crate) fn change(
        place: &mut Option<Self>,
        provider: &Arc<Provider>,
        form: Form,
        bytes: &[u8],
    ) -> bool {
        let is_other = place.as_ref().is_none_or(|old| !same(&old.bytes, bytes));
        if is_other {
            *place = Some(Self::new(provider, form, bytes));
        }
        is_other
    }

    /// Encrypts or decrypts by it, in one call; how much comes out.
    pub(crate) fn pass(
        &mut self,
        forward: bool,
        mechanism: &Mechanism<'_>,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        self.again(|provider, key| {
            let what = if forward { Whole::Encrypt(key) } else { Whole::Decrypt(key) };
            provider.bulk().whole(provider, what, mechanism, data, out)
        })
    }

    /// What `call` does with its object, in a session that nothing goes on in; once more where one of them is gone.
    #[inline]
    pub(crate) fn with<T>(
        &mut self,
        what: &str,
        mut call: impl FnMut(&Session, ObjectHandle) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        self.again(|provider, handle| {
            provider.bulk().once(provider, what, |session| call(session, handle))
        })
    }

    /// The same in any session.
    #[inline]
    pub(crate) fn again<T>(
        &mut self,
        mut call: impl FnMut(&Arc<Provider>, ObjectHandle) -> Result<T>,
    ) -> Result<T> {
        let bulk = self.provider.bulk();
        let mut old = None;
        loop {
            let done = bulk.again(|| {
                let handle = self.handle()?;
                call(&self.provider, handle)
            });
            let failure = match done {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            if failure.gone != Some(Gone::Object) || !self.is_other(&mut old) {
                return Err(failure);
            }
        }
    }

    /// Whether another object is to be made in the place of one that is said to be none. That one is not destroyed: where it is gone its number may be
    /// another's. Where the new one is none either, it is something else, and the old one stays.
    #[cold]
    #[inline(never)]
    fn is_other(&mut self, old: &mut Option<Made>) -> bool {
        if old.is_none() {
            *old = self.made.take();
            return old.is_some();
        }
        self.end();
        self.made = old.take();
        false
    }

    /// Its object in this process, which is made when it is needed first.
    #[inline]
    pub(crate) fn handle(&mut self) -> Result<ObjectHandle> {
        let bulk = self.provider.bulk();
        match self.made {
            Some((whose, then, handle)) if bulk.is_now(whose, then) => Ok(handle),
            _ => self.make(bulk),
        }
    }

    #[cold]
    fn make(&mut self, bulk: &'static Bulk) -> Result<ObjectHandle> {
        let template = Template::new().class(CKO_SECRET_KEY).key_type(self.form.0);
        let template =
            template.token(false).bool(CKA_PRIVATE, false).bytes(CKA_VALUE, &*self.bytes);
        // What is derived of it is readable, and so it must be itself.
        let readable = self.form.1.contains(&CKA_EXTRACTABLE);
        let template = template.bool(CKA_SENSITIVE, !readable);
        let uses = self.form.1.iter();
        let template = uses.fold(template, |template, usage| template.bool(*usage, true));
        let generation = bulk.generation();
        let keeper = bulk.keeper(&self.provider)?;
        let made = deep(|| keeper.create(&template));
        let handle = made.map_err(|error| keeper.failed(&self.provider, "take a key", error))?;
        self.made = Some((bulk, generation, handle));
        Ok(handle)
    }

    /// Destroys it, where there is one.
    fn end(&mut self) {
        let bulk = self.provider.bulk();
        let Some((whose, then, handle)) = self.made.take() else { return };
        if bulk.is_now(whose, then)
            && let Ok(keeper) = bulk.keeper(&self.provider)
        {
            // It goes with its session, if it does not go now.
            deep(|| keeper.destroy(handle)).ok();
        }
    }
}

/// The key of a context.
///
/// # Errors
/// None was given.
#[inline]
pub(crate) fn keyed(key: &mut Option<Key>) -> Result<&mut Key> {
    key.as_mut().ok_or_else(|| Failure::input("there is no key"))
}

impl Clone for Key {
    fn clone(&self) -> Self {
        Self::new(&self.provider, self.form, &self.bytes)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.end();
    }
}
