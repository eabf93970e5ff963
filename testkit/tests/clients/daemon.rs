// SPDX-License-Identifier: Apache-2.0
//! Programs whose keys are in `metaslotd`: they have neither the token's file nor its PIN.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use metaslot_testkit::{Server, TestToken, check, command, openssl_provider};

use crate::{nginx, openssl_provider as own, provider, recipe};

const SECTION: &str = "OpenSSL 3, with the keys in `metaslotd`";

fn daemon() -> String {
    Path::new(&command()).with_file_name("metaslotd").to_string_lossy().into_owned()
}

/// The daemon as the page has it, for these services: what tests run in has no control group of its own.
fn serve(token: &TestToken, services: &str) -> Result<Server> {
    let home = token.home().display();
    let (database, pin) = (format!("{home}/tokens/token.db"), format!("file:{home}/pin"));
    let socket = token.path("socket");
    let changes = [
        ("/var/lib/metaslotd/web/token.db", &*database),
        ("credential:web", &pin),
        ("/run/metaslotd/socket", &socket.to_string_lossy()),
        ("group = \"metaslot\"", "group = \"www-data\""),
        ("\"cgroup:/system.slice/nginx.service\"", services),
        ("token = \"web\"", "token = \"testing\""),
    ];
    let text = recipe::block(token, SECTION, 0, &changes)?;
    let text = format!("counters = \"{home}/run\"\n{text}");
    let text = text.replace("pin-source", "kdf = \"weak-for-tests\"\npin-source");
    let file = token.write("metaslotd.toml", text)?;
    token.program(&daemon()).arg("--config").arg(file).serve_socket(&socket, token.home())
}

/// From now on programs have the daemon, and nothing else.
fn leave_to_it(token: &mut TestToken) -> Result<()> {
    let home = token.home().display().to_string();
    let socket = token.path("socket").display().to_string();
    let text = recipe::block(token, SECTION, 1, &[("/run/metaslotd/socket", &*socket)])?;
    let file = token.write("client.toml", format!("counters = \"{home}/run\"\n{text}"))?;
    token.set("METASLOT_CONF", file);
    own::configure(token)?;
    let text = fs::read_to_string(token.path("openssl.cnf")).context("read it again")?;
    let lines = text.lines().filter(|line| !line.starts_with("pin-source"));
    token.write("openssl.cnf", lines.collect::<Vec<_>>().join("\n") + "\n")?;
    fs::set_permissions(token.path("run"), fs::Permissions::from_mode(0o1777))
        .context("share the counters")
}

#[test]
fn nginx_signs_by_the_daemon_without_a_pin_and_when_that_has_been_started_again() {
    let (ours, command, daemon) = (openssl_provider(), command(), daemon());
    let needs = provider::needs(&ours, &command, &["nginx", "curl", &daemon]);
    check("nginx, metaslotd", "two workers, a reload, a restart of the daemon", &needs, |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        let services = "\"user:root\", \"user:www-data\"";
        let serving = serve(token, services)?;
        leave_to_it(token)?;
        provider::certificate(token, "site")?;
        let home = token.home().display().to_string();
        let directives = format!(
            "ssl_protocols TLSv1.2 TLSv1.3;\nssl_certificate {home}/site.pem;\nssl_certificate_key {home}/site.key;"
        );
        let variables = "env METASLOT_CONF;\nenv OPENSSL_CONF;";
        let (server, port) = nginx::start(token, variables, &directives)?;
        nginx::both_serve(token, &server, port)?;
        nginx::reload(token, &server, port)?;
        drop(serving);
        ensure!(nginx::fetch(token, port, "").is_err(), "who signs without the daemon?");
        let serving = serve(token, services)?;
        for version in ["--tlsv1.3", "--tls-max 1.2"].repeat(4) {
            let answer = nginx::fetch(token, port, version)?;
            ensure!(answer.starts_with("worker "), "{answer}");
        }
        drop((server, serving));
        // Whom it does not name it gives no key.
        let _serving = serve(token, "\"user:nobody\"")?;
        let refused = token.program("openssl").line("dgst -sha256 -sign");
        let refused = refused.arg("pkcs11:token=testing;object=site;type=private");
        ensure!(refused.args(["-out", "signature", "client.toml"]).run().is_err(), "it signed");
        Ok(())
    });
}

#[test]
fn nginx_is_set_up_with_its_key_in_the_daemon() {
    let (ours, command, daemon) = (openssl_provider(), command(), daemon());
    let needs = provider::needs(&ours, &command, &["nginx", "curl", &daemon]);
    check("nginx, metaslot setup --daemon", "two workers", &needs, |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        let metaslot = |line: &str| token.program(&command).line(line);
        metaslot("cert selfsign site --dns localhost --pin-source pin --out site.pem").run()?;
        let socket = token.path("socket").display().to_string();
        let setup = metaslot("setup nginx --key site --bridge metaslot --directory conf --apply");
        let setup =
            setup.arg(format!("--daemon={socket}")).arg("--cert").arg(token.path("site.pem"));
        let said = setup.run()?.text();
        let client = said.split_once("[[client]]\n").context("no section")?.1;
        let client: Vec<_> = client.lines().take(4).collect();
        let unit = "services = [\"cgroup:/system.slice/nginx.service\"]";
        ensure!(client[0] == unit && client[3] == "operations = [\"sign\"]", "{said}");
        let home = token.home().display().to_string();
        let text = format!(
            "counters = \"{home}/run\"\n[[token]]\npath = \"{home}/tokens/token.db\"\nkdf = \"weak-for-tests\"\n\
             pin-source = \"file:{home}/pin\"\n[daemon]\nsocket = \"{socket}\"\ngroup = \"www-data\"\n[[client]]\n{}\n",
            client.join("\n").replace(unit, "services = [\"user:root\", \"user:www-data\"]")
        );
        let file = token.write("metaslotd.toml", text)?;
        let daemon = token.program(&daemon).arg("--config").arg(file);
        let _serving = daemon.serve_socket(&token.path("socket"), token.home())?;
        token.set("METASLOT_CONF", token.path("conf/metaslot-daemon.toml"));
        token.set("OPENSSL_CONF", token.path("conf/nginx-openssl.cnf"));
        let main = format!("include {home}/conf/nginx-main.conf;");
        let directives = format!("include {home}/conf/nginx-server.conf;");
        let (server, port) = nginx::start(token, &main, &directives)?;
        nginx::both_serve(token, &server, port)?;
        let written =
            fs::read_to_string(token.path("conf/nginx-openssl.cnf")).context("no file")?;
        ensure!(!written.contains("pin"), "{written}");
        Ok(())
    });
}
