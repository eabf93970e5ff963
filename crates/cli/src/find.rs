// SPDX-License-Identifier: Apache-2.0
//! The one object that a URI means, whatever it is.

use crate::failure::{Failure, Result};
use crate::uri::Uri;
use metaslot_client::Session;

/// What a token has several of, each with a URI.
pub(crate) trait Object: Sized {
    /// What messages call one, and several.
    const NAMES: [&'static str; 2];
    /// Where they are listed.
    const HINT: &'static str;
    /// What helps where several have one URI.
    fn twins(_: &[Self]) -> String {
        String::from("they have one URI: the program that made them must tell them apart")
    }

    /// Those that a URI describes, in the session's token.
    fn search(session: &Session, uri: &Uri) -> Result<Vec<Self>>;

    /// Its URI on a token.
    fn uri(&self, token: &Uri) -> Uri;
}

/// The one that a URI describes.
pub(crate) fn one<T: Object>(session: &Session, token: &Uri, uri: &Uri) -> Result<T> {
    only(T::search(session, uri)?, uri, token)
}

/// The one that was found for a URI.
pub(crate) fn only<T: Object>(mut found: Vec<T>, uri: &Uri, token: &Uri) -> Result<T> {
    let [one, several] = T::NAMES;
    match found.len() {
        0 => Err(Failure::not_found(format!("no {one} matches {}", uri.key_part())).hint(T::HINT)),
        1 => Ok(found.remove(0)),
        many => {
            let failure = Failure::not_found(format!("{many} {several} match"));
            let uris: Vec<Uri> = found.iter().map(|it| it.uri(token)).collect();
            match uris.iter().all(|it| *it == uris[0]) {
                true => Err(failure.hint(T::twins(&found))),
                false => Err(failure.choose("name one of", uris.into_iter())),
            }
        }
    }
}
