// SPDX-License-Identifier: Apache-2.0
//! Random numbers of a module, through the provider that it is.

use metaslot_ck::Error;
use metaslot_foreign::{Config, ForeignStore, Serves, open};
use metaslot_spi::detail;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(work: &mut dyn FnMut()) {
    work();
}

/// Where the module is told what to do.
const ORDERS: &str = "FAKE_ORDERS";

/// Runs this test with a directory for the module's orders.
fn again() {
    let name = format!("random-{}", std::process::id());
    let orders = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir(&orders).expect("a directory");
    let own = std::env::current_exe().expect("this program");
    let done = Command::new(own).env(ORDERS, &orders).status().expect("it runs");
    std::fs::remove_dir_all(&orders).expect("its own directory");
    assert!(done.success(), "failed with a module");
}

/// Compiles the testkit's module that does what files in this directory say.
fn module(directory: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (source, include) = (root.join("testkit/tests/foreign/fake.c"), root.join("include"));
    let file = directory.join("fake.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-shared", "-fPIC", "-I"]).arg(include).arg("-o").arg(&file);
    assert!(gcc.arg(source).arg("-ldl").status().expect("there is gcc").success(), "not compiled");
}

#[test]
fn random_numbers_are_a_modules_or_an_error() {
    let Some(orders) = std::env::var_os(ORDERS).map(PathBuf::from) else { return again() };
    module(&orders);
    let config = |serves| Config {
        isolation: None,
        name: String::from("fake"),
        module: orders.join("fake.so"),
        pin_source: None,
        trusted: true,
        parameters: None,
        without: Vec::new(),
        serves,
    };
    let (tokens, missing) = open(&config(Serves { digest: false, random: true }), run);
    assert_eq!(missing, None);
    let provider = tokens.iter().find_map(ForeignStore::provider).expect("it gives random numbers");
    assert!(provider.algorithms().is_empty(), "digests were not wanted");
    let random = || {
        let mut bytes = [0; 32];
        provider.random(&mut bytes).map(|()| bytes)
    };
    assert_ne!(random(), random());
    for (order, how, code) in [
        ("random-fails", "error", Error::DEVICE_ERROR),
        ("random-fails", "removed", Error::DEVICE_REMOVED),
        ("random-fails", "own code", Error::DEVICE_ERROR),
        ("random-silent", "", Error::DEVICE_ERROR),
    ] {
        std::fs::write(orders.join(order), how).expect("a file");
        assert_eq!(random(), Err(code), "{order}");
        // An IV, say: so few zeros could be chance.
        assert_eq!(provider.random(&mut [0; 12]), Err(code), "{order}");
        detail::with(|said| assert!(said.starts_with("fake: "), "{said}"));
        std::fs::remove_file(orders.join(order)).expect("the file");
        assert!(random().is_ok(), "after {order}");
        let mut few = [0; 12];
        assert!(provider.random(&mut few).is_ok() && few != [0; 12], "after {order}");
    }
    drop(tokens);
    let (tokens, _) = open(&config(Serves::default()), run);
    assert!(tokens.iter().all(|token| token.provider().is_none()), "it was not asked to");
}
