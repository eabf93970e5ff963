// SPDX-License-Identifier: Apache-2.0
//! How the module is linked: only the functions of the standard are visible, and it is never
//! unloaded (other threads' ends and forks call into it).

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let script = Path::new(&out).join("exports.map");
    // Beside the compiler's own list of exports, which has the same functions: this one also hides
    // what C objects bring along.
    fs::write(&script, "{ global: C_*; local: *; };\n").expect("OUT_DIR can be written");
    for option in [
        format!("--version-script={}", script.display()),
        String::from("-znodelete"),
        String::from("-znow"),
        String::from("-zrelro"),
        String::from("-zdefs"),
        String::from("-soname=libmetaslot.so"),
    ] {
        println!("cargo::rustc-cdylib-link-arg=-Wl,{option}");
    }
}
