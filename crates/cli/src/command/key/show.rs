// SPDX-License-Identifier: Apache-2.0
//! `metaslot key show`

use crate::app::App;
use crate::certificate;
use crate::command::arguments::UserArg;
use crate::encoding::{hex, printable};
use crate::failure::Result;
use crate::find;
use crate::key::{self, Key};
use crate::output::Report;
use crate::uri::Class;
use crate::x509;
use metaslot_ck::*;
use metaslot_client::{Access, Session};

/// Arguments of `key show`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    #[command(flatten)]
    user: UserArg,
}

/// An attribute that is shown by a sentence: its name in JSON, what is said where it is set, and where not.
type Fact = (CK_ATTRIBUTE_TYPE, &'static str, &'static str, &'static str);

const FACTS: &[Fact] = &[
    (CKA_LOCAL, "local", "made in this token", "came from outside"),
    (CKA_ALWAYS_SENSITIVE, "always_sensitive", "was never readable", "was readable once"),
    (
        CKA_NEVER_EXTRACTABLE,
        "never_extractable",
        "could never leave",
        "could leave once, encrypted",
    ),
    (CKA_ALWAYS_AUTHENTICATE, "always_authenticate", "wants the PIN for each use", ""),
    (CKA_WRAP_WITH_TRUSTED, "wrap_with_trusted", "leaves only under a trusted key", ""),
    (CKA_MODIFIABLE, "modifiable", "", "cannot be changed"),
    (CKA_DESTROYABLE, "destroyable", "", "cannot be deleted"),
];

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.key)?;
    let login = args.user.login_with(app, &uri)?;
    let (session, logged_in) = app.log_in_if_possible(&login, Access::ReadOnly)?;
    let token = login.token.uri();
    let key = find::one::<Key>(&session, &token, &uri)?;
    let certificates = certificate::of_key(&session, &key)?;
    let certificates: Vec<String> =
        certificates.iter().map(|one| one.uri(&token).to_string()).collect();
    let mut json = key.json(&token);
    let mut sentences = Vec::new();
    for (name, value, sentence) in facts(&session, &key) {
        json[name] = value.into();
        sentences.extend(Some(sentence).filter(|sentence| !sentence.is_empty()));
    }
    let trusted = is_trusted(&session, &key);
    json["trusted"] = logged_in.then_some(trusted).into();
    sentences.extend(trusted.then_some("trusted by the security officer"));
    json["certificates"] = certificates.clone().into();
    let dash = |text: String| if text.is_empty() { String::from("-") } else { text };
    let mut rows = vec![
        ("label", dash(key.label.clone())),
        ("id", dash(hex(&key.id))),
        ("type", key.kind.to_string()),
        ("parts", key.part_names().join("+")),
        ("usage", dash(key.usages.names().join(","))),
        ("value", [&[key.protection()], &sentences[..]].concat().join(", ")),
    ];
    if let Some(left) = key::one_time_left(&session, &key) {
        json["one_time_left"] = left.into();
        let more = if key::is_all_told(left) { " or more" } else { "" };
        rows.push(("one-time", format!("{left}{more} keys left, each for one signature")));
    }
    let only = [Class::Private, Class::Secret].into_iter().find_map(|it| key.part(it));
    let only = only.map(|handle| key::only_mechanisms(&session, handle)).unwrap_or_default();
    json["only"] = only.clone().into();
    rows.extend((!only.is_empty()).then(|| ("only", only.join(", "))));
    rows.extend(key.home.clone().map(|home| ("home", home)));
    if let Some(subject) = subject(&session, &key) {
        json["subject"] = subject.clone().into();
        rows.push(("subject", subject));
    }
    rows.extend(certificates.into_iter().map(|uri| ("certificate", uri)));
    rows.push(("URI", key.uri(&token).to_string()));
    let row = |(what, value): &(&str, String)| format!("{what:<11} {}\n", printable(value));
    let text = rows.iter().map(row).collect();
    app.output.print(&Report { text, json, uris: vec![key.uri(&token).to_string()] })?;
    if !logged_in {
        app.output.note(
            "hint: not logged in, so private and secret keys are not seen: give --pin-source",
        );
    }
    Ok(())
}

/// The officer trusts what wraps: a secret key or the public half of a pair.
fn is_trusted(session: &Session, key: &Key) -> bool {
    let part = [Class::Secret, Class::Public].into_iter().find_map(|it| key.part(it));
    part.is_some_and(|handle| session.attribute_bool(handle, CKA_TRUSTED).unwrap_or_default())
}

/// Whose key it is, where that is said of a half: `CKA_SUBJECT`.
fn subject(session: &Session, key: &Key) -> Option<String> {
    let halves = [Class::Private, Class::Public].into_iter().filter_map(|it| key.part(it));
    let mut said = halves.filter_map(|half| session.attribute(half, CKA_SUBJECT).ok());
    x509::shown(&said.find(|subject| !subject.is_empty())?)
}

/// What is known of the half that has secrets, or else of the public one.
fn facts(session: &Session, key: &Key) -> Vec<(&'static str, bool, &'static str)> {
    let part =
        [Class::Private, Class::Secret, Class::Public].into_iter().find_map(|it| key.part(it));
    let Some(handle) = part else { return Vec::new() };
    // That it can leave now says that it could before.
    let said = |attribute| match attribute {
        CKA_ALWAYS_SENSITIVE => key.sensitive == Some(false),
        CKA_NEVER_EXTRACTABLE => key.extractable == Some(true),
        _ => false,
    };
    let fact = |(attribute, name, set, unset): &Fact| {
        // What a module does not know of a key is not said.
        let value = session.attribute_bool(handle, *attribute).ok()?;
        let sentence = if value { *set } else { *unset };
        Some((*name, value, if said(*attribute) { "" } else { sentence }))
    };
    FACTS.iter().filter_map(fact).collect()
}
