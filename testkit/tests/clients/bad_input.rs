// SPDX-License-Identifier: Apache-2.0
//! What cannot work is said by the program, or, where it drops OpenSSL's reasons, on its standard error: the URI, and why.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, ensure};
use metaslot_testkit::{Program, TestToken, check, command, find_program, openssl_provider};

use crate::{openssl_provider as own, provider};

/// What is wrong: what is changed in the configuration, and what is said after the URI.
const CAUSES: [(&str, [&str; 2], &str); 3] = [
    ("no token", ["", ""], "there is no such token"),
    ("a wrong PIN", ["/pin\n", "/wrong\n"], "(wrong PIN, "),
    ("no module", ["libmetaslot.so", "none.so"], "none.so: cannot open shared object file"),
];

/// A program, its configuration, how it is started, and what it says in the place of OpenSSL's reason, if it drops that.
type Row = (&'static str, &'static str, &'static str, Option<&'static str>);

const PROGRAMS: [Row; 6] = [
    ("openssl", "", "pkey -in KEY -noout", Some("unsupported")),
    ("openssl", "", "pkey -in URI -noout", None),
    (
        "nginx",
        "events { }\nhttp { server { listen 127.0.0.1:1 ssl; ssl_certificate HOME/site.pem; ssl_certificate_key HOME/KEY; } }\n",
        "-t -q -e stderr -c FILE",
        None,
    ),
    (
        "haproxy",
        "frontend site\n mode http\n bind 127.0.0.1:1 ssl crt HOME/both.pem\n",
        "-c -f FILE",
        Some("No Private Key found"),
    ),
    (
        "apache2",
        "ServerRoot HOME\nServerName localhost\nPidFile HOME/pid\nListen 127.0.0.1:1\nErrorLog /dev/stderr\n\
         Mutex file:HOME/run default\nLoadModule mpm_prefork_module MODULES/mod_mpm_prefork.so\n\
         LoadModule authz_core_module MODULES/mod_authz_core.so\nLoadModule ssl_module MODULES/mod_ssl.so\n\
         SSLEngine on\nSSLCertificateFile HOME/site.pem\nSSLCertificateKeyFile HOME/KEY\n",
        "-DFOREGROUND -f FILE",
        Some("Private key not found"),
    ),
    (
        "/usr/bin/python3",
        "import ssl\nssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain('HOME/site.pem', 'HOME/KEY')\n",
        "FILE",
        Some("ssl.SSLError"),
    ),
];

/// What a program is told of a key that it cannot have.
fn program(
    token: &TestToken,
    (name, text, line, _): Row,
    [key, uri]: [&str; 2],
) -> Result<Program> {
    let modules = find_program("apache2").unwrap_or_default();
    let modules = modules.with_file_name("").join("../lib/apache2/modules").display().to_string();
    let text = text.replace("HOME", &token.home().display().to_string());
    let file =
        token.write("program.conf", text.replace("MODULES", &modules).replace("KEY", key))?;
    let words = line.split(' ').map(|word| match word {
        "FILE" => file.display().to_string(),
        "KEY" => key.to_owned(),
        "URI" => uri.to_owned(),
        word => word.to_owned(),
    });
    Ok(token.program(name).args(words))
}

#[test]
fn programs_say_which_uri_fails_and_why() {
    let (file, command) = (openssl_provider(), command());
    let needs =
        provider::needs(&file, &command, &["nginx", "haproxy", "apache2", "/usr/bin/python3"]);
    check("our provider", "bad input", &needs, |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        own::configure(token)?;
        provider::certificate(token, "site")?;
        token.write("wrong", "271828")?;
        let good = fs::read_to_string(token.path("openssl.cnf"))?;
        let [here, nowhere] = ["testing", "nowhere"]
            .map(|name| format!("pkcs11:token={name};object=site;type=private"));
        let named = token.program(&command).args(["uri2pem", "--as-is", &nowhere]);
        named.line("--out nowhere.key").run()?;
        for ((what, [old, new], why), row) in
            CAUSES.into_iter().flat_map(|cause| PROGRAMS.map(|row| (cause, row)))
        {
            if !token.is_ours() && what != "no token" {
                continue;
            }
            let [key, uri] =
                if old.is_empty() { ["nowhere.key", &nowhere] } else { ["site.key", &here] };
            let both = [token.path("site.pem"), token.path(key)].map(fs::read_to_string);
            token.write("both.pem", both.into_iter().collect::<std::io::Result<String>>()?)?;
            // A right PIN in between, so that the token takes further ones.
            token.pkcs11_user().arg("--list-objects").run()?;
            for errors in ["", "errors = stderr\n"] {
                let text = if old.is_empty() { good.clone() } else { good.replace(old, new) };
                token.write(
                    "openssl.cnf",
                    text.replace("pkcs11-module", &format!("{errors}pkcs11-module")),
                )?;
                let output = program(token, row, [key, uri])?.output()?;
                let told = output.told();
                let is_said = told
                    .lines()
                    .any(|line| line.contains(&format!("{uri}: ")) && line.contains(why));
                let context = || format!("{what}, {}, {errors}: {told}", row.0);
                ensure!(
                    output.status != 0 && is_said == (row.3.is_none() || !errors.is_empty()),
                    "{}",
                    context()
                );
                ensure!(told.contains(row.3.unwrap_or_default()), "{}", context());
                let lines: Vec<_> =
                    told.lines().filter(|line| line.starts_with("metaslot: ")).collect();
                let once = lines.iter().collect::<BTreeSet<_>>().len() == lines.len();
                ensure!(once && lines.is_empty() == errors.is_empty(), "{}", context());
            }
        }
        Ok(())
    });
}
