// SPDX-License-Identifier: Apache-2.0
//! The vectors that judge the provider over AWS-LC, for this one; what this one does not have is done by that one.

#[path = "../../awslc/tests/symmetric.rs"]
mod tests;

use metaslot_kernel::Kernel;

static PROVIDER: Kernel = Kernel::beside(&metaslot_awslc::AWSLC);
