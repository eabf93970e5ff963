// SPDX-License-Identifier: Apache-2.0
//! Which ciphers there are.

use std::ffi::CStr;

/// AES in a mode, or ChaCha20-Poly1305.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "names of modes")]
pub enum Mode {
    Ecb,
    Cbc,
    Ctr,
    Cfb,
    Gcm,
    Ccm,
    Xts,
    Wrap,
    WrapPad,
    ChaCha20Poly1305,
}

impl Mode {
    /// How many there are.
    pub const COUNT: usize = Self::ChaCha20Poly1305 as usize + 1;
}

/// Each with the length of its key, in bytes, and what OpenSSL calls it.
pub(crate) const CIPHERS: [(Mode, usize, &CStr); 27] = [
    (Mode::Ecb, 16, c"AES-128-ECB"),
    (Mode::Ecb, 24, c"AES-192-ECB"),
    (Mode::Ecb, 32, c"AES-256-ECB"),
    (Mode::Cbc, 16, c"AES-128-CBC"),
    (Mode::Cbc, 24, c"AES-192-CBC"),
    (Mode::Cbc, 32, c"AES-256-CBC"),
    (Mode::Ctr, 16, c"AES-128-CTR"),
    (Mode::Ctr, 24, c"AES-192-CTR"),
    (Mode::Ctr, 32, c"AES-256-CTR"),
    (Mode::Cfb, 16, c"AES-128-CFB"),
    (Mode::Cfb, 24, c"AES-192-CFB"),
    (Mode::Cfb, 32, c"AES-256-CFB"),
    (Mode::Gcm, 16, c"AES-128-GCM"),
    (Mode::Gcm, 24, c"AES-192-GCM"),
    (Mode::Gcm, 32, c"AES-256-GCM"),
    (Mode::Ccm, 16, c"AES-128-CCM"),
    (Mode::Ccm, 24, c"AES-192-CCM"),
    (Mode::Ccm, 32, c"AES-256-CCM"),
    (Mode::Xts, 32, c"AES-128-XTS"),
    (Mode::Xts, 64, c"AES-256-XTS"),
    (Mode::Wrap, 16, c"AES-128-WRAP"),
    (Mode::Wrap, 24, c"AES-192-WRAP"),
    (Mode::Wrap, 32, c"AES-256-WRAP"),
    (Mode::WrapPad, 16, c"AES-128-WRAP-PAD"),
    (Mode::WrapPad, 24, c"AES-192-WRAP-PAD"),
    (Mode::WrapPad, 32, c"AES-256-WRAP-PAD"),
    (Mode::ChaCha20Poly1305, 32, c"ChaCha20-Poly1305"),
];

impl Mode {
    /// Whether only whole blocks come out of it.
    pub(crate) const fn has_blocks(self) -> bool {
        matches!(self, Self::Ecb | Self::Cbc)
    }
}
