// SPDX-License-Identifier: Apache-2.0
//! `metaslot ksslcfg`: a plain server behind HAProxy or nginx, whose key is in the token.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use metaslot_testkit::{Program, TestToken, check, command, free_port, openssl_provider};

use crate::nginx;

const CLIENT: &str = "metaslot ksslcfg";

/// A proxy that goes with its test.
struct Proxy<'a> {
    token: &'a TestToken,
    port: u16,
}

impl Drop for Proxy<'_> {
    fn drop(&mut self) {
        drop(
            ksslcfg(self.token, "delete --directory kssl localhost")
                .arg(self.port.to_string())
                .output(),
        );
    }
}

fn ksslcfg(token: &TestToken, line: &str) -> Program {
    // By its old name, as a link has it.
    token.program("ksslcfg").line(line)
}

/// How often the token has signed for the proxy.
fn signatures(token: &TestToken, server: &str) -> Result<u64> {
    let stat = token.program(&command()).line("stat --json").run()?;
    let document: serde_json::Value =
        serde_json::from_slice(&stat.stdout).context("read the counters")?;
    let processes = document["processes"].as_array().into_iter().flatten();
    let its = processes.filter(|page| page["program"] == server);
    let rows = its.filter_map(|page| page["operations"].as_array()).flatten();
    let signed = rows.filter(|row| row["mechanism"].as_str().is_some_and(|it| it.contains("RSA")));
    Ok(signed.filter_map(|row| row["operations"].as_u64()).sum())
}

/// Two connections, the second of which resumes the session of the first.
fn resumes(token: &TestToken, port: u16, version: &str) -> Result<()> {
    for (more, expected) in [("-sess_out session", "New, "), ("-sess_in session", "Reused, ")] {
        let client = token.program("openssl").env("OPENSSL_CONF", "/dev/null");
        client
            .line("s_client -ign_eof -verify_return_error -CAfile site.pem -connect")
            .arg(format!("127.0.0.1:{port}"))
            .line(version)
            .line(more)
            .input("GET / HTTP/1.0\r\n\r\n")
            .run()?
            .with(&[expected, "from the plain server"])?;
    }
    Ok(())
}

/// Its processes, which have given up root's rights.
fn users(token: &TestToken, port: u16) -> Result<String> {
    let file = token.path(&format!("kssl/localhost-{port}.run/pid"));
    let pid = std::fs::read_to_string(file).context("it has written its number")?;
    let ps = token.program("ps").line("-o user= -p").arg(pid.trim()).run()?;
    Ok(ps.text().trim().to_owned())
}

/// That a connection is refused, at once. Where tests beside this one have every port of a client's in use, none is tried, and this waits.
fn is_refused(port: u16) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => bail!("something still serves port {port}"),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) if Instant::now() > end => return Err(error).context("connect"),
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn proxies(server: &str, user: &str) {
    let (command, provider) = (command(), openssl_provider());
    let needs = [server, "curl", "openssl", "python3", "pkcs11-tool", &*command, &*provider];
    check(CLIENT, server, &needs, |token| {
        token.key_pair("rsa:2048", "01", "site")?;
        token.share(user)?;
        std::fs::set_permissions(token.home(), Permissions::from_mode(0o755))?;
        std::fs::set_permissions(token.path("pin"), Permissions::from_mode(0o644))?;
        std::fs::create_dir(token.path("bin"))?;
        std::os::unix::fs::symlink(&command, token.path("bin/ksslcfg"))?;
        let path = std::env::var("PATH").unwrap_or_default();
        token.set("PATH", format!("{}:{path}", token.path("bin").display()));
        let sign = token.program(&command).line("cert selfsign site --dns localhost --store");
        sign.line("--pin-source pin --out site.pem").run()?;
        token.write("index.html", "from the plain server")?;
        let (plain, port) = (free_port()?, free_port()?);
        let python = token.program("python3").line("-m http.server --bind 127.0.0.1");
        let plain_server = python.arg(plain.to_string()).serve(plain, token.home())?;
        let create = || {
            let create = ksslcfg(token, "create -f pkcs11 -C site -p pin -z 100 -t 600 -x");
            let create = create.arg(plain.to_string()).args(["-T", token.label()]);
            create.args(["--server", server, "--directory", "kssl", "localhost", &port.to_string()])
        };
        create().run()?;
        let _proxy = Proxy { token, port };
        for version in ["--tlsv1.3", "--tls-max 1.2"] {
            let answer = nginx::fetch(token, port, version)?;
            ensure!(answer == "from the plain server", "{answer}");
        }
        let old = token.program("openssl").env("OPENSSL_CONF", "/dev/null");
        let old = old.line("s_client -tls1_1 -cipher DEFAULT@SECLEVEL=0 -connect");
        ensure!(old.arg(format!("127.0.0.1:{port}")).output()?.status != 0, "TLS 1.1 is served");
        let signed = signatures(token, server)?;
        ensure!(!token.is_ours() || signed >= 2, "the token signed {signed} times");
        for version in ["-tls1_3", "-tls1_2"] {
            resumes(token, port, version)?;
        }
        ensure!(users(token, port)? == user, "{}", users(token, port)?);
        let listed = ksslcfg(token, "list --json --directory kssl").run()?;
        let listed: serde_json::Value = serde_json::from_slice(&listed.stdout)?;
        ensure!(listed[0]["running"] == true, "{listed}");
        if server == "haproxy" {
            ensure!(listed[0]["resumed_sessions"] == 2, "{listed}");
            ensure!(listed[0]["full_handshakes"].as_u64() >= Some(4), "{listed}");
        }
        if server == "nginx" {
            // A kernel that does TLS is asked for it, and one that does not costs nothing.
            let conf = format!("kssl/localhost-{port}/nginx.conf");
            let conf = std::fs::read_to_string(token.path(&conf)).context(conf)?;
            ensure!(conf.contains("ssl_conf_command Options KTLS;"), "{conf}");
        }
        // What cannot be started leaves what was there.
        drop(plain_server);
        create().line("-h pin").output()?.with(&["there is no certificate in it"])?;
        create().run()?.with(&["Note: reconfiguring"])?;
        // Workers whose master was killed would go on serving.
        let pid = std::fs::read_to_string(token.path(&format!("kssl/localhost-{port}.run/pid")))?;
        token.program("kill").args(["-KILL", pid.trim()]).run()?;
        ksslcfg(token, "delete --directory kssl localhost").arg(port.to_string()).run()?;
        is_refused(port)?;
        ensure!(std::fs::read_dir(token.path("kssl"))?.next().is_none(), "something is left");
        Ok(())
    });
}

#[test]
fn haproxy_is_the_proxy_of_a_plain_server() {
    proxies("haproxy", "haproxy");
}

#[test]
fn nginx_is_the_proxy_of_a_plain_server() {
    proxies("nginx", "www-data");
}
