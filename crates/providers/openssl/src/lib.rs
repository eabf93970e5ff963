// SPDX-License-Identifier: Apache-2.0
//! The provider over OpenSSL: one request at a time, on the thread that calls.
#![forbid(unsafe_code)]
#![cfg(feature = "library")]
