// SPDX-License-Identifier: Apache-2.0
//! How keys are shown by the commands that list some.

use crate::host::Token;
use crate::key::Key;
use crate::output::{Report, Table};
use crate::uri::Uri;
use serde_json::{Value, json};

/// Keys of one token in the three forms.
pub(in crate::command) fn report(token: &Token, keys: &[Key]) -> Report {
    let keys: Vec<(Uri, &Key)> = keys.iter().map(|key| (token.uri(), key)).collect();
    of_tokens(&keys)
}

/// The same, each key with its token.
pub(super) fn of_tokens(keys: &[(Uri, &Key)]) -> Report {
    // A column for homes where there are any.
    let homes = keys.iter().any(|(_, key)| key.home.is_some());
    let mut columns = vec!["LABEL", "TYPE", "PARTS", "USAGE", "VALUE", "URI"];
    if homes {
        columns.insert(columns.len() - 1, "HOME");
    }
    let mut table = Table::new(&columns, &[]);
    for (token, key) in keys {
        let mut row = vec![
            key.label.clone(),
            key.kind.to_string(),
            key.part_names().join("+"),
            key.usages.names().join(","),
            key.protection().to_owned(),
        ];
        row.extend(homes.then(|| key.home.clone().unwrap_or_else(|| String::from("-"))));
        row.push(key.uri(token).to_string());
        table.push(row);
    }
    Report {
        text: table.text(),
        json: json!({"keys": keys.iter().map(|(token, key)| key.json(token)).collect::<Vec<Value>>()}),
        uris: keys.iter().map(|(token, key)| key.uri(token).to_string()).collect(),
    }
}
