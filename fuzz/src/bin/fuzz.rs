// SPDX-License-Identifier: Apache-2.0
//! A target under libFuzzer: `METASLOT_FUZZ_TARGET` names it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metaslot_fuzz::{TARGETS, Target};
use std::sync::OnceLock;

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("METASLOT_FUZZ_TARGET").unwrap_or_default();
        TARGETS.into_iter().find(|target| target.name == name).expect("there is no such target")
    });
    (target.run)(bytes);
});
