// SPDX-License-Identifier: Apache-2.0
//! More programs by our provider: each is given the file that names the key, or has it, and counts only if our module signed. The file of the PIN
//! is root's alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, TestToken, check, command, free_port, openssl_provider};

use crate::openssl::{self, plain};
use crate::{
    apache, nginx, openssl_provider as own, openssl_provider_all, postgresql, provider, stunnel,
};

/// Where the key is that a program is given in `site.key`.
#[derive(Clone, Copy, Eq, PartialEq)]
enum At {
    /// In the token, which the file names.
    Token,
    /// In the token, and everything else is done by the module, too.
    TokenInAll,
    /// In the file, and everything is done by the module.
    File,
}

/// With a key `site` of this kind in a token that `group` may use, its certificate and its file, in both modes; and then with one in a file.
fn uses(
    client: (&str, &str),
    key: (&str, &str),
    more: &[&str],
    work: impl Fn(&TestToken, At) -> Result<()>,
) {
    for at in [At::Token, At::TokenInAll, At::File] {
        uses_at(at, client, key, more, |token| work(token, at));
    }
}

fn uses_at(
    at: At,
    (client, what): (&str, &str),
    (kind, group): (&str, &str),
    more: &[&str],
    work: impl Fn(&TestToken) -> Result<()>,
) {
    let (file, command) = (openssl_provider(), command());
    let needs = provider::needs(&file, &command, more);
    let name = match at {
        At::Token => "our provider",
        At::TokenInAll => "our provider, mode all, a key in the token",
        At::File => "our provider, a key in a file",
    };
    check(&format!("{client}, {name}"), what, &needs, |token| {
        if at != At::File {
            token.key_pair(kind, "01", "site")?;
            token.share(group)?;
            match at {
                // Another module may be made of libcrypto itself.
                At::TokenInAll if token.is_ours() => {
                    openssl_provider_all::configure_all_and_keys(token)?;
                }
                _ => own::configure(token)?,
            }
            fs::set_permissions(token.path("pin"), Permissions::from_mode(0o600))?;
            provider::certificate(token, "site")?;
        } else {
            token.share(group)?;
            openssl_provider_all::configure_all(token)?;
            of_files(token, "site", kind)?;
        }
        let before = signatures(token)?;
        work(token)?;
        let after = signatures(token)?;
        ensure!(!token.is_ours() || after > before, "the module counted no use of the key");
        Ok(())
    });
}

/// How often the module has signed so far by keys as these programs have, in all processes. In mode `all` its functions for signatures make
/// HMACs, too, and its mechanisms verify.
pub(crate) fn signatures(token: &TestToken) -> Result<u64> {
    let used = own::counted(token)?;
    let used = used.iter().filter(|row| row.0.contains("RSA_PKCS") || row.0.contains("ECDSA"));
    let used: u64 = used.map(|row| row.1).sum();
    Ok(calls(token, &["C_Sign", "C_SignFinal"])?.min(used))
}

/// Calls of these functions that succeeded.
pub(crate) fn calls(token: &TestToken, functions: &[&str]) -> Result<u64> {
    if !token.is_ours() {
        return Ok(0);
    }
    let stat = token.program(&command()).line("stat --json").run()?;
    let stat: serde_json::Value =
        serde_json::from_slice(&stat.stdout).context("read the counters")?;
    let running = stat["processes"].as_array().into_iter().flatten();
    let pages = running.chain([&stat["ended"]]);
    let rows = pages.filter_map(|page| page["functions"].as_array()).flatten();
    let named =
        rows.filter(|row| row["function"].as_str().is_some_and(|name| functions.contains(&name)));
    let good = |row: &serde_json::Value| Some(row["calls"].as_u64()? - row["errors"].as_u64()?);
    Ok(named.filter_map(good).sum())
}

/// A certificate and a key of a kind, in pkcs11-tool's words, in files: no token has it.
pub(crate) fn of_files(token: &TestToken, name: &str, kind: &str) -> Result<()> {
    let kind = match kind.strip_prefix("EC:") {
        Some(curve) => format!("ec -pkeyopt ec_paramgen_curve:{curve}"),
        None => kind.to_owned(),
    };
    let line = format!(
        "req -x509 -newkey {kind} -nodes -keyout {name}.key -out {name}.pem -days 3 -subj /CN=localhost \
         -addext subjectAltName=DNS:localhost"
    );
    let openssl = token.program("openssl").env("OPENSSL_CONF", "/etc/ssl/openssl.cnf");
    openssl.line(&line).run().map(drop)
}

/// Without the provider.
fn without(program: Program) -> Program {
    program.env("OPENSSL_CONF", "/dev/null")
}

#[test]
fn nginx_serves_before_and_after_a_reload() {
    uses(("nginx", "a reload"), ("EC:prime256v1", "www-data"), &["nginx", "curl"], |token, at| {
        let home = token.home().display();
        if at != At::File {
            // The workers may not read what its key's file names for the PIN.
            fs::remove_file(token.path("site.key"))?;
            let name = token.program(&command()).line("uri2pem site --out site.key");
            name.arg("--pin-source").arg(token.path("pin")).run()?;
        }
        let server = format!(
            "ssl_protocols TLSv1.2 TLSv1.3;\nssl_certificate {home}/site.pem;\nssl_certificate_key {home}/site.key;"
        );
        let main = "env METASLOT_CONF;\nenv OPENSSL_CONF;";
        let (server, port) = nginx::start(token, main, &server)?;
        nginx::both_serve(token, &server, port)?;
        nginx::reload(token, &server, port)
    });
}

#[test]
fn apache_serves_before_and_after_a_restart() {
    let what = ("Apache", "forked children, a restart");
    uses(what, ("EC:prime256v1", "www-data"), &["apache2", "curl"], |token, _| {
        let home = token.home().display();
        let directives = format!(
            "SSLEngine on\nSSLCertificateFile {home}/site.pem\nSSLCertificateKeyFile {home}/site.key"
        );
        let (server, port) = apache::start(token, &directives)?;
        apache::serve_and_restart(token, &server, port)
    });
}

#[test]
fn stunnel_serves_by_threads() {
    let what = ("stunnel", "a thread for each connection");
    // It asks for what it needs by a query of its own, in which OpenSSL's configuration has no say: a key of a file is not ours.
    uses_at(At::Token, what, ("rsa:2048", "root"), &["stunnel4"], |token| {
        let (port, home) = (free_port()?, token.home().display());
        let text = format!(
            "foreground = yes\npid =\n[site]\naccept = 127.0.0.1:{port}\nexec = /bin/echo\n\
             execArgs = echo through the tunnel\ncert = {home}/site.pem\nkey = {home}/site.key\n"
        );
        let file = token.write("stunnel.conf", text)?;
        let _server = token.program("stunnel4").arg(file).serve(port, token.home())?;
        stunnel::at_once(token, port)
    });
}

#[test]
fn curl_shows_a_client_certificate() {
    for kind in ["rsa:2048", "EC:prime256v1"] {
        uses(
            ("curl", &format!("client certificate, {kind}")),
            (kind, "root"),
            &["curl"],
            |token, _| {
                of_files(token, "server", "rsa:2048")?;
                let port = free_port()?;
                let server = without(token.program("openssl"));
                let server = server.line("s_server -www -quiet -cert server.pem -key server.key");
                let server = server.line("-Verify 1 -CAfile site.pem");
                let server = server.args(["-accept", &format!("127.0.0.1:{port}")]);
                let _server = server.serve(port, token.home())?;
                for version in ["--tlsv1.3", "--tls-max 1.2"] {
                    let curl =
                        token.program("curl").line("--silent --show-error --cacert server.pem");
                    let curl = curl.args(["--resolve", &format!("localhost:{port}:127.0.0.1")]);
                    let curl = curl.line("--cert site.pem --key site.key").line(version);
                    let page = curl.arg(format!("https://localhost:{port}/")).run()?;
                    page.with(&["Client certificate", "BEGIN CERTIFICATE"])?;
                }
                Ok(())
            },
        );
    }
}

#[test]
fn psql_is_known_by_its_certificate() {
    uses(
        ("PostgreSQL", "psql, sslkey"),
        ("EC:prime256v1", "postgres"),
        &["psql", "setpriv"],
        |token, _| {
            fs::create_dir(token.path("db"))?;
            of_files(token, "db/server", "rsa:2048")?;
            fs::copy(token.path("site.pem"), token.path("db/root.pem"))?;
            token.program("chmod").line("600 site.key").run()?;
            let allowed = "hostssl all all 127.0.0.1/32 cert map=site\n";
            let (server, port) =
                postgresql::start_with(token, allowed, "site localhost postgres\n")?;
            let connection = format!(
                "host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=verify-full \
             sslrootcert=db/server.pem sslcert=site.pem sslkey=site.key"
            );
            let psql = token.program("psql").args([&connection, "-Atc"]);
            let asked = "SELECT version, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            psql.arg(asked).run()?.with(&["TLSv1.3|/CN=localhost"])?;
            drop(server);
            Ok(())
        },
    );
}

/// A server with a thread for each connection, in Python's own `ssl`.
const PYTHON: &str = "
import http.server, ssl, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'from Python')
    def log_message(self, *what):
        pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('site.pem', 'site.key')
server = http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Page)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
";

#[test]
fn python_serves() {
    let needs = ["/usr/bin/python3", "curl"];
    uses(("Python ssl", "TLS server"), ("rsa:2048", "root"), &needs, |token, _| {
        token.write("server.py", PYTHON)?;
        let port = free_port()?;
        let python = token.program("/usr/bin/python3").arg("server.py").arg(port.to_string());
        let server = python.serve(port, token.home())?;
        for version in ["--tlsv1.3", "--tls-max 1.2"].repeat(3) {
            let answer = nginx::fetch(token, port, version)?;
            ensure!(answer == "from Python", "{answer}");
        }
        drop(server);
        Ok(())
    });
}

/// What `openssl ca` wants beside OpenSSL's configuration with the provider.
const AUTHORITY: &str = "
[ca]
default_ca = authority
[authority]
database = index.txt
new_certs_dir = .
serial = serial
default_md = sha256
default_days = 3
default_crl_days = 3
policy = any
[any]
commonName = supplied
";

#[test]
fn an_authority_signs_certificates_lists_and_answers() {
    for kind in ["rsa:2048", "EC:prime256v1"] {
        uses(("OpenSSL", &format!("ca, ocsp, {kind}")), (kind, "root"), &[], |token, at| {
            let uri = || openssl::uri(token, "site");
            let key = if at == At::File { "site.key".to_owned() } else { uri() };
            let run = |line: &str| token.program("openssl").line(line);
            let own = fs::read_to_string(token.path("openssl.cnf"))?;
            token.write("ca.cnf", own + AUTHORITY)?;
            token.write("index.txt", "")?;
            token.write("serial", "07\n")?;
            let own = "req -new -x509 -days 30 -subj /CN=authority -out ca.pem";
            let own = run(own).line("-addext basicConstraints=critical,CA:TRUE");
            own.args(["-key", &key]).run()?;
            plain(token, "genpkey -algorithm ed25519 -out leaf.key")?;
            run("req -new -key leaf.key -subj /CN=leaf -out leaf.csr").run()?;
            let ca = |line: &str| run("ca -batch -config ca.cnf -cert ca.pem").line(line);
            let ca = |line: &str| ca(line).args(["-keyfile", &key]).run();
            ca("-in leaf.csr -notext -out leaf.pem")?;
            plain(token, "verify -CAfile ca.pem leaf.pem")?;
            ca("-revoke leaf.pem")?;
            ca("-gencrl -out list.pem")?;
            plain(token, "crl -in list.pem -noout -CAfile ca.pem")?;
            let ask = "ocsp -issuer ca.pem -cert leaf.pem -reqout request -no_nonce";
            run(ask).run()?;
            let answer = run("ocsp -index index.txt -CA ca.pem -rsigner ca.pem");
            answer.line("-reqin request -respout answer").args(["-rkey", &key]).run()?;
            let told = without(token.program("openssl"))
                .line("ocsp -respin answer -reqin request -issuer ca.pem -cert leaf.pem")
                .line("-CAfile ca.pem -no_nonce");
            told.output()?.with(&["Response verify OK", "leaf.pem: revoked"]).map(drop)
        });
    }
}
