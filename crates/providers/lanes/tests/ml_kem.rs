// SPDX-License-Identifier: Apache-2.0
//! The vectors that judge the provider over AWS-LC, for the lanes'; without their instructions they are done by that one.

#[path = "../../awslc/tests/ml_kem.rs"]
mod tests;

use metaslot_lanes::provider::Lanes;

static PROVIDER: Lanes = Lanes::beside(&metaslot_awslc::AWSLC);
