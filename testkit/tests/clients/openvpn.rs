// SPDX-License-Identifier: Apache-2.0
//! OpenVPN: a server and a client on the loopback, with the keys of both in the token and no tunnel device behind them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use metaslot_testkit::{Server, TestToken, USER_PIN, check, command, free_port};

use crate::recipe;

const CLIENT: &str = "OpenVPN";
/// How long a peer may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// What OpenVPN calls a key: everything about its token, and its id.
fn serialized(token: &TestToken, id: &str) -> Result<String> {
    let list = recipe::command(token, ("OpenVPN", 0), "openvpn", &[])?.run()?.text();
    let mut ids = list.lines().filter_map(|line| line.split("Serialized id:").nth(1));
    let found = ids.find(|found| found.ends_with(&format!("/{id}")));
    found.map(|found| found.trim().to_owned()).with_context(|| format!("no key {id}: {list}"))
}

/// One of the two peers, and the port where it asks for the PIN.
fn peer(token: &TestToken, id: &str, trusted: &str, line: &str) -> Result<(Server, u16)> {
    let management = free_port()?;
    let page = [("Metaslot/Metaslot/SERIAL/web/01", &*serialized(token, id)?)];
    let page = recipe::block(token, "OpenVPN", 1, &page)?;
    let page = token.write(&format!("{id}.conf"), page)?;
    let peer = token
        .program("openvpn")
        .line("--dev null --verb 3 --connect-retry 1 --data-ciphers AES-256-GCM --cipher AES-256-GCM --dh none")
        .line(line)
        .args(["--ca", trusted, "--config"])
        .arg(page)
        .args(["--management", "127.0.0.1", &management.to_string()])
        .arg("--management-query-passwords")
        .serve(management, token.home())?;
    Ok((peer, management))
}

/// Gives the PIN when it is asked for, and returns when the peer is connected.
fn answer(port: u16) -> Result<()> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("connect")?;
    socket.set_read_timeout(Some(SILENCE))?;
    socket.write_all(b"state on\n")?;
    for line in BufReader::new(socket.try_clone()?).lines() {
        let line = line.context("read what OpenVPN asks")?;
        if line.contains("PASSWORD:Need 'testing token'") {
            writeln!(socket, "password 'testing token' {USER_PIN}")?;
        }
        ensure!(!line.contains(",RECONNECTING,"), "{line}");
        if line.contains(",CONNECTED,SUCCESS") {
            return Ok(());
        }
    }
    bail!("OpenVPN ended before it was connected")
}

fn connects(token: &TestToken, server: &str, client: &str) -> Result<()> {
    let port = free_port()?;
    let file = |id: &str| format!("{id}.pem");
    let line = format!("--tls-server --proto tcp-server --local 127.0.0.1 --lport {port}");
    let (serving, first) = peer(token, server, &file(client), &line)?;
    let line = format!("--tls-client --proto tcp-client --nobind --remote 127.0.0.1 {port}");
    let (asking, second) = peer(token, client, &file(server), &line)?;
    let answers = [first, second].map(|port| std::thread::spawn(move || answer(port)));
    for answered in answers {
        let answered = answered.join().unwrap_or_else(|_| bail!("the thread panicked"));
        answered.with_context(|| format!("{}\n{}", serving.log(), asking.log()))?;
    }
    for peer in [serving, asking] {
        ensure!(peer.log().contains("Control Channel: TLSv1.3"), "{}", peer.log());
    }
    Ok(())
}

#[test]
fn both_ends_prove_themselves_by_keys_in_the_token() {
    let command = command();
    check(CLIENT, "server and client", &["openvpn", "pkcs11-tool", &command], |token| {
        for (kind, id) in [("rsa:2048", "01"), ("EC:prime256v1", "02")] {
            token.key_pair(kind, id, id)?;
            // OpenVPN shows keys that have a certificate.
            let selfsign = token.program(&command).args(["cert", "selfsign", id, "--out"]);
            selfsign
                .arg(format!("{id}.pem"))
                .line("--for server --for client --pin-source pin --store")
                .run()?;
        }
        token.spy()?;
        connects(token, "01", "02")?;
        connects(token, "02", "01")?;
        token.called("openvpn")
    });
}
