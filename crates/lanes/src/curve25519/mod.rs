// SPDX-License-Identifier: Apache-2.0
//! X25519 and Ed25519.

#[cfg(all(test, target_arch = "x86_64"))]
use crate::field52::modulus::{Form, Modulus, hex};

/// The base point's order, 2^252 + 27742317777372353535851937790883648493.
#[cfg(all(test, target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order;

#[cfg(all(test, target_arch = "x86_64"))]
impl Modulus<5> for Order {
    const M: [u64; 5] = hex("1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed");
    const FORM: Form = Form::General;
}
