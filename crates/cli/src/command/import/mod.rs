// SPDX-License-Identifier: Apache-2.0
//! `metaslot import-softtoken`

mod object;
mod packed;
mod store;

use super::arguments::UserArg;
use super::fate::{self, Fate};
use crate::app::App;
use crate::encoding::hex;
use crate::failure::{Failure, Result};
use crate::key::{UNSEEN, among};
use crate::output::{Report, Table};
use crate::personality::material::any_session;
use crate::pin;
use crate::uri::{Class, Uri};
use metaslot_ck::*;
use metaslot_client::{Access, Session, Template};
use object::Object;
use packed::Packed;
use serde_json::{Value, json};
use std::env;
use std::path::PathBuf;
use store::{Store, Stored};

const EXAMPLES: &str = "\
Examples:
  metaslot import-softtoken --dry-run
  metaslot import-softtoken /mnt/home/you/.sunw/pkcs11_softtoken --token web";

/// Arguments of `import-softtoken`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The keystore [default: $SOFTTOKEN_DIR/pkcs11_softtoken, or ~/.sunw/pkcs11_softtoken]
    #[arg(value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Say what would be moved, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// The place of the keystore's passphrase: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    passphrase_source: Option<String>,
    #[command(flatten)]
    user: UserArg,
}

/// One object on its way.
struct Entry<'a> {
    stored: &'a Stored,
    packed: Packed<'a>,
    lost: Vec<String>,
    fate: Fate,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.uri()?;
    let login = args.user.login(app, &uri)?;
    let store = Store::open(&args.directory()?)?;
    let stored = store.objects(&any_session(app)?, || {
        pin::passphrase(args.passphrase_source.as_deref(), false)
            .map_err(|failure| failure.hint("give the keystore's with --passphrase-source FILE"))
    })?;
    let mut entries = stored.iter().map(Entry::of).collect::<Result<Vec<_>>>()?;
    let access = if args.dry_run { Access::ReadOnly } else { Access::ReadWrite };
    let (session, _) = app.log_in(&login, access)?;
    for entry in &mut entries {
        entry.look(&session)?;
    }
    for entry in &mut entries {
        entry.import(&session, args.dry_run);
    }
    let report = report(&entries, &login.token.uri());
    app.output.print_warning(&report, &warnings(&store, &stored))?;
    fate::check(entries.iter().map(|entry| &entry.fate))
}

impl Args {
    fn directory(&self) -> Result<PathBuf> {
        if let Some(directory) = &self.directory {
            return Ok(directory.clone());
        }
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let place = set("SOFTTOKEN_DIR").or_else(|| Some(set("HOME")?.join(".sunw")));
        let place = place.ok_or_else(|| Failure::usage("give the keystore's directory"))?;
        Ok(place.join("pkcs11_softtoken"))
    }
}

impl<'a> Entry<'a> {
    fn of(stored: &'a Stored) -> Result<Self> {
        let packed = Packed::parse(stored.packed())
            .map_err(|words| Failure::failed(format!("{}: {words}", stored.path.display())))?;
        Ok(Self { stored, packed, lost: Vec::new(), fate: Fate::WouldBe })
    }

    /// Whether the token has it, or another one of its name, before anything is moved.
    fn look(&mut self, session: &Session) -> Result<()> {
        let id = self.packed.value(CKA_ID).unwrap_or_default();
        let named = Template::new()
            .token(true)
            .ulong(CKA_CLASS, self.packed.class)
            .bytes(CKA_LABEL, self.packed.value(CKA_LABEL).unwrap_or_default())
            .bytes(CKA_ID, id);
        if session.find(&named)?.is_empty() {
            return Ok(());
        }
        let same = self
            .packed
            .public_values()
            .fold(named, |named, (attribute, value)| named.with(attribute, value));
        let other = || Fate::Not("the token has another one of this label and id".to_owned());
        let found = session.find(&same)?;
        self.fate = match self.is_among(session, &found) {
            Some(true) => Fate::There,
            Some(false) => other(),
            None => Fate::Not(UNSEEN.to_owned()),
        };
        Ok(())
    }

    /// Whether it is one of these, which have all of its values that can be seen: of keys these are not enough.
    fn is_among(&self, session: &Session, found: &[ObjectHandle]) -> Option<bool> {
        let is_key = matches!(self.packed.class, CKO_PRIVATE_KEY | CKO_SECRET_KEY);
        if found.is_empty() || !is_key || self.packed.value(CKA_MODULUS).is_some() {
            return Some(!found.is_empty());
        }
        let object = Object::of(&self.packed, self.stored.is_private, false);
        let key = session.create(&object.template).ok()?;
        let is_among = among(session, key, found);
        session.destroy(key).ok();
        is_among
    }

    fn import(&mut self, session: &Session, dry_run: bool) {
        if !matches!(self.fate, Fate::WouldBe) {
            return;
        }
        if let Some(reason) = self.packed.stays_because() {
            self.fate = Fate::Not(reason.to_owned());
            return;
        }
        // What the token thinks of an object is seen by making one that lasts no longer than the session.
        let object = Object::of(&self.packed, self.stored.is_private, !dry_run);
        self.fate = Fate::of(session.create(&object.template).map_err(fate::refusal), dry_run);
        if self.fate.is_here() {
            self.lost = object.lost;
        }
    }

    fn row(&self) -> Vec<String> {
        let path = self.stored.path.display().to_string();
        vec![path, self.packed.kind(), self.packed.text(CKA_LABEL), self.fate.words()]
    }

    /// Its name in the token, where it is.
    fn uri(&self, token: &Uri) -> Option<Uri> {
        let class = match self.packed.class {
            CKO_PUBLIC_KEY => Class::Public,
            CKO_PRIVATE_KEY => Class::Private,
            CKO_SECRET_KEY => Class::Secret,
            CKO_CERTIFICATE => Class::Certificate,
            _ => return None,
        };
        let named = Uri {
            object: Some(self.packed.text(CKA_LABEL)).filter(|label| !label.is_empty()),
            id: self.packed.value(CKA_ID).filter(|id| !id.is_empty()).map(<[u8]>::to_vec),
            class: Some(class),
            ..token.clone()
        };
        self.fate.is_here().then_some(named)
    }

    fn json(&self) -> Value {
        json!({
            "object": self.stored.path.display().to_string(),
            "kind": self.packed.kind(),
            "label": self.packed.text(CKA_LABEL),
            "id": hex(self.packed.value(CKA_ID).unwrap_or_default()),
            "private": self.stored.is_private,
            "result": self.fate.name(),
            "reason": self.fate.reason(),
            "lost": self.lost,
        })
    }
}

fn report(entries: &[Entry<'_>], token: &Uri) -> Report {
    let mut table = Table::new(&["OBJECT", "KIND", "LABEL", "RESULT"], &[]);
    entries.iter().for_each(|entry| table.push(entry.row()));
    let lost = entries.iter().filter(|entry| !entry.lost.is_empty()).map(|entry| {
        format!("{}: without {}\n", entry.stored.path.display(), entry.lost.join(", "))
    });
    Report {
        text: match entries {
            [] => "no objects\n".to_owned(),
            _ => table.text() + &lost.collect::<String>(),
        },
        json: json!({
            "token": token.to_string(),
            "objects": entries.iter().map(Entry::json).collect::<Vec<Value>>(),
        }),
        uris: entries.iter().filter_map(|entry| Some(entry.uri(token)?.to_string())).collect(),
    }
}

fn warnings(store: &Store, stored: &[Stored]) -> Vec<String> {
    let mut warnings = Vec::new();
    if stored.iter().any(|stored| !stored.is_private) {
        warnings.push(String::from(
            "public objects have nothing in the keystore to be checked by: compare them with what you know",
        ));
    }
    for path in &store.others {
        let path = store.directory.join(path);
        warnings.push(format!("{} is no object, and was left alone", path.display()));
    }
    warnings
}
