// SPDX-License-Identifier: Apache-2.0
//! git: commits signed by a key in the token, through OpenSSH's agent.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::Context;
use metaslot_testkit::{USER_PIN, check};

use crate::recipe;

const CLIENT: &str = "git";
const NEEDS: &[&str] = &["git", "ssh-agent", "ssh-add", "ssh-keygen", "pkcs11-tool"];

#[test]
fn a_commit_is_signed_by_a_key_in_the_token() {
    check(CLIENT, "commit -S", NEEDS, |token| {
        token.key_pair("EC:prime256v1", "01", "git")?;
        token.spy()?;
        let script = token.write("askpass", format!("#!/bin/sh\necho {USER_PIN}\n"))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700))?;
        token.set("SSH_ASKPASS", script);
        token.set("SSH_ASKPASS_REQUIRE", "force");
        let module = token.module().to_owned();
        let directory = module.parent().context("a module without directory")?;
        let page = |words, changes: &[_]| recipe::line(token, ("git", 0), words, changes);
        let format = page("gpg.format", &[])?;
        let key = page("signingkey", &[("key.pub", "../key.pub")])?;
        let commit = page("commit", &[("-S", "-q -S -m signed")])?;
        token.write(
            "session",
            format!(
                "set -e\nssh-add -q -s {module}\nssh-add -L > key.pub\necho \"me@example.org $(cat key.pub)\" > signers\n\
                 git init -q work && cd work\ngit config user.email me@example.org && git config user.name Me\n\
                 {format}\n{key}\n\
                 git config gpg.ssh.allowedSignersFile ../signers\necho text > file && git add file\n\
                 {commit}\ngit verify-commit HEAD\n",
                module = module.display()
            ),
        )?;
        token
            .program("ssh-agent")
            .args(["-P", &format!("{}/*", directory.display()), "sh", "session"])
            .run()?
            .with(&["Good \"git\" signature for me@example.org"])?;
        token.called("git")
    });
}
