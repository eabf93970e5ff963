// SPDX-License-Identifier: Apache-2.0
//! Jobs of OpenSSL's in which our own provider pauses: programs with an event loop fill the lanes. Every signature is checked, and the module has
//! to have counted batches.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Progress, Template};
use metaslot_testkit::{
    Output, Server, TestToken, apart, check, command, free_port, openssl_provider, user_session,
};

use crate::{nginx, openssl_provider as own, processes};

const CLIENT: &str = "OpenSSL's jobs, our provider";

/// What the program is built from.
const NEEDS: [&str; 4] = ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/async.h"];

/// libcrypto for programs that have it in themselves.
const STATIC: &str = "/usr/lib/x86_64-linux-gnu/libcrypto.a";

/// Signatures of one batch in the mean, over all kernels: a batch has one at least.
fn fill(token: &TestToken) -> Result<f64> {
    let stat = token.program(&command()).line("stat --json").run()?;
    let stat: serde_json::Value = serde_json::from_slice(&stat.stdout)?;
    let running = stat["processes"].as_array().into_iter().flatten();
    let events = running.chain([&stat["ended"]]).filter_map(|page| page["events"].as_array());
    let rows: Vec<_> = events.flatten().collect();
    let sum = |name: &str| -> u64 {
        rows.iter().filter(|row| row["event"] == name).filter_map(|row| row["count"].as_u64()).sum()
    };
    Ok(sum("lane-batched") as f64 / (sum("lane-batch") as f64).max(1.0))
}

/// Whether this processor has the kernels for such keys.
fn has_lanes() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("avx512ifma"))
}

/// The provider's configuration, with jobs or without.
pub(crate) fn configure(token: &mut TestToken, jobs: &str) -> Result<()> {
    own::configure(token)?;
    let file = token.path("openssl.cnf");
    let text = fs::read_to_string(&file)?;
    token.write("openssl.cnf", text.replace("pin-source = ", &format!("{jobs}\npin-source = ")))?;
    Ok(())
}

/// Builds the program and has it do `what` with a key of `kind`; how many jobs paused.
fn pauses(token: &TestToken, what: &str, kind: &str) -> Result<Output> {
    own::compile(token, "jobs")?;
    token.key_pair(kind, "01", "site")?;
    token.program("./jobs").args([what, "pkcs11:token=testing;object=site;type=private"]).run()
}

/// How many jobs pause that do `what`, where the key's kernel is there.
fn paused(what: &str, kind: &str, jobs: &'static str, expected: u32) {
    let (provider, command) = (openssl_provider(), command());
    let needs = [&NEEDS[..], &[&provider, &command]].concat();
    check(CLIENT, &format!("{what}, {kind}, {jobs}"), &needs, |token| {
        configure(token, jobs)?;
        if what == "full" && !token.is_ours() {
            // SoftHSM opens a file for each object.
            return Ok(());
        }
        let output = pauses(token, what, kind)?;
        if token.is_ours() && has_lanes() {
            output.with(&[&format!("{expected} pauses")])?;
            let fill = fill(token)?;
            ensure!(what != "sign" || expected == 0 || fill > 4.0, "batches of {fill}");
        }
        Ok(())
    });
}

/// A job's stack is so small that a module would write over what lies below it.
#[test]
fn jobs_fill_the_lanes_and_keep_to_their_small_stacks() {
    paused("sign", "rsa:2048", "async-jobs = yes", 256);
    paused("sign", "EC:secp384r1", "async-jobs = yes", 256);
}

/// Such a program shows no jobs: nothing pauses, and the module is called on a larger stack all the same.
#[test]
fn jobs_of_a_static_libcrypto_are_not_seen_and_keep_to_their_small_stacks() {
    let (provider, command) = (openssl_provider(), command());
    let needs = [&NEEDS[..], &[&provider, &command, STATIC]].concat();
    check(CLIENT, "sign, a static libcrypto", &needs, |token| {
        configure(token, "async-jobs = yes")?;
        let source = "../testdata/openssl-provider/jobs.c";
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let gcc = token.program("gcc").line("-std=c11 -D_DEFAULT_SOURCE -o jobs").arg(source);
        gcc.arg(STATIC).line("-lpthread -ldl").run()?;
        token.key_pair("EC:secp384r1", "01", "site")?;
        let key = "pkcs11:token=testing;object=site;type=private";
        token.program("./jobs").args(["sign", key]).run()?.with(&["0 pauses"]).map(|_| ())
    });
}

#[test]
fn nothing_pauses_that_gains_too_little_or_is_not_asked_for() {
    paused("sign", "EC:prime256v1", "async-jobs = yes", 0);
    paused("sign", "EC:secp384r1", "async-jobs = no", 0);
    paused("sign", "rsa:2048", "", 0);
}

#[test]
fn jobs_that_cannot_pause_sign_at_once_and_leave_no_descriptor() {
    paused("full", "rsa:2048", "async-jobs = yes", 0);
    paused("block", "rsa:2048", "async-jobs = yes", 0);
}

#[test]
fn a_child_does_its_parents_jobs_anew() {
    paused("fork", "rsa:2048", "async-jobs = yes", 256);
}

#[test]
fn a_signature_whose_session_went_meanwhile_is_made_with_another() {
    // Which pauses, too.
    paused("lose", "rsa:2048", "async-jobs = yes", 512);
}

#[test]
fn an_event_loop_that_is_told_by_edges_is_told_of_each_pause() {
    paused("edge", "rsa:2048", "async-jobs = yes", 512);
}

#[test]
fn jobs_that_are_given_up_take_what_they_may_and_then_nothing_pauses() {
    paused("abandon", "rsa:2048", "async-jobs = yes", 1000);
}

#[test]
fn a_configuration_that_means_neither_is_refused() {
    let provider = openssl_provider();
    check(CLIENT, "neither yes nor no", &["openssl", "pkcs11-tool", &provider], |token| {
        configure(token, "async-jobs = perhaps")?;
        let asked = || token.program("openssl").line("storeutl -noout pkcs11:token=testing");
        let refused = asked().output()?;
        let why = "wrong configuration::-1:pkcs11:token=testing: async-jobs = perhaps: it is 'no' or 'yes'";
        ensure!(refused.told().contains(why), "{}", refused.told());
        let text = fs::read_to_string(token.path("openssl.cnf"))?.replace("perhaps", "yes");
        token.write("openssl.cnf", text)?;
        asked().output()?.with(&["there is no such object"])?;
        Ok(())
    });
}

/// HAProxy with these lines among its global ones, its key in the token; the module is loaded.
pub(crate) fn haproxy(token: &mut TestToken, lines: &str) -> Result<(Server, u16)> {
    token.key_pair("rsa:2048", "01", "site")?;
    configure(token, "async-jobs = yes")?;
    let uri = "pkcs11:token=testing;object=site;type=private";
    let request = token.program("openssl").line("req -new -x509 -subj /CN=localhost -addext");
    let request = request.arg("subjectAltName=DNS:localhost").line("-out site.pem -key");
    request.arg(uri).run()?;
    token.program("openssl").line("pkey -out site.key -in").arg(uri).run()?;
    let read = |name: &str| fs::read_to_string(token.path(name));
    let both = token.write("both.pem", read("site.pem")? + &read("site.key")?)?;
    let port = free_port()?;
    let text = format!(
        "global\n    ssl-mode-async\n    {lines}\ndefaults\n    mode http\n    timeout client 20s\n    \
         timeout server 20s\n    timeout connect 20s\nfrontend site\n    bind 127.0.0.1:{port} ssl crt {}\n    \
         http-request return status 200 content-type text/plain string \"from the server\"\n",
        both.display()
    );
    let file = token.write("haproxy.cfg", text)?;
    // A soft limit below what it needs, as systemd sets it.
    let haproxy = token.program("prlimit").args(["--nofile=40:", "haproxy", "-db", "-f"]);
    Ok((haproxy.arg(file).serve(port, token.home())?, port))
}

/// Many at once.
pub(crate) fn served(token: &TestToken, (server, port): &(Server, u16)) -> Result<()> {
    let fetched = processes::at_once(token, 24, |token, time| {
        let answer = nginx::fetch(token, *port, ["--tlsv1.3", "--tls-max 1.2"][time % 2])?;
        ensure!(answer == "from the server", "{answer}");
        Ok(())
    });
    fetched.with_context(|| server.log())
}

pub(crate) fn with_haproxy(what: &str, work: impl Fn(&mut TestToken) -> Result<()>) {
    let (provider, command) = (openssl_provider(), command());
    let needs = ["openssl", "pkcs11-tool", "haproxy", "curl", "python3", "prlimit"];
    check(CLIENT, what, &[&needs[..], &[&provider, &command]].concat(), |token| work(token));
}

#[test]
fn haproxy_fills_the_lanes_and_stands_clients_that_reset() {
    with_haproxy("HAProxy, ssl-mode-async", |token| {
        let haproxy = haproxy(token, "maxconn 500\n    nbthread 2")?;
        served(token, &haproxy)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/openssl-provider");
        let resets = token.program("python3").env("OPENSSL_CONF", "/dev/null");
        let resets = resets.arg(script.join("resets.py")).args([&haproxy.1.to_string(), "200"]);
        resets.run().with_context(|| haproxy.0.log())?;
        served(token, &haproxy)?;
        let descriptors = fs::read_dir(format!("/proc/{}/fd", haproxy.0.pid()))?.count();
        ensure!(descriptors < 100, "{descriptors} descriptors are left");
        if token.is_ours() && has_lanes() {
            let called = own::counted(token)?;
            ensure!(called.get("CKM_SHA256_RSA_PKCS_PSS") >= Some(&48), "{called:?}");
            let stat = token.program(&command()).line("stat --json").run()?;
            ensure!(stat.text().contains("C_AsyncComplete"), "no job paused: {}", stat.text());
        }
        Ok(())
    });
}

/// It raises its limit to the descriptors that it counts, and ours lie above: there is none, and signatures are made at once.
#[test]
fn haproxy_without_descriptors_to_spare_goes_on() {
    with_haproxy("HAProxy, few descriptors", |token| {
        let haproxy = haproxy(token, "maxconn 20\n    nbthread 1")?;
        served(token, &haproxy)?;
        served(token, &haproxy)
    });
}

#[test]
fn a_pending_signature_is_completed_or_dropped() {
    let name = "async_jobs::a_pending_signature_is_completed_or_dropped";
    apart(
        "The client crate",
        "pending signatures",
        name,
        |_| Ok(()),
        || {
            let (module, session) = user_session()?;
            if !module.is_metaslot() {
                return Ok(());
            }
            let slot = *module.slots(true)?.first().context("no slot")?;
            let public = Template::new().ulong(CKA_MODULUS_BITS, 2048);
            let made = Mechanism::new(CKM_RSA_PKCS_KEY_PAIR_GEN);
            let (_, key) = session.generate_key_pair(&made, &public, &Template::new())?;
            let mechanism = Mechanism::new(CKM_SHA256_RSA_PKCS);
            let mut pending = Vec::new();
            for number in 0..12 {
                let asynchronous = module.open_async_session(slot)?;
                match asynchronous.sign_begin(&mechanism, key, &[number], 256)? {
                    Progress::Pending(signature) => pending.push((number, signature)),
                    Progress::Done(_, signature) => drop(signature?),
                }
            }
            ensure!(pending.len() == 12 || !has_lanes(), "{} are pending", pending.len());
            // One that waits for others, and some between them.
            pending.retain(|(number, _)| number % 3 != 0);
            for (number, signature) in pending {
                let mut progress = signature.complete();
                while let Progress::Pending(signature) = progress {
                    progress = signature.complete();
                }
                let Progress::Done(asynchronous, signature) = progress else { continue };
                ensure!(signature? == session.sign(&mechanism, key, &[number])?, "{number}");
                let Progress::Done(asynchronous, short) =
                    asynchronous.sign_begin(&mechanism, key, &[number], 255)?
                else {
                    bail!("it is pending with too little room");
                };
                ensure!(
                    short.is_err_and(|error| error.code == Error::BUFFER_TOO_SMALL),
                    "a signature"
                );
                drop(asynchronous.sign_begin(&mechanism, key, &[number], 256)?);
            }
            Ok(())
        },
    );
}
