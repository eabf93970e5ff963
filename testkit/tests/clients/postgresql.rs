// SPDX-License-Identifier: Apache-2.0
//! PostgreSQL: its client proves who it is by a certificate whose key is in the token.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, Server, TestToken, check, free_port};

use crate::{openssl, recipe};

const CLIENT: &str = "PostgreSQL, engine pkcs11";
const NEEDS: &[&str] = &["psql", "openssl", "pkcs11-tool", "setpriv"];

/// Where Debian keeps the newest server.
fn programs() -> Result<std::path::PathBuf> {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").context("postgresql is not installed")?;
    let found = versions.flatten().map(|version| version.path().join("bin"));
    found.filter(|bin| bin.join("postgres").exists()).max().context("postgresql is not installed")
}

/// A program of the server's, as another user: it does not run as root.
fn as_postgres(token: &TestToken, program: &str) -> Result<Program> {
    let launched = token.program("setpriv");
    let launched = launched.line("--reuid postgres --regid postgres --clear-groups");
    Ok(launched.arg(programs()?.join(program)))
}

/// A server with the certificate `db/server.pem` and the key `db/server.key`. It lets in who `allowed` says, of whom one may have
/// a certificate by `db/root.pem`.
pub(crate) fn start(token: &TestToken, allowed: &str) -> Result<(Server, u16)> {
    start_with(token, allowed, "")
}

/// The same, where names of certificates are names of users as `names` says.
pub(crate) fn start_with(token: &TestToken, allowed: &str, names: &str) -> Result<(Server, u16)> {
    let (port, home) = (free_port()?, token.home().display());
    token.program("chmod").line("600 db/server.key").run()?;
    token.program("chown").line("-R postgres:postgres db").run()?;
    std::fs::set_permissions(token.home(), std::fs::Permissions::from_mode(0o755))?;
    let initdb = as_postgres(token, "initdb")?.env("OPENSSL_CONF", "/dev/null");
    initdb.line("-D db/data -A trust --no-sync").run()?;
    std::fs::write(token.path("db/data/pg_hba.conf"), format!("{allowed}\n"))?;
    std::fs::write(token.path("db/data/pg_ident.conf"), names)?;
    let server = as_postgres(token, "postgres")?
        .args(["-D", &format!("{home}/db/data")])
        .line("-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c ssl=on -c fsync=off")
        .args(["-c", &format!("port={port}"), "-c", &format!("ssl_cert_file={home}/db/server.pem")])
        .args(["-c", &format!("ssl_key_file={home}/db/server.key")])
        .args(["-c", &format!("ssl_ca_file={home}/db/root.pem")])
        .serve(port, token.home())?;
    until_ready(&token.path("db/data/postmaster.pid"))?;
    Ok((server, port))
}

/// It listens before it takes clients: until then they are told that "the database system is starting up".
fn until_ready(file: &Path) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(file).is_ok_and(|text| text.contains("ready")) {
        ensure!(Instant::now() < end, "{} does not say that the server is ready", file.display());
        sleep(Duration::from_millis(10));
    }
    Ok(())
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
        token
            .program("openssl")
            .env("OPENSSL_CONF", "/etc/ssl/openssl.cnf")
            .line("req -x509 -newkey rsa:2048 -nodes -keyout db/server.key -out db/server.pem")
            .line("-days 3 -subj /CN=localhost -addext subjectAltName=DNS:localhost")
            .run()?;
        std::fs::copy(token.path("client.pem"), token.path("db/root.pem"))?;
        let client = token.path("openssl.cnf");
        token.set("OPENSSL_CONF", "/dev/null");
        let (server, port) = start(token, "hostssl all all 127.0.0.1/32 cert")?;
        token.set("OPENSSL_CONF", client);
        let here = format!(
            "host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres sslrootcert=db/server.pem"
        );
        let asked =
            "-Atc 'SELECT version, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()'";
        let changes = [("host=db", &*here), (" …\"", &*format!("\" {asked}"))];
        recipe::command(token, ("PostgreSQL", 0), "psql", &changes)?
            .run()?
            .with(&["TLSv1.3|/CN=postgres"])?;
        drop(server);
        token.called("psql")
    });
}
