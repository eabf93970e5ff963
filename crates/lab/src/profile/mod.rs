// SPDX-License-Identifier: Apache-2.0
//! `lab profile`: where the time goes, by function, in the kernel and in programs.

mod artefact;
mod flame;
mod folded;
mod ratio;
mod svg;
mod tree;

#[allow(unused_imports, reason = "for the report and for comparisons")]
pub(crate) use flame::{difference, flame};
pub(crate) use folded::Folded;
#[allow(unused_imports, reason = "for the report and for comparisons")]
pub(crate) use ratio::{FEW, Row, View, ratios, ratios_of};
