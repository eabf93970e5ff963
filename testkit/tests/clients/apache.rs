// SPDX-License-Identifier: Apache-2.0
//! Apache: a process for each connection, forked, and of another user.

use anyhow::{Result, ensure};
use metaslot_testkit::{Server, TestToken, check, find_program, free_port};

use crate::processes::children_of;
use crate::{nginx, openssl, recipe};

const CLIENT: &str = "Apache, engine pkcs11";
const NEEDS: &[&str] = &["apache2", "curl", "openssl", "pkcs11-tool"];

/// Children of another user; `directives` are what the token needs.
pub(crate) fn start(token: &TestToken, directives: &str) -> Result<(Server, u16)> {
    let (port, home) = (free_port()?, token.home().display());
    let apache = find_program("apache2").unwrap_or_default();
    let modules = apache.with_file_name("").join("../lib/apache2/modules");
    let module =
        |name: &str| format!("LoadModule {name}_module {}/mod_{name}.so\n", modules.display());
    let modules: String =
        ["mpm_prefork", "authz_core", "ssl", "alias"].iter().map(|name| module(name)).collect();
    token.write(
        "apache.conf",
        format!(
            "ServerRoot {home}\nServerName localhost\nPidFile {home}/apache.pid\nListen 127.0.0.1:{port}\n\
             User www-data\nGroup www-data\n{modules}Mutex file:{home}/run default\nErrorLog {home}/error.log\n\
             {directives}\nRedirect 404 /\nErrorDocument 404 \"from the server\"\n"
        ),
    )?;
    let program = token.program("apache2").arg("-DFOREGROUND").arg("-f");
    let server = program.arg(token.path("apache.conf")).serve(port, token.home())?;
    Ok((server, port))
}

/// Children of before and after a restart.
pub(crate) fn serve_and_restart(token: &TestToken, server: &Server, port: u16) -> Result<()> {
    for signal in ["USR1", "CONT"] {
        for version in ["--tlsv1.3", "--tls-max 1.2"].repeat(3) {
            let answer = nginx::fetch(token, port, version)?;
            ensure!(answer == "from the server", "{answer}");
        }
        children_of(server, "www-data")?;
        server.signal(signal)?;
    }
    Ok(())
}

#[test]
fn children_without_rights_serve_before_and_after_a_restart() {
    check(CLIENT, "forked children, a restart", NEEDS, |token| {
        token.key_pair("rsa:2048", "01", "site")?;
        token.share("www-data")?;
        token.spy()?;
        openssl::configure(token)?;
        openssl::certificate(token, "site", "site.pem")?;
        token.spied()?;
        let certificate = token.path("site.pem").display().to_string();
        let changes = [("/etc/apache2/site.pem", &*certificate)];
        let directives = recipe::block(token, "Apache", 0, &changes)?;
        let (server, port) = start(token, &directives)?;
        serve_and_restart(token, &server, port)?;
        drop(server);
        token.called("apache")
    });
}
