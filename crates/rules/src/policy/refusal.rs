// SPDX-License-Identifier: Apache-2.0
//! What can be refused.

/// Something that the standard allows and a policy may refuse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// A key is used for more than the purpose that it was made for.
    BeyondPurpose,
    /// A usage is switched on after the key was made.
    RoleChanges,
    /// A protected key is wrapped by one whose value may be known outside.
    WrapUntrusted,
    /// A protected key is wrapped in a way that forgets its restrictions.
    LostRestrictions,
    /// A key is wrapped or unwrapped by a mechanism that leaks, or under an IV of the caller's.
    WrapMechanisms,
    /// A key is wrapped by a weaker one.
    WeakWrappingKeys,
    /// An unwrapped key is made readable.
    UnwrapNonSensitive,
    /// An unwrapped or derived key is less private than its parent.
    LessPrivate,
    /// A piece of what was wrapped becomes a key, or a private key a secret one.
    KeyPieces,
    /// A key derived from a protected one is made readable.
    DeriveNonSensitive,
    /// A protected key is the salt of a derivation, or derived from by a mechanism that shows how the
    /// results are related.
    RelatedKeys,
    /// A key that wants its login for each use is used where no login can be given.
    Unauthenticated,
    /// A tag of GCM below 96 bits, or any other tag or MAC below 64.
    ShortTags,
    /// A generated, derived, unwrapped or wrapped secret key below 112 bits.
    ShortKeys,
    /// RSA below 2048 bits.
    WeakRsa,
    /// A curve below 112 bits of security.
    WeakCurves,
    /// Diffie-Hellman in a group that is none of RFC 3526 or RFC 7919.
    WeakGroups,
    /// A public exponent below 65537, or an even one.
    WeakExponents,
    /// A signature over an MD2, an MD5 or a RIPEMD, or a key by MD2, MD5 or HMAC-MD5.
    Md5Signatures,
    /// A signature of DSA, or a pair for it.
    Dsa,
    /// The keys of TLS 1.0, TLS 1.1 and SSL 3.0.
    OldTls,
    /// An old or national cipher for something new.
    WeakCiphers,
    /// A DES key with a byte of even parity.
    DesParity,
    /// A mechanism that FIPS 140-3 does not approve of.
    NotApproved,
}
