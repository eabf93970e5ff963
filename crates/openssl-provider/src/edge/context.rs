// SPDX-License-Identifier: Apache-2.0
//! The functions that are the same for the contexts of all operations.

use super::{Home, answer, answered, made};
use crate::abi::{Context, Job, Params, Text, caught, caught_here};
use crate::failure::Result;
use crate::operation::Operation;
use std::ffi::c_int;
use std::sync::Arc;

pub(super) extern "C" fn new<T: Operation>(home: Home) -> Context<T> {
    caught(Context::null(), || match home.get() {
        Some(provider) => Context::new(T::new(Arc::clone(provider))),
        None => Context::null(),
    })
}

/// With a property query, for operations of libcrypto's that there are none of here.
pub(super) extern "C" fn new_with<T: Operation>(home: Home, _properties: Text) -> Context<T> {
    new(home)
}

pub(super) extern "C" fn free<T: Operation>(context: Context<T>) {
    caught((), || drop(context.take()));
}

pub(super) extern "C" fn copy<T: Operation>(context: Context<T>) -> Context<T> {
    let Some(context) = context.get() else { return Context::null() };
    made(context.provider(), || context.copy())
}

pub(super) extern "C" fn set<T: Operation>(context: Context<T>, params: Params) -> c_int {
    with(context, |context| context.set(&params))
}

pub(super) extern "C" fn get<T: Operation>(context: Context<T>, mut params: Params) -> c_int {
    caught(0, || {
        let Some(context) = context.get() else { return 0 };
        c_int::from(params.answer(|name, wants_text| context.answer(name, wants_text)))
    })
}

/// Something done with a context.
pub(super) fn with<T: Operation>(
    mut context: Context<T>,
    call: impl FnOnce(&mut T) -> Result<()>,
) -> c_int {
    let Some(context) = context.get_mut() else { return 0 };
    let provider = Arc::clone(context.provider());
    answer(&provider, || call(context))
}

/// The same for what may pause a job: on the caller's stack.
pub(super) fn with_pause<T: Operation>(
    mut context: Context<T>,
    call: impl FnOnce(&mut T) -> Result<()>,
) -> c_int {
    let Some(context) = context.get_mut() else { return 0 };
    let provider = Arc::clone(context.provider());
    caught_here(0, || {
        let call = || call(context);
        // Marks in the thread's queue of errors are a stack, which calls that pause would leave in another order.
        let pauses = provider.async_jobs && Job::current().is_some();
        let done = if pauses { call() } else { provider.core.unless_failed(call) };
        answered(&provider, done)
    })
}
