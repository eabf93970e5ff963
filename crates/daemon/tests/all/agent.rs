// SPDX-License-Identifier: Apache-2.0
//! OpenSSH's programs with keys of a token, through the agent's door.

use crate::common::{Place, USER, fence, initialized, unlimited};
use metaslot_ck::*;
use metaslot_daemon::agent;
use metaslot_engine::Engine;
use metaslot_spi::{Params, RawValue, Template};
use metaslot_testkit::not_run;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

const CURVES: [(&str, &[u8]); 3] = [
    ("p256", &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]),
    ("p384", &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22]),
    ("p521", &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23]),
];
const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];

/// A pair on the token, whose label is its identifier.
fn pair(
    engine: &Engine,
    session: SessionHandle,
    label: &str,
    mechanism: u64,
    more: &[(u64, &[u8])],
) {
    let bytes = |value: &[u8]| RawValue::Bytes(value.to_vec());
    let common = || -> Template {
        vec![
            (CKA_TOKEN, bytes(&[1])),
            (CKA_LABEL, bytes(label.as_bytes())),
            (CKA_ID, bytes(label.as_bytes())),
        ]
    };
    let mut public = common();
    public.extend(more.iter().map(|(attribute, value)| (*attribute, bytes(value))));
    engine.generate_key_pair(session, mechanism, Params::None, public, common()).expect(label);
}

/// A token with a key of each kind, and an agent that was logged in.
fn served() -> (Place, PathBuf) {
    let place = Place::new();
    initialized(&place);
    let engine = place.engine();
    let session = engine.open_session(SlotId(0), CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let session = session.expect("a session opens");
    engine.login(session, CKU_USER, USER).expect("the user logs in");
    let bits = 2048_u64.to_ne_bytes();
    pair(&engine, session, "rsa", CKM_RSA_PKCS_KEY_PAIR_GEN, &[(CKA_MODULUS_BITS, &bits)]);
    for (label, curve) in CURVES {
        pair(&engine, session, label, CKM_EC_KEY_PAIR_GEN, &[(CKA_EC_PARAMS, curve)]);
    }
    pair(&engine, session, "ed25519", CKM_EC_EDWARDS_KEY_PAIR_GEN, &[(CKA_EC_PARAMS, ED25519)]);
    let socket = place.path().join("agent");
    let client = unlimited(engine);
    let listener = UnixListener::bind(&socket).expect("a socket is made");
    let directory = place.path().to_owned();
    thread::spawn(move || {
        fence(&directory);
        thread::scope(|scope| {
            for stream in listener.incoming().flatten() {
                scope.spawn(|| agent::serve(stream, &client));
            }
        });
    });
    (place, socket)
}

fn is_installed() -> bool {
    let programs = ["/usr/bin/ssh-add", "/usr/bin/ssh-keygen"];
    let missing = programs.iter().find(|file| !Path::new(file).exists());
    let told =
        |file: &&&str| not_run("metaslotd", "programs of others", &format!("there is no {file}"));
    missing.inspect(told).is_none()
}

fn run(place: &Place, socket: &Path, program: &str, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(program);
    command.current_dir(place.path()).env("SSH_AUTH_SOCK", socket).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it is installed");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).ok();
    let output = child.wait_with_output().expect("it ends");
    let (told, error) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8_lossy(told).into_owned()
}

#[test]
fn openssh_lists_keys_of_the_token_and_signs_by_each() {
    if !is_installed() {
        return;
    }
    let (place, socket) = served();
    let listed = run(&place, &socket, "/usr/bin/ssh-add", &["-L"], "");
    assert_eq!(listed.lines().count(), 5, "{listed}");
    for line in listed.lines() {
        let label = line.split(' ').nth(2).expect("a comment");
        let file = format!("{label}.pub");
        fs::write(place.path().join(&file), line).expect("a file is written");
        // It signs by the agent and verifies by itself.
        run(&place, &socket, "/usr/bin/ssh-add", &["-T", &file], "");
        let sign = ["-Y", "sign", "-f", &file, "-n", "file"];
        let signature = run(&place, &socket, "/usr/bin/ssh-keygen", &sign, "some words");
        fs::write(place.path().join("signature"), signature).expect("a file is written");
        let check = ["-Y", "check-novalidate", "-n", "file", "-s", "signature"];
        let told = run(&place, &socket, "/usr/bin/ssh-keygen", &check, "some words");
        assert!(told.contains("Good"), "{label}: {told}");
    }
}

#[test]
fn what_is_no_request_of_the_agents_is_answered_by_failure() {
    let (place, socket) = served();
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("an agent is there");
    let mut ask = |message: &[u8]| {
        let length = u32::try_from(message.len()).expect("short").to_be_bytes();
        stream.write_all(&[&length, message].concat()).expect("it is sent");
        let mut length = [0; 4];
        stream.read_exact(&mut length).expect("an answer");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut answer).expect("an answer");
        answer
    };
    let sign = [&[13, 0, 0, 0, 3][..], b"key", &[0, 0, 0, 1, 7, 0, 0, 0, 0]].concat();
    let mut refused = vec![vec![], vec![0], vec![11, 0], vec![17], vec![27, 0, 0, 0, 0], vec![13]];
    refused.extend((1..=sign.len()).map(|length| sign[..length].to_vec()));
    refused.push([13].into_iter().chain([0xff; 8]).collect());
    for message in refused {
        assert_eq!(ask(&message), [5], "{message:?}");
    }
    assert_eq!(ask(&[11])[..5], [12, 0, 0, 0, 5]);
    stream.write_all(&[0xff; 4]).expect("it is sent");
    stream.read_to_end(&mut Vec::new()).ok();
    drop(place);
}
