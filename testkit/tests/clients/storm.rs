// SPDX-License-Identifier: Apache-2.0
//! Servers with our own provider under pressure: clients that reset their connections, and handshakes during reloads and kills. A variable of the
//! environment makes the short form long: METASLOT_RESETS=100000, METASLOT_HANDSHAKES=10000.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, Server, TestToken, check, command, openssl_provider};

use crate::processes::{children_of, until};
use crate::{async_jobs, nginx};

/// How long a long form may take.
const LIMIT: Duration = Duration::from_secs(900);

/// What the environment says, or the short form.
fn number(variable: &str, short: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(short)
}

/// Memory of a process in KiB, and its descriptors.
fn size(pid: u32) -> Result<(u64, usize)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok((kilobytes.context("no VmRSS")?, fs::read_dir(format!("/proc/{pid}/fd"))?.count()))
}

/// Jobs that are lost keep a stack of 32 KiB each, 1,000 at most; the rest is what HAProxy takes for itself.
const MAX_GROWTH: u64 = 80 << 10;

#[test]
fn haproxy_keeps_its_memory_and_serves_when_clients_reset_after_their_first_message() {
    async_jobs::with_haproxy("HAProxy, resets", |token| {
        let resets = number("METASLOT_RESETS", 1200);
        token.limit(LIMIT);
        let haproxy = async_jobs::haproxy(token, "maxconn 2000\n    nbthread 2")?;
        let (server, port) = (&haproxy.0, haproxy.1.to_string());
        async_jobs::served(token, &haproxy)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/openssl-provider");
        let before = size(server.pid())?;
        let (mut rows, began) = (vec![(0, before, 0.0)], Instant::now());
        // Four clients at a time, in ten parts.
        for part in 1..=10 {
            std::thread::scope(|scope| {
                let one = || {
                    let python = token.program("python3").env("OPENSSL_CONF", "/dev/null");
                    let count = (resets / 40).to_string();
                    python.arg(script.join("resets.py")).args([&port, &count]).run()
                };
                let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
                all.into_iter().try_for_each(|one| match one.join() {
                    Ok(done) => done.map(drop).with_context(|| server.log()),
                    Err(_) => anyhow::bail!("panicked"),
                })
            })?;
            let seconds = began.elapsed().as_secs_f64();
            rows.push((part * (resets / 40) * 4, size(server.pid())?, seconds));
        }
        async_jobs::served(token, &haproxy)?;
        let after = size(server.pid())?;
        println!("{:>9} {:>12} {:>12} {:>9}", "resets", "memory, KiB", "descriptors", "seconds");
        for (count, (memory, descriptors), seconds) in rows {
            println!("{count:>9} {memory:>12} {descriptors:>12} {seconds:>9.1}");
        }
        println!("after 24 pages {} KiB, {} descriptors", after.0, after.1);
        let grown = after.0.saturating_sub(before.0);
        ensure!(grown < MAX_GROWTH, "{grown} KiB more than before");
        ensure!(after.1 < before.1 + 100, "{} descriptors, and there were {}", after.1, before.1);
        Ok(())
    });
}

/// Connections that a killed worker had, by the last number of its own address and the client's port, and when workers that had such a one
/// were killed, in seconds since 1970: ports are used again.
type Killed = BTreeMap<Connection, Vec<f64>>;
type Connection = (u8, u16);

fn now() -> Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}

/// A process's connections.
fn connections_of(pid: u32, port: u16) -> Vec<Connection> {
    let opened = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let sockets: Vec<String> = opened
        .filter_map(|entry| fs::read_link(entry.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let sockets: std::collections::BTreeSet<String> = sockets.into_iter().collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let own = format!(":{port:04X}");
    let connection = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, .., inode] = fields.get(..10)? else { return None };
        let is_it = local.ends_with(&own) && sockets.contains(*inode);
        let port = u16::from_str_radix(remote.rsplit_once(':')?.1, 16).ok()?;
        // The address is a number of this machine's: its last byte comes first.
        is_it.then_some((u8::from_str_radix(local.get(..2)?, 16).ok()?, port))
    };
    table.lines().filter_map(connection).collect()
}

/// Loads the configuration anew and kills a worker, once a second until it is over.
fn trouble(server: &Server, port: u16, over: &AtomicBool) -> Result<(Killed, usize, usize)> {
    let (mut killed, mut reloads, mut kills) = (Killed::new(), 0, 0);
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(500));
        server.signal("HUP")?;
        reloads += 1;
        std::thread::sleep(Duration::from_millis(500));
        let workers: Vec<u32> = children_of(server, "www-data")?.into_iter().collect();
        let Some(worker) = workers.get(kills % workers.len().max(1)) else { continue };
        let signal =
            |name: &str| Program::new("kill").args(["-s", name, &worker.to_string()]).run();
        // One that was asked to end may have ended.
        if signal("STOP").is_err() {
            continue;
        }
        // Until it has stopped, it accepts more.
        let status = format!("/proc/{worker}/status");
        let stands = || {
            Ok(fs::read_to_string(&status)
                .map_or(true, |text| !text.contains("State:\tR") && !text.contains("State:\tS")))
        };
        until("a worker does not stop", stands)?;
        let at = now()?;
        for one in connections_of(*worker, port) {
            killed.entry(one).or_default().push(at);
        }
        kills += usize::from(signal("KILL").is_ok());
    }
    Ok((killed, reloads, kills))
}

/// nginx with some workers of another user, whose key is in the token.
fn nginx_with_many(token: &mut TestToken, connections: usize) -> Result<(Server, u16)> {
    token.key_pair("rsa:2048", "01", "site")?;
    token.share("www-data")?;
    async_jobs::configure(token, "")?;
    let uri = "pkcs11:token=testing;object=site;type=private";
    let request = token.program("openssl").line("req -new -x509 -subj /CN=localhost -addext");
    request.arg("subjectAltName=DNS:localhost").line("-out site.pem -key").arg(uri).run()?;
    token.program("openssl").line("pkey -out site.key -in").arg(uri).run()?;
    let home = token.home().display();
    let main = format!(
        "env METASLOT_CONF;\nenv OPENSSL_CONF;\nworker_rlimit_nofile {};\n",
        connections + 1024
    );
    // Each address has a queue of its own of connections that no worker has accepted yet.
    let more: String =
        (2..=4).map(|last| format!("listen 127.0.0.{last}:PORT ssl backlog=4096;\n")).collect();
    let server = format!(
        "{more}ssl_protocols TLSv1.3;\nssl_certificate {home}/site.pem;\nssl_certificate_key {home}/site.key;"
    );
    // One worker may have them all, and where fewer than a sixteenth is free it gives up some that wait.
    nginx::start_with(token, &main, &server, [4, 2 * connections + 128])
}

#[test]
fn nginx_fails_no_handshake_of_workers_that_live_during_reloads_and_kills() {
    let (provider, command) = (openssl_provider(), command());
    let needs = ["nginx", "openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/ssl.h"];
    check(
        "nginx, our provider",
        "reloads and kills",
        &[&needs[..], &[&provider, &command]].concat(),
        |token| {
            let concurrent = number("METASLOT_HANDSHAKES", 300);
            token.limit(LIMIT);
            let source =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/openssl-provider/storm.c");
            let gcc = token
                .program("gcc")
                .line("-std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -O2 -o storm");
            gcc.arg(source).line("-lssl -lcrypto").run()?;
            let (server, port) = nginx_with_many(token, concurrent)?;
            let (over, began) = (AtomicBool::new(false), Instant::now());
            let total = (concurrent * 3).to_string();
            let (said, made) = std::thread::scope(|scope| {
                let made = scope.spawn(|| trouble(&server, port, &over));
                let clients = token.program("./storm").env("OPENSSL_CONF", "/dev/null");
                let said = clients
                    .args([&port.to_string(), "site.pem", &concurrent.to_string(), &total])
                    .run();
                over.store(true, Ordering::Relaxed);
                (said, made.join())
            });
            let (killed, reloads, kills) = made.map_err(|_| anyhow::anyhow!("panicked"))??;
            let said = said?.text();
            let seconds = began.elapsed().as_secs_f64();
            let done = said.lines().last().unwrap_or_default();
            println!(
                "{concurrent} at a time, {total} in all, {seconds:.1} s: {reloads} reloads, {kills} workers killed with {} connections",
                killed.values().map(Vec::len).sum::<usize>()
            );
            println!("good, failed, and median, 99 of 100 and longest in ms: {done}");
            let unexplained = said.lines().filter(|line| is_unexplained(line, &killed));
            let unexplained: Vec<&str> = unexplained.collect();
            ensure!(
                unexplained.is_empty(),
                "{} failed that no killed worker had: {:?}\n{}",
                unexplained.len(),
                &unexplained[..unexplained.len().min(10)],
                fs::read_to_string(token.path("error.log"))
                    .unwrap_or_default()
                    .lines()
                    .rev()
                    .take(20)
                    .collect::<Vec<_>>()
                    .join("\n")
            );
            ensure!(
                reloads > 0 && kills > 0 && done.starts_with("done "),
                "{reloads} {kills} {done}"
            );
            Ok(())
        },
    );
}

/// Whether it is a failure of a connection that no worker had which was killed some seconds before.
fn is_unexplained(line: &str, killed: &Killed) -> bool {
    let Some(line) = line.strip_prefix("failed ") else { return false };
    let mut fields = line.split(' ');
    let address = fields.next().and_then(|field| field.parse().ok());
    let port = fields.next().and_then(|field| field.parse().ok());
    let at: Option<f64> = fields.next().and_then(|field| field.parse().ok());
    let (Some(address), Some(port), Some(at)) = (address, port, at) else { return true };
    let mut times = killed.get(&(address, port)).into_iter().flatten();
    !times.any(|killed| (0.0..60.0).contains(&(at - killed)))
}
