// SPDX-License-Identifier: Apache-2.0
//! What a program is told whose identity is revoked while it is logged in, when it has the token by our module.

use crate::common::{Place, SO, USER, configured, initialized, itself, pairs, started};
use metaslot_ck::*;
use metaslot_client::{Access, Module, Result as Called, Template, User};
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Role, Store as _};
use metaslot_testkit::{module_path, not_run};
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};

/// Names the module in the process that the test below starts.
const MODULE: &str = "METASLOT_TEST_REVOKED";
const WEB: &[u8] = b"web-pin-1";

/// Logs in by the identity's PIN, and says once it has read a line what becomes of that.
#[test]
fn client() {
    let Some(module) = env::var_os(MODULE) else { return };
    let module = Module::load(module).expect("it is loaded");
    module.initialize().expect("it begins");
    let slot = module.slots(true).expect("its slots")[0];
    let session = module.open_session(slot, Access::ReadWrite).expect("a session");
    session.login_user("web", WEB).expect("the PIN");
    let find = || session.find(&Template::new().class(CKO_PRIVATE_KEY));
    let state = || session.info().expect("it is open").state;
    let code = |done: Called<()>| done.map_err(|failure| failure.code.to_string());
    println!("\n=> {} {}", find().expect("a search").len(), state() == CKS_RW_USER_FUNCTIONS);
    std::io::stdin().lines().next();
    for _ in 0..2 {
        println!(
            "\n=> {:?}",
            find().map(|all| all.len()).map_err(|failure| failure.code.to_string())
        );
    }
    println!("\n=> {}", state() == CKS_RW_PUBLIC_SESSION);
    println!("\n=> {:?}", code(session.set_pin(WEB, b"another-pin")));
    println!("\n=> {:?}", code(session.login(User::User, USER)));
}

#[test]
fn a_program_whose_identity_is_revoked_is_told_that_it_is_logged_out() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "a revoked identity", "there is no libmetaslot.so");
    };
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    let officer = |asked| {
        let asked = Examination::Identities(asked);
        place.store().examine(Role::So, SO, asked, &mut |_| true).expect("the officer's PIN");
    };
    let web = Name::new(b"web").expect("a name");
    officer(Identities::Add(web, NewPin(WEB)));
    configured(&place);
    let _server = started(&place);
    let mut client = itself(&place, "revoked::client", (MODULE, module));
    let mut asks = client.0.stdin.take().expect("a pipe");
    let lines = BufReader::new(client.0.stdout.take().expect("a pipe")).lines();
    let mut answers = lines.filter_map(|line| line.ok()?.strip_prefix("=> ").map(str::to_owned));
    assert_eq!(answers.next().as_deref(), Some("2 true"));
    officer(Identities::Revoke(web));
    asks.write_all(b"\n").expect("it reads");
    let ended = "Err(\"CKR_USER_NOT_LOGGED_IN\")";
    assert_eq!(Vec::from_iter(answers), [ended, ended, "true", ended, "Ok(())"]);
    let row = place.store().token().expect("there is a token");
    assert_eq!(row.user.failures, 0, "its PIN is tried as the user's");
}
