// SPDX-License-Identifier: Apache-2.0
//! What the kernel's errors become.

use metaslot_ck::Error;
use metaslot_kernel_wrapper::Errno;
use metaslot_spi::detail;

/// For failures that no input explains: another provider can do it.
pub(crate) fn device_error(error: Errno) -> Error {
    detail::set(format_args!("the kernel's cryptography: {error}"));
    match error {
        Errno::NOMEM | Errno::NOBUFS => Error::DEVICE_MEMORY,
        _ => Error::DEVICE_ERROR,
    }
}
