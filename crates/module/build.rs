// SPDX-License-Identifier: Apache-2.0
//! How the module is linked: it is never unloaded (other threads' ends and forks call into it). That only the
//! functions of the standard are visible is the compiler's own doing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for option in ["-znodelete", "-znow", "-zrelro", "-zdefs", "-soname=libmetaslot.so"] {
        println!("cargo::rustc-cdylib-link-arg=-Wl,{option}");
    }
}
