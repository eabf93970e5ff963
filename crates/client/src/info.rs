// SPDX-License-Identifier: Apache-2.0
//! The standard's information structures with Rust strings, without their padding.

use crate::length;
use metaslot_ck::*;

/// `CK_INFO` (PKCS#11 3.2 §3.1).
#[derive(Clone, Debug)]
pub struct Info {
    /// Version of the standard, major and minor.
    pub cryptoki_version: (u8, u8),
    /// Who made the library.
    pub manufacturer: String,
    /// What the library is.
    pub description: String,
    /// Version of the library.
    pub library_version: (u8, u8),
}

/// One entry of `C_GetInterfaceList` (PKCS#11 3.2 §3.6).
#[derive(Clone, Debug)]
pub struct Interface {
    /// `PKCS 11`, or a vendor's.
    pub name: String,
    /// Version of its function list.
    pub version: (u8, u8),
    /// `CKF_INTERFACE_FORK_SAFE`
    pub flags: CK_FLAGS,
}

/// `CK_SLOT_INFO` (PKCS#11 3.2 §3.2).
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// What the slot is.
    pub description: String,
    /// Who made it.
    pub manufacturer: String,
    /// `CKF_TOKEN_PRESENT`, `CKF_REMOVABLE_DEVICE`, `CKF_HW_SLOT`
    pub flags: CK_FLAGS,
}

/// `CK_TOKEN_INFO` (PKCS#11 3.2 §3.2).
#[derive(Clone, Debug)]
pub struct TokenInfo {
    /// The token's label, without its padding.
    pub label: String,
    /// Who made it.
    pub manufacturer: String,
    /// Model.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// `CKF_…` of tokens: initialised, PIN states, login required.
    pub flags: CK_FLAGS,
    /// Open sessions of this application; `None` where the token does not say.
    pub sessions: Option<u64>,
    /// Shortest and longest PIN, in bytes.
    pub pin_lengths: (usize, usize),
}

impl TokenInfo {
    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn has(&self, flags: CK_FLAGS) -> bool {
        self.flags & flags == flags
    }
}

/// `CK_MECHANISM_INFO` (PKCS#11 3.2 §3.5).
#[derive(Clone, Copy, Debug)]
pub struct MechanismInfo {
    /// Smallest key, in the unit that the mechanism uses (bits or bytes).
    pub min_key_size: u64,
    /// Largest key.
    pub max_key_size: u64,
    /// `CKF_ENCRYPT`, `CKF_SIGN`, …
    pub flags: CK_FLAGS,
}

/// `CK_SESSION_INFO` (PKCS#11 3.2 §3.3).
#[derive(Clone, Copy, Debug)]
pub struct SessionInfo {
    /// The slot it was opened on.
    pub slot: SlotId,
    /// `CKS_…`
    pub state: CK_STATE,
    /// `CKF_RW_SESSION`, …
    pub flags: CK_FLAGS,
}

const fn version(version: CK_VERSION) -> (u8, u8) {
    (version.major, version.minor)
}

/// Text in the standard's form: UTF-8, padded with blanks, not terminated.
pub(crate) fn text(padded: &[u8]) -> String {
    let text = String::from_utf8_lossy(padded);
    text.trim_end_matches([' ', '\0']).to_owned()
}

impl From<CK_INFO> for Info {
    fn from(raw: CK_INFO) -> Self {
        Self {
            cryptoki_version: version(raw.cryptokiVersion),
            manufacturer: text(&raw.manufacturerID),
            description: text(&raw.libraryDescription),
            library_version: version(raw.libraryVersion),
        }
    }
}

impl From<CK_SLOT_INFO> for SlotInfo {
    fn from(raw: CK_SLOT_INFO) -> Self {
        Self {
            description: text(&raw.slotDescription),
            manufacturer: text(&raw.manufacturerID),
            flags: raw.flags,
        }
    }
}

impl From<CK_TOKEN_INFO> for TokenInfo {
    fn from(raw: CK_TOKEN_INFO) -> Self {
        Self {
            label: text(&raw.label),
            manufacturer: text(&raw.manufacturerID),
            model: text(&raw.model),
            serial: text(&raw.serialNumber),
            flags: raw.flags,
            sessions: (raw.ulSessionCount != UNAVAILABLE).then_some(raw.ulSessionCount),
            pin_lengths: (length(raw.ulMinPinLen), length(raw.ulMaxPinLen)),
        }
    }
}

impl From<CK_MECHANISM_INFO> for MechanismInfo {
    fn from(raw: CK_MECHANISM_INFO) -> Self {
        Self { min_key_size: raw.ulMinKeySize, max_key_size: raw.ulMaxKeySize, flags: raw.flags }
    }
}

impl From<CK_SESSION_INFO> for SessionInfo {
    fn from(raw: CK_SESSION_INFO) -> Self {
        Self { slot: SlotId(raw.slotID), state: raw.state, flags: raw.flags }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_loses_its_padding_only() {
        assert_eq!(text(b"  a b   "), "  a b");
        assert_eq!(text(b"        "), "");
    }
}
