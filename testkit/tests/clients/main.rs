// SPDX-License-Identifier: Apache-2.0
//! Real programs with the module: one file per client. Each check has a token of its own.
#![forbid(unsafe_code)]

mod binary_curves;
mod bpftrace;
mod c_program;
mod curl;
mod java;
mod opensc;
mod openssh;
mod openssl;
mod pykcs11;
mod rust_cryptoki;
