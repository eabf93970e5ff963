// SPDX-License-Identifier: Apache-2.0
//! What the library's failures become.

use metaslot_ck::Error;

/// For failures that no input explains.
pub(crate) fn device_error(_: metaslot_openssl_wrapper::Failed) -> Error {
    Error::DEVICE_ERROR
}
