// SPDX-License-Identifier: Apache-2.0
//! AES in its modes (PKCS#11 3.2 §6.13–§6.19); one file per mode.

mod gcm;

use metaslot_engine::provider::Algorithm;

/// One row per mode.
pub(crate) const ROWS: [Algorithm; 1] = [gcm::ROW];
