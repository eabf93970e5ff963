// SPDX-License-Identifier: Apache-2.0
//! Keeps AWS-LC's allocation hooks to ourselves.
//!
//! They must have their plain names to be found by AWS-LC, and a library exports such names; a host
//! with another copy of that library would then allocate through us. One reference to a symbol that
//! says "hidden" makes the linker hide it in whichever crate it is defined.

use std::arch::global_asm;

global_asm!(
    ".hidden OPENSSL_memory_alloc",
    ".hidden OPENSSL_memory_free",
    ".hidden OPENSSL_memory_get_size",
    ".hidden OPENSSL_memory_realloc",
    ".hidden sdallocx",
    ".pushsection .note.metaslot.hidden, \"\", %progbits",
    ".quad OPENSSL_memory_alloc",
    ".quad OPENSSL_memory_free",
    ".quad OPENSSL_memory_get_size",
    ".quad OPENSSL_memory_realloc",
    ".quad sdallocx",
    ".popsection",
);
