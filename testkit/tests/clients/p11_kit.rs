// SPDX-License-Identifier: Apache-2.0
//! p11-kit: a server that gives the token to other processes by a socket, the proxy, and a module in another process.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{TestToken, USER_PIN, check};

use crate::recipe;

const CLIENT: &str = "p11-kit";
/// Where the page has it.
const CLIENT_MODULE: &str = "/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so";
const NEEDS: &[&str] = &["p11-kit", "pkcs11-tool", "openssl"];
const LIBRARIES: &[&str] = &["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];

fn library(name: &str) -> Result<String> {
    let mut paths = LIBRARIES.iter().map(|at| format!("{at}/{name}"));
    paths.find(|path| Path::new(path).exists()).with_context(|| format!("{name} is not installed"))
}

#[test]
fn a_token_is_used_through_its_server() {
    check(CLIENT, "server and client", NEEDS, |token| {
        token.key_pair("rsa:2048", "01", "site")?;
        token.write("file", "what is signed")?;
        token.spy()?;
        // It ends when its command's input does, and forks otherwise.
        let socket = token.path("socket");
        let here = socket.display().to_string();
        let changes =
            [("p11-kit server", "p11-kit server --foreground"), ("/run/user/1000/web", &*here)];
        let server = recipe::command(token, ("p11-kit", 0), "p11-kit server", &changes)?;
        let server = server.serve_socket(&socket, token.home())?;
        let client = library("pkcs11/p11-kit-client.so")?;
        let login = format!("--login --pin {USER_PIN}");
        let changes =
            [(CLIENT_MODULE, &*client), ("/run/user/1000/web", &*here), ("--login", &*login)];
        for _ in 0..3 {
            let signs = recipe::command(token, ("p11-kit", 0), "P11_KIT_SERVER_ADDRESS", &changes)?;
            signs.limit(Duration::from_secs(20)).run()?;
            token
                .pkcs11_tool()
                .line("--read-object --type pubkey --id 01 --output-file public.der")
                .run()?;
            let verified = token
                .program("openssl")
                .line("dgst -sha256 -keyform DER -verify public.der -signature file.sig file")
                .run()?;
            ensure!(verified.text().contains("Verified OK"), "{}", verified.told());
        }
        drop(server);
        token.called("p11-kit")
    });
}

/// Puts the module into a user's configuration of p11-kit, and no other. What root wants is not read there, so programs
/// run as another user from now on.
pub(crate) fn configure(token: &mut TestToken, line: &str) -> Result<()> {
    let directory = token.path("config/pkcs11");
    std::fs::create_dir_all(directory.join("modules")).context("make the directory")?;
    std::fs::write(directory.join("pkcs11.conf"), "user-config: only\n")?;
    std::fs::write(directory.join("modules/metaslot.module"), line)?;
    if token.program("id").arg("-u").run()?.text().trim() == "0" {
        std::fs::set_permissions(token.home(), std::fs::Permissions::from_mode(0o755))?;
        token.program("chown").line("-R nobody:nogroup .").run()?;
        let user = "setpriv --reuid nobody --regid nogroup --clear-groups";
        token.within(user.split(' ').map(Into::into));
    }
    Ok(())
}

/// Signs through the module of all modules, which finds ours by the page's file, changed so.
fn signs_through_the_proxy(what: &str, summary: &str, changes: &[(&str, &str)]) {
    let needs: Vec<&str> = NEEDS.iter().copied().chain(["setpriv"]).collect();
    check(CLIENT, what, &needs, |token| {
        token.key_pair("rsa:2048", "01", "site")?;
        token.write("file", "what is signed")?;
        token.pkcs11_tool().line("--read-object --type pubkey --id 01 -o public.der").run()?;
        token.spy()?;
        let page = recipe::block(token, "p11-kit", 1, changes)?;
        configure(token, &page)?;
        token
            .program("p11-kit")
            .arg("list-modules")
            .run()?
            .with(&["metaslot:", "token: testing"])?;
        let login = format!("-label {} --login --pin {USER_PIN}", token.label());
        let changes = [("-label web --login", &*login)];
        recipe::command(token, ("p11-kit", 2), "--module", &changes)?.run()?;
        token
            .program("openssl")
            .line("dgst -sha256 -keyform DER -verify public.der -signature file.sig file")
            .run()?;
        token.called(summary)
    });
}

#[test]
fn a_module_file_makes_it_one_of_the_proxys_modules() {
    signs_through_the_proxy("list-modules, proxy", "p11-kit-proxy", &[]);
}

#[test]
fn a_module_is_run_in_a_process_of_its_own() {
    let changes = [("module: ", "remote: |p11-kit remote ")];
    signs_through_the_proxy("remote", "p11-kit-remote", &changes);
}
