// SPDX-License-Identifier: Apache-2.0
//! The audit log: a line of JSON for what happens to keys, for logins and PINs, and for what the policy
//! refuses. It is off unless it is configured (`docs/audit.md`).
//!
//! No value of a key, no PIN and no data is ever in a line: an object is described by four attributes that
//! are never secret. A line is written at once, by one system call; only a file system can keep it waiting.

use crate::cancel::Uncancelled;
use crate::config::{AuditConfig, Config, Peer};
use crate::sink::{Sink, is_plain, now, program};
use metaslot_ck::*;
use metaslot_counters as counters;
use metaslot_engine::{Answer, Engine, Object};
use metaslot_spi::store::{Examination, Identities, Name};
use metaslot_spi::{Template, Value, detail};
use rustix::process::getuid;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What a line is for the journal: normal, but significant.
const NOTICE: u8 = 5;

/// The log that is configured.
#[derive(Debug)]
pub struct Log {
    sink: Sink,
    /// Nothing is done whose beginning cannot be written.
    required: bool,
    /// Of tokens of other modules.
    labels: Mutex<BTreeMap<SlotId, String>>,
    /// Whose calls are logged, where it is not this process.
    client: Option<Client>,
}

/// Who has its calls done here.
#[derive(Debug)]
struct Client {
    peer: Peer,
    /// What the kernel called a process when it came; empty where it has ended meanwhile.
    program: String,
}

impl Log {
    /// The one that a configuration wants.
    #[must_use]
    pub fn of(config: &Config) -> Option<Self> {
        let AuditConfig { file, required } = config.audit.clone()?;
        let sink = file.map_or_else(Sink::journal, Sink::File);
        Some(Self { sink, required, labels: Mutex::default(), client: None })
    }

    /// The same log, of the calls of another process, or of a peer by the first of its names.
    #[must_use]
    pub fn of_client(&self, peer: &Peer) -> Self {
        let program = match peer {
            Peer::Process(process) => Some(program(process.id)).filter(|_| !process.has_ended()),
            Peer::Named(_) => None,
        };
        let client = Some(Client { peer: peer.clone(), program: program.unwrap_or_default() });
        let (sink, required) = (self.sink.clone(), self.required);
        Self { sink, required, labels: Mutex::default(), client }
    }

    fn write(&self, event: &str, function: &str, about: &str, result: &str) -> io::Result<()> {
        let _uncancelled = Uncancelled::begin();
        let mut line = format!("{{\"time\":{}", now());
        let mut process = |id: u32, user: u32, program: &str| {
            write!(line, ",\"pid\":{id},\"uid\":{user}").ok();
            text(&mut line, "program", program);
        };
        match &self.client {
            None => process(std::process::id(), getuid().as_raw(), &program(None)),
            Some(Client { peer: Peer::Process(one), program }) => {
                process(one.id.unwrap_or(0), one.user, program);
            }
            Some(Client { peer: Peer::Named(names), .. }) => {
                text(&mut line, "tls", names.first().map_or("", String::as_str));
            }
        }
        text(&mut line, "event", event);
        if !function.is_empty() {
            text(&mut line, "function", function);
        }
        line += about;
        if !result.is_empty() {
            text(&mut line, "result", result);
        }
        line.push('}');
        let written = self.sink.write(&line, NOTICE);
        if written.is_err() {
            counters::event(counters::Event::AuditFailure);
        }
        written
    }

    /// Another configuration is taken over, or why it is not.
    ///
    /// # Errors
    /// Where it must not be taken over without a line.
    pub fn configured(&self, file: &Path, problem: Option<&str>) -> io::Result<()> {
        let mut fields = String::new();
        text(&mut fields, "file", &file.to_string_lossy());
        if let Some(problem) = problem {
            text(&mut fields, "reason", problem);
        }
        let event = if problem.is_none() { "configured" } else { "not-configured" };
        let written = self.write(event, "", &fields, "");
        if self.required { written } else { Ok(()) }
    }

    /// The daemon has opened a token by a PIN of its own, of this identity where it has a name, or not.
    ///
    /// # Errors
    /// Where it must not be opened without a line.
    pub fn opened(
        &self,
        token: &str,
        identity: Option<Name>,
        result: Result<()>,
    ) -> io::Result<()> {
        let written = self.write("opened", "", &own(token, identity), &code(result));
        if self.required { written } else { Ok(()) }
    }

    /// That is over: the identity is not one of the token's any more.
    pub fn closed(&self, token: &str, identity: Option<Name>) {
        self.write("closed", "", &own(token, identity), "").ok();
    }

    /// Before what is to be logged: only where that must not happen without a line.
    fn begin(&self, act: Act, about: &str) -> Result<()> {
        if !self.required {
            return Ok(());
        }
        self.write("begun", act.function, about, "").map_err(|error| {
            detail::set(format_args!("the audit log cannot be written: {error}"));
            Error::FUNCTION_FAILED
        })
    }

    /// What a call came to.
    fn end(&self, act: Act, note: &Note, result: Result<()>) {
        let place = || note.fields.clone();
        let refused = result.is_err_and(|error| self.refused(act.function, error, place));
        let silent = act.of_objects && (result.is_err() || !note.counts);
        // What is said to have begun is not left open.
        let event = if silent { "ended" } else { act.event };
        if !silent || (self.required && !refused) {
            self.write(event, act.function, &note.fields, &code(result)).ok();
        }
    }

    /// A call that the policy refused, whatever its function; says whether it did.
    pub fn refused(&self, function: &str, error: Error, place: impl FnOnce() -> String) -> bool {
        let Some(reason) = detail::refusal() else { return false };
        let mut fields = place();
        text(&mut fields, "reason", &reason);
        self.write("refused", function, &fields, &code(Err(error))).ok();
        true
    }

    /// The slot, its token, the identity that is logged in to it, and the session, as fields.
    pub fn place(&self, engine: &Engine, session: SessionHandle) -> String {
        let mut fields = String::new();
        if let Ok(info) = engine.session_info(session) {
            fields = self.slot(engine, info.slot);
            if let Some(name) = engine.identity(info.slot) {
                text(&mut fields, "identity", name.as_str());
            }
        }
        write!(fields, ",\"session\":{}", session.0).ok();
        fields
    }

    /// A slot and its token, as fields.
    pub fn slot(&self, engine: &Engine, slot: SlotId) -> String {
        self::slot(slot, &self.label(engine, slot))
    }

    /// The same of a token that gets this label now.
    pub fn renamed(&self, slot: SlotId, label: &str) -> String {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot);
        self::slot(slot, label)
    }

    /// Another module is asked once, because it may be far away.
    fn label(&self, engine: &Engine, slot: SlotId) -> String {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(label) = labels.get(&slot) {
            return label.clone();
        }
        drop(labels);
        // What goes wrong here does not explain the call.
        let _said = detail::aside();
        let Ok(token) = engine.token_info(slot) else { return String::new() };
        if token.other.is_some() {
            labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
            labels.insert(slot, token.label.clone());
        }
        token.label
    }
}

/// Does what the log has a line of; `call` notes what it is about.
///
/// # Errors
/// Those of `call`; `CKR_FUNCTION_FAILED` where nothing may happen that cannot be logged: the detail says why.
pub fn audited(
    log: Option<&Log>,
    act: Act,
    place: impl FnOnce(&Log) -> String,
    call: impl FnOnce(&mut Note) -> Result<()>,
) -> Result<()> {
    let Some(log) = log else { return call(&mut Note::default()) };
    let mut note = Note { on: true, counts: false, fields: place(log) };
    log.begin(act, &note.fields)?;
    let result = catch_unwind(AssertUnwindSafe(|| call(&mut note)));
    log.end(act, &note, result.as_ref().map_or(Err(Error::GENERAL_ERROR), |answer| *answer));
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// What the line of a function says that happened.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    event: &'static str,
    function: &'static str,
    /// Only what succeeded with an object of a token has a line.
    of_objects: bool,
}

impl Act {
    /// What the vendor interface does to a token.
    #[must_use]
    pub const fn examination(what: Examination<'_>) -> Self {
        let (event, function) = match what {
            Examination::Look => ("examined", "ExamineToken"),
            Examination::Repair => ("repaired", "ExamineToken"),
            Examination::Backup(_) => ("copied-out", "CopyToken"),
            Examination::Restore(_) => ("restored", "CopyToken"),
            Examination::Rename(_) => ("renamed", "RenameToken"),
            Examination::Remove(_) => ("removed", "RemoveToken"),
            Examination::Identities(asked) => match asked {
                Identities::List => ("identities", "ListIdentities"),
                Identities::Add(..) => ("identity-added", "ChangeIdentity"),
                Identities::Revoke(_) => ("identity-revoked", "ChangeIdentity"),
                Identities::SetPin(..) => ("pin", "ChangeIdentity"),
            },
        };
        Self { event, function, of_objects: false }
    }

    /// What a function does that has a line; `None` for one that has none.
    #[must_use]
    pub fn logged(function: Function) -> Option<Self> {
        Some(Self::of(function)).filter(|act| act.event != CALLED)
    }

    /// What a function of the interface does.
    #[must_use]
    pub const fn of(function: Function) -> Self {
        let (event, of_objects) = match function {
            Function::GenerateKey | Function::GenerateKeyPair => ("generated", true),
            Function::CreateObject => ("created", true),
            Function::UnwrapKey | Function::UnwrapKeyAuthenticated => ("unwrapped", true),
            Function::DeriveKey | Function::EncapsulateKey | Function::DecapsulateKey => {
                ("derived", true)
            }
            Function::CopyObject => ("copied", true),
            Function::DestroyObject => ("destroyed", true),
            Function::SetAttributeValue => ("changed", true),
            Function::WrapKey | Function::WrapKeyAuthenticated => ("wrapped", true),
            Function::Login | Function::LoginUser => ("login", false),
            Function::Logout => ("logout", false),
            Function::InitPIN | Function::SetPIN => ("pin", false),
            Function::InitToken => ("token", false),
            _ => (CALLED, false),
        };
        Self { event, function: function.name(), of_objects }
    }
}

/// What happens by a function that has no line.
const CALLED: &str = "called";

fn code(result: Result<()>) -> String {
    let rv = result.map_or_else(Error::rv, |()| CKR_OK);
    rv_name(rv).map_or_else(|| format!("0x{rv:x}"), str::to_owned)
}

/// What one call tells of its subject; nothing where there is no log.
#[derive(Debug, Default)]
pub struct Note {
    on: bool,
    /// An object of a token is concerned: those of a session leave no line.
    counts: bool,
    fields: String,
}

impl Note {
    /// A number under its name.
    pub fn number(&mut self, name: &str, number: u64) {
        if self.on {
            write!(self.fields, ",\"{name}\":{number}").ok();
        }
    }

    /// Who logs in.
    pub fn user(&mut self, user: CK_USER_TYPE) {
        let user = match user {
            CKU_SO => "so",
            CKU_USER => "user",
            CKU_CONTEXT_SPECIFIC => "context-specific",
            _ => "unknown",
        };
        if self.on {
            text(&mut self.fields, "user", user);
        }
    }

    /// The name that is given of an identity.
    pub fn name(&mut self, name: Name) {
        if self.on {
            text(&mut self.fields, "name", name.as_str());
        }
    }

    /// By its name.
    pub fn mechanism(&mut self, mechanism: CK_MECHANISM_TYPE) {
        if self.on {
            let name = mechanism_name(mechanism);
            let name = name.map_or_else(|| format!("0x{mechanism:x}"), str::to_owned);
            text(&mut self.fields, "mechanism", &name);
        }
    }

    /// An object under the name of its part in the call.
    pub fn object(
        &mut self,
        engine: &Engine,
        session: SessionHandle,
        part: &str,
        handle: ObjectHandle,
    ) {
        if !self.on {
            return;
        }
        match engine.object(session, handle) {
            Ok(object) => self.describe(&object, part),
            // Another thread or process took it away at once, or logged out: it may have been a token's.
            Err(_) => {
                self.counts = true;
                write!(self.fields, ",\"{part}\":null").ok();
            }
        }
    }

    fn describe(&mut self, object: &Object, part: &str) {
        let number = |attribute| match object.answer(attribute) {
            Ok(Answer::Value(Value::Ulong(number))) => Some(*number),
            _ => None,
        };
        let bytes = |attribute| match object.answer(attribute) {
            Ok(Answer::Value(Value::Bytes(bytes))) => &bytes[..],
            _ => &[],
        };
        let stored = matches!(object.answer(CKA_TOKEN), Ok(Answer::Value(Value::Bool(true))));
        self.counts |= stored;
        write!(self.fields, ",\"{part}\":{{\"stored\":{stored}").ok();
        let class = number(CKA_CLASS).and_then(object_class_name).unwrap_or("unknown");
        text(&mut self.fields, "class", class);
        if let Some(name) = number(CKA_KEY_TYPE).and_then(key_type_name) {
            text(&mut self.fields, "type", name);
        }
        text(&mut self.fields, "label", &String::from_utf8_lossy(bytes(CKA_LABEL)));
        let id = bytes(CKA_ID).iter().take(LONGEST / 2).map(|byte| format!("{byte:02x}"));
        text(&mut self.fields, "id", &id.collect::<String>());
        self.fields.push('}');
    }

    /// Which attributes a template names: their values are not logged.
    pub fn attributes(&mut self, template: &Template) {
        if self.on {
            let name = |number: &u64| match attribute_name(*number) {
                Some(name) => format!("\"{name}\""),
                None => format!("\"0x{number:x}\""),
            };
            let names = template.iter().map(|(number, _)| name(number)).take(LONGEST / 4);
            let names = names.collect::<Vec<_>>();
            write!(self.fields, ",\"attributes\":[{}]", names.join(",")).ok();
        }
    }
}

/// A token, and by whose PIN it is open, as fields.
fn own(label: &str, identity: Option<Name>) -> String {
    let mut fields = String::new();
    text(&mut fields, "token", label);
    if let Some(name) = identity {
        text(&mut fields, "identity", name.as_str());
    }
    fields
}

/// A slot and its token, as fields.
fn slot(slot: SlotId, label: &str) -> String {
    let mut fields = format!(",\"slot\":{}", slot.0);
    text(&mut fields, "token", label.trim_end());
    fields
}

/// Characters of a value.
const LONGEST: usize = 256;

/// `,"name":"value"`, as JSON; a first field has no comma before it in the line, which begins with its time.
fn text(out: &mut String, name: &str, value: &str) {
    write!(out, ",\"{name}\":\"").ok();
    for character in value.chars().take(LONGEST) {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            plain if is_plain(plain) => out.push(plain),
            other => escape(out, other),
        }
    }
    out.push('"');
}

fn escape(out: &mut String, character: char) {
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        write!(out, "\\u{unit:04x}").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_json_whatever_a_label_holds() {
        let mut line = String::new();
        text(&mut line, "label", "a\"\\\n\x1b[2J\u{202e}é\u{1f511}");
        assert_eq!(line, r#","label":"a\"\\\u000a\u001b[2J\u202eé\ud83d\udd11""#);
        let mut line = String::new();
        text(&mut line, "label", &"x".repeat(10_000));
        assert!(line.len() < 300);
    }
}
