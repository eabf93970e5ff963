// SPDX-License-Identifier: Apache-2.0
//! The vectors that judge the provider over AWS-LC, for the lanes'.

#[path = "../../awslc/tests/ml_dsa.rs"]
mod tests;

use metaslot_lanes::provider::Lanes;

static PROVIDER: Lanes = Lanes::beside(&metaslot_awslc::AWSLC);
