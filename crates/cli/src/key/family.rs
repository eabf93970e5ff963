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
    Ed25519,
    Generic,
    Hss,
    MlDsa,
    MlKem,
    /// A cipher of old, or of some country.
    Old,
    Rc4,
    Rsa,
    SlhDsa,
    X25519,
    Xmss,
    Xmssmt,
    Other,
}
