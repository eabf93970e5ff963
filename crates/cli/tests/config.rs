// SPDX-License-Identifier: Apache-2.0
//! What a check of a configuration runs.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;

const MODULE: &str = r#"
#include <stdio.h>
__attribute__((constructor)) static void run(void) { fclose(fopen(MARK, "w")); }
"#;

#[test]
fn a_file_that_is_checked_runs_no_code_unless_that_is_asked_for() {
    let sandbox = Sandbox::make(&sandbox::module());
    let run = |command: &str| sandbox.run(command);
    let made = run(&format!(
        "cat > module.c << 'END'\n{MODULE}\nEND\n\
         cc -shared -fPIC -DMARK=\"\\\"$PWD/ran\\\"\" -o module.so module.c && \
         printf '[[foreign]]\\nname = \"sent\"\\nmodule = \"%s/module.so\"\\n' \"$PWD\" > sent.toml"
    ));
    assert!(made.is_empty(), "{made:?}");
    assert_eq!(run("metaslot config check sent.toml"), ["/home/you/sent.toml: nothing is wrong"]);
    assert_eq!(run("test ! -e ran"), [""; 0], "its module was loaded");
    run("metaslot config check --load sent.toml");
    assert_eq!(run("test -e ran"), [""; 0]);
}
