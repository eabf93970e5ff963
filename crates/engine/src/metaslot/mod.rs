// SPDX-License-Identifier: Apache-2.0
//! The metaslot: which provider serves, and what policy refuses.

pub(crate) mod policy;
pub(crate) mod route;
