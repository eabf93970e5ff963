// SPDX-License-Identifier: Apache-2.0
//! An OpenSSL of our own behind safe functions: nothing of PKCS#11 is known here.
//!
//! It is linked statically with hidden symbols, and is not the libcrypto that the process may have. It reads no file, makes
//! no thread and registers nothing for the process's end. Its random bytes come from AWS-LC, what holds keys lies
//! in protected memory, and what it must keep over a fork lies outside of that.
#![cfg(feature = "library")]
