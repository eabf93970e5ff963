// SPDX-License-Identifier: Apache-2.0
//! Keys of files by our provider for OpenSSL, in mode `all`: what is done counts only if the module counted it.

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{TestToken, check, command, free_port, openssl_provider};

use super::openssl_provider::{
    PAGE, blocks, compile, configure, counted, line, openssl, plain, rose, serves_each,
};

const CLIENT: &str = "OpenSSL, our provider, mode all";
const COMMANDS: &str = include_str!("../../../testdata/openssl-provider/all.txt");

/// The configuration of the page, with what the page adds for this mode, where nothing is in a token and nothing needs a login.
pub(crate) fn configure_all(token: &mut TestToken) -> Result<()> {
    configure_all_and_keys(token)?;
    let text = std::fs::read_to_string(token.path("openssl.cnf"))?;
    let text: Vec<_> = text.lines().filter(|line| !line.starts_with("pin-source")).collect();
    token.write("openssl.cnf", text.join("\n") + "\n").map(|_| ())
}

/// The same with the PIN, for keys of the token beside those of files.
pub(crate) fn configure_all_and_keys(token: &mut TestToken) -> Result<()> {
    configure(token)?;
    let added = PAGE.split("```").find(|text| text.contains("\ndefault_properties"));
    let added = added.context("no configuration for all in the page")?;
    let (start, rest) = added.trim().split_once("\n[metaslot]\n").context("no [metaslot]")?;
    let (section, algorithms) = rest.split_once("\n[").context("no further section")?;
    let start = start.strip_prefix("[start]\n").context("no [start]")?;
    let file = token.path("openssl.cnf");
    let text = std::fs::read_to_string(&file)?;
    let text = text.replace("[start]\n", &format!("[start]\n{start}\n"));
    let text = text.replace("[metaslot]\n", &format!("[metaslot]\n{section}\n"));
    token.write("openssl.cnf", format!("{text}\n[{algorithms}\n")).map(|_| ())
}

/// The modes in which keys of the token are used, as what configures them. Another module may be made of libcrypto itself.
pub(crate) fn modes(token: &TestToken) -> &'static [fn(&mut TestToken) -> Result<()>] {
    if token.is_ours() { &[configure, configure_all_and_keys] } else { &[configure] }
}

/// Another module may be made of libcrypto itself, as SoftHSM is.
fn check_ours(what: &str, needs: &[&str], work: impl FnOnce(&mut TestToken) -> Result<()>) {
    check(CLIENT, what, needs, |token| if token.is_ours() { work(token) } else { Ok(()) });
}

/// What it finds there.
fn prepared(token: &mut TestToken) -> Result<()> {
    configure_all(token)?;
    token.write("message", "what is signed and sealed.\n")?;
    token.write("digest", [7; 32])?;
    token.write("long", "not so short ".repeat(20_000)).map(|_| ())
}

#[test]
fn commands_use_keys_of_files_by_the_module() {
    let (provider, command) = (openssl_provider(), command());
    check_ours("commands", &["openssl", "pkcs11-tool", &provider, &command], |token| {
        prepared(token)?;
        blocks(token, COMMANDS)
    });
}

#[test]
fn a_program_keeps_its_keys_and_their_parts() {
    let provider = openssl_provider();
    let needs = ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/store.h", &provider];
    check_ours("a program with keys of its own", &needs, |token| {
        prepared(token)?;
        for text in [
            "- genrsa -out rsa.key 2048",
            "- ecparam -name P-256 -genkey -noout -out ec.key",
            "- genpkey -algorithm ED25519 -out ed.key",
        ] {
            line(token, text)?;
        }
        let before = counted(token)?;
        for program in ["own", "host"] {
            compile(token, program)?;
            token.program(&format!("./{program}")).line("rsa.key ec.key ed.key").run()?;
        }
        for mechanism in
            ["CKM_SHA256_RSA_PKCS", "CKM_ECDSA_SHA256", "CKM_EDDSA", "CKM_ECDH1_DERIVE"]
        {
            rose(token, mechanism, &before)?;
        }
        Ok(())
    });
}

/// Server and client, their keys and their shares of keys by the module; the other side is OpenSSL.
fn agrees(what: &str, make: &str, mechanisms: &[&str], versions: &[&str]) {
    let (provider, command) = (openssl_provider(), command());
    check_ours(what, &["openssl", "pkcs11-tool", &provider, &command], |token| {
        prepared(token)?;
        line(token, make)?;
        line(token, "- req -new -x509 -key site.key -subj /CN=localhost -out site.pem")?;
        let before = counted(token)?;
        serves_each(token, "site.key", versions)?;
        for mechanism in mechanisms {
            rose(token, mechanism, &before)?;
        }
        let before = counted(token)?;
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let server = plain(token).line("s_server -cert site.pem -key site.key -www -quiet -accept");
        let server = server.arg(&address).serve(port, token.home())?;
        for version in ["-tls1_3", "-tls1_3 -groups P-384", "-tls1_2"] {
            let client = token.program(&openssl());
            let client = client.line("s_client -CAfile site.pem -verify_return_error -brief");
            let client = client.args(["-connect", &address]).line(version);
            let output = client.input("GET / HTTP/1.0\r\n\r\n").run();
            let output = output.with_context(|| server.log())?;
            ensure!(output.told().contains("Verification: OK"), "{version}\n{}", output.told());
        }
        for mechanism in ["CKM_ECDH1_DERIVE", "CKM_EC_KEY_PAIR_GEN"] {
            rose(token, mechanism, &before)?;
        }
        Ok(())
    });
}

#[test]
fn tls_with_an_rsa_key_is_by_the_module() {
    agrees(
        "TLS, RSA",
        "- genrsa -out site.key 2048",
        &["CKM_SHA256_RSA_PKCS_PSS", "CKM_RSA_PKCS", "CKM_ECDH1_DERIVE", "CKM_EC_KEY_PAIR_GEN"],
        &[
            "-tls1_3",
            "-tls1_3 -groups P-256",
            "-tls1_3 -groups X448",
            "-tls1_3 -groups ffdhe2048",
            "-tls1_2",
            "-tls1_2 -cipher kRSA",
            "-tls1_2 -cipher DHE",
            "-tls1 -cipher ECDHE:@SECLEVEL=0",
        ],
    );
}

#[test]
fn tls_with_a_p256_key_is_by_the_module() {
    agrees(
        "TLS, P-256",
        "- ecparam -name P-256 -genkey -noout -out site.key",
        &["CKM_ECDSA_SHA256", "CKM_ECDH1_DERIVE", "CKM_EC_MONTGOMERY_KEY_PAIR_GEN"],
        &["-tls1_3", "-tls1_3 -groups P-521", "-tls1_2"],
    );
}

/// Without the module nothing is done, and why is said; unless the configuration says otherwise.
#[test]
fn without_the_module_openssl_does_it_only_where_that_is_said() {
    let provider = openssl_provider();
    check_ours("no module", &["openssl", "pkcs11-tool", &provider], |token| {
        prepared(token)?;
        line(token, "- genrsa -out rsa.key 2048")?;
        let file = token.path("openssl.cnf");
        let text = std::fs::read_to_string(&file)?;
        let module = token.module().display().to_string();
        let gone = text.replace(&module, "/nowhere/libmetaslot.so");
        token.write("openssl.cnf", &gone)?;
        let why = "PKCS#11 module not usable::-1:cannot load /nowhere/libmetaslot.so";
        for text in [
            "+ dgst -sha256 -sign rsa.key -out sig message",
            "+ pkeyutl -sign -inkey rsa.key -in message -out sig",
            "+ genpkey -algorithm X25519 -out x.key",
        ] {
            line(token, &format!("{text} ! {why}"))?;
        }
        token.write("openssl.cnf", gone.replace("mode = all", "mode = all\nfallback = yes"))?;
        line(token, "+ dgst -sha256 -sign rsa.key -out sig message")?;
        line(token, "- dgst -sha256 -prverify rsa.key -signature sig message => Verified OK")?;
        line(token, "+ genpkey -algorithm X25519 -out x.key")?;
        token.write("openssl.cnf", text.replace("mode = all", "mode = al\nfallback = no"))?;
        line(token, "+ dgst -sha256 -sign rsa.key message ! mode = al: it is 'keys' or 'all'")
    });
}
