// SPDX-License-Identifier: Apache-2.0
//! The metaslot: which provider serves.

pub(crate) mod route;
