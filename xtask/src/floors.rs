// SPDX-License-Identifier: Apache-2.0
//! The floors of the engine: a file imports its own floor and those below.

use crate::cycles::{File, imports};

/// From below. A folder stands for its files, except for those that are named themselves.
const FLOORS: [(&str, &[&str]); 3] = [
    ("data", &["output", "object", "operation/kind", "token/epoch"]),
    ("state", &["token", "session", "search", "operation/mod", "operation/active"]),
    ("calls", &["engine", "slots", "login", "objects", "find", "fixed", "keys", "operation"]),
];

/// What imports a floor above its own, and what stands on none.
pub(crate) fn wrong(files: &[File<'_>]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.path != "lib.rs" && floor(&file.path).is_none()) {
        wrong.push(format!("{} stands on no floor of the engine", file.path));
    }
    for (from, to) in imports(files) {
        if let (Some(own), Some(other)) = (floor(&from), floor(&to))
            && own < other
        {
            let names = (FLOORS[own].0, FLOORS[other].0);
            wrong.push(format!("{from} ({}) imports {to} ({}) above it", names.0, names.1));
        }
    }
    wrong
}

/// The longest row that names the file or a folder that it is in.
fn floor(path: &str) -> Option<usize> {
    let path = path.trim_end_matches(".rs");
    let named = |name: &str| {
        path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let rows =
        FLOORS.iter().enumerate().flat_map(|(at, row)| row.1.iter().map(move |name| (name, at)));
    rows.filter(|(name, _)| named(name)).max_by_key(|(name, _)| name.len()).map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_where_the_longest_name_puts_it() {
        assert_eq!(floor("object/mod.rs"), Some(0));
        assert_eq!(floor("operation/kind.rs"), Some(0));
        assert_eq!(floor("operation/cipher.rs"), Some(2));
        assert_eq!(floor("objects.rs"), Some(2));
        assert_eq!(floor("lib.rs"), None);
    }

    #[test]
    fn state_that_imports_calls_is_wrong_and_the_other_way_is_right() {
        let up = [
            File { path: "token/mod.rs".into(), text: "use crate::keys::wrap;" },
            File { path: "keys/mod.rs".into(), text: "use crate::token::Token;" },
        ];
        assert_eq!(wrong(&up), ["token/mod.rs (state) imports keys/mod.rs (calls) above it"]);
    }

    #[test]
    fn a_new_file_needs_a_floor() {
        let file = [File { path: "shelf.rs".into(), text: "" }];
        assert_eq!(wrong(&file), ["shelf.rs stands on no floor of the engine"]);
    }
}
