// SPDX-License-Identifier: Apache-2.0
//! The command where the server of a `[[foreign]]` section is not there.

use metaslot_testkit::{check, command};

#[test]
fn a_server_that_is_not_there_is_named() {
    check("metaslot", "a server that is not there", &[], |token| {
        if !token.is_ours() {
            return Ok(());
        }
        let home = token.home().display().to_string();
        let text =
            format!("counters = false\n[[foreign]]\nname = \"held\"\nsocket = \"{home}/none\"\n");
        token.write("metaslot.toml", text)?;
        let why = format!("held: the server at {home}/none does not answer");
        for line in ["key list", "token list", "doctor"] {
            let told = token.program(&command()).line(line).output()?;
            told.with(&[&why])?;
        }
        Ok(())
    });
}
