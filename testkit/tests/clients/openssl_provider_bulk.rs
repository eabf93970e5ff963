// SPDX-License-Identifier: Apache-2.0
//! Digests, ciphers, MACs, key derivation and random bytes by our provider for OpenSSL, in mode `all`: OpenSSL without it says what is right, and what is
//! done counts only if the module counted it.

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{TestToken, check, command, free_port, openssl_provider};

use super::openssl_provider::{compile, counted, line, openssl, plain, rose, wrapped};
use super::openssl_provider_all::configure_all;

const CLIENT: &str = "OpenSSL, our provider, mode all";

/// The configuration, with what has random bytes made by the module.
pub(crate) fn configure(token: &mut TestToken) -> Result<()> {
    configure_all(token)?;
    let text = std::fs::read_to_string(token.path("openssl.cnf"))?;
    let text = text.replacen("[start]\n", "[start]\nrandom = random\n", 1);
    token.write("openssl.cnf", text + "[random]\nrandom = METASLOT-RAND\n").map(|_| ())
}

/// What `testdata/openssl-provider/bulk.c` does with every algorithm of an operation, and the mechanisms that it does it by.
fn compares(operation: &str, mechanisms: &str) {
    let (provider, command) = (openssl_provider(), command());
    let needs =
        ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/evp.h", &provider, &command];
    check(CLIENT, operation, &needs, |token| {
        configure(token)?;
        compile(token, "bulk")?;
        let before = counted(token)?;
        token.program("./bulk").arg(operation).run()?;
        mechanisms.split_whitespace().try_for_each(|mechanism| rose(token, mechanism, &before))
    });
}

#[test]
fn digests_are_those_of_openssl() {
    compares("digests", "CKM_SHA_1 CKM_SHA256 CKM_SHA512 CKM_SHA512_256 CKM_SHA3_256");
}

#[test]
fn ciphers_are_those_of_openssl_however_a_message_is_cut() {
    compares(
        "ciphers",
        "CKM_AES_GCM CKM_AES_CCM CKM_CHACHA20_POLY1305 CKM_AES_CBC CKM_AES_CTR CKM_AES_CFB128 CKM_AES_OFB \
         CKM_AES_ECB CKM_AES_XTS CKM_AES_CFB8 CKM_AES_CFB1 CKM_AES_KEY_WRAP CKM_AES_KEY_WRAP_KWP",
    );
}

#[test]
fn macs_are_those_of_openssl() {
    compares("macs", "CKM_SHA256_HMAC CKM_SHA3_256_HMAC CKM_AES_CMAC CKM_AES_GMAC");
}

#[test]
fn derived_keys_are_those_of_openssl() {
    compares("kdfs", "CKM_HKDF_DERIVE CKM_PKCS5_PBKD2");
}

#[test]
fn random_bytes_are_the_tokens() {
    compares("random", "");
}

#[test]
fn calls_in_any_order_are_answered_as_by_openssl() {
    let (provider, command) = (openssl_provider(), command());
    let needs =
        ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/evp.h", &provider, &command];
    check(CLIENT, "calls in any order", &needs, |token| {
        configure(token)?;
        compile(token, "orders")?;
        if token.is_ours() { token.program("./orders").run().map(drop) } else { Ok(()) }
    });
}

/// Our module, for others may free what they like.
#[test]
fn freed_memory_has_nothing_of_a_message() {
    let (provider, command) = (openssl_provider(), command());
    let needs =
        ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/evp.h", &provider, &command];
    check(CLIENT, "freed memory", &needs, |token| {
        configure(token)?;
        compile(token, "freed")?;
        if token.is_ours() { token.program("./freed").run().map(drop) } else { Ok(()) }
    });
}

#[test]
fn sessions_that_others_close_are_opened_again() {
    let (provider, command) = (openssl_provider(), command());
    let needs =
        ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/evp.h", &provider, &command];
    check(CLIENT, "sessions that others close", &needs, |token| {
        configure(token)?;
        compile(token, "gone")?;
        if token.is_ours() {
            token.program("./gone").arg(token.module()).run().map(drop)
        } else {
            Ok(())
        }
    });
}

/// Our module, behind one that gives numbers again.
#[test]
fn sessions_of_others_stay_open_that_have_the_numbers_of_ours() {
    let (provider, command) = (openssl_provider(), command());
    let needs =
        ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/evp.h", &provider, &command];
    check(CLIENT, "numbers that are given again", &needs, |token| {
        if !token.is_ours() {
            return Ok(());
        }
        configure_all(token)?;
        compile(token, "reused")?;
        let (module, configuration) = wrapped(token, "numbers")?;
        let program = token.program("./reused").arg(module).env("OPENSSL_CONF", configuration);
        program.env("METASLOT_MODULE", token.module()).run().map(drop)
    });
}

#[test]
fn nothing_is_left_where_the_module_fails_in_the_middle() {
    let (provider, command) = (openssl_provider(), command());
    let needs =
        ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/evp.h", &provider, &command];
    check(CLIENT, "a module that fails in the middle", &needs, |token| {
        if !token.is_ours() {
            return Ok(());
        }
        configure_all(token)?;
        compile(token, "faulty")?;
        let (module, configuration) = wrapped(token, "faults")?;
        let program = token.program("./faulty").arg(module).env("OPENSSL_CONF", configuration);
        program.env("METASLOT_MODULE", token.module()).run().map(drop)
    });
}

/// Suites and versions, and what they are encrypted by.
const SUITES: &[(&str, &str)] = &[
    ("-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256", "CKM_AES_GCM CKM_SHA256 CKM_HKDF_DERIVE"),
    ("-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384", "CKM_AES_GCM CKM_SHA384"),
    ("-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256", "CKM_CHACHA20_POLY1305"),
    ("-tls1_3 -ciphersuites TLS_AES_128_CCM_SHA256", "CKM_AES_CCM"),
    ("-tls1_3 -ciphersuites TLS_AES_128_CCM_8_SHA256 -cipher ALL:@SECLEVEL=0", "CKM_AES_CCM"),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256", "CKM_AES_GCM CKM_SHA256_HMAC"),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384", "CKM_AES_GCM CKM_SHA384_HMAC"),
    ("-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305", "CKM_CHACHA20_POLY1305"),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES256-CCM", "CKM_AES_CCM"),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES128-CCM8:@SECLEVEL=0", "CKM_AES_CCM"),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256", "CKM_AES_CBC CKM_SHA256_HMAC"),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES256-SHA384 -no_etm", "CKM_AES_CBC CKM_SHA384_HMAC"),
    ("-tls1_1 -cipher ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0", "CKM_AES_CBC CKM_SHA_1_HMAC"),
    ("-tls1 -cipher ECDHE-ECDSA-AES256-SHA:@SECLEVEL=0", "CKM_AES_CBC CKM_SHA_1_HMAC"),
];

/// A server that sends back what it is sent, and a client; one of them has the provider.
fn connects(what: &str, serves: bool) {
    let (provider, command) = (openssl_provider(), command());
    check(CLIENT, what, &["openssl", "pkcs11-tool", &provider, &command], |token| {
        configure(token)?;
        line(token, "- ecparam -name P-256 -genkey -noout -out site.key")?;
        line(token, "- req -new -x509 -key site.key -subj /CN=localhost -out site.pem")?;
        let lines: Vec<_> = (0..400_usize).map(|place| format!("{place} ").repeat(40)).collect();
        let back: Vec<String> = lines.iter().map(|line| line.chars().rev().collect()).collect();
        for (suite, mechanisms) in SUITES {
            let before = counted(token)?;
            let ours = |is: bool| if is { token.program(&openssl()) } else { plain(token) };
            let port = free_port()?;
            let address = format!("127.0.0.1:{port}");
            let server = ours(serves).line("s_server -cert site.pem -key site.key -rev -quiet");
            let server = server.line(suite).args(["-accept", &address]);
            let server = server.serve(port, token.home())?;
            let client = ours(!serves).line("s_client -quiet -connect").arg(&address).line(suite);
            let client = client.input(lines.join("\n") + "\nCLOSE\n").run();
            let output = client.with_context(|| format!("{suite}\n{}", server.log()))?;
            ensure!(output.text().lines().eq(&back), "{suite}: {}", output.told());
            drop(server);
            for mechanism in mechanisms.split_whitespace() {
                rose(token, mechanism, &before).context(*suite)?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_server_encrypts_every_version_by_the_module() {
    connects("TLS server, every cipher", true);
}

#[test]
fn a_client_encrypts_every_version_by_the_module() {
    connects("TLS client, every cipher", false);
}

#[test]
fn curl_fetches_a_long_file_from_a_server() {
    let (provider, command) = (openssl_provider(), command());
    let needs = ["openssl", "pkcs11-tool", "curl", &provider, &command];
    check(CLIENT, "curl, a long file", &needs, |token| {
        configure(token)?;
        line(token, "- ecparam -name P-256 -genkey -noout -out site.key")?;
        let request = "- req -new -x509 -key site.key -subj /CN=localhost -addext";
        line(token, &format!("{request} subjectAltName=DNS:localhost -out site.pem"))?;
        let long = "not so short ".repeat(200_000);
        token.write("long", &long)?;
        let before = counted(token)?;
        let port = free_port()?;
        let server = token.program(&openssl()).line("s_server -cert site.pem -key site.key -WWW");
        let server = server.args(["-accept", &format!("127.0.0.1:{port}")]);
        let server = server.serve(port, token.home())?;
        for version in ["--tlsv1.3", "--tls-max 1.2"] {
            let curl = token.program("curl").line("--silent --show-error --cacert site.pem");
            let curl = curl.args(["--resolve", &format!("localhost:{port}:127.0.0.1")]);
            let curl = curl.line(version).arg(format!("https://localhost:{port}/long"));
            let output = curl.run().with_context(|| server.log())?;
            ensure!(output.stdout == long.as_bytes(), "{version}: {} bytes", output.stdout.len());
        }
        drop(server);
        rose(token, "CKM_AES_GCM", &before)
    });
}

#[test]
fn openssl_speed_goes_by_the_module() {
    let (provider, command) = (openssl_provider(), command());
    check(CLIENT, "openssl speed", &["openssl", "pkcs11-tool", &provider, &command], |token| {
        configure(token)?;
        let speed = [
            ("-evp sha256", "CKM_SHA256"),
            ("-evp aes-128-gcm", "CKM_AES_GCM"),
            ("-evp aes-256-gcm -decrypt", "CKM_AES_GCM"),
            ("-evp chacha20-poly1305", "CKM_CHACHA20_POLY1305"),
            ("-evp aes-128-cbc", "CKM_AES_CBC"),
            ("-hmac sha256", "CKM_SHA256_HMAC"),
            ("-cmac aes-128-cbc", "CKM_AES_CMAC"),
        ];
        for (options, mechanism) in speed {
            let before = counted(token)?;
            let speed = token.program(&openssl()).line("speed -seconds 1 -bytes 1024");
            speed.line(options).run()?;
            rose(token, mechanism, &before)?;
        }
        Ok(())
    });
}
