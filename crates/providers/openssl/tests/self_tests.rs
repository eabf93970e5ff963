// SPDX-License-Identifier: Apache-2.0
//! OpenSSL passes the self tests that its rows have before they are used: the answers are those of the plain provider.
#![cfg(feature = "library")]

use metaslot_awslc::AWSLC;
use metaslot_ck::mechanism_name;
use metaslot_openssl::OPENSSL;
use metaslot_router::{Routes, Settings};
use metaslot_spi::provider::Provider;

static BOTH: [&dyn Provider; 2] = [&OPENSSL, &AWSLC];

#[test]
fn every_row_computes_what_is_known() {
    let tests = Routes::new(&BOTH, Settings::default()).self_tests();
    let wrong = tests.iter().filter(|test| !matches!(test.right, Ok(Some(true) | None)));
    let shown = wrong.map(|test| (test.provider, mechanism_name(test.mechanism), test.right));
    assert_eq!(shown.collect::<Vec<_>>(), []);
    let tested = tests.iter().filter(|test| test.provider == 0 && test.right == Ok(Some(true)));
    println!("{} tests", tested.count());
}
