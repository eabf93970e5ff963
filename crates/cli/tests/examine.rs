// SPDX-License-Identifier: Apache-2.0
//! What the command says of a token whose file was tampered with, and what is left of it.

#[path = "common/sandbox.rs"]
mod sandbox;

use rusqlite::Connection;
use sandbox::Sandbox;
use std::path::Path;

#[test]
fn what_is_damaged_is_named_and_taken_out() {
    let sandbox = Sandbox::make(&sandbox::module());
    let run = |command: &str| sandbox.run(command);
    run("metaslot token init --label web --so-pin-source so.pin --pin-source user.pin");
    run("metaslot key generate --label site --pin-source user.pin");
    run("metaslot key generate --label other --pin-source user.pin");
    assert_eq!(
        run("metaslot token verify --pin-source user.pin"),
        ["token 'web': 4 objects, nothing is wrong"]
    );

    let damage = |change: &str| {
        let directory = sandbox.program("pwd").output().expect("pwd runs").stdout;
        let directory = String::from_utf8(directory).expect("a path is text");
        let file = Path::new(directory.trim_end()).join("token.db");
        let connection = Connection::open(file).expect("it opens");
        connection.execute_batch(change).expect("it is changed");
    };
    damage("UPDATE object SET version = 7 WHERE id = 1");
    let listed = run("metaslot key list --pin-source user.pin");
    assert!(listed[1].starts_with("site ") && listed[2].starts_with("other "), "{listed:?}");
    assert!(listed[3].starts_with("cannot be read: "), "{listed:?}");
    assert_eq!(
        listed[4..].to_vec(),
        [
            "error: objects that cannot be read: 1",
            "hint: 'metaslot token verify' says what is wrong with each",
            "? 1",
        ]
    );
    let json = run("metaslot key list --pin-source user.pin --json").join("\n");
    assert!(json.contains("\"unreadable\": [") && json.contains("object 1 is damaged"), "{json}");
    damage("UPDATE token SET label = 'wep'");
    let login = run("metaslot key list --pin-source user.pin");
    assert!(login[0].contains("its label was changed"), "{login:?}");
    assert!(login[0].contains("metaslot token verify"), "{login:?}");
    let found = [
        "token: its label was changed; a repair keeps the new one, \"wep\"",
        "object 1: its authentication tag does not match",
        "token 'wep': 4 objects",
        "error: token 'wep' is not as it should be",
        "hint: a copy of the file is best; 'metaslot token repair' takes out what is damaged, or says why not",
        "? 1",
    ];
    assert_eq!(run("metaslot token verify --pin-source user.pin"), found);
    let json = run("metaslot token verify --so --so-pin-source so.pin --json").join("\n");
    assert!(json.contains("\"sound\": false") && json.contains("\"object\": 1"), "{json}");
    let asked = run("metaslot token repair --pin-source user.pin");
    assert_eq!(asked[2], "token 'wep': 4 objects");
    assert_eq!(asked[3], "error: nothing was changed");
    let repaired = run("metaslot token repair --pin-source user.pin --yes");
    assert_eq!(repaired[0], found[0]);
    assert_eq!(repaired[2], "token 'wep': 1 of 4 objects taken out");
    assert_eq!(
        run("metaslot token verify --pin-source user.pin"),
        ["token 'wep': 3 objects, nothing is wrong"]
    );
    assert_eq!(run("metaslot key list --pin-source user.pin --quiet").len(), 2);

    damage("UPDATE token SET row_set = zeroblob(105)");
    let hopeless = run("metaslot token repair --pin-source user.pin --yes");
    assert!(hopeless[0].contains("it cannot be repaired"), "{hopeless:?}");
}
