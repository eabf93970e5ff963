// SPDX-License-Identifier: Apache-2.0
//! curl with a client certificate whose key is in the token.

use anyhow::ensure;
use metaslot_testkit::check;

use crate::{openssl, recipe};

const CLIENT: &str = "curl, engine pkcs11";

fn client_certificate(what: &str, kind: &str, summary: &str) {
    check(CLIENT, what, &["curl", "openssl", "pkcs11-tool"], |token| {
        openssl::configure(token)?;
        token.key_pair("rsa:2048", "01", "server")?;
        token.key_pair(kind, "02", "client")?;
        openssl::certificate(token, "server", "server.pem")?;
        openssl::certificate(token, "client", "client.pem")?;
        let (_server, port) =
            openssl::server(token, "server", "server.pem", "-Verify 1 -CAfile client.pem")?;
        let plain = |program: metaslot_testkit::Program| {
            program
                .args(["--silent", "--show-error", "--cacert", "server.pem"])
                .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
                .arg(format!("https://localhost:{port}/"))
        };
        let refused = plain(token.program("curl")).output()?;
        ensure!(refused.status != 0, "served without a certificate: {}", refused.told());
        // The server has the module itself: what curl calls is written down.
        token.spy()?;
        openssl::configure(token)?;
        let here = format!(
            "--cacert server.pem --resolve localhost:{port}:127.0.0.1 https://localhost:{port}/"
        );
        let changes =
            [("object=site", "object=client"), ("site.pem", "client.pem"), ("https://…", &*here)];
        recipe::command(token, ("curl", 0), "curl", &changes)?
            .run()?
            .with(&["Client certificate", "BEGIN CERTIFICATE"])?;
        token.called(summary)
    });
}

#[test]
fn rsa_client_certificate_is_presented() {
    client_certificate("client certificate, RSA", "rsa:2048", "curl");
}

#[test]
fn p256_client_certificate_is_presented() {
    client_certificate("client certificate, P-256", "EC:prime256v1", "curl-ec");
}
