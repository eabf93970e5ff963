// SPDX-License-Identifier: Apache-2.0
//! The rules: what a template may say and what follows from it, what a key is for, and what the token's policy refuses. They read
//! attributes and change nothing.
#![forbid(unsafe_code)]

mod attributes;
pub mod bound;
pub mod counted;
pub mod facts;
mod lineage;
mod linked;
mod login;
mod offspring;
pub mod policy;
pub mod purpose;
pub mod series;
mod subject;
mod template;

pub use attributes::{Birth, Origin, change, check, complete, may_follow, protected, within};
pub use lineage::oblige;
pub use login::Login;
pub use offspring::{
    agreed_length, arriving, both_lengths, derived_template, generated_template, inherit,
    may_leave, of_one_kind, permitted_length, with_imposed, wrappable,
};
pub use policy::{Policy, seal_as};
pub use purpose::Purposes;
pub use subject::Subject;
pub use template::{Typed, class_of, typed, without_leading_zeros};
