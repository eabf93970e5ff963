// SPDX-License-Identifier: Apache-2.0
//! Certificates and TLS servers whose key is in the token.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::process::{Timed, free_port};
use super::sandbox::{Key, LABEL, Sandbox};
use super::table::Table;

/// Pages fetched from each server, each with a handshake of its own.
const FETCHES: u32 = 20;

fn uri(key: &Key) -> String {
    format!("pkcs11:token={LABEL};object={};type=private", key.label)
}

/// A self-signed certificate, checked by an OpenSSL without the provider.
pub(crate) fn certificate(place: &Sandbox, key: &Key) -> Result<Timed> {
    let file = format!("{}.pem", key.label);
    let made = place
        .openssl()
        .line("req -new -x509 -days 30 -sha256")
        .line("-subj /CN=localhost -addext subjectAltName=DNS:localhost")
        .args(["-key", &uri(key), "-out", &file])
        .run()?;
    place
        .program("openssl")
        .env("OPENSSL_CONF", "/dev/null")
        .args(["verify", "-check_ss_sig", "-CAfile", &file, &file])
        .run()?;
    Ok(made)
}

/// Serves TLS 1.3 on a loopback port and fetches pages; what the module did comes from its counters.
pub(crate) fn serve(place: &Sandbox, key: &Key, table: &mut Table) -> Result<()> {
    let port = free_port()?;
    let certificate = format!("{}.pem", key.label);
    let server = place
        .openssl()
        .line("s_server -www -quiet -tls1_3")
        .args(["-accept", &format!("127.0.0.1:{port}"), "-cert", &certificate])
        .args(["-key", &uri(key)])
        .serve(port, &place.path(&format!("server-{}.log", key.label)))?;
    let started = Instant::now();
    for _ in 0..FETCHES {
        let page = place
            .program("curl")
            .env("OPENSSL_CONF", "/dev/null")
            .line("--silent --show-error --tlsv1.3 --max-time 20 --cacert")
            .arg(&certificate)
            .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
            .arg(format!("https://localhost:{port}/"))
            .run()?;
        ensure!(page.text.contains("TLSv1.3"), "not what s_server serves:\n{}", page.text);
    }
    let each = started.elapsed() / FETCHES;
    let counted = place.counted(server.id())?;
    let what = format!("curl: one page over TLS 1.3, {} ({FETCHES} fetched)", key.shown);
    table.row(&what, &counted.providers, each);
    table.note(&format!("the {} server's own counters: {}", key.shown, counted.operations));
    Ok(())
}
