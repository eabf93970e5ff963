// SPDX-License-Identifier: Apache-2.0
//! How keys are shown by the commands that list some.

use crate::host::Token;
use crate::key::Key;
use crate::output::{Report, Table};
use serde_json::{Value, json};

/// Keys of one token in the three forms.
pub(super) fn report(token: &Token, keys: &[Key]) -> Report {
    let uri = token.uri();
    let mut table = Table::new(&["LABEL", "TYPE", "PARTS", "USAGE", "VALUE", "URI"], &[]);
    for key in keys {
        table.push(vec![
            key.label.clone(),
            key.kind.to_string(),
            key.part_names().join("+"),
            key.usages.names().join(","),
            key.protection().to_owned(),
            key.uri(&uri).to_string(),
        ]);
    }
    Report {
        text: table.text(),
        json: json!({"keys": keys.iter().map(|key| key.json(&uri)).collect::<Vec<Value>>()}),
        uris: keys.iter().map(|key| key.uri(&uri).to_string()).collect(),
    }
}
