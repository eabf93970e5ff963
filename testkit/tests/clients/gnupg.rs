// SPDX-License-Identifier: Apache-2.0
//! GnuPG: an OpenPGP key made of a key in the token, by gnupg-pkcs11-scd in the place of GnuPG's own smart card daemon.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{TestToken, USER_PIN, check, command, find_program};

use crate::recipe;

const CLIENT: &str = "gnupg-pkcs11-scd";
const NEEDS: &[&str] = &["gpg", "gpg-agent", "gpgconf", "gnupg-pkcs11-scd", "pkcs11-tool"];

fn executable(token: &TestToken, name: &str, text: &str) -> Result<PathBuf> {
    let path = token.write(name, text)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// GnuPG's files, in the test's directory: the paths of its sockets are short that way.
fn configure(token: &mut TestToken) -> Result<()> {
    let daemon = find_program("gnupg-pkcs11-scd").context("no daemon")?;
    token.write("gnupg-pkcs11-scd.conf", recipe::block(token, "GnuPG", 1, &[])?)?;
    let text = format!(
        "#!/bin/sh\necho OK\nwhile read -r command rest; do\n\
         if [ \"$command\" = GETPIN ]; then echo 'D {USER_PIN}'; fi\necho OK\n\
         if [ \"$command\" = BYE ]; then exit; fi\ndone\n"
    );
    let pinentry = executable(token, "pinentry", &text)?;
    std::fs::set_permissions(token.home(), std::fs::Permissions::from_mode(0o700))?;
    // A test can wait for its end.
    let text =
        format!("#!/bin/sh\n{} \"$@\"\ntouch {}/ended\n", daemon.display(), token.home().display());
    let daemon = executable(token, "daemon", &text)?;
    let changes = [("/usr/bin/gnupg-pkcs11-scd", &*daemon.display().to_string())];
    let page = recipe::block(token, "GnuPG", 0, &changes)?;
    token.write("gpg-agent.conf", format!("{page}pinentry-program {}\n", pinentry.display()))?;
    token.write("page", recipe::block(token, "GnuPG", 3, &[])?)?;
    let home = token.home().to_owned();
    token.set("GNUPGHOME", home);
    Ok(())
}

/// `--card-status` makes the agent note which keys there are; GnuPG then makes an OpenPGP key of it by its keygrip.
const SESSION: &str = "set -e
trap 'gpgconf --kill all' EXIT
gpg --card-status
grip=$(basename private-keys-v1.d/*.key .key)
sed s/KEYGRIP/$grip/ page > parameters
gpg --batch --full-generate-key parameters
gpg --batch -u me@example.org --detach-sign file
gpg --verify file.sig file
gpg --batch --trust-model always -r me@example.org -o sealed --encrypt file
gpg --batch -o opened --decrypt sealed
gpgconf --kill all
while [ ! -e ended ]; do sleep 0.05; done
";

#[test]
fn an_openpgp_key_signs_and_decrypts_in_the_token() {
    let command = command();
    let needs: Vec<&str> = NEEDS.iter().copied().chain([&*command]).collect();
    check(CLIENT, "OpenPGP", &needs, |token| {
        token.key_pair("rsa:2048", "01", "me")?;
        // The daemon shows keys that have a certificate.
        let line = "cert selfsign me --pin-source pin --out me.pem --store";
        token.program(&command).line(line).run()?;
        token.spy()?;
        configure(token)?;
        token.write("file", "what is signed and sealed")?;
        token.program("sh").args(["-c", SESSION]).run()?.with(&["Good signature from"])?;
        let opened = std::fs::read(token.path("opened"))?;
        ensure!(opened == b"what is signed and sealed", "not what was sealed");
        token.called("gnupg")
    });
}
