// SPDX-License-Identifier: Apache-2.0
//! One call that does what others do together: an `Init` function and the one after it, by our own interface, which counts what they
//! count; and encapsulation.

#[expect(dead_code, reason = "this file uses its own part")]
mod harness;

use harness::{Home, program};
use metaslot_ck::{CKM_AES_GCM, CKM_SHA256, CKM_SHA256_HMAC, Function};
use metaslot_counters::read;
use std::fs;

#[test]
fn one_call_does_and_counts_what_two_do() {
    let home = Home::new("whole");
    let runtime = home.path().join("run/metaslot");
    fs::create_dir_all(&runtime).unwrap();
    let variables = [("XDG_RUNTIME_DIR", runtime.parent().unwrap().as_os_str())];
    let said = home.run_with(&program("whole"), &[], &variables);
    let said: Vec<u64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let pages = fs::read_dir(&runtime).unwrap().flatten().map(|entry| entry.path());
    let mut pages = pages.filter(|file| file.extension().is_some_and(|end| end == "counters"));
    let page = read::process(&pages.next().expect("the program's page")).unwrap();
    let done = |mechanism| {
        let cells = page.operations.iter().filter(|(kind, _)| kind.mechanism == mechanism);
        cells.fold([0, 0], |[all, wrong], (_, cell)| [all + cell.operations, wrong + cell.errors])
    };
    assert_eq!((done(CKM_SHA256), done(CKM_AES_GCM)), ([said[0], 0], [said[1], said[2]]));
    assert_eq!(done(CKM_SHA256_HMAC), [said[3], 0]);
    let calls = |function| page.calls.iter().find(|row| row.0 == function).unwrap().1;
    // One more digest was in parts; and of each there were some that were refused.
    let (begun, done) = (calls(Function::DigestInit), calls(Function::Digest));
    assert_eq!((begun.calls - 1, begun.errors), (done.calls, 0));
    // One more MAC was in parts; three calls of one call were refused, of which one asked again with more room.
    let (begun, done) = (calls(Function::SignInit), calls(Function::Sign));
    assert_eq!((begun.calls - 1, done.errors), (done.calls, 3));
    // One of them was of no operation that there is: nothing has begun.
    assert_eq!(
        (calls(Function::EncryptInit).calls + 1, 6),
        (calls(Function::Encrypt).calls, calls(Function::Encrypt).errors)
    );
}

#[test]
fn what_is_encapsulated_is_what_is_decrypted_and_derived() {
    Home::new("carried").run(&program("agreed_or_carried"), &[]);
}
