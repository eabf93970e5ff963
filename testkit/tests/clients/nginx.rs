// SPDX-License-Identifier: Apache-2.0
//! nginx: the master loads the module as root, its workers are forked and give up root's rights, and a reload forks new ones.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Server, TestToken, check, free_port};

use crate::openssl;
use crate::processes::{children_of, until, without};
use crate::recipe;

const CLIENT: &str = "nginx, engine pkcs11";
const NEEDS: &[&str] = &["nginx", "curl", "openssl", "pkcs11-tool"];

/// Two workers of another user; `main` and `server` are what the token needs in the two places.
pub(crate) fn start(token: &TestToken, main: &str, server: &str) -> Result<(Server, u16)> {
    start_with(token, main, server, [2, 64])
}

/// The same with so many workers, of so many connections each.
pub(crate) fn start_with(
    token: &TestToken,
    main: &str,
    server: &str,
    [workers, connections]: [usize; 2],
) -> Result<(Server, u16)> {
    let (port, home) = (free_port()?, token.home().display());
    let server = server.replace("PORT", &port.to_string());
    token.write(
        "nginx.conf",
        format!(
            "daemon off;\nuser www-data;\nworker_processes {workers};\npid {home}/nginx.pid;\nerror_log {home}/error.log;\n\
             env SOFTHSM2_CONF;\n{main}\n\
             events {{ worker_connections {connections}; }}\nhttp {{\naccess_log off;\n\
             client_body_temp_path {home}/tmp;\nproxy_temp_path {home}/tmp;\nfastcgi_temp_path {home}/tmp;\n\
             uwsgi_temp_path {home}/tmp;\nscgi_temp_path {home}/tmp;\n\
             server {{ listen 127.0.0.1:{port} ssl backlog=4096;\nssl_session_tickets off;\n{server}\n\
             location / {{ return 200 \"worker $pid\\n\"; }} }} }}\n"
        ),
    )?;
    let nginx = token.program("nginx").arg("-e").arg(token.path("error.log"));
    let server = nginx.arg("-c").arg(token.path("nginx.conf")).serve(port, token.home())?;
    Ok((server, port))
}

/// Each of the two workers serves, while the other one stands still, and has given up root's rights.
pub(crate) fn both_serve(token: &TestToken, server: &Server, port: u16) -> Result<()> {
    let mut children = children_of(server, "www-data")?;
    // It listens before the second one is there.
    until("it does not have two workers", || {
        children = children_of(server, "www-data")?;
        Ok(children.len() == 2)
    })?;
    for other in &children {
        let answer = without(*other, || fetch(token, port, ""))?;
        let pid = answer.strip_prefix("worker ").and_then(|pid| pid.trim().parse().ok());
        let pid = pid.with_context(|| answer.clone())?;
        ensure!(children.contains(&pid) && pid != *other, "{answer} of {children:?}");
    }
    Ok(())
}

/// What a new connection is answered.
pub(crate) fn fetch(token: &TestToken, port: u16, more: &str) -> Result<String> {
    let curl = token.program("curl").env("OPENSSL_CONF", "/dev/null");
    let output = curl
        .args(["--silent", "--show-error", "--cacert", "site.pem", "--max-time", "20"])
        .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
        .line(more)
        .arg(format!("https://localhost:{port}/"))
        .run()?;
    Ok(output.text())
}

fn workers(token: &TestToken, port: u16) -> Result<BTreeSet<String>> {
    let mut workers = BTreeSet::new();
    for version in ["--tlsv1.3", "--tls-max 1.2"].repeat(8) {
        let answer = fetch(token, port, version)?;
        ensure!(answer.starts_with("worker "), "{answer}");
        workers.insert(answer);
    }
    Ok(workers)
}

/// New workers take the place of the old ones, and serve.
pub(crate) fn reload(token: &TestToken, server: &Server, port: u16) -> Result<()> {
    let before = workers(token, port)?;
    server.signal("HUP")?;
    // Until the old ones have gone.
    let is_new = |worker: &String| !before.contains(worker);
    for _ in 0..50 {
        let after = workers(token, port)?;
        if after.iter().all(is_new) {
            return children_of(server, "www-data").map(drop);
        }
    }
    anyhow::bail!("the reload made no new workers: {before:?}")
}

fn serves(what: &str, kind: &str, summary: &str) {
    check(CLIENT, what, NEEDS, |token| {
        token.key_pair(kind, "01", "site")?;
        token.share("www-data")?;
        token.spy()?;
        openssl::configure(token)?;
        openssl::certificate(token, "site", "site.pem")?;
        token.spied()?;
        let certificate = token.path("site.pem").display().to_string();
        let changes = [("user www-data;\n", ""), ("/etc/nginx/site.pem", &*certificate)];
        let page = recipe::block(token, "nginx", 0, &changes)?;
        let (main, rest) = page.split_once("http {").context("no http")?;
        let rest = rest.split_once("listen 443 ssl;").context("no server")?.1;
        let directives = rest.split_once('}').context("no end")?.0;
        let (server, port) = start(token, main, directives)?;
        both_serve(token, &server, port)?;
        reload(token, &server, port)?;
        drop(server);
        token.called(summary)
    });
}

#[test]
fn workers_without_rights_serve_an_rsa_key_before_and_after_a_reload() {
    serves("two workers, a reload, RSA", "rsa:2048", "nginx");
}

#[test]
fn workers_without_rights_serve_a_p256_key_before_and_after_a_reload() {
    serves("two workers, a reload, P-256", "EC:prime256v1", "nginx-ec");
}
