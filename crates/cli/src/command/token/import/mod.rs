// SPDX-License-Identifier: Apache-2.0
//! `metaslot token import`: what is in another module's token, moved here through that module.

mod carry;
mod object;
mod source;

use crate::app::{App, Login};
use crate::command::arguments::UserArg;
use crate::command::fate::{self, Fate};
use crate::encoding::{hex, printable};
use crate::failure::Result;
use crate::key::{self, Brought, UNSEEN, among, bring_public};
use crate::keyfile::public_values;
use crate::output::{Report, Table};
use crate::uri::Uri;
use carry::Carrier;
use metaslot_ck::{CKA_PUBLIC_KEY_INFO, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, ObjectHandle};
use metaslot_client::{Access, Session, Template};
use object::Object;
use serde_json::{Value, json};
use source::{OtherToken, Source};

const EXAMPLES: &str = "\
Examples:
  metaslot token import --from /usr/lib/softhsm/libsofthsm2.so --from-token old --dry-run
  metaslot token import --from /usr/lib/x86_64-linux-gnu/libsoftokn3.so \\
    --from-token 'NSS Certificate DB' \\
    --from-parameters \"configdir='sql:/home/you/.pki/nssdb' certPrefix='' keyPrefix='' secmod='secmod.db' flags=readOnly\"";

/// Arguments of `token import`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    from: OtherToken,
    /// Say what would be moved, and keep nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    user: UserArg,
}

/// One object on its way.
struct Entry {
    object: Object,
    /// Whether its secret values came encrypted.
    wrapped: bool,
    /// Whether its public half was missing in the other token and is here now.
    completed: bool,
    /// As ours has it.
    handle: Option<ObjectHandle>,
    /// Keys of ours that may be this one.
    alike: Vec<ObjectHandle>,
    fate: Fate,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.uri()?;
    let login = args.user.login(app, &uri)?;
    let source = Source::open(&args.from)?;
    let mut entries: Vec<Entry> = source.objects()?.into_iter().map(Entry::new).collect();
    let (session, _) = app.log_in(&login, Access::ReadWrite)?;
    look(&session, &mut entries)?;
    bring(app, args, &session, &source, &mut entries)?;
    app.output.print(&report(&entries, &source, &login))?;
    fate::check(entries.iter().map(|entry| &entry.fate)).map_err(|failure| {
        failure.hint("they are in the other token still: generate new keys here for those that cannot leave it")
    })
}

fn bring(
    app: &App,
    args: &Args,
    session: &Session,
    source: &Source,
    entries: &mut [Entry],
) -> Result<()> {
    let mut carrier = Carrier::new(session, source);
    let total = entries.len() as u64;
    for (done, entry) in entries.iter_mut().enumerate() {
        app.output.progress(done as u64, total, "objects");
        entry.compare(session, &mut carrier);
        entry.bring(session, &mut carrier, args.dry_run);
    }
    app.output.progress(total, total, "objects");
    entries.iter_mut().try_for_each(|entry| entry.complete(session))
}

/// Which of them the token has, as far as that is seen without their values. Of several that nothing tells apart there must be as
/// many.
fn look(session: &Session, entries: &mut [Entry]) -> Result<()> {
    let mut before: Vec<Template> = Vec::new();
    for entry in entries {
        let Some(same) = entry.object.identity() else { continue };
        let earlier = before.iter().filter(|other| **other == same).count();
        let found = session.find(&same)?;
        match entry.object.is_told_apart() {
            true if found.len() > earlier => entry.fate = Fate::There,
            true => {}
            false => entry.alike = found,
        }
        before.push(same);
    }
    Ok(())
}

impl Entry {
    const fn new(object: Object) -> Self {
        Self {
            object,
            wrapped: false,
            completed: false,
            handle: None,
            alike: Vec::new(),
            fate: Fate::WouldBe,
        }
    }

    fn bring(&mut self, session: &Session, carrier: &mut Carrier<'_>, dry_run: bool) {
        if !matches!(self.fate, Fate::WouldBe) {
            return;
        }
        self.fate = Fate::of(self.brought(session, carrier, dry_run), dry_run);
    }

    fn brought(
        &mut self,
        session: &Session,
        carrier: &mut Carrier<'_>,
        dry_run: bool,
    ) -> std::result::Result<(), String> {
        let template = self.whole(carrier)?;
        // What the token thinks of an object is seen by making one that lasts no longer than the session.
        let made = key::create(session, &self.object.key_kind(None), &template.token(!dry_run));
        self.handle = Some(made.map_err(fate::refusal)?);
        Ok(())
    }

    /// All of it, with its secret values.
    fn whole(&mut self, carrier: &mut Carrier<'_>) -> std::result::Result<Template, String> {
        let mut template = self.object.template()?;
        if self.object.has_secrets() {
            let (values, wrapped) = carrier.secrets(&self.object)?;
            self.wrapped = wrapped;
            for (attribute, value) in values.iter() {
                if template.find(attribute).is_none() {
                    template.push(attribute, value.clone());
                }
            }
        }
        Ok(template)
    }

    /// Compares a key with those of ours that may be it, by its value, which is here no longer than that takes.
    fn compare(&mut self, session: &Session, carrier: &mut Carrier<'_>) {
        if self.alike.is_empty() {
            return;
        }
        let unknown = || Fate::Not(String::from(UNSEEN));
        let brought = self
            .whole(carrier)
            .map_err(Fate::Not)
            .and_then(|template| session.create(&template.token(false)).map_err(|_| unknown()));
        let key = match brought {
            Ok(key) => key,
            Err(fate) => return self.fate = fate,
        };
        let is_there = among(session, key, &self.alike);
        session.destroy(key).ok();
        match is_there {
            Some(true) => (self.fate, self.wrapped) = (Fate::There, false),
            Some(false) => {}
            None => self.fate = unknown(),
        }
    }

    /// Makes the public half of a private key that came without one: programs look for it.
    fn complete(&mut self, session: &Session) -> Result<()> {
        let Object { class: CKO_PRIVATE_KEY, label, id, .. } = &self.object else { return Ok(()) };
        let Some(handle) = self.handle.filter(|_| matches!(self.fate, Fate::Moved)) else {
            return Ok(());
        };
        let public = session.attribute(handle, CKA_PUBLIC_KEY_INFO).unwrap_or_default();
        let Ok(values) = public_values(&public) else { return Ok(()) };
        let same = Template::new().class(CKO_PUBLIC_KEY).token(true);
        let same =
            values.iter().fold(same, |all, (attribute, value)| all.with(attribute, value.clone()));
        if !session.find(&same)?.is_empty() {
            return Ok(());
        }
        let usages = self.object.usages();
        let usages = Some(&usages[..]);
        let how = Brought { label, id, subject: None, usages, sensitive: false, extractable: true };
        bring_public(session, &public, &self.object.key_kind(None), &how)?;
        self.completed = true;
        Ok(())
    }

    fn row(&self) -> Vec<String> {
        let dash = |text: String| if text.is_empty() { String::from("-") } else { text };
        let encrypted = if self.wrapped { ", encrypted" } else { "" };
        let completed = if self.completed { ", and its public half made" } else { "" };
        let how = if self.fate.is_here() { [encrypted, completed].concat() } else { String::new() };
        let result = self.fate.words() + &how;
        let object = &self.object;
        vec![object.kind.clone(), dash(object.label.clone()), dash(hex(&object.id)), result]
    }

    fn json(&self) -> Value {
        json!({
            "kind": self.object.kind,
            "label": self.object.label,
            "id": hex(&self.object.id),
            "private": self.object.private,
            "result": self.fate.name(),
            "reason": self.fate.reason(),
            "encrypted": self.wrapped,
            "completed": self.completed,
            "lost": self.object.lost,
        })
    }
}

fn report(entries: &[Entry], source: &Source, login: &Login<'_>) -> Report {
    let token = login.token.uri();
    let mut table = Table::new(&["KIND", "LABEL", "ID", "RESULT"], &[]);
    entries.iter().for_each(|entry| table.push(entry.row()));
    let is_here = |entry: &&Entry| entry.fate.is_here();
    let lost = entries.iter().filter(is_here).filter(|entry| !entry.object.lost.is_empty());
    let lost = lost.map(|entry| {
        let Object { kind, label, lost, .. } = &entry.object;
        format!("{kind} '{}': without {}\n", printable(label), lost.join(", "))
    });
    let uri = |entry: &Entry| entry.object.uri(&token).map(|uri: Uri| uri.to_string());
    Report {
        text: match entries {
            [] => String::from("no objects\n"),
            _ => table.text() + &lost.collect::<String>(),
        },
        json: json!({
            "from": {"module": source.path(), "token": source.token()},
            "token": token.to_string(),
            "objects": entries.iter().map(Entry::json).collect::<Vec<Value>>(),
        }),
        uris: entries.iter().filter(is_here).filter_map(uri).collect(),
    }
}
