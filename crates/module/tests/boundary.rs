// SPDX-License-Identifier: Apache-2.0
//! The C boundary: programs in C, compiled with our header, run against the built `libmetaslot.so`.
//!
//! A program passes when it ends with 0, in time, without a byte on standard error and, unless it
//! makes a token, without a file in its home.

mod harness;

use harness::{Home, program};

#[test]
fn every_end_of_process_thread_and_library_is_survived_a_hundred_times() {
    let lifecycle = program("lifecycle");
    harness::shared_library("destructor");
    let variants = [
        "atexit-before",
        "atexit-after",
        "finalize-atexit-before",
        "finalize-atexit-after",
        "library-before",
        "library-after",
        "exit-in-thread",
        "return-while-working",
        "finalize-while-working",
        "finalize-and-initialize-while-working",
        "finalize-in-thread-return-in-main",
        "dlclose-before-finalize",
        "dlclose-after-finalize",
        "dlclose-while-working",
        "load-again",
        "finalize-twice",
        "fork-under-four-threads",
        "threads-end",
        "thread-destructor-before",
        "wait-for-slot-event",
    ];
    for variant in variants {
        let home = Home::new(variant);
        for _ in 0..harness::rounds() {
            home.run(&lifecycle, &[variant]);
        }
        home.assert_empty();
    }
}

#[test]
fn no_argument_crashes_any_function() {
    harness::write_function_table();
    let home = Home::new("arguments");
    let said = home.run(&program("arguments"), &[]);
    println!("{said}");
    let functions = metaslot_ck::Function::ALL.len();
    assert!(said.contains(&format!("of {functions} functions")), "{said}");
}

#[test]
fn a_forked_child_begins_anew_and_the_parent_goes_on() {
    Home::new("fork").run(&program("fork"), &[]);
}

#[test]
fn three_hundred_cycles_keep_memory_and_descriptors_as_they_are() {
    println!("{}", Home::new("cycles").run(&program("cycles"), &[]));
}
