// SPDX-License-Identifier: Apache-2.0
//! Families of keys.

/// What can be done with a key, and how its type is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Family {
    Aes,
    ChaCha20,
    Des2,
    Des3,
    Dh,
    Dsa,
    Ec,
    Edwards,
    Generic,
    Hotp,
    Hss,
    MlDsa,
    MlKem,
    Montgomery,
    /// A cipher of old, or of some country.
    Old,
    Rc4,
    Rsa,
    SlhDsa,
    Xmss,
    Xmssmt,
    Other,
}
