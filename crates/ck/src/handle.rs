// SPDX-License-Identifier: Apache-2.0
//! Handles as types: no arithmetic, no conversion into each other.

use std::fmt;

macro_rules! handle {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

handle!(ObjectHandle, "Names an object for one process (PKCS#11 3.2 §4.4).");
handle!(SessionHandle, "Names a session of one process (PKCS#11 3.2 §3.3).");
handle!(SlotId, "Names a slot; small and stable, in the order of the configuration.");
