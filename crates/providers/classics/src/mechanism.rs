// SPDX-License-Identifier: Apache-2.0
//! What a mechanism is: a cipher in a mode.

use crate::ciphers::Cipher;
use metaslot_ck::CK_MECHANISM_TYPE;

/// What a mechanism does with its cipher.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// A key is made.
    Generate,
    /// Each block on its own.
    Ecb,
    /// Blocks chained.
    Cbc,
    /// Blocks chained, padded (PKCS#7).
    CbcPad,
    /// A counter is encrypted.
    Ctr,
    /// What was encrypted last, or that of the last time, is encrypted again: a whole block of it, or one byte.
    Stream(Feedback, usize),
    /// The last block of a chain is a MAC: half of it, or as much as is said.
    Mac,
    /// Said.
    MacGeneral,
    /// CMAC (SP 800-38B): all of it, or as much as is said.
    Cmac,
    /// Said.
    CmacGeneral,
    /// A key is derived by encrypting data, chained where there is an IV.
    Data,
}

/// One mechanism.
#[derive(Debug)]
pub(crate) struct Use {
    /// `CKM_…`
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) cipher: &'static Cipher,
    pub(crate) mode: Mode,
}

/// What is encrypted next where a cipher makes a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Feedback {
    /// What was sealed (CFB).
    Cipher,
    /// What the cipher made (OFB).
    Output,
}
