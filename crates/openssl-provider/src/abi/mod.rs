// SPDX-License-Identifier: Apache-2.0
//! The edge to libcrypto: layouts, pointers that it promises to be right, and its own functions. The `unsafe` code of the crate is
//! here; the functions of the tables are safe code over these types.

mod core;
mod given;
mod job;
pub(crate) mod numbers;
mod param;
mod stack;

pub(crate) use self::core::{Core, Upcalls};
#[cfg(test)]
pub(crate) use given::passed;
pub(crate) use given::{
    Argument, Asking, Bio, Callback, Context, CoreHandle, Input, Lent, Output, Place, Reference,
    Table, Text,
};
pub(crate) use job::{Job, Waits};
pub(crate) use param::{Answer, Builder, Given, Kind, Param, Params};
pub(crate) use stack::deep;

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// The address of a constant or of a function; NULL where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
struct Constant<T>(*const T);

// SAFETY: nothing changes what is there.
unsafe impl<T> Sync for Constant<T> {}

impl<T> Constant<T> {
    const NULL: Self = Self(ptr::null());
}

/// `OSSL_DISPATCH`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Dispatch {
    number: c_int,
    function: Constant<()>,
}

/// `OSSL_ALGORITHM`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Algorithm {
    names: Constant<c_char>,
    properties: Constant<c_char>,
    functions: Constant<Dispatch>,
    description: Constant<c_char>,
}

/// `OSSL_ITEM`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Item {
    number: u32,
    text: Constant<c_char>,
}

impl Item {
    /// The last entry.
    pub(crate) const END: Self = Self { number: 0, text: Constant::NULL };

    /// A number and its name.
    pub(crate) const fn new(number: u32, text: &'static CStr) -> Self {
        Self { number, text: Constant(text.as_ptr()) }
    }
}

impl Dispatch {
    /// The last entry.
    pub(crate) const END: Self = Self { number: 0, function: Constant::NULL };

    /// One function; `function` is the address of one that has the signature of that number.
    pub(crate) const fn new(number: c_int, function: *const ()) -> Self {
        Self { number, function: Constant(function) }
    }
}

impl Algorithm {
    /// The last entry.
    pub(crate) const END: Self = Self {
        names: Constant::NULL,
        properties: Constant::NULL,
        functions: Constant::NULL,
        description: Constant::NULL,
    };

    /// An algorithm by its names, which colons part.
    pub(crate) const fn new(
        names: &'static CStr,
        properties: &'static CStr,
        functions: &'static [Dispatch],
    ) -> Self {
        let (names, properties) = (Constant(names.as_ptr()), Constant(properties.as_ptr()));
        let functions = Constant(functions.as_ptr());
        Self { names, properties, functions, description: Constant::NULL }
    }

    /// The same with other properties.
    pub(crate) fn with_properties(self, properties: &'static CStr) -> Self {
        Self { properties: Constant(properties.as_ptr()), ..self }
    }

    /// Whether it is the one of these names, which are those of a table.
    pub(crate) fn is_called(&self, names: &'static CStr) -> bool {
        self.names == Constant(names.as_ptr())
    }
}

/// What `call` answers; `on_panic` where it panics, and nothing is printed of that.
pub(crate) fn caught<T>(on_panic: T, call: impl FnOnce() -> T) -> T {
    caught_here(on_panic, || deep(call))
}

/// The same on the caller's stack, small as it may be: for what may pause.
pub(crate) fn caught_here<T>(on_panic: T, call: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => answer,
        Err(payload) => {
            // Its destructor could panic in turn.
            std::mem::forget(payload);
            on_panic
        }
    }
}
