// SPDX-License-Identifier: Apache-2.0
//! What others have written to judge a module: each suite runs whole, and `testdata/suites` says of every test that does not pass
//! why. A test that passes and is in that list fails here, too, and so does one that is no longer run.
#![forbid(unsafe_code)]

mod crypto11;
mod judged;
mod pkcs11_check;
mod python_pkcs11;
mod rust_cryptoki;
