// SPDX-License-Identifier: Apache-2.0
//! Operations (PKCS#11 3.2 §5.8–§5.17).

mod active;
pub(crate) mod cipher;
pub(crate) mod digest;
pub(crate) mod dual;
mod keyed;
mod kind;
pub(crate) mod later;
mod message;
pub(crate) mod recover;
mod serve;
pub(crate) mod signature;
pub(crate) mod state;
mod whole;

pub use kind::OperationKind;

pub(crate) use active::{Active, Choice, Chosen, Later, Lock, Operation, Operations, Streams};
