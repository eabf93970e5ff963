// SPDX-License-Identifier: Apache-2.0
//! PostgreSQL: its client proves who it is by a certificate whose key is in the token.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context, Result};
use metaslot_testkit::{Server, TestToken, check, free_port};

use crate::openssl;

const CLIENT: &str = "PostgreSQL, engine pkcs11";
const NEEDS: &[&str] = &["psql", "openssl", "pkcs11-tool", "setpriv"];

/// Where Debian keeps the newest server.
fn programs() -> Result<std::path::PathBuf> {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").context("postgresql is not installed")?;
    let found = versions.flatten().map(|version| version.path().join("bin"));
    found.filter(|bin| bin.join("postgres").exists()).max().context("postgresql is not installed")
}

/// A server that lets in who has a certificate by `client.pem`. It does not run as root.
fn start(token: &TestToken) -> Result<(Server, u16)> {
    let (port, bin, home) = (free_port()?, programs()?, token.home().display());
    token
        .program("openssl")
        .env("OPENSSL_CONF", "/etc/ssl/openssl.cnf")
        .line("req -x509 -newkey rsa:2048 -nodes -keyout db/server.key -out db/server.pem -days 3")
        .line("-subj /CN=localhost -addext subjectAltName=DNS:localhost")
        .run()?;
    std::fs::copy(token.path("client.pem"), token.path("db/root.pem"))?;
    token.program("chmod").line("600 db/server.key").run()?;
    token.program("chown").line("-R postgres:postgres db").run()?;
    let as_postgres = |program: &str| {
        let launched = token.program("setpriv").env("OPENSSL_CONF", "/dev/null");
        launched.line("--reuid postgres --regid postgres --clear-groups").arg(bin.join(program))
    };
    as_postgres("initdb").line("-D db/data -A trust").run()?;
    let allowed = "hostssl all all 127.0.0.1/32 cert\n";
    std::fs::write(token.path("db/data/pg_hba.conf"), allowed)?;
    let server = as_postgres("postgres")
        .args(["-D", &format!("{home}/db/data")])
        .line("-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c ssl=on -c fsync=off")
        .args(["-c", &format!("port={port}"), "-c", &format!("ssl_cert_file={home}/db/server.pem")])
        .args(["-c", &format!("ssl_key_file={home}/db/server.key")])
        .args(["-c", &format!("ssl_ca_file={home}/db/root.pem")])
        .serve(port, token.home())?;
    Ok((server, port))
}

#[test]
fn a_client_is_known_by_a_key_in_the_token() {
    check(CLIENT, "psql, sslkey", NEEDS, |token| {
        token.key_pair("EC:prime256v1", "01", "client")?;
        token.spy()?;
        openssl::configure(token)?;
        token
            .program("openssl")
            .line("req -new -x509 -days 30 -engine pkcs11 -keyform engine -subj /CN=postgres")
            .args(["-key", &openssl::uri(token, "client"), "-out", "client.pem"])
            .run()?;
        token.spied()?;
        std::fs::create_dir(token.path("db"))?;
        std::fs::set_permissions(token.home(), std::fs::Permissions::from_mode(0o755))?;
        let (server, port) = start(token)?;
        let connection = format!(
            "host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres \
             sslmode=verify-full sslrootcert=db/server.pem sslcert=client.pem sslkey=pkcs11:{}",
            openssl::uri(token, "client")
        );
        token
            .program("psql")
            .args([&connection, "-Atc"])
            .arg("SELECT version, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            .run()?
            .with(&["TLSv1.3|/CN=postgres"])?;
        drop(server);
        token.called("psql")
    });
}
