// SPDX-License-Identifier: Apache-2.0
//! stunnel: a thread for each connection.

use anyhow::{Result, ensure};
use metaslot_testkit::{Server, TestToken, USER_PIN, check, free_port};

use crate::openssl;
use crate::processes::{self, threads};
use crate::recipe;

const CLIENT: &str = "stunnel, engine pkcs11";
const NEEDS: &[&str] = &["stunnel4", "openssl", "pkcs11-tool"];

fn start(token: &TestToken) -> Result<(Server, u16)> {
    let (port, home) = (free_port()?, token.home().display());
    let changes = [
        ("PIN:123456", &*format!("PIN:{USER_PIN}")),
        ("4433", &*format!("127.0.0.1:{port}")),
        ("connect = 8080", "exec = /bin/echo\nexecArgs = echo through the tunnel"),
        ("site.pem", &*format!("{home}/site.pem")),
    ];
    let page = recipe::block(token, "stunnel", 0, &changes)?;
    token.write("stunnel.conf", format!("foreground = yes\npid =\n{page}"))?;
    let program = token.program("stunnel4").env("OPENSSL_CONF", "/dev/null");
    let server = program.arg(token.path("stunnel.conf")).serve(port, token.home())?;
    Ok((server, port))
}

/// Several clients.
pub(crate) fn at_once(token: &TestToken, port: u16) -> Result<()> {
    processes::at_once(token, 6, |token, time| {
        let version = ["-tls1_3", "-tls1_2"][time % 2];
        token
            .program("openssl")
            .env("OPENSSL_CONF", "/dev/null")
            .line("s_client -quiet -verify_return_error -servername localhost")
            .args(["-CAfile", "site.pem", version, "-connect", &format!("127.0.0.1:{port}")])
            .run()?
            .with(&["through the tunnel"])
            .map(drop)
    })
}

#[test]
fn threads_serve_a_key_in_the_token() {
    check(CLIENT, "a thread for each connection", NEEDS, |token| {
        token.key_pair("rsa:2048", "01", "site")?;
        token.spy()?;
        openssl::configure(token)?;
        openssl::certificate(token, "site", "site.pem")?;
        token.spied()?;
        let (server, port) = start(token)?;
        at_once(token, port)?;
        ensure!(threads(&server)? >= 2, "it has one thread");
        drop(server);
        token.called("stunnel")
    });
}
