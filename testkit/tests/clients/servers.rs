// SPDX-License-Identifier: Apache-2.0
//! Servers that read PEM files and know no engine: PostgreSQL, MariaDB, HAProxy, and nginx in the same way. A file that names a key's
//! URI is theirs, and pkcs11-provider reads it, and so does our own provider, which takes keys in files, too.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use metaslot_testkit::{Program, TestToken, check, command, free_port, openssl_provider};

use crate::{
    bridged, nginx, openssl_provider as own, openssl_provider_all, openssl_provider_bulk,
    postgresql, processes, provider,
};

/// Without it a forked child waits for a second at its first use of a key, with every module: the provider wants to copy the key
/// anew, waits for a session that it has in use itself, and gives up.
const FORKS: &str = "pkcs11-module-cache-keys = false";

/// Which provider reads the file.
#[derive(Clone, Copy)]
enum By {
    Pkcs11Provider,
    OurOwn,
    /// The same, with everything else by the module, too.
    OurOwnInAll,
    /// Our own, and the file has the key itself.
    OurOwnOfFile,
}

impl By {
    /// What the server calls must be what stands in this file of `testdata/clients`.
    fn called(self, token: &TestToken, name: &str) -> Result<()> {
        match self {
            Self::Pkcs11Provider => token.called(name),
            Self::OurOwn => token.called(&format!("own-{name}")),
            Self::OurOwnInAll | Self::OurOwnOfFile => {
                let signed = !token.is_ours() || bridged::signatures(token)? > 0;
                ensure!(signed, "the module made no signature");
                Ok(())
            }
        }
    }
}

/// A key of `kind` in a token that `group` may use, its certificate in `site.pem` and its name in `site.key`.
fn prepare(token: &mut TestToken, by: By, kind: &str, group: &str) -> Result<()> {
    let readable = |name: &str| {
        // The user of the service reads it.
        std::fs::set_permissions(token.path(name), std::fs::Permissions::from_mode(0o644))
    };
    if matches!(by, By::OurOwnOfFile) {
        token.share(group)?;
        bridged::of_files(token, "site", kind)?;
        readable("site.key")?;
        return openssl_provider_all::configure_all(token);
    }
    token.key_pair(kind, "01", "site")?;
    token.share(group)?;
    readable("pin")?;
    match by {
        By::Pkcs11Provider => provider::configure(token, FORKS)?,
        By::OurOwn => {
            token.spy()?;
            own::configure(token)?;
        }
        By::OurOwnInAll if token.is_ours() => openssl_provider_all::configure_all_and_keys(token)?,
        By::OurOwnInAll => own::configure(token)?,
        By::OurOwnOfFile => {}
    }
    provider::certificate(token, "site")?;
    token.spied()
}

fn serves(
    client: &str,
    what: &str,
    more: &[&str],
    work: impl Fn(&mut TestToken, By) -> Result<()>,
) {
    let (theirs, ours, command) = (provider::path(), openssl_provider(), command());
    for (by, name, file) in [
        (By::Pkcs11Provider, "pkcs11-provider", &theirs),
        (By::OurOwn, "our provider", &ours),
        (By::OurOwnInAll, "our provider, mode all, a key in the token", &ours),
        (By::OurOwnOfFile, "our provider, a key in a file", &ours),
    ] {
        let needs = provider::needs(file, &command, more);
        check(&format!("{client}, {name}"), what, &needs, |token| work(token, by));
    }
}

#[test]
fn nginx() {
    serves("nginx", "two workers, a PEM file", &["nginx", "curl"], |token, by| {
        prepare(token, by, "rsa:2048", "www-data")?;
        let home = token.home().display().to_string();
        let directives = format!(
            "ssl_protocols TLSv1.2 TLSv1.3;\nssl_certificate {home}/site.pem;\nssl_certificate_key {home}/site.key;"
        );
        let (server, port) =
            nginx::start(token, "env METASLOT_CONF;\nenv OPENSSL_CONF;", &directives)?;
        for version in ["--tlsv1.3", "--tls-max 1.2"].repeat(8) {
            let answer = nginx::fetch(token, port, version)?;
            ensure!(answer.starts_with("worker "), "{answer}");
        }
        nginx::both_serve(token, &server, port)?;
        drop(server);
        by.called(token, "provider-nginx")
    });
}

#[test]
fn haproxy() {
    serves("HAProxy", "threads, a PEM file", &["haproxy", "curl"], |token, by| {
        prepare(token, by, "rsa:2048", "root")?;
        let read = |name: &str| std::fs::read_to_string(token.path(name));
        let both = token.write("both.pem", read("site.pem")? + &read("site.key")?)?;
        let port = free_port()?;
        let text = format!(
            "global\n    nbthread 2\ndefaults\n    mode http\n    timeout client 20s\n    timeout server 20s\n    \
             timeout connect 20s\nfrontend site\n    bind 127.0.0.1:{port} ssl crt {}\n    \
             http-request return status 200 content-type text/plain string \"from the server\"\n",
            both.display()
        );
        let haproxy = token.program("haproxy").args(["-db", "-f"]);
        let server = haproxy.arg(token.write("haproxy.cfg", text)?).serve(port, token.home())?;
        ensure!(processes::threads(&server)? >= 2, "it has one thread");
        processes::at_once(token, 16, |token, time| {
            let answer = nginx::fetch(token, port, ["--tlsv1.3", "--tls-max 1.2"][time % 2])?;
            ensure!(answer == "from the server", "{answer}");
            Ok(())
        })?;
        drop(server);
        by.called(token, "haproxy")
    });
}

#[test]
fn postgresql() {
    serves("PostgreSQL", "its server, a PEM file", &["psql", "setpriv"], |token, by| {
        prepare(token, by, "rsa:2048", "postgres")?;
        std::fs::create_dir(token.path("db"))?;
        for (from, to) in
            [("site.pem", "server.pem"), ("site.key", "server.key"), ("site.pem", "root.pem")]
        {
            std::fs::copy(token.path(from), token.path("db").join(to))?;
        }
        let (server, port) = postgresql::start(token, "hostssl all all 127.0.0.1/32 trust")?;
        let connection = format!(
            "host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres \
             sslmode=verify-full sslrootcert=site.pem"
        );
        let mut processes = BTreeSet::new();
        for _ in 0..3 {
            let psql =
                token.program("psql").env("OPENSSL_CONF", "/dev/null").args([&connection, "-Atc"]);
            let asked =
                psql.arg("SELECT version, pid FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
            processes.insert(asked.run()?.with(&["TLSv1.3"])?.text());
        }
        ensure!(processes.len() == 3, "not a process for each connection: {processes:?}");
        drop(server);
        by.called(token, "postgresql")
    });
}

/// As another user, with tables of nothing yet. It goes to its directory of data.
fn mariadbd(token: &TestToken, port: u16) -> Program {
    let home = token.home().display();
    let launched = token.program("setpriv").line("--reuid nobody --regid nogroup --clear-groups");
    launched
        .line("mariadbd --no-defaults --skip-grant-tables --skip-networking=0 --skip-innodb")
        .line("--default-storage-engine=Aria --bind-address=127.0.0.1 --socket=socket")
        .args([format!("--ssl-cert={home}/site.pem"), format!("--ssl-key={home}/site.key")])
        .args([format!("--datadir={home}/db"), format!("--port={port}")])
}

#[test]
fn mariadb() {
    serves(
        "MariaDB",
        "its server, a PEM file",
        &["mariadbd", "mariadb", "setpriv"],
        |token, by| {
            prepare(token, by, "EC:prime256v1", "nogroup")?;
            std::fs::create_dir(token.path("db"))?;
            token.program("chown").line("nobody:nogroup db").run()?;
            std::fs::set_permissions(token.home(), std::fs::Permissions::from_mode(0o755))?;
            let port = free_port()?;
            let server = mariadbd(token, port).serve(port, token.home())?;
            for _ in 0..3 {
                let client = token.program("mariadb").env("OPENSSL_CONF", "/dev/null");
                let client = client.line("--no-defaults --host=localhost --protocol=tcp --ssl");
                client
                    .line(
                        "--ssl-ca=site.pem --ssl-verify-server-cert --connect-timeout=20 --execute",
                    )
                    .arg("SHOW STATUS LIKE 'Ssl_version'")
                    .arg(format!("--port={port}"))
                    .limit(Duration::from_secs(60))
                    .run()?
                    .with(&["TLSv1.3"])?;
            }
            drop(server);
            by.called(token, "mariadb")
        },
    );
}

/// What a database's function answers, and the mechanism by which the module did it, or none that counts where the server has it
/// from elsewhere. No connection is by TLS, which would count, too.
type Answer = (&'static str, &'static str, Option<&'static str>);

fn answers(token: &TestToken, rows: &[Answer], ask: impl Fn(&str) -> Result<String>) -> Result<()> {
    for (expression, right, mechanism) in rows {
        let before = own::counted(token)?;
        let answer = ask(&format!("SELECT {expression}"))?;
        ensure!(answer.trim().eq_ignore_ascii_case(right), "{expression}: {answer}");
        let after = own::counted(token)?;
        match mechanism {
            Some(mechanism) => own::rose(token, mechanism, &before)?,
            None => ensure!(after == before, "{expression}: {before:?}, {after:?}"),
        }
    }
    Ok(())
}

/// FIPS 180-4, RFC 1321, RFC 4231 (2), FIPS 197 (C.1) and SP 800-38A (F.2.1).
const PGCRYPTO: &[Answer] = &[
    ("1", "1", None),
    ("encode(digest('abc', 'sha1'), 'hex')", SHA1, Some("CKM_SHA_1")),
    ("encode(digest('abc', 'sha256'), 'hex')", SHA256, Some("CKM_SHA256")),
    ("encode(digest('abc', 'md5'), 'hex')", MD5, Some("CKM_MD5")),
    (
        "encode(hmac('what do ya want for nothing?', 'Jefe', 'sha256'), 'hex')",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        Some("CKM_SHA256"),
    ),
    (
        "encode(encrypt('\\x00112233445566778899aabbccddeeff', \
         '\\x000102030405060708090a0b0c0d0e0f', 'aes-ecb/pad:none'), 'hex')",
        AES,
        Some("CKM_AES_ECB"),
    ),
    (
        "encode(encrypt_iv('\\x6bc1bee22e409f96e93d7e117393172a', \
         '\\x2b7e151628aed2a6abf7158809cf4f3c', '\\x000102030405060708090a0b0c0d0e0f', \
         'aes-cbc/pad:none'), 'hex')",
        "7649abac8119b246cee98e9b12e9197d",
        Some("CKM_AES_CBC"),
    ),
    (
        "encode(decrypt_iv('\\x7649abac8119b246cee98e9b12e9197d', \
         '\\x2b7e151628aed2a6abf7158809cf4f3c', '\\x000102030405060708090a0b0c0d0e0f', \
         'aes-cbc/pad:none'), 'hex')",
        "6bc1bee22e409f96e93d7e117393172a",
        Some("CKM_AES_CBC"),
    ),
];

const MARIADB: &[Answer] = &[
    ("1", "1", None),
    ("MD5('abc')", MD5, Some("CKM_MD5")),
    (
        "LEFT(HEX(AES_ENCRYPT(UNHEX('00112233445566778899aabbccddeeff'), \
         UNHEX('000102030405060708090a0b0c0d0e0f'))), 32)",
        AES,
        Some("CKM_AES_ECB"),
    ),
    (
        "AES_DECRYPT(AES_ENCRYPT('abc', UNHEX('000102030405060708090a0b0c0d0e0f')), \
         UNHEX('000102030405060708090a0b0c0d0e0f'))",
        "abc",
        Some("CKM_AES_ECB"),
    ),
    // By functions of libcrypto that ask no provider (SHA256_Init).
    ("SHA1('abc')", SHA1, None),
    ("SHA2('abc', 256)", SHA256, None),
];

const SHA1: &str = "a9993e364706816aba3e25717850c26c9cd0d89d";
const SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";
const AES: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";

/// With our provider in mode `all`, and a key in a file.
fn computes(client: &str, more: &[&str], work: impl Fn(&mut TestToken) -> Result<()>) {
    let (ours, command) = (openssl_provider(), command());
    let needs = provider::needs(&ours, &command, more);
    check(&format!("{client}, our provider, mode all"), "functions of SQL", &needs, |token| {
        if token.is_ours() { work(token) } else { Ok(()) }
    });
}

#[test]
fn functions_of_pgcrypto_are_the_modules() {
    computes("PostgreSQL", &["psql", "setpriv"], |token| {
        prepare(token, By::OurOwnOfFile, "rsa:2048", "postgres")?;
        // A generator of OpenSSL's own is seeded for each process by AES of the module.
        openssl_provider_bulk::configure(token)?;
        std::fs::create_dir(token.path("db"))?;
        for (from, to) in
            [("site.pem", "server.pem"), ("site.key", "server.key"), ("site.pem", "root.pem")]
        {
            std::fs::copy(token.path(from), token.path("db").join(to))?;
        }
        let (_server, port) = postgresql::start(token, "host all all 127.0.0.1/32 trust")?;
        let connection =
            format!("host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable");
        let ask = |text: &str| {
            let psql = token.program("psql").env("OPENSSL_CONF", "/dev/null");
            Ok(psql.args([&connection, "-Atc", text]).run()?.text())
        };
        ask("CREATE EXTENSION pgcrypto")?;
        answers(token, PGCRYPTO, ask)?;
        let drawn = || bridged::calls(token, &["C_GenerateRandom"]);
        let before = drawn()?;
        let many = "SELECT count(DISTINCT gen_random_bytes(16)) FROM generate_series(1, 1000)";
        ensure!(ask(many)?.trim() == "1000", "random bytes are not");
        let calls = drawn()? - before;
        ensure!(calls >= 1000, "the module gave random bytes {calls} times");
        Ok(())
    });
}

#[test]
fn functions_of_mariadb_are_the_modules_where_they_ask_a_provider() {
    computes("MariaDB", &["mariadbd", "mariadb", "setpriv"], |token| {
        prepare(token, By::OurOwnOfFile, "EC:prime256v1", "nogroup")?;
        std::fs::create_dir(token.path("db"))?;
        token.program("chown").line("nobody:nogroup db").run()?;
        std::fs::set_permissions(token.home(), std::fs::Permissions::from_mode(0o755))?;
        let port = free_port()?;
        let _server = mariadbd(token, port).serve(port, token.home())?;
        answers(token, MARIADB, |text| {
            let client = token.program("mariadb").env("OPENSSL_CONF", "/dev/null");
            let client = client.line("--no-defaults --host=127.0.0.1 --protocol=tcp --skip-ssl -N");
            let client = client.arg(format!("--port={port}")).args(["--execute", text]);
            Ok(client.limit(Duration::from_secs(60)).run()?.text())
        })
    });
}
