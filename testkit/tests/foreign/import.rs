// SPDX-License-Identifier: Apache-2.0
//! `metaslot token import` from kryoptic. From SoftHSM and NSS it is in the transcripts of the command.

use super::modules::{BUILT_APART, KRYOPTIC, missing};
use super::*;
use metaslot_testkit::{check, command, left_out};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

const WHAT: &str = "metaslot token import from kryoptic";

/// What pkcs11-tool is told to make there: keys that may leave, and keys that may not.
const KEYS: &[&str] = &[
    "--keypairgen --key-type rsa:2048 --label sealed --id 01",
    "--keypairgen --key-type rsa:2048 --label site --id 02 --extractable",
    "--keypairgen --key-type EC:prime256v1 --label app --id 03 --extractable",
    "--keygen --key-type AES:32 --label backup --id 04 --extractable",
    "--keygen --key-type AES:16 --label hidden --id 05 --sensitive --extractable",
    "--keygen --key-type AES:32 --label shut --id 06 --sensitive",
    "--keygen --key-type GENERIC:32 --label mac --id 07 --usage-sign --extractable",
    "--keygen --key-type GENERIC:32 --label text --id 08 --extractable",
    "--write-object site.der --type cert --label site --id 02",
    "--write-object letter --type data --label note --application-label app",
];

/// What becomes of each.
const MOVED: &str = "\
private rsa:2048       sealed  01  not moved: it is unextractable: it cannot leave its token
public rsa:2048        sealed  01  moved
cert                   site    02  moved
private rsa:2048       site    02  moved, encrypted
public rsa:2048        site    02  moved
private ec:p256        app     03  moved, encrypted
public ec:p256         app     03  moved
secret-key aes:256     backup  04  moved
secret-key aes:128     hidden  05  moved, encrypted
secret-key aes:256     shut    06  not moved: it is unextractable: it cannot leave its token
secret-key generic:32  mac     07  moved
secret-key generic:32  text    08  moved
data                   note    -   moved
";

/// The code for what was done in part.
const PARTLY: i32 = 6;

fn tool(token: &TestToken) -> Program {
    let tool = token.program("pkcs11-tool").args(["--module", KRYOPTIC.library]);
    tool.args(["--token-label", KRYOPTIC.label, "--login", "--pin", USER_PIN])
}

fn metaslot(token: &TestToken, line: &str) -> Program {
    token.program(&command()).line(line)
}

fn prepare(token: &mut TestToken) -> Result<()> {
    (KRYOPTIC.prepare)(token)?;
    fs::set_permissions(token.path("pin"), Permissions::from_mode(0o600))?;
    token.write("letter", "a letter that is signed and sealed")?;
    let req = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -outform DER -out site.der";
    token.program("openssl").line(req).line("-subj /CN=site -days 3").run()?;
    KEYS.iter().try_for_each(|line| tool(token).line(line).run().map(drop))
}

fn import(token: &TestToken) -> Result<String> {
    let import = metaslot(token, "token import --pin-source-from pin --pin-source pin --from");
    let output = import.args([KRYOPTIC.library, "--from-token", KRYOPTIC.label]).output()?;
    ensure!(output.status == PARTLY, "{}", output.told());
    let output = output.with(&["not moved: 2 of 13 objects"])?;
    Ok(output.text().lines().skip(1).map(|line| format!("{line}\n")).collect())
}

/// A signature of ours is one by the public key that kryoptic has.
fn signs_alike(token: &TestToken, label: &str) -> Result<()> {
    let sign = format!("sign --key {label} --in letter --out letter.sig --pin-source pin");
    metaslot(token, &sign).run()?;
    let uri = format!("pkcs11:token={};object={label}", KRYOPTIC.label);
    let export = metaslot(token, "key export --out public.pem --module").arg(KRYOPTIC.library);
    export.arg(uri).run()?;
    let verify = "dgst -sha256 -verify public.pem -signature letter.sig letter";
    token.program("openssl").line(verify).run()?.with(&["Verified OK"]).map(drop)
}

/// What kryoptic encrypts is opened by ours.
fn opens(token: &TestToken, id: &str) -> Result<()> {
    let how = format!("-m AES-CBC-PAD --iv 000102030405060708090a0b0c0d0e0f --id {id}");
    tool(token).line(&how).line("--encrypt --input-file letter --output-file sealed").run()?;
    let ours = token.pkcs11_user().line(&how);
    ours.line("--decrypt --input-file sealed --output-file opened").run()?;
    ensure!(fs::read(token.path("opened"))? == fs::read(token.path("letter"))?, "another key");
    Ok(())
}

#[test]
fn keys_of_kryoptic_that_may_leave_are_moved() {
    let command = command();
    if missing(&KRYOPTIC).is_some() {
        return left_out(CLIENT, WHAT, BUILT_APART);
    }
    check(CLIENT, WHAT, &["pkcs11-tool", "openssl", &command], |token| {
        prepare(token)?;
        let moved = import(token)?;
        ensure!(moved == MOVED, "{moved}");
        ["site", "app"].into_iter().try_for_each(|label| signs_alike(token, label))?;
        ["04", "05"].into_iter().try_for_each(|id| opens(token, id))?;
        let test = metaslot(token, "key test mac --pin-source pin").run()?;
        test.with(&["works: signed and verified"])?;
        let again = import(token)?.replace("already there", "moved");
        ensure!(again == MOVED.replace(", encrypted", ""), "a second time: {again}");
        Ok(())
    });
}
