// SPDX-License-Identifier: Apache-2.0
//! Keys of one-time keys and of one-time passwords: none is used twice, whatever becomes of threads, processes and files. Programs in C,
//! run against the built library.

#[expect(dead_code, reason = "this file uses its own part")]
mod harness;

use harness::{Home, program, program_with};
use std::fs;

#[test]
fn one_time_keys_sign_once_and_stay() {
    Home::new("hss").run(&program("hss"), &[]);
}

#[test]
fn one_time_keys_of_xmss_sign_once_and_stay() {
    Home::new("xmss").run(&program("xmss"), &[]);
}

#[test]
fn no_one_time_key_signs_twice_whatever_happens_to_processes() {
    // METASLOT_KILLS=1000 kills so many, and takes minutes.
    let kills = std::env::var("METASLOT_KILLS").unwrap_or_else(|_| String::from("20"));
    let program = program("one_time_processes");
    for kind in ["hss", "xmssmt", "hotp"] {
        println!("{}", Home::new(&format!("processes-{kind}")).run(&program, &[&kills, kind]));
    }
}

#[test]
fn a_process_signs_once_though_an_older_store_is_put_back() {
    let program = program("put_back");
    for kind in ["hss", "xmss", "xmssmt", "hotp"] {
        let home = Home::new(&format!("put-back-{kind}"));
        let token = home.path().join(".local/share/metaslot/token.db");
        home.run(&program, &[token.to_str().unwrap(), kind]);
    }
}

#[test]
fn a_key_in_the_row_of_one_that_an_older_store_does_not_have_is_itself() {
    let home = Home::new("another-row");
    let token = home.path().join(".local/share/metaslot/token.db");
    home.run(&program("another_row"), &[token.to_str().unwrap()]);
}

#[test]
fn the_end_of_an_object_does_not_take_one_that_an_older_store_has_in_its_row() {
    let home = Home::new("destroyed-row");
    let token = home.path().join(".local/share/metaslot/token.db");
    home.run(&program("destroyed_row"), &[token.to_str().unwrap()]);
}

#[test]
fn what_waits_while_its_token_is_restored_uses_no_count_of_before() {
    let home = Home::new("restored-meanwhile");
    let token = home.path().join(".local/share/metaslot/token.db");
    let files = [token, home.path().join("copy")];
    home.run(&program("restored_meanwhile"), &files.each_ref().map(|file| file.to_str().unwrap()));
}

#[test]
fn threads_use_up_a_key_of_one_time_keys_and_lose_none() {
    let program = program("one_time_threads");
    for kind in ["hss", "xmss"] {
        Home::new(&format!("threads-{kind}")).run(&program, &[kind]);
    }
}

#[test]
fn what_a_restored_key_has_used_is_said_before_it_goes_on() {
    let program = program("restored");
    for kind in ["hss", "xmss", "xmssmt"] {
        let home = Home::new(&format!("restored-{kind}"));
        let file = home.path().join("metaslot.toml");
        let token = |name: &str| format!("[[token]]\npath = {:?}\n", home.path().join(name));
        fs::write(&file, ["a/token", "b/token", "c/token"].map(token).concat()).unwrap();
        let copy = home.path().join("copy");
        let variables = [("METASLOT_CONF", file.as_os_str())];
        home.run_with(&program, &[copy.to_str().unwrap(), kind], &variables);
    }
}

#[test]
fn an_anchor_does_not_go_back_to_what_is_written_in_files_that_lost_their_names() {
    let home = Home::new("anchor-race");
    let [store, anchor] = ["store", "anchor"].map(|name| home.path().join(name));
    let file = home.path().join("metaslot.toml");
    let path = store.join("token.db");
    fs::write(&file, format!("[[token]]\npath = {path:?}\nanchor = {anchor:?}\n")).unwrap();
    fs::write(&anchor, "").unwrap();
    let program = program_with("anchor_race", "anchor_race", &["-rdynamic"]);
    let arguments = [store.to_str().unwrap(), anchor.to_str().unwrap()];
    home.run_with(&program, &arguments, &[("METASLOT_CONF", file.as_os_str())]);
}

#[test]
fn a_copy_without_its_mark_is_not_given_away() {
    let (home, program) =
        (Home::new("lost-mark"), program_with("lost_mark", "lost_mark", &["-rdynamic"]));
    home.run(&program, &[home.path().join("copy").to_str().unwrap()]);
}

#[test]
fn each_one_time_password_comes_out_once() {
    let vectors = include_str!("../../../testdata/rfc/hotp.json");
    let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
    let home = Home::new("hotp");
    let file = home.path().join("metaslot.toml");
    let token = |name: &str| format!("[[token]]\npath = {:?}\n", home.path().join(name));
    fs::write(&file, ["a/token", "b/token"].map(token).concat()).unwrap();
    let copy = home.path().join("copy");
    let mut arguments = vec![copy.to_str().unwrap()];
    let vectors = vectors["vectors"].as_array().unwrap();
    arguments.extend(vectors.iter().map(|vector| vector["password"].as_str().unwrap()));
    let variables = [("METASLOT_CONF", file.as_os_str())];
    home.run_with(&program("hotp"), &arguments, &variables);
}
