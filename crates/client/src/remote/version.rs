// SPDX-License-Identifier: Apache-2.0
//! Versions of the protocol: p11-kit's, which each side says as its first byte, and those that are our own.

/// The newest version of p11-kit's that is known here.
pub const VERSION: u8 = 2;
/// From this version on a mechanism says whether it has a parameter.
pub const SAYS_PARAMETERS: u8 = 2;
/// The version that is Metaslot's own, of which p11-kit knows nothing: parameters and attributes of the whole vocabulary, and more
/// calls. A client offers it when it begins ([`OFFER`]).
pub const OWN: u8 = 64;
/// Where p11-kit's client has the argument of its module, of which it says that there is none: behind this is the newest version of
/// Metaslot's own that the client speaks. A server that speaks one of them says which, behind its answer.
pub const OFFER: &[u8] = b"METASLOT-PROTOCOL-V-";
