// SPDX-License-Identifier: Apache-2.0
//! How the provider is linked: it is never unloaded, for a module that it loaded may have threads' ends and forks to
//! look after. Nothing of libcrypto is linked: its functions come as pointers.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for option in ["-znodelete", "-znow", "-zrelro", "-zdefs", "-soname=metaslot.so"] {
        println!("cargo::rustc-cdylib-link-arg=-Wl,{option}");
    }
}
