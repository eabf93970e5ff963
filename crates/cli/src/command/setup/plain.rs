// SPDX-License-Identifier: Apache-2.0
//! Paths where recipes have them: in configurations of many syntaxes, in lines to be typed, and in the script that verifies,
//! which often root runs. None of them quotes, so a path is refused that any of them would read as more than a path.

use crate::failure::{Failure, Result};
use std::path::Path;

/// The values of a recipe that are paths, and what they are.
const PATHS: &[(&str, &str)] = &[
    ("module", "the module"),
    ("engine", "OpenSSL's engine"),
    ("provider", "OpenSSL's provider"),
    ("metaslot", "this command"),
    ("directory", "the directory"),
    ("cert", "the certificate"),
    ("room", "the temporary directory"),
    ("conf", "the configuration"),
];

/// Refuses paths among a recipe's values, and that of the PIN's file, that are more than letters, digits and a few marks.
pub(super) fn check(values: &[(&str, String)], pin: Option<&Path>) -> Result<()> {
    let of_recipe = values.iter().filter_map(|(name, path)| {
        PATHS.iter().find(|row| row.0 == *name).map(|row| (row.1, path.clone()))
    });
    let pin = pin.map(|pin| ("the PIN's file", pin.display().to_string()));
    match of_recipe.chain(pin).find(|(_, path)| !path.chars().all(is_plain)) {
        None => Ok(()),
        Some((what, path)) if path.contains(char::REPLACEMENT_CHARACTER) => {
            Err(Failure::failed(format!("the path of {what} is not UTF-8: '{path}'"))
                .hint("files of configuration cannot name it: give it another one"))
        }
        Some((what, path)) => {
            Err(Failure::failed(format!("the path of {what} means something to a shell: '{path}'"))
                .hint("give it one of letters, digits and ._@+:,=~/-, without blanks"))
        }
    }
}

fn is_plain(letter: char) -> bool {
    // What no UTF-8 is reads as the replacement for it.
    let is_foreign = !letter.is_ascii() && letter.is_alphanumeric();
    is_foreign || letter.is_ascii_alphanumeric() || "._@+:,=~/-".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_shell_or_a_configuration_would_read_is_refused() {
        let values = |path: &str| [("uri", "a;b".to_owned()), ("cert", path.to_owned())];
        assert!(check(&values("/etc/metaslot/é-1.pem"), Some(Path::new("~/pin"))).is_ok());
        for path in [
            "$(id)", "`id`", "a b", "a;b", "a\nb", "a\"", "a'", "a|b", "a\\", "a{", "*",
            "\u{fffd}", "\u{a0}",
        ] {
            assert!(check(&values(path), None).is_err(), "{path:?}");
            assert!(check(&values("a"), Some(Path::new(path))).is_err(), "{path:?}");
        }
    }
}
