// SPDX-License-Identifier: Apache-2.0
//! Files of keys, as `metaslot key import` reads them. In a process with a token of a test's what they hold is decrypted and
//! tried in it; elsewhere what needs no module is read.

use crate::input::Seen;
use metaslot_client::{Module, Session};
use metaslot_testkit::{is_inside, user_session};
use std::cell::OnceCell;

/// That of the files in the corpus.
const PASSPHRASE: &[u8] = b"a phrase";
/// They cost less.
const ITERATIONS: u64 = 25_000;

thread_local! {
    static TOKEN: OnceCell<Option<(Module, Session)>> = const { OnceCell::new() };
}

pub(crate) fn run(bytes: &[u8]) -> u64 {
    let mut seen = Seen::default();
    TOKEN.with(|token| {
        let made = || is_inside().then(|| user_session().expect("the token of the test opens"));
        let session = token.get_or_init(made).as_ref().map(|(_, session)| session);
        // OpenSSH's is no DER: in base64 alone little of it would be reached.
        for label in [None, Some("OPENSSH PRIVATE KEY")] {
            let tried = metaslot_cli::tried(session, (PASSPHRASE, ITERATIONS), label, bytes);
            if let Err(said) = &tried {
                check(said);
            }
            seen.note(tried);
        }
    });
    seen.finish()
}

/// What is said is a message, and holds nothing of the file that a terminal would obey.
fn check(said: &str) {
    for line in said.lines() {
        let is_known = ["error: ", "hint: ", "detail: "].iter().any(|head| line.starts_with(head));
        assert!(is_known && !line.chars().any(char::is_control), "{said:?}");
    }
}
