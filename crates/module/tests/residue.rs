// SPDX-License-Identifier: Apache-2.0
//! What calls leave of secrets: in memory, on the host's stack and in registers. Programs in C, run against the built library.

#[expect(dead_code, reason = "this file uses its own part")]
mod harness;

use harness::{Home, program, program_with};
use std::fs;

#[test]
fn no_copy_of_a_key_outlives_it() {
    println!("{}", Home::new("memory").run(&program("memory"), &[]));
}

/// With each of the C library's ways to copy, and with and without kernels of our own.
#[test]
fn what_is_left_in_registers_and_on_the_stack_is_no_secret() {
    // Where there is no AVX registers are not wiped.
    if !has_avx() {
        return metaslot_testkit::not_run("module", "lazily bound functions", "there is no AVX");
    }
    let program = program_with("lazily_bound", "lazily_bound", &["-Wl,-z,lazy"]);
    let home = Home::new("lazily-bound");
    let token = home.path().join("token.db");
    let less =
        ["", "lanes_without = [\"avx512\"]\n", "lanes_without = [\"avx2\"]\n", "lanes = false\n"];
    for (at, less) in less.into_iter().enumerate() {
        let file = home.path().join(format!("{at}.toml"));
        let token = format!("[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n");
        fs::write(&file, format!("{less}{token}")).unwrap();
        for copies in ["", "-AVX512VL,-AVX512F", "-AVX512VL,-AVX512F,-AVX2,-AVX2_Usable"] {
            let copies = format!("glibc.cpu.hwcaps={copies}");
            let variables =
                [("METASLOT_CONF", file.as_os_str()), ("GLIBC_TUNABLES", copies.as_ref())];
            println!("{}", home.run_with(&program, &[], &variables));
        }
    }
}

#[test]
fn what_is_left_on_the_stack_depends_on_no_key() {
    println!("{}", Home::new("key-dependent").run(&program("key_dependent"), &[]));
}

fn has_avx() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx");
    #[cfg(not(target_arch = "x86_64"))]
    false
}
