// SPDX-License-Identifier: Apache-2.0
//! OpenSSL by our own provider, `metaslot.so`. What the commands of `testdata/openssl-provider/commands.txt` do counts only if the module counted it,
//! and if OpenSSL without the provider agrees.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{
    Output, Program, TestToken, USER_PIN, check, command, free_port, openssl_provider,
};

use super::openssl_provider_all::{configure_all_and_keys, modes};

const CLIENT: &str = "OpenSSL, our provider";
const COMMANDS: &str = include_str!("../../../testdata/openssl-provider/commands.txt");
pub(crate) const PAGE: &str = include_str!("../../../docs/openssl-provider.md");

/// Blocks of it that are run in mode `all`, too.
const AGAIN: [&str; 4] = ["dgst, PSS:", "dgst, ECDSA:", "certificates:", "messages"];

/// A file for a key that names a certificate, and a PIN, which no message may repeat.
const NAMES_A_CERTIFICATE: &str = "\
-----BEGIN PKCS#11 PROVIDER URI-----\n\
MFsaGVBLQ1MjMTEgUHJvdmlkZXIgVVJJIHYxLjAMPnBrY3MxMTp0b2tlbj10ZXN0aW5nO29iamVj\n\
dD1yc2EucGVtO3R5cGU9Y2VydD9waW4tdmFsdWU9MjcxODI4\n\
-----END PKCS#11 PROVIDER URI-----\n\
";
const PIN_IN_IT: &str = "271828";

/// The configuration of the page, for this token.
pub(crate) fn configure(token: &mut TestToken) -> Result<()> {
    let text = PAGE.split("```").nth(1).context("no configuration in the page")?;
    let pin = token.path("pin").display().to_string();
    let module = token.module().display().to_string();
    let changes = [
        ("/usr/lib/x86_64-linux-gnu/ossl-modules/metaslot.so", openssl_provider()),
        ("/usr/lib/x86_64-linux-gnu/pkcs11/libmetaslot.so", module),
        ("/etc/metaslot/pin", pin),
    ];
    let mut text = format!("{text}[req]\ndistinguished_name = name\n[name]\n");
    for (word, here) in changes {
        ensure!(text.contains(word), "no {word} in {text}");
        text = text.replace(word, &here);
    }
    let file = token.write("openssl.cnf", text)?;
    token.set("OPENSSL_CONF", file);
    Ok(())
}

/// Which `openssl` is tried: Debian's, or another one.
pub(crate) fn openssl() -> String {
    std::env::var("METASLOT_OPENSSL").unwrap_or_else(|_| "openssl".into())
}

/// A version, major and minor.
pub(crate) fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map_while(|number| number.parse().ok());
    numbers.next().zip(numbers.next())
}

pub(crate) fn plain(token: &TestToken) -> Program {
    token.program(&openssl()).env("OPENSSL_CONF", "/dev/null").env("METASLOT_CONF", "/dev/null")
}

/// A URI stands for `URI:key`.
fn filled(word: &str) -> String {
    let uri = word.strip_prefix("URI:");
    let Some((key, query)) = uri.map(|key| key.split_once('?').unwrap_or((key, ""))) else {
        return word.to_owned();
    };
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    format!("pkcs11:token=testing;object={key};type=private{query}")
}

/// A program of `testdata/openssl-provider`, with Debian's libcrypto or with that beside the `openssl` which is tried.
pub(crate) fn compile(token: &TestToken, name: &str) -> Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/openssl-provider");
    let gcc = token.program("gcc").line("-std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -o");
    let gcc = gcc.arg(name).arg(directory.join(format!("{name}.c")));
    let gcc = gcc.arg("-I").arg(directory.join("../../include"));
    let home = Path::new(&openssl()).parent().map(Path::to_owned).unwrap_or_default();
    let gcc = match home.join("libcrypto.so") {
        library if library.exists() => {
            let found = format!("-Wl,-rpath,{}", home.display());
            gcc.arg("-I").arg(home.join("include")).arg(library).arg(found)
        }
        _ => gcc.arg("-lcrypto"),
    };
    gcc.line("-lpthread -ldl").run().map(|_| ())
}

/// A module around the token's, made of `testdata/openssl-provider`, and a configuration that names it.
pub(crate) fn wrapped(token: &TestToken, name: &str) -> Result<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let source = root.join(format!("testdata/openssl-provider/{name}.c"));
    let gcc = token.program("gcc").line("-std=c11 -Wall -Wextra -Werror -shared -fPIC -o");
    gcc.arg(format!("{name}.so")).arg("-I").arg(root.join("include")).arg(source).run()?;
    let module = token.path(&format!("{name}.so"));
    let text = fs::read_to_string(token.path("openssl.cnf"))?;
    let old = token.module().display().to_string();
    let changed = text.replace(&old, &module.display().to_string());
    ensure!(changed != text, "no module in {text}");
    Ok((module, token.write(&format!("{name}.cnf"), changed)?))
}

/// How often each mechanism was used so far, in all processes.
pub(crate) fn counted(token: &TestToken) -> Result<BTreeMap<String, u64>> {
    let stat = token.program(&command()).line("stat --json").run()?;
    let stat: serde_json::Value =
        serde_json::from_slice(&stat.stdout).context("read the counters")?;
    let mut counts = BTreeMap::new();
    let running = stat["processes"].as_array().into_iter().flatten();
    for row in
        running.chain([&stat["ended"]]).filter_map(|page| page["operations"].as_array()).flatten()
    {
        let (name, number) = (row["mechanism"].as_str(), row["operations"].as_u64());
        *counts.entry(name.unwrap_or_default().to_owned()).or_default() +=
            number.unwrap_or_default();
    }
    Ok(counts)
}

/// A key of DSA in a file, and how OpenSSL shows it.
const OF_DSA: [&str; 4] = [
    "- genpkey -genparam -algorithm DSA -pkeyopt dsa_paramgen_bits:2048 -out dsa.parameters",
    "- genpkey -paramfile dsa.parameters -out dsa.key",
    "- pkey -in dsa.key -pubout -out dsa.pub",
    "- pkey -pubin -in dsa.pub -noout -text -out theirs",
];

/// One line: what it says is looked for in what the program wrote.
pub(crate) fn line(token: &TestToken, text: &str) -> Result<()> {
    if let Some(file) = text.strip_prefix("store ") {
        let import = token.program(&command()).line("cert import --pin-source pin --label");
        return import.args([file, file]).run().map(|_| ());
    }
    let (mark, rest) = text.split_at(1);
    if matches!(mark, "=" | "~") {
        let files = rest.split_whitespace().map(|name| fs::read(token.path(name)));
        let mut files = files.collect::<std::io::Result<Vec<_>>>()?;
        if mark == "~" {
            for file in &mut files {
                file.retain(|byte| !byte.is_ascii_whitespace());
                // A zero before a number only.
                *file = String::from_utf8_lossy(file).replace(":00:", ":").into_bytes();
            }
        }
        ensure!(files.windows(2).all(|pair| pair[0] == pair[1] && !pair[0].is_empty()), "{text}");
        return Ok(());
    }
    let (rest, fails) =
        rest.split_once(" !").map_or((rest, None), |(rest, says)| (rest, Some(says)));
    let (rest, says) = match (rest.split_once(" => "), fails) {
        (Some(parts), _) => parts,
        (None, fails) => (rest, fails.unwrap_or_default()),
    };
    let openssl = if mark == "+" { token.program(&openssl()) } else { plain(token) };
    let output: Output = openssl.args(rest.split_whitespace().map(filled)).output()?;
    ensure!((output.status == 0) == fails.is_none(), "{text}\n{}", output.told());
    ensure!(output.told().contains(says.trim()), "{text}\n{}", output.told());
    let told = output.told();
    let mut ours = told.lines().filter(|line| line.contains("metaslot::"));
    ensure!(!ours.any(|line| line.contains(PIN_IN_IT)), "a PIN is shown: {text}\n{told}");
    Ok(())
}

#[test]
fn commands_use_keys_of_a_token_and_openssl_without_it_agrees() {
    let (provider, command) = (openssl_provider(), command());
    check(CLIENT, "commands", &["openssl", "pkcs11-tool", &provider, &command], |token| {
        for (kind, id, label) in [
            ("rsa:2048", "01", "rsa"),
            ("EC:prime256v1", "02", "ec"),
            ("EC:secp384r1", "03", "ec384"),
            ("EC:edwards25519", "04", "ed"),
        ] {
            token.key_pair(kind, id, label)?;
        }
        let generate = token.program(&command).line("key generate --label x --type x25519");
        generate.arg("--pin-source").arg(token.path("pin")).run()?;
        configure(token)?;
        token.write("message", "what is signed and sealed.\n")?;
        token.write("digest", [7; 32])?;
        token.write("modulus", [&[0], &[7; 255][..]].concat())?;
        token.write("certificate.key", NAMES_A_CERTIFICATE)?;
        token.write("long", "not so short ".repeat(20_000))?;
        blocks(token, COMMANDS)?;
        if !token.is_ours() {
            return Ok(());
        }
        line(token, "+ dgst -sha3-256 -sign URI:new-pss -out sig message")?;
        line(token, "- dgst -sha3-256 -verify new.pub -signature sig message => Verified OK")?;
        for of_dsa in OF_DSA {
            line(token, of_dsa)?;
        }
        let import = token.program(&command).line("key import dsa.key --label dsa");
        import.arg("--pin-source").arg(token.path("pin")).run()?;
        line(token, "+ pkey -in URI:dsa -noout -text_pub -out ours")?;
        line(token, "~ ours theirs")?;
        // What needs no new keys, once more where everything else is the module's, too.
        configure_all_and_keys(token)?;
        let again = |block: &&str| AGAIN.iter().any(|title| block.starts_with(title));
        let again: Vec<_> = COMMANDS.split("\n\n").filter(again).collect();
        blocks(token, &["", &again.join("\n\n")].join("\n\n"))
    });
}

/// Each block after the first, which is a comment: its lines, and that they used the mechanisms in its title.
pub(crate) fn blocks(token: &TestToken, commands: &str) -> Result<()> {
    let has = token.program(&openssl()).arg("version").run()?.text();
    let has = version(has.split_whitespace().nth(1).unwrap_or_default());
    for block in commands.split("\n\n").skip(1) {
        let (title, lines) = block.split_once('\n').context("a block without lines")?;
        let mechanisms = title.rsplit_once(':').context("no colon in a title")?.1;
        let since = title.split_once("since ").and_then(|(_, since)| since.split_once(':'));
        if since.is_some_and(|(since, _)| version(since) > has) {
            continue;
        }
        let before = counted(token)?;
        for text in lines.lines() {
            line(token, text).with_context(|| title.to_owned())?;
        }
        for mechanism in mechanisms.split_whitespace() {
            rose(token, mechanism, &before).with_context(|| title.to_owned())?;
        }
    }
    Ok(())
}

/// The module counted it.
pub(crate) fn rose(
    token: &TestToken,
    mechanism: &str,
    before: &BTreeMap<String, u64>,
) -> Result<()> {
    let after = counted(token)?;
    let rose = !token.is_ours() || after.get(mechanism) > before.get(mechanism);
    ensure!(rose, "{mechanism} was not used: {after:?}");
    Ok(())
}

#[test]
fn a_pin_is_asked_for_where_none_is_configured() {
    let provider = openssl_provider();
    check(CLIENT, "a PIN by -passin", &["openssl", "pkcs11-tool", &provider], |token| {
        token.key_pair("EC:prime256v1", "01", "ec")?;
        configure(token)?;
        let file = token.path("openssl.cnf");
        let text = fs::read_to_string(&file)?;
        let text: Vec<_> = text.lines().filter(|line| !line.starts_with("pin-source")).collect();
        token.write("openssl.cnf", text.join("\n"))?;
        let sign = || {
            token
                .program(&openssl())
                .line("dgst -sha256 -out sig")
                .args(["-sign", &filled("URI:ec")])
        };
        sign().args(["-passin", &format!("pass:{USER_PIN}")]).arg(&file).run()?;
        let refused = sign().line("-passin pass:999999").arg(&file).output()?;
        ensure!(
            refused.status != 0 && refused.told().contains("metaslot::no login"),
            "{}",
            refused.told()
        );
        Ok(())
    });
}

/// A server's key is in the token: named by a URI or by a file; every version of TLS that it has.
fn serves(what: &str, kind: &str, versions: &[&str]) {
    let (provider, command) = (openssl_provider(), command());
    check(CLIENT, what, &["openssl", "pkcs11-tool", &provider, &command], |token| {
        token.key_pair(kind, "01", "site")?;
        configure(token)?;
        line(token, "+ req -new -x509 -key URI:site -subj /CN=localhost -out site.pem")?;
        line(token, "+ pkey -in URI:site -out site.key")?;
        for key in [filled("URI:site"), "site.key".to_owned()] {
            serves_each(token, &key, versions)?;
        }
        for configure in &modes(token)[1..] {
            configure(token)?;
            serves_each(token, "site.key", versions)?;
        }
        Ok(())
    });
}

/// `s_server` with this key, and with `site.pem`; OpenSSL without the provider is its client.
pub(crate) fn serves_each(token: &TestToken, key: &str, versions: &[&str]) -> Result<()> {
    let port = free_port()?;
    let server = token
        .program(&openssl())
        .line("s_server -cert site.pem -www -quiet -cipher ALL:@SECLEVEL=0");
    let address = format!("127.0.0.1:{port}");
    let server = server.args(["-key", key, "-accept", &address]).serve(port, token.home())?;
    for version in versions {
        let client = plain(token).line("s_client -CAfile site.pem -verify_return_error -brief");
        let client =
            client.args(["-connect", &address]).line(version).input("GET / HTTP/1.0\r\n\r\n");
        let output = client.run().with_context(|| server.log())?;
        ensure!(output.told().contains("Verification: OK"), "{version}\n{}", output.told());
    }
    Ok(())
}

#[test]
fn a_server_with_an_rsa_key_speaks_every_version() {
    let versions = [
        "-tls1_3",
        "-tls1_2",
        "-tls1_2 -cipher kRSA",
        "-tls1_1 -cipher kRSA:@SECLEVEL=0",
        "-tls1_1 -cipher ECDHE:@SECLEVEL=0",
        "-tls1 -cipher ECDHE:@SECLEVEL=0",
    ];
    serves("TLS server, RSA", "rsa:2048", &versions);
}

#[test]
fn a_server_with_a_p256_key_speaks_every_version() {
    serves(
        "TLS server, P-256",
        "EC:prime256v1",
        &["-tls1_3", "-tls1_2", "-tls1_1 -cipher ALL:@SECLEVEL=0"],
    );
}

#[test]
fn a_server_with_an_ed25519_key_speaks_tls_1_3_and_1_2() {
    serves("TLS server, Ed25519", "EC:edwards25519", &["-tls1_3", "-tls1_2"]);
}

#[test]
fn a_key_that_is_gone_or_replaced_is_said_in_the_servers_log() {
    let (provider, command) = (openssl_provider(), command());
    check(CLIENT, "a key vanishes", &["openssl", "pkcs11-tool", &provider, &command], |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        configure(token)?;
        line(token, "+ req -new -x509 -key URI:site -subj /CN=localhost -out site.pem")?;
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let server = token.program(&openssl()).line("s_server -cert site.pem -www");
        let server = server.args(["-key", &filled("URI:site"), "-accept", &address]);
        let server = server.serve(port, token.home())?;
        let greeted = || {
            let client = plain(token).line("s_client -CAfile site.pem -verify_return_error -brief");
            let client = client.args(["-connect", &address]).input("GET / HTTP/1.0\r\n\r\n");
            client.output().map(|output| output.status == 0)
        };
        ensure!(greeted()?, "{}", server.log());
        let delete = token.program(&command).line("key delete site --yes --pin-source");
        delete.arg(token.path("pin")).run()?;
        ensure!(!greeted()?, "a key that is gone signed");
        ensure!(
            server.log().contains("object=site;type=private: there is no such key now"),
            "{}",
            server.log()
        );
        token.key_pair("EC:prime256v1", "01", "site")?;
        ensure!(!greeted()?, "another key signed");
        ensure!(server.log().contains("another key has its name now"), "{}", server.log());
        Ok(())
    });
}

#[test]
fn threads_children_library_contexts_and_exit_handlers_sign() {
    let provider = openssl_provider();
    let needs = ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/store.h", &provider];
    check(CLIENT, "a program with threads and children", &needs, |token| {
        let keys = [("rsa:2048", "rsa"), ("EC:prime256v1", "ec"), ("EC:edwards25519", "ed")];
        for (place, (kind, label)) in keys.iter().enumerate() {
            token.key_pair(kind, &format!("0{place}"), label)?;
        }
        if token.is_ours() {
            // Another one of the same name and number. SoftHSM's private half does not say which one it is.
            token.key_pair("EC:prime256v1", "01", "ec")?;
        }
        configure(token)?;
        compile(token, "host")?;
        let uris = keys.map(|(_, label)| filled(&format!("URI:{label}")));
        token.program("./host").args(uris).run().map(|_| ())
    });
}

#[test]
fn keys_that_are_made_stay_in_the_token_and_are_for_what_their_kinds_are_for() {
    let (provider, command) = (openssl_provider(), command());
    check(CLIENT, "what keys are for", &["openssl", &provider, &command], |token| {
        configure(token)?;
        for (kind, uses) in [
            ("RSA", vec!["sign", "verify", "decrypt", "encrypt"]),
            ("RSA-PSS", vec!["sign", "verify"]),
            ("EC -pkeyopt ec_paramgen_curve:P-256", vec!["sign", "verify", "derive"]),
            ("ED25519", vec!["sign", "verify"]),
        ] {
            let label = kind.split(' ').next().unwrap_or_default();
            let made = token.program(&openssl()).line("genpkey -propquery provider=metaslot");
            let made = made.line("-out new.key -algorithm").line(kind).arg("-pkeyopt");
            made.arg(format!("pkcs11_uri:pkcs11:token=testing;object={label}")).run()?;
            let listed = token.program(&command).line("key list --json --pin-source pin");
            let listed: serde_json::Value =
                serde_json::from_slice(&listed.args(["--", label]).run()?.stdout)?;
            let key = &listed["keys"][0];
            ensure!(key["usage"] == serde_json::json!(uses), "{kind}: {key}");
            ensure!(key["sensitive"] == true && key["extractable"] == false, "{kind}: {key}");
        }
        Ok(())
    });
}

#[test]
fn a_key_that_is_made_and_cannot_be_read_does_not_stay() {
    let provider = openssl_provider();
    let needs = ["openssl", "pkcs11-tool", "gcc", &provider];
    check(CLIENT, "a module that fails after it has made a key", &needs, |token| {
        configure(token)?;
        let changed = wrapped(token, "faults")?.1;
        let line = "genpkey -propquery provider=metaslot -algorithm EC -pkeyopt \
                    ec_paramgen_curve:P-256 -out new.key -pkeyopt pkcs11_uri:pkcs11:token=testing;object=new";
        let made = token.program(&openssl()).line(line).env("OPENSSL_CONF", changed);
        let made = made.env("FAULT_AFTER_PAIR", "C_GetAttributeValue");
        let made = made.env("METASLOT_MODULE", token.module()).output()?;
        ensure!(made.status != 0 && made.told().contains("read a key"), "{}", made.told());
        for class in ["private", "public"] {
            let left = token.program(&openssl()).line("storeutl -noout");
            let left = left.arg(format!("pkcs11:token=testing;type={class}")).output()?;
            ensure!(left.told().contains("there is no such object"), "{}", left.told());
        }
        Ok(())
    });
}

#[test]
fn what_openssl_refuses_is_refused() {
    let provider = openssl_provider();
    let needs = ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/store.h", &provider];
    check(CLIENT, "a program with mistakes", &needs, |token| {
        for (kind, id, label) in [("rsa:2048", "01", "rsa"), ("EC:prime256v1", "02", "ec")] {
            token.key_pair(kind, id, label)?;
        }
        configure(token)?;
        compile(token, "misuse")?;
        token.program("./misuse").args([filled("URI:rsa"), filled("URI:ec")]).run().map(|_| ())
    });
}

/// Our module, for it tells how many sessions a token has.
#[test]
fn a_token_that_loses_its_sessions_costs_another_none() {
    let provider = openssl_provider();
    let needs = ["openssl", "pkcs11-tool", "gcc", "/usr/include/openssl/store.h", &provider];
    check(CLIENT, "two tokens", &needs, |token| {
        if !token.is_ours() {
            return Ok(());
        }
        let second = token.path("tokens/other.db").display().to_string();
        let text = fs::read_to_string(token.path("metaslot.toml"))?;
        let section = format!("[[token]]\npath = \"{second}\"\nkdf = \"weak-for-tests\"\n");
        token.write("metaslot.toml", text + &section)?;
        let tool = |line: &str| token.pkcs11_tool().line(line).run().map(|_| ());
        tool("--slot-index 1 --init-token --label other --so-pin 87654321")?;
        tool(
            "--token-label other --login --login-type so --so-pin 87654321 --init-pin --pin 654321",
        )?;
        tool(
            "--token-label other --login --pin 654321 --keypairgen --key-type EC:prime256v1 --label key",
        )?;
        token.key_pair("EC:prime256v1", "01", "key")?;
        configure(token)?;
        compile(token, "two")?;
        let first = filled("URI:key");
        let other = "pkcs11:token=other;object=key;type=private?pin-value=654321".to_owned();
        let run = |uris| token.program("./two").arg(token.module()).args(uris);
        run([&first, &other]).run()?;
        run([&other, &first]).env("SECOND", "1").run()?;
        let (module, configuration) = wrapped(token, "numbers")?;
        let again = token.program("./two").arg(module).args([&first, &other]);
        let again = again.env("OPENSSL_CONF", configuration).env("NUMBERS", "1");
        again.env("METASLOT_MODULE", token.module()).run().map(|_| ())
    });
}

/// What the default policy has for old data only: DSA, and Diffie-Hellman in groups of one's own.
#[test]
fn old_keys_modulo_a_prime_are_used_where_the_policy_allows_it() {
    let (provider, command) = (openssl_provider(), command());
    check(CLIENT, "DSA, X9.42", &["openssl", &provider, &command], |token| {
        if !token.is_ours() {
            return Ok(());
        }
        for (kind, label) in [
            ("DSA -pkeyopt dsa_paramgen_bits:2048", "dsa"),
            ("DHX -pkeyopt group:dh_2048_256", "dhx"),
        ] {
            line(token, &format!("- genpkey -genparam -algorithm {kind} -out {label}.group"))?;
            for name in [label, "peer"] {
                line(token, &format!("- genpkey -paramfile {label}.group -out {name}.key"))?;
                line(token, &format!("- pkey -in {name}.key -pubout -out {name}.pub"))?;
            }
            let import = token.program(&command).line("key import --pin-source pin --label");
            import.args([label, &format!("{label}.key")]).run()?;
        }
        configure(token)?;
        token.write("message", "what is signed.\n")?;
        for text in [
            "- dgst -sha512 -sign dsa.key -out sig message",
            "+ dgst -sha512 -prverify URI:dsa -signature sig message => Verified OK",
            "+ dgst -sha256 -prverify URI:dsa -signature sig message ! Verification failure",
            "+ dgst -sha256 -sign URI:dsa -out sig message ! DSA verifies what was signed and signs nothing new",
            "+ pkeyutl -derive -inkey URI:dhx -peerkey peer.pub -out ours ! none of RFC 3526 or RFC 7919",
        ] {
            line(token, text)?;
        }
        token.policy_allowing("default", &["dsa", "weak-groups"])?;
        for hash in ["sha1", "sha224", "sha256", "sha512", "sha3-256"] {
            line(token, &format!("+ dgst -{hash} -sign URI:dsa -out sig message"))?;
            line(
                token,
                &format!("- dgst -{hash} -verify dsa.pub -signature sig message => Verified OK"),
            )?;
        }
        for text in [
            "+ pkey -in URI:dsa -pubout -out same.pub",
            "= dsa.pub same.pub",
            "+ req -new -x509 -key URI:dsa -subj /CN=localhost -out dsa.pem",
            "- verify -check_ss_sig -CAfile dsa.pem dsa.pem => OK",
            "+ pkey -in URI:dhx -pubout -out same.pub",
            "= dhx.pub same.pub",
            "+ pkeyutl -derive -inkey URI:dhx -peerkey peer.pub -out ours",
            "- pkeyutl -derive -inkey peer.key -peerkey dhx.pub -out theirs",
            "= ours theirs",
        ] {
            line(token, text)?;
        }
        // In mode 'all' keys of files stay with OpenSSL, whatever the policy says.
        let text = fs::read_to_string(token.path("openssl.cnf"))?;
        let text = text.replace("pin-source = ", "mode = all\npin-source = ");
        let text = text.replace("[start]", "[start]\nalg_section = usual");
        token.write(
            "openssl.cnf",
            format!("{text}[usual]\ndefault_properties = ?provider=metaslot\n"),
        )?;
        for text in [
            "+ dgst -sha256 -sign URI:dsa -out sig message",
            "- dgst -sha256 -verify dsa.pub -signature sig message => Verified OK",
            "+ pkeyutl -derive -inkey URI:dhx -peerkey peer.pub -out ours",
            "= ours theirs",
        ] {
            line(token, text)?;
        }
        token.policy("default")?;
        line(token, "+ dgst -sha256 -sign dsa.key -out sig message")?;
        line(token, "- dgst -sha256 -verify dsa.pub -signature sig message => Verified OK")?;
        line(token, "+ pkeyutl -derive -inkey peer.key -peerkey dhx.pub -out ours")?;
        line(token, "= ours theirs")?;
        Ok(())
    });
}

/// SoftHSM has ECDH without a key derivation function and without a mechanism for cofactors.
#[test]
fn a_module_with_nothing_but_ecdh_opens_messages() {
    const SOFTHSM: &str = "/usr/lib/softhsm/libsofthsm2.so";
    let provider = openssl_provider();
    let needs = ["openssl", "pkcs11-tool", "softhsm2-util", SOFTHSM, &provider];
    check(CLIENT, "CMS, SoftHSM", &needs, |token| {
        let init = token.program("softhsm2-util").line("--init-token --free --label testing");
        init.args(["--pin", USER_PIN, "--so-pin", USER_PIN]).run()?;
        for options in ["--label ec --id 01", "--label alone"] {
            let tool = token.program("pkcs11-tool").args(["--module", SOFTHSM, "-l"]);
            let pair = tool.line("--keypairgen --key-type EC:prime256v1 --usage-derive");
            pair.args(["-p", USER_PIN]).line(options).run()?;
        }
        configure(token)?;
        let text = fs::read_to_string(token.path("openssl.cnf"))?;
        token.write("openssl.cnf", text.replace(&*token.module().to_string_lossy(), SOFTHSM))?;
        token.write("message", "what is signed and sealed.\n")?;
        line(token, "+ req -new -x509 -key URI:ec -subj /CN=localhost -out ec.pem")?;
        // What has no CKA_ID has no public half.
        line(
            token,
            "+ req -new -x509 -key URI:alone -subj /CN=localhost ! does not show the public half",
        )?;
        for options in ["", " -keyopt ecdh_kdf_md:sha384 -keyopt ecdh_cofactor_mode:1"] {
            line(token, &format!("- cms -encrypt -in message -out cms -recip ec.pem{options}"))?;
            line(token, "+ cms -decrypt -in cms -inkey URI:ec -recip ec.pem => signed and sealed")?;
        }
        Ok(())
    });
}

/// Hybrid groups of TLS 1.3, and lengths of what a client and a server send and of the secret.
const HYBRID: [(&str, &str); 3] = [
    ("X25519MLKEM768", "1216 1120 64"),
    ("SecP256r1MLKEM768", "1249 1153 64"),
    ("SecP384r1MLKEM1024", "1665 1665 80"),
];

/// With the groups, and a certificate whose key is in a file. Nothing is stored in the token.
fn configure_hybrid(token: &mut TestToken) -> Result<()> {
    configure(token)?;
    let text = fs::read_to_string(token.path("openssl.cnf"))?;
    token.write(
        "openssl.cnf",
        text.replace("pin-source = ", "hybrid-groups = yes\npin-source = "),
    )?;
    let req = plain(token).line("req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost");
    req.line("-keyout site.key -out site.pem").run().map(|_| ())
}

#[test]
fn keys_of_hybrid_groups_are_made_used_and_refused_as_they_should() {
    let provider = openssl_provider();
    let needs = ["openssl", "gcc", "/usr/include/openssl/store.h", &provider];
    check(CLIENT, "a program with hybrid groups", &needs, |token| {
        configure_hybrid(token)?;
        compile(token, "hybrid")?;
        for (group, lengths) in HYBRID.into_iter().filter(|_| token.is_ours()) {
            token.program("./hybrid").arg(group).line(lengths).run().context(group)?;
        }
        Ok(())
    });
}

/// A handshake with this group only.
fn greets(token: &TestToken, group: &str, [server, client]: [Program; 2]) -> Result<()> {
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let server = server.line("s_server -cert site.pem -key site.key -www -quiet");
    let server = server.args(["-groups", group, "-accept", &address]);
    let server = server.serve(port, token.home())?;
    let client = client.line("s_client -CAfile site.pem -verify_return_error -brief");
    let client = client.args(["-groups", group, "-connect", &address]);
    let output = client.input("GET / HTTP/1.0\r\n\r\n").run().with_context(|| server.log())?;
    ensure!(output.told().contains("Verification: OK"), "{group}\n{}", output.told());
    Ok(())
}

/// Debian's OpenSSL has them by the provider on both sides, or on one where the other has them itself. From 3.5 on it keeps to its own.
#[test]
fn hybrid_groups_are_spoken_by_both_sides() {
    let (provider, command) = (openssl_provider(), command());
    check(CLIENT, "hybrid groups of TLS 1.3", &["openssl", &provider, &command], |token| {
        configure_hybrid(token)?;
        let has_them = |program: Program| -> Result<bool> {
            let text = program.arg("version").run()?.text();
            Ok(version(text.split_whitespace().nth(1).unwrap_or_default()) >= Some((3, 5)))
        };
        let ours = || token.program("openssl");
        let itself = has_them(ours())?;
        let others = has_them(plain(token))?;
        for (group, _) in HYBRID.into_iter().filter(|_| token.is_ours()) {
            let before = counted(token)?;
            greets(token, group, [ours(), ours()])?;
            if others {
                greets(token, group, [ours(), plain(token)])?;
                greets(token, group, [plain(token), ours()])?;
                greets(token, group, [token.program(&openssl()), plain(token)])?;
            }
            let rose = counted(token)?.get("CKM_ML_KEM") > before.get("CKM_ML_KEM");
            ensure!(rose != itself, "{group}: the module was used: {rose}");
        }
        if token.is_ours() {
            configure(token)?;
        }
        // Where nothing is said of them, and where the module does not have what they take, they are not there.
        let refused = token.program("openssl").line("s_client -groups X25519MLKEM768").output()?;
        ensure!(refused.told().contains("-groups") != itself, "{}", refused.told());
        Ok(())
    });
}

/// Nothing but libc is linked: libcrypto's functions come as pointers, from the one that loaded the provider.
#[test]
fn libcrypto_is_not_linked() {
    let provider = openssl_provider();
    check(CLIENT, "linked libraries", &["readelf", &provider], |token| {
        let linked = token.program("readelf").args(["-d", &provider]).run()?.text();
        let names = linked.lines().filter(|line| line.contains("(NEEDED)"));
        for name in names {
            let known = ["libgcc_s.so.1", "libc.so.6", "ld-linux"];
            ensure!(known.iter().any(|known| name.contains(known)), "{name}");
        }
        Ok(())
    });
}
