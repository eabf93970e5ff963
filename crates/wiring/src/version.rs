// SPDX-License-Identifier: Apache-2.0
//! Versions, as the standard writes them.

use metaslot_ck::CK_VERSION;

/// 2.40
pub const V2_40: CK_VERSION = CK_VERSION { major: 2, minor: 40 };
/// 3.0
pub const V3_0: CK_VERSION = CK_VERSION { major: 3, minor: 0 };
/// 3.2
pub const V3_2: CK_VERSION = CK_VERSION { major: 3, minor: 2 };

/// Of a slot's hardware, where there is none.
pub const NONE: CK_VERSION = CK_VERSION { major: 0, minor: 0 };

/// Ours.
pub const LIBRARY: CK_VERSION = CK_VERSION {
    major: number(env!("CARGO_PKG_VERSION_MAJOR")),
    minor: number(env!("CARGO_PKG_VERSION_MINOR")),
};

/// Who made this.
pub const MANUFACTURER: &str = "Metaslot";

const fn number(text: &str) -> u8 {
    match u8::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version that does not fit into CK_VERSION"),
    }
}
