// SPDX-License-Identifier: Apache-2.0
//! Real programs with the module: one file per client. Each check has a token of its own.
#![forbid(unsafe_code)]

mod apache;
mod async_jobs;
mod bad_input;
mod binary_curves;
mod bpftrace;
mod bridged;
mod c_program;
mod curl;
mod daemon;
mod examples;
mod git;
mod gnupg;
mod gnutls;
mod go;
mod java;
mod knot;
mod kssl;
mod nginx;
mod node;
mod nss;
mod opensc;
mod openssh;
mod openssl;
mod openssl_provider;
mod openssl_provider_all;
mod openssl_provider_bulk;
mod openssl_provider_files;
mod openssl_provider_node;
mod openvpn;
mod osslsigncode;
mod p11_kit;
mod postgresql;
mod processes;
mod provider;
mod pykcs11;
mod python_pkcs11;
mod recipe;
mod rust_cryptoki;
mod served;
mod servers;
mod setup;
mod storm;
mod strongswan;
mod stunnel;
