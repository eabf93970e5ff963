// SPDX-License-Identifier: Apache-2.0
//! What each client did is counted where others read it, and kept by service when it has gone.

use crate::common::Raw;
use crate::service::{Daemon, opened, place};
use metaslot_ck::CKF_SERIAL_SESSION;
use metaslot_counters::clients::{Count, Level, Server, User, served};
use metaslot_testkit::{module_path, not_run};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What the daemon's file says, as soon as it says what is waited for.
pub(crate) fn said(counters: &Path, is_so: impl Fn(&Server) -> bool) -> Server {
    let begun = Instant::now();
    loop {
        let all = served(&[counters.to_owned()]);
        match all.into_iter().next() {
            Some(server) if is_so(&server) => return server,
            other => assert!(begun.elapsed() < Duration::from_secs(10), "{other:?}"),
        }
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_operator_sees_what_each_client_does_and_which_limits_it_met() {
    let place = place();
    let counters = place.path().join("counters");
    fs::create_dir(&counters).expect("it is made");
    let file = place.path().join("metaslotd.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    let text = text.replace("counters = false", &format!("counters = \"{}\"", counters.display()));
    let text = text.replace("[daemon]\n", "[daemon]\nconnections = 2\nmemory = 1\n");
    fs::write(&file, text).expect("it is written");
    let _daemon = Daemon::start(place.path());
    let (mut raw, session) = opened(&place, 0);
    let open = |raw: &mut Raw, slot| {
        raw.number(10, |request| {
            [slot, CKF_SERIAL_SESSION].into_iter().for_each(|one| request.number(one))
        })
    };
    open(&mut raw, 77).expect_err("there is no such slot");
    let bytes = raw.call(64, |request| {
        request.number(session);
        request.half(16);
    });
    bytes.expect("there are random numbers");
    while open(&mut raw, 0).is_ok() {}
    let server = said(&counters, |server| server.clients.len() == 1);
    let [client] = &server.clients[..] else { panic!("one client") };
    let user = User::Local(rustix::process::geteuid().as_raw());
    assert_eq!((client.number, client.user), (1, user));
    assert_eq!(client.process, std::process::id());
    let counts =
        [Count::Errors, Count::NoMemory, Count::Operations].map(|one| client.counts.of(one));
    assert_eq!(counts, [2, 1, 1]);
    let levels = [Level::Sessions, Level::Memory, Level::Allowed].map(|one| client.level(one));
    assert_eq!(levels, [128, 1 << 20, 1 << 20]);
    let calls = client.counts.of(Count::Calls);
    assert!(calls > levels[0] && client.counts.of(Count::Sent) > calls);
    the_command_shows(place.path(), &counters);
    // One that says what is no message, and one too many.
    let socket = place.path().join("socket");
    let mut wrong = UnixStream::connect(&socket).expect("it listens");
    wrong.write_all(&[2]).expect("it reads");
    wrong.read_exact(&mut [0]).expect("it answers");
    let mut third = UnixStream::connect(&socket).expect("it listens");
    assert_eq!(third.read(&mut [0]).expect("it ends"), 0);
    wrong.write_all(&[0xff; 64]).expect("it reads");
    said(&counters, |server| server.clients.len() == 1);
    drop(raw);
    let server = said(&counters, |server| server.clients.is_empty());
    let [service] = &server.services[..] else { panic!("one service") };
    assert_eq!((service.user, service.connections, service.connected), (user, 2, 0));
    let counts = [Count::Calls, Count::GivenUp, Count::Refused].map(|one| service.counts.of(one));
    assert_eq!(counts, [calls, 1, 1]);
}

/// What `metaslot stat` says of the client, and of its service.
fn the_command_shows(place: &Path, counters: &Path) {
    let Some(program) = module_path().map(|module| module.with_file_name("metaslot")) else {
        return not_run("metaslotd", "its clients in stat", "there is no libmetaslot.so");
    };
    if !program.exists() {
        return not_run("metaslotd", "its clients in stat", "there is no command");
    }
    let file = place.join("stat.toml");
    let text = format!("counters = \"{}\"\n", counters.display());
    fs::write(&file, text).expect("it is written");
    let said = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        let output = command.arg("stat").args(arguments).env("METASLOT_CONF", &file).output();
        let output = output.expect("it is built");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    };
    let text = said(&[]);
    assert!(text.contains(": 1 connected\nUSER ") && text.contains("\n\nCONNECTION "), "{text}");
    let json = said(&["--json"]);
    let compact = json.split_whitespace().collect::<String>();
    for part in ["\"servers\":[{", "\"no_memory\":1", "\"sessions\":128", "\"operations\":1"] {
        assert!(compact.contains(part), "{part} in {json}");
    }
    let collected = said(&["--prometheus"]);
    let user = Command::new("id").arg("-nu").output().expect("it is installed").stdout;
    let user = String::from_utf8(user).expect("it is text");
    let series = format!("metaslot_client_no_memory_total{{user=\"{}\",unit=\"", user.trim());
    assert!(collected.contains(&series), "{collected}");
    assert!(collected.lines().filter(|line| line.starts_with(&series)).count() == 1);
}
