// SPDX-License-Identifier: Apache-2.0
//! A short run of each target, the same each time. `METASLOT_FUZZ_INPUTS` makes it longer, `METASLOT_FUZZ_SEED` another one.

use metaslot_fuzz::{TARGETS, mutate};
use metaslot_testkit::apart;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn short_run(name: &str) {
    let target = TARGETS.into_iter().find(|target| target.name == name).expect("it is a target");
    let inputs = number("METASLOT_FUZZ_INPUTS").and_then(|inputs| usize::try_from(inputs).ok());
    let seed = number("METASLOT_FUZZ_SEED").unwrap_or(1);
    let harm = mutate::run(target, inputs.unwrap_or(target.inputs), seed);
    assert_eq!(harm, Ok(()));
}

#[test]
fn no_template_harms() {
    short_run("template");
}

#[test]
fn no_mechanism_parameter_harms() {
    short_run("parameter");
}

#[test]
fn no_configuration_harms() {
    short_run("configuration");
}

#[test]
fn no_der_harms() {
    short_run("der");
}

#[test]
fn no_uri_harms() {
    short_run("uri");
}

#[test]
fn no_row_harms() {
    short_run("row");
}

#[test]
fn no_lane_of_shared_memory_harms() {
    short_run("lane");
}

/// In a process of its own, with a token in which every key is tried.
#[test]
fn no_key_file_harms() {
    let work = || {
        short_run("keyfile");
        Ok(())
    };
    apart("metaslot", "read damaged files of keys", "no_key_file_harms", |_| Ok(()), work);
}
