// SPDX-License-Identifier: Apache-2.0
//! Functions of libcrypto, which it passes when it loads the provider.

use super::given::{Bio, CoreHandle};
use super::param::{self, Param};
use super::{Dispatch, numbers};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Longest message: libcrypto drops one that is longer than its buffer.
const MESSAGE: usize = 1000;

/// Longest line of a PEM file that is looked at in one piece.
const LINE: usize = 1024;

type GetParams = unsafe extern "C" fn(*const c_void, *mut Param) -> c_int;
type NewError = unsafe extern "C" fn(*const c_void);
type SetError = unsafe extern "C" fn(*const c_void, u32, *const c_char, *const c_void);
type Mark = unsafe extern "C" fn(*const c_void) -> c_int;
type Read = unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut usize) -> c_int;
type Line = unsafe extern "C" fn(*mut c_void, *mut u8, c_int) -> c_int;
type Write = unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut usize) -> c_int;

/// What libcrypto lets a provider call.
#[derive(Debug)]
pub(crate) struct Core {
    handle: CoreHandle,
    get_params: Option<GetParams>,
    new_error: Option<NewError>,
    set_error: Option<SetError>,
    mark: Option<Mark>,
    keep_to_mark: Option<Mark>,
    drop_to_mark: Option<Mark>,
    read: Option<Read>,
    line: Option<Line>,
    write: Option<Write>,
}

// SAFETY: a handle that libcrypto lets every thread use, and addresses of functions.
unsafe impl Send for Core {}
// SAFETY: the same.
unsafe impl Sync for Core {}

/// The table that `OSSL_provider_init` is given.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Upcalls(*const Dispatch);

impl Upcalls {
    /// The function of this number, as the pointer type that the caller names.
    fn find<F: Copy>(&self, number: c_int) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*const ()>()) };
        let mut entry = self.0;
        loop {
            // SAFETY: an entry of the table: none before it was the last.
            let row = unsafe { entry.as_ref() }?;
            match row.number {
                0 => return None,
                found if found == number => {
                    // SAFETY: core_dispatch.h says which type the function of a number has, and each caller names that one.
                    return Some(unsafe { std::mem::transmute_copy(&row.function) });
                }
                _ => entry = entry.wrapping_add(1),
            }
        }
    }
}

impl Core {
    /// From what `OSSL_provider_init` is given.
    pub(crate) fn new(handle: CoreHandle, functions: &Upcalls) -> Self {
        Self {
            handle,
            get_params: functions.find(numbers::CORE_GET_PARAMS),
            new_error: functions.find(numbers::CORE_NEW_ERROR),
            set_error: functions.find(numbers::CORE_VSET_ERROR),
            mark: functions.find(numbers::CORE_SET_ERROR_MARK),
            keep_to_mark: functions.find(numbers::CORE_CLEAR_LAST_ERROR_MARK),
            drop_to_mark: functions.find(numbers::CORE_POP_ERROR_TO_MARK),
            read: functions.find(numbers::BIO_READ_EX),
            line: functions.find(numbers::BIO_GETS),
            write: functions.find(numbers::BIO_WRITE_EX),
        }
    }

    /// What the provider's section of the configuration says.
    pub(crate) fn configured(&self, name: &CStr) -> Option<String> {
        let function = self.get_params?;
        param::asked(name, |params| {
            // SAFETY: our own handle, and an array that the last entry ends. Where it fails there is no answer.
            unsafe { function(self.handle.0, params) };
        })
    }

    /// Puts an error into this thread's queue. The message has no control characters.
    pub(crate) fn raise(&self, reason: u32, message: &str) {
        let (Some(new_error), Some(set_error)) = (self.new_error, self.set_error) else { return };
        let length = message.floor_char_boundary(MESSAGE);
        let text = message[..length].replace('%', "%%");
        let text = CString::new(text).unwrap_or_default();
        // A `va_list` from which nothing is read: the text names no argument.
        let no_arguments = [0_usize; 4];
        // SAFETY: our own handle.
        unsafe { new_error(self.handle.0) };
        // SAFETY: our own handle, a text that ends with a zero, and a list of arguments of which none is used.
        unsafe { set_error(self.handle.0, reason, text.as_ptr(), no_arguments.as_ptr().cast()) };
    }

    /// What `call` does. Where it succeeds, nothing stays in this thread's queue of what a module put there that is made of libcrypto itself: what
    /// has failed inside, and need not be known outside, would be told from what has not.
    pub(crate) fn unless_failed<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.at_mark(self.mark);
        let done = call();
        self.at_mark(if done.is_ok() { self.drop_to_mark } else { self.keep_to_mark });
        done
    }

    fn at_mark(&self, function: Option<Mark>) {
        // SAFETY: our own handle.
        function.map(|function| unsafe { function(self.handle.0) });
    }

    /// Everything that is to be read, up to so many bytes.
    pub(crate) fn read(&self, from: Bio, most: usize) -> Option<Vec<u8>> {
        let function = self.read?;
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        loop {
            let mut read = 0;
            // SAFETY: libcrypto's BIO, room with its length, and a place for a number.
            let more = unsafe { function(from.0, part.as_mut_ptr(), part.len(), &raw mut read) };
            if more == 0 || read == 0 {
                return Some(bytes);
            }
            bytes.extend_from_slice(part.get(..read)?);
            if bytes.len() > most {
                return None;
            }
        }
    }

    /// One line with its end; nothing at the end of what there is.
    pub(crate) fn line(&self, from: Bio) -> Vec<u8> {
        let Some(function) = self.line else { return Vec::new() };
        let mut line = vec![0; LINE];
        let size = c_int::try_from(LINE).unwrap_or_default();
        // SAFETY: libcrypto's BIO, and room with its length.
        let length = unsafe { function(from.0, line.as_mut_ptr(), size) };
        line.truncate(usize::try_from(length).unwrap_or_default());
        line
    }

    /// Writes all of it.
    pub(crate) fn write(&self, to: Bio, bytes: &[u8]) -> bool {
        let Some(function) = self.write else { return false };
        let mut written = 0;
        // SAFETY: libcrypto's BIO, bytes with their length, and a place for a number.
        let said = unsafe { function(to.0, bytes.as_ptr(), bytes.len(), &raw mut written) };
        said != 0 && written == bytes.len()
    }
}
