// SPDX-License-Identifier: Apache-2.0
//! What `metaslot setup` writes is what the programs need: each is run with it, and asks for no PIN.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, TestToken, check, command, free_port, openssl_provider};

use crate::{apache, nginx, p11_kit, provider};

const CLIENT: &str = "metaslot setup";

/// A key with a certificate, and what the command writes for a program that finds it by a bridge, in `conf`.
fn set_up(token: &mut TestToken, program: &str, bridge: &str) -> Result<()> {
    let metaslot = |line: &str| token.program(&command()).line(line);
    token.key_pair("rsa:2048", "0a01", "site")?;
    metaslot("cert selfsign site --dns localhost --pin-source pin --out site.pem --store").run()?;
    metaslot("cert export site --out site.pem").run()?;
    let apply = || {
        let setup = metaslot("setup --key site --cert").arg(token.path("site.pem"));
        let setup = setup.line("--pin-source pin --directory conf --apply").arg(program);
        setup.line(&by(bridge)).run()
    };
    apply()?;
    ensure!(!apply()?.text().contains("written"), "twice is not as good as once");
    let own = format!("conf/{program}-openssl.cnf");
    for file in ["conf/openssl.cnf", "conf/metaslot-openssl.cnf", &own] {
        if token.path(file).exists() {
            token.set("OPENSSL_CONF", token.path(file));
        }
    }
    Ok(())
}

/// The option.
fn by(bridge: &str) -> String {
    if bridge.is_empty() { String::new() } else { format!("--bridge {bridge}") }
}

fn works(program: &str, needs: &[&str], work: impl Fn(&mut TestToken) -> Result<()>) {
    works_by(program, "", needs, work);
}

/// The same by the engine and by our provider.
fn works_by_both(program: &str, needs: &[&str], work: impl Fn(&mut TestToken) -> Result<()>) {
    let provider = openssl_provider();
    works_by(program, "engine", needs, &work);
    works_by(program, "metaslot", &[needs, &[&*provider]].concat(), &work);
}

fn works_by(
    program: &str,
    bridge: &str,
    needs: &[&str],
    work: impl Fn(&mut TestToken) -> Result<()>,
) {
    let command = command();
    let needs: Vec<&str> = needs.iter().copied().chain([&*command, "pkcs11-tool"]).collect();
    check(CLIENT, format!("{program} {}", by(bridge)).trim(), &needs, |token| {
        if ["nginx", "apache"].contains(&program) {
            token.share("www-data")?;
            std::fs::set_permissions(token.home(), Permissions::from_mode(0o755))?;
        }
        set_up(token, program, bridge)?;
        work(token)
    });
}

/// The lines that are to be typed.
fn then(token: &TestToken, program: &str) -> Result<Vec<String>> {
    let setup = token.program(&command()).line("setup --json --key site --cert site.pem");
    let setup = setup.line("--pin-source pin --directory conf").arg(program).run()?;
    let document: serde_json::Value = serde_json::from_slice(&setup.stdout)?;
    let lines = document["then"].as_array().context("no lines")?;
    Ok(lines.iter().filter_map(|line| line.as_str().map(str::to_owned)).collect())
}

fn shell(token: &TestToken, line: &str) -> Program {
    token.program("sh").args(["-c", line]).limit(Duration::from_secs(60))
}

#[test]
fn openssl() {
    works_by("openssl", "metaslot", &["openssl", &openssl_provider()], |token| {
        token.write("file", "what is signed")?;
        let lines = then(token, "openssl")?;
        let sign = lines.iter().find(|line| line.contains("-sign")).context("no such line")?;
        shell(token, sign).run()?;
        let line = "openssl x509 -in site.pem -noout -pubkey > public.pem && \
                    openssl dgst -sha256 -verify public.pem -signature file.sig file";
        shell(token, line).env("OPENSSL_CONF", "/dev/null").run()?.with(&["Verified OK"]).map(drop)
    });
}

#[test]
fn nginx() {
    works_by_both("nginx", &["nginx", "curl"], |token| {
        let conf = token.path("conf");
        let main = format!("include {}/nginx-main.conf;", conf.display());
        let server = format!("include {}/nginx-server.conf;", conf.display());
        let (_server, port) = nginx::start(token, &main, &server)?;
        for version in ["--tlsv1.3", "--tls-max 1.2"] {
            let answer = nginx::fetch(token, port, version)?;
            ensure!(answer.starts_with("worker "), "{answer}");
        }
        let pid = std::fs::read_to_string(token.path("nginx.pid"))?;
        let looked = token.program(&command()).line("doctor --pid").arg(pid.trim()).output()?;
        let master = format!("nginx (process {}) has loaded", pid.trim());
        ensure!(looked.text().contains(&master), "{}", looked.told());
        ensure!(looked.text().contains("root may use"), "{}", looked.told());
        Ok(())
    });
}

#[test]
fn apache() {
    works_by_both("apache", &["apache2", "curl"], |token| {
        let conf = token.path("conf").display().to_string();
        let directives =
            format!("Include {conf}/apache-main.conf\nInclude {conf}/apache-server.conf");
        let (_server, port) = apache::start(token, &directives)?;
        let answer = nginx::fetch(token, port, "--tlsv1.3")?;
        ensure!(answer == "from the server", "{answer}");
        Ok(())
    });
}

#[test]
fn stunnel() {
    works_by_both("stunnel", &["stunnel4", "openssl"], |token| {
        let port = free_port()?;
        let text = std::fs::read_to_string(token.path("conf/stunnel.conf"))?
            .replace("accept = 4433", &format!("accept = 127.0.0.1:{port}"))
            .replace("connect = 127.0.0.1:8080", "exec = /bin/echo\nexecArgs = echo through");
        token.write("stunnel.conf", format!("foreground = yes\npid =\n{text}"))?;
        let stunnel = token.program("stunnel4");
        let _server = stunnel.arg(token.path("stunnel.conf")).serve(port, token.home())?;
        token
            .program("openssl")
            .env("OPENSSL_CONF", "/dev/null")
            .line("s_client -quiet -verify_return_error -CAfile site.pem -connect")
            .arg(format!("127.0.0.1:{port}"))
            .run()?
            .with(&["through"])
            .map(drop)
    });
}

#[test]
fn java() {
    works("java", &["keytool"], |token| {
        let lines = then(token, "java")?;
        let list = lines.first().context("no line")?;
        let listed = shell(token, &format!("{list} -storepass 123456")).run()?;
        listed.with(&["site, PrivateKeyEntry"]).map(drop)
    });
}

#[test]
fn strongswan() {
    works("strongswan", &["pki", "openssl"], |token| {
        let lines = then(token, "strongswan")?.join("\n");
        let made = shell(token, &lines).input("123456\n").run()?.text();
        ensure!(made.contains("-----BEGIN CERTIFICATE"), "{made}");
        Ok(())
    });
}

#[test]
fn gnutls() {
    works("gnutls", &["p11tool"], |token| {
        let lines = then(token, "gnutls")?;
        let list = lines.first().context("no line")?;
        shell(token, list).env("GNUTLS_PIN", "123456").run()?.with(&["Label: site"]).map(drop)
    });
}

/// As they are printed, in one shell.
#[test]
fn git_signs_by_the_lines_that_are_to_be_typed() {
    works("git", &["git", "ssh-agent", "ssh-add"], |token| {
        let askpass = token.write("askpass", "#!/bin/sh\ncat pin\n")?;
        std::fs::set_permissions(&askpass, Permissions::from_mode(0o700))?;
        token.set("SSH_ASKPASS", askpass);
        token.set("SSH_ASKPASS_REQUIRE", "force");
        let command = Path::new(&command()).parent().context("a command")?.display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        token.set("PATH", format!("{command}:{path}"));
        token.program("git").line("init -q .").run()?;
        let lines = then(token, "git")?.join("\n");
        let line = lines.replace(
            "commit -S",
            "-c user.name=Me -c user.email=me@example.org commit -S --allow-empty -m text",
        );
        shell(token, &format!("trap 'ssh-agent -k' EXIT; set -e; {line}")).run()?;
        token
            .program("git")
            .line("cat-file commit HEAD")
            .run()?
            .with(&["BEGIN SSH SIGNATURE"])
            .map(drop)
    });
}

#[test]
fn every_other_recipe_has_lines() {
    works("curl", &["curl"], |token| {
        for program in
            ["osslsigncode", "curl", "postgresql", "nss", "p11-kit", "ssh", "knot", "openvpn"]
        {
            ensure!(!then(token, program)?.is_empty(), "{program}");
        }
        Ok(())
    });
}

/// What the command itself says of a run of a program that uses a key of this kind by a bridge, as a user whose group may use the
/// token. Their processes count in a directory of the run.
fn verified(program: &str, bridge: &str, kind: &str, group: &str, needs: &[&str]) {
    let (command, file) = (command(), file(bridge));
    let needs = [needs, &[&*command, "pkcs11-tool", "openssl"]].concat();
    let needs: Vec<&str> = needs.into_iter().chain(file.as_deref()).collect();
    let what = format!("{program} --verify {}, {kind}", by(bridge));
    check(CLIENT, &what.replace(" ,", ","), &needs, |token| {
        token.key_pair(kind, "0a01", "site")?;
        token.share(group)?;
        find(token)?;
        std::fs::set_permissions(token.home(), Permissions::from_mode(0o755))?;
        if ["haproxy", "mariadb", "postgres"].contains(&program) {
            // The user of the service reads it.
            std::fs::set_permissions(token.path("pin"), Permissions::from_mode(0o644))?;
        }
        let metaslot = |line: &str| token.program(&command).line(line);
        metaslot("cert selfsign site --dns localhost --pin-source pin --out site.pem --store")
            .run()?;
        metaslot("cert export site --out site.pem").run()?;
        let verify = metaslot("setup --apply --verify --key site --cert site.pem --pin-source pin");
        let verify = verify.line("--directory conf").arg(program).line(&by(bridge));
        verify.run()?.with(&["verified: "]).map(drop)
    });
}

/// The file of a bridge, where it is not the engine's.
fn file(bridge: &str) -> Option<String> {
    match bridge {
        "metaslot" => Some(openssl_provider()),
        "pkcs11-provider" => Some(provider::path()),
        _ => None,
    }
}

/// Where Debian 12 has no package for pkcs11-provider.
fn find(token: &mut TestToken) -> Result<()> {
    let provider = provider::path();
    token.set("OPENSSL_MODULES", Path::new(&provider).parent().context("a file")?);
    Ok(())
}

/// Programs that speak to the module.
const ALONE: &[&str] = &[""];
/// Those of OpenSSL's, and among them the servers that read PEM files only.
const OPENSSL: &[&str] = &["metaslot", "engine", "pkcs11-provider"];
const PEM: &[&str] = &["metaslot", "pkcs11-provider"];

/// A program, the group that uses the token in its service, what a run needs, and by what it finds the key.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const PROGRAMS: &[Row] = &[
    ("openssl", "root", &[], OPENSSL),
    ("curl", "root", &["curl"], OPENSSL),
    ("postgresql", "root", &["psql", "setpriv"], OPENSSL),
    ("osslsigncode", "root", &["osslsigncode"], OPENSSL),
    ("nginx", "www-data", &["nginx"], OPENSSL),
    ("apache", "www-data", &["apache2"], OPENSSL),
    ("stunnel", "root", &["stunnel4"], OPENSSL),
    ("java", "root", &["keytool"], ALONE),
    ("nss", "root", &["certutil", "modutil"], ALONE),
    ("gnutls", "root", &["p11tool"], ALONE),
    ("ssh", "root", &["ssh", "ssh-agent"], ALONE),
    ("git", "root", &["git", "ssh-agent"], ALONE),
    ("strongswan", "root", &["pki"], ALONE),
    ("openvpn", "root", &["openvpn", "perl"], ALONE),
    ("knot", "root", &["keymgr", "kzonesign"], ALONE),
    ("haproxy", "haproxy", &["haproxy"], PEM),
    ("mariadb", "mysql", &["mariadbd"], PEM),
    ("postgres", "postgres", &["pg_ctlcluster", "setpriv"], PEM),
];

/// Those that find keys by this bridge.
fn all_by(bridge: &str, kinds: &[&str]) {
    for (program, group, needs, bridges) in PROGRAMS {
        for kind in kinds.iter().filter(|_| bridges.contains(&bridge)) {
            verified(program, bridge, kind, group, needs);
        }
    }
}

/// It is asked for the PIN by the token's label, between quotes.
#[test]
fn openvpn_is_given_the_pin_of_a_token_whose_label_has_quotes() {
    let command = command();
    let needs = [&*command, "openvpn", "perl", "openssl", "pkcs11-tool"];
    check(CLIENT, "openvpn --verify, a label with quotes", &needs, |token| {
        token.key_pair("EC:prime256v1", "0a01", "site")?;
        let metaslot = |line: &str| token.program(&command).line(line);
        metaslot("token rename").arg("it's \"1\"").line("--pin-source pin").run()?;
        metaslot("cert selfsign site --pin-source pin --store").run()?;
        let verify = metaslot("setup openvpn --apply --verify --key site --pin-source pin");
        verify.line("--directory conf").run()?.with(&["verified: "]).map(drop)
    });
}

#[test]
fn programs_are_seen_to_use_the_key() {
    all_by("", &["rsa:2048", "EC:prime256v1"]);
    for (program, needs) in [("gnutls", &["p11tool"][..]), ("knot", &["keymgr", "kzonesign"])] {
        verified(program, "", "EC:edwards25519", "root", needs);
    }
}

#[test]
fn programs_are_seen_to_use_the_key_by_the_engine() {
    all_by("engine", &["rsa:2048", "EC:prime256v1"]);
}

#[test]
fn programs_are_seen_to_use_the_key_by_pkcs11_provider() {
    all_by("pkcs11-provider", &["rsa:2048"]);
}

#[test]
fn programs_are_seen_to_use_an_rsa_key_by_our_provider() {
    all_by("metaslot", &["rsa:2048"]);
}

#[test]
fn programs_are_seen_to_use_keys_on_curves_by_our_provider() {
    all_by("metaslot", &["EC:prime256v1"]);
    let takes = |program: &str| program != "osslsigncode";
    for (program, group, needs, bridges) in PROGRAMS {
        if bridges.contains(&"metaslot") && takes(program) {
            verified(program, "metaslot", "EC:edwards25519", group, needs);
        }
    }
}

/// A token, its PINs, a key and a certificate are made, as the program and its service's user need them.
#[test]
fn programs_use_a_key_that_is_made_for_them() {
    let command = command();
    for (program, group, needs, bridges) in PROGRAMS {
        let file = file(bridges[0]);
        let needs = needs.iter().copied().chain([&*command, "openssl", "pkcs11-tool"]);
        let needs: Vec<&str> = needs.chain(file.as_deref()).collect();
        check(CLIENT, &format!("{program} --new --verify"), &needs, |token| {
            let configuration = format!(
                "[[token]]\npath = \"{}/new/token.db\"\nkdf = \"weak-for-tests\"\ngroup = \"{group}\"\n",
                token.home().display()
            );
            let configuration = token.write("new.toml", configuration)?;
            token.set("METASLOT_CONF", configuration);
            std::fs::set_permissions(token.home(), Permissions::from_mode(0o755))?;
            let made = token.program(&command).line("setup --new site --dns localhost --directory");
            let made = made.line("conf --apply --verify").arg(program).line(&by(bridges[0]));
            made.run()?.with(&["verified: "]).map(drop)
        });
    }
}

#[test]
fn a_pin_that_the_user_of_the_service_may_not_read_is_what_is_said() {
    let (command, provider) = (command(), openssl_provider());
    let needs = [&*command, &*provider, "mariadbd", "openssl", "pkcs11-tool"];
    check(CLIENT, "a PIN of another user", &needs, |token| {
        if token.program("id").arg("-u").run()?.text().trim() != "0" {
            return Ok(());
        }
        token.key_pair("rsa:2048", "0a01", "site")?;
        token.share("mysql")?;
        std::fs::set_permissions(token.home(), Permissions::from_mode(0o755))?;
        std::fs::set_permissions(token.path("pin"), Permissions::from_mode(0o600))?;
        let metaslot = |line: &str| token.program(&command).line(line);
        metaslot("cert selfsign site --dns localhost --pin-source pin --out site.pem").run()?;
        let setup = metaslot("setup mariadb --bridge metaslot --apply --verify --key site");
        let told = setup.line("--cert site.pem --pin-source pin --directory conf").output()?;
        told.with(&["mysql may not read the file with the PIN", "hint: chgrp mysql "]).map(drop)
    });
}

/// libp11's engine (0.4.12) finds no key of a token that has a key of another kind than it knows.
#[test]
fn what_stands_in_an_engines_way_is_said_before_anything_is_written() {
    let command = command();
    let needs = [&*command, "openssl", "curl", "pkcs11-tool"];
    check(CLIENT, "an Ed25519 key beside", &needs, |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        token.key_pair("EC:edwards25519", "02", "other")?;
        let setup = |line: &str| token.program(&command).line("setup").line(line);
        for line in [
            "openssl --bridge engine --directory conf --apply --key site --pin-source pin",
            "curl --bridge engine --directory conf --apply --new more --pin-source pin",
            "nginx --bridge engine --directory conf --key site",
        ] {
            let told = setup(line).output()?;
            ensure!(told.status == 1, "{}", told.told());
            ensure!(told.all().contains("one of type ed25519: "), "{}", told.told());
        }
        ensure!(!token.path("conf").exists(), "something was written");
        let keys = token.program(&command).line("key list --pin-source pin").run()?.text();
        ensure!(!keys.contains("more"), "{keys}");
        let told = setup("ssh --key other --apply --directory ssh").output()?;
        told.with(&["OpenSSH before 10.1 takes no ed25519 key from a token"]).map(drop)
    });
}

#[test]
fn p11_kit_is_seen_to_use_the_key() {
    let command = command();
    let needs = [&*command, "p11-kit", "openssl", "pkcs11-tool", "setpriv"];
    check(CLIENT, "p11-kit --verify", &needs, |token| {
        for (kind, id, label) in [("rsa:2048", "0a01", "site"), ("EC:prime256v1", "0a02", "other")]
        {
            token.key_pair(kind, id, label)?;
        }
        let apply = "setup p11-kit --apply --directory conf --key";
        token.program(&command).line(apply).arg("site").run()?;
        let line = std::fs::read_to_string(token.path("conf/metaslot.module"))?;
        p11_kit::configure(token, &line)?;
        for key in ["site", "other"] {
            let verify = token.program(&command).line(apply).arg(key);
            let verified = verify.line("--verify --pin-source pin").run()?;
            verified.with(&["verified: p11-kit-remote "])?;
        }
        Ok(())
    });
}

#[test]
fn doctor_says_where_it_is_about_the_rights_of_who_asks() {
    let command = command();
    check("metaslot doctor", "another user", &[&*command, "setpriv", "pkcs11-tool"], |token| {
        if token.program("id").arg("-u").run()?.text().trim() != "0" {
            return Ok(());
        }
        std::fs::set_permissions(token.home(), Permissions::from_mode(0o755))?;
        std::fs::set_permissions(token.path("tokens"), Permissions::from_mode(0o700))?;
        let user = "setpriv --reuid nobody --regid nogroup --clear-groups";
        token.within(user.split(' ').map(Into::into));
        let told = token.program(&command).arg("doctor").output()?.all();
        for (check, words) in [
            ("slots ", "nobody may not use"),
            ("files ", "nobody may not use it: "),
            ("  ", "it is about rights: ask as root"),
        ] {
            let found = told.lines().any(|line| line.starts_with(check) && line.contains(words));
            ensure!(found, "{check}{words}: {told}");
        }
        ensure!(!told.contains("not made yet"), "{told}");
        std::fs::set_permissions(token.path("metaslot.toml"), Permissions::from_mode(0o600))?;
        let told = token.program(&command).arg("doctor").output()?;
        told.with(&["it is about rights: chmod a+r "]).map(drop)
    });
}

#[test]
fn a_program_that_does_not_use_the_key_is_not_verified() {
    let command = command();
    check(
        CLIENT,
        "--verify that fails",
        &[&command, "p11-kit", "openssl", "pkcs11-tool"],
        |token| {
            token.key_pair("rsa:2048", "0a01", "site")?;
            let verify = |program: &str, line: &str| {
                let setup = token.program(&command).line("setup --key site --directory conf");
                setup.line(line).arg(program).output()
            };
            // Nobody has told p11-kit of the module.
            let told = verify("p11-kit", "--apply --verify --pin-source pin")?;
            ensure!(told.status == 1 && told.told().contains("p11-kit"), "{}", told.told());
            let told = verify("openssl", "--verify --pin-source pin")?;
            ensure!(told.told().contains("is not as it would be written"), "{}", told.told());
            ensure!(!token.path("conf/openssl.cnf").exists(), "it was written");
            Ok(())
        },
    );
}
