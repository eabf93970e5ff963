// SPDX-License-Identifier: Apache-2.0
//! A C program with our headers: `examples/aes_cbc.c`, compiled with every warning.

use std::path::Path;

use metaslot_testkit::check;

#[test]
fn example_in_c_finds_its_key_and_encrypts() {
    check("C program", "examples/aes_cbc.c", &["gcc", "pkcs11-tool"], |token| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        token
            .program("gcc")
            .line("-std=c11 -Wall -Wextra -Werror -D_DEFAULT_SOURCE -o aes_cbc -I")
            .arg(root.join("include"))
            .arg(root.join("examples/aes_cbc.c"))
            .arg("-ldl")
            .run()?;
        token.pkcs11_user().line("--keygen --key-type AES:32 --label app --sensitive").run()?;
        token.spy()?;
        token
            .program("./aes_cbc")
            .arg(token.module())
            .args(["app", "pin"])
            .run()?
            .with(&["bytes sealed and opened"])?;
        token.called("example-c")
    });
}
