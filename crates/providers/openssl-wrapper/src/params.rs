// SPDX-License-Identifier: Apache-2.0
//! Lists of parameters, as OpenSSL takes them.

use crate::raw::{INTEGER, OCTET_STRING, Param, UNSIGNED_INTEGER, UTF8_STRING};
use metaslot_memory::Secret;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr;

/// Parameters of which the library reads the names and values, which others hold.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    list: Vec<Param>,
    values: PhantomData<&'a [u8]>,
}

impl<'a> Params<'a> {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), values: PhantomData }
    }

    fn with(mut self, key: &'a CStr, data_type: c_uint, data: *const c_void, size: usize) -> Self {
        // The library only reads what is behind the pointers, except for places.
        let data = data.cast_mut();
        self.list.push(Param {
            key: key.as_ptr(),
            data_type,
            data,
            data_size: size,
            return_size: 0,
        });
        self
    }

    pub(crate) fn text(self, key: &'a CStr, text: &'a CStr) -> Self {
        self.with(key, UTF8_STRING, text.as_ptr().cast(), text.count_bytes())
    }

    pub(crate) fn bytes(self, key: &'a CStr, bytes: &'a [u8]) -> Self {
        self.with(key, OCTET_STRING, bytes.as_ptr().cast(), bytes.len())
    }

    pub(crate) fn int(self, key: &'a CStr, number: &'a c_int) -> Self {
        self.with(key, INTEGER, ptr::from_ref(number).cast(), size_of::<c_int>())
    }

    /// A number of any size.
    pub(crate) fn number(self, key: &'a CStr, number: &'a Number) -> Self {
        let bytes = number.0.expose();
        self.with(key, UNSIGNED_INTEGER, bytes.as_ptr().cast(), bytes.len())
    }

    /// A place where the library writes bytes, or a number in the machine's order of them.
    pub(crate) fn place(self, key: &'a CStr, what: c_uint, place: &'a mut [u8]) -> Self {
        self.with(key, what, place.as_mut_ptr().cast(), place.len())
    }

    /// Ends the list and gives it to `use_it`.
    pub(crate) fn give<T>(mut self, use_it: impl FnOnce(*mut Param) -> T) -> T {
        let (key, data) = (ptr::null(), ptr::null_mut());
        self.list.push(Param { key, data_type: 0, data, data_size: 0, return_size: 0 });
        use_it(self.list.as_mut_ptr())
    }
}

/// A number as the library wants it: in the machine's order of bytes.
#[derive(Debug)]
pub(crate) struct Number(Secret);

impl Number {
    /// Of big-endian bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut copy = Secret::copy_of(bytes);
        if cfg!(target_endian = "little") {
            copy.expose_mut().reverse();
        }
        Self(copy)
    }
}
