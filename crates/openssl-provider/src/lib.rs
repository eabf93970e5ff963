// SPDX-License-Identifier: Apache-2.0
//! `metaslot.so`: a provider for OpenSSL 3.0 and later whose keys stay in PKCS#11 tokens.
//!
//! It speaks PKCS#11 to our module or to any other. Of libcrypto it uses nothing but the provider interface, whose functions come as
//! pointers: none is linked. `abi` is the edge, `edge` has the functions and tables that libcrypto calls, the other files are what they do.

mod abi;
mod bulk;
mod cipher;
mod edge;
mod exchange;
mod failure;
mod generate;
mod hash;
mod host;
mod hybrid;
mod kem;
mod key;
mod kind;
mod message;
mod operation;
mod own;
mod pausing;
mod pem;
mod pin;
mod provider;
mod pss;
mod public;
mod sign;
mod store;
mod text;
