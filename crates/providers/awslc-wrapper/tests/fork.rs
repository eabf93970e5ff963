// SPDX-License-Identifier: Apache-2.0
//! Random bytes on both sides of a fork. One at a time: a fork while another test's thread makes its
//! generator would inherit AWS-LC's lock held, which is what the module's fork gate is for.

use metaslot_awslc_wrapper::fork::{before, in_child};
use metaslot_awslc_wrapper::random;
use std::sync::Mutex;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn in_forked_child(body: impl FnOnce() -> bool) {
    // SAFETY: the child uses this crate's own state and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let fine = body();
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    let mut status = -1;
    // SAFETY: `status` is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}

fn sixteen() -> [u8; 16] {
    let mut bytes = [0; 16];
    random::fill(&mut bytes).expect("there are random bytes");
    bytes
}

#[test]
fn parent_and_child_have_different_random_bytes() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    sixteen();
    let (reader, mut writer) = std::io::pipe().unwrap();
    before();
    in_forked_child(|| std::io::Write::write_all(&mut writer, &sixteen()).is_ok());
    let mut childs = [0; 16];
    std::io::Read::read_exact(&mut { reader }, &mut childs).unwrap();
    assert_ne!(childs, sixteen());
    assert_ne!(childs, [0; 16]);
}

#[test]
fn an_unannounced_child_has_random_bytes_too() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    sixteen();
    in_forked_child(|| {
        in_child();
        sixteen() != sixteen()
    });
    assert_ne!(sixteen(), sixteen());
}

#[test]
fn children_of_children_work_while_other_threads_did() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let (start, stop) = (std::sync::Barrier::new(4), std::sync::Barrier::new(4));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                sixteen();
                start.wait();
                stop.wait();
            });
        }
        start.wait();
        before();
        in_forked_child(|| {
            sixteen();
            before();
            in_forked_child(|| sixteen() != [0; 16]);
            sixteen() != [0; 16]
        });
        stop.wait();
    });
}
