// SPDX-License-Identifier: Apache-2.0
//! At which sizes each mechanism is measured.

use crate::speed::part::{Function, Job, Key};
use metaslot_ck::CK_MECHANISM_TYPE;

/// What is signed with a private key, or encrypted with a public one, in bytes.
pub(super) const ONCE: usize = 32;
/// Sizes of everything else.
pub(super) const SIZES: [usize; 5] = [16, 256, 8 << 10, 64 << 10, 1 << 20];

/// The jobs of one mechanism and function: one for each size, or one.
pub(super) fn jobs(mechanism: CK_MECHANISM_TYPE, function: Function) -> Option<Vec<Job>> {
    let once = Job::usual(mechanism, function, ONCE)?;
    Some(match once.key {
        Key::None | Key::Secret(..) => SIZES.map(|bytes| Job { bytes, ..once }).to_vec(),
        _ => vec![once],
    })
}

pub(super) const MECHANISM: &str = "mechanism";

pub(super) const FUNCTION: &str = "function";

pub(super) const BYTES: &str = "bytes";

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_ECDH1_DERIVE, CKM_ECDSA, CKM_SHA256};

    #[test]
    fn public_key_operations_have_one_size_and_the_others_five() {
        assert_eq!(jobs(CKM_ECDSA, Function::Sign).unwrap().len(), 1);
        assert_eq!(jobs(CKM_SHA256, Function::Digest).unwrap().len(), 5);
        assert!(jobs(CKM_ECDH1_DERIVE, Function::Sign).is_none());
    }
}
