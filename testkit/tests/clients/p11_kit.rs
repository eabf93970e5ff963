// SPDX-License-Identifier: Apache-2.0
//! p11-kit: a server that gives the token to other processes by a socket.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{USER_PIN, check};

const CLIENT: &str = "p11-kit";
const NEEDS: &[&str] = &["p11-kit", "pkcs11-tool", "openssl"];
const LIBRARIES: &[&str] = &["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];

fn client() -> Result<String> {
    let paths = LIBRARIES.iter().map(|at| format!("{at}/pkcs11/p11-kit-client.so"));
    paths.into_iter().find(|path| std::path::Path::new(path).exists()).context("p11-kit-modules")
}

#[test]
fn a_token_is_used_through_its_server() {
    check(CLIENT, "server and client", NEEDS, |token| {
        token.key_pair("rsa:2048", "01", "site")?;
        token.write("message", "what is signed")?;
        token.spy()?;
        // It ends when its command's input does, and forks otherwise.
        let uri = format!("pkcs11:token={}", token.label());
        let socket = token.path("socket");
        let server = token
            .program("p11-kit")
            .args(["server", "--foreground", "--provider"])
            .arg(token.module())
            .arg("--name")
            .arg(&socket)
            .arg(&uri)
            .serve_socket(&socket, token.home())?;
        let address = format!("unix:path={}", socket.display());
        for _ in 0..3 {
            token
                .program("pkcs11-tool")
                .env("P11_KIT_SERVER_ADDRESS", &address)
                .limit(Duration::from_secs(20))
                .args(["--module", &client()?, "--login", "--pin", USER_PIN])
                .line("--sign -m SHA256-RSA-PKCS --id 01")
                .line("--input-file message --output-file signature")
                .run()?;
            token
                .pkcs11_tool()
                .line("--read-object --type pubkey --id 01 --output-file public.der")
                .run()?;
            let verified = token
                .program("openssl")
                .line("dgst -sha256 -keyform DER -verify public.der -signature signature message")
                .run()?;
            ensure!(verified.text().contains("Verified OK"), "{}", verified.told());
        }
        drop(server);
        token.called("p11-kit")
    });
}

#[test]
fn the_module_is_listed_by_its_file() {
    check(CLIENT, "list-modules", NEEDS, |token| {
        let modules = token.path("config/pkcs11/modules");
        std::fs::create_dir_all(&modules)?;
        let text = format!("module: {}\n", token.module().display());
        std::fs::write(modules.join("metaslot.module"), text)?;
        if token.program("id").arg("-u").run()?.text().trim() == "0" {
            // It does not read a user's files for root.
            return Ok(());
        }
        token.program("p11-kit").arg("list-modules").run()?.with(&["metaslot", token.label()])?;
        Ok(())
    });
}
