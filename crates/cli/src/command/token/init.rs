// SPDX-License-Identifier: Apache-2.0
//! `metaslot token init`

use super::place::{Place, Usual};
use crate::app::App;
use crate::command::arguments::{At, StoreArg};
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::output::Report;
use crate::pin::{self, Role, Source};
use crate::uri::Uri;
use metaslot_ck::{self as ck, SlotId};
use metaslot_client::{Access, TokenInfo, User};
use metaslot_memory::Secret;
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const EXAMPLES: &str = "\
Examples:
  metaslot token init --label web
  metaslot token init --label mine --new
  metaslot token init --label web --so-pin-source so.pin --pin-source user.pin
  metaslot token init --label web --store 'postgresql://owner@db/vault?token=web'";

/// What loses nothing.
pub(super) const BESIDE: &str = "'--new' makes another token beside those that there are";

/// How often a token is made again that two commands have both given up.
const MAKINGS: usize = 4;

/// How long a token may be without a user PIN while it is made, and how often it is looked at.
const MAKING: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `token init`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("store", |it| it.conflicts_with_all(["slot", "new", "force"])))]
pub(crate) struct Args {
    /// The token's name, at most 32 bytes
    #[arg(long, value_name = "LABEL", default_value = "metaslot")]
    label: String,
    /// The slot [default: the first without a token]
    #[arg(long, value_name = "N")]
    slot: Option<u64>,
    /// Beside the tokens that there are: a [[token]] of its own in a drop-in of the configuration
    #[arg(long, conflicts_with = "slot")]
    new: bool,
    #[command(flatten)]
    store: StoreArg,
    /// The SO PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    so_pin_source: Option<String>,
    /// The user PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pin_source: Option<String>,
    /// Empty a token that exists without asking: every key in it is lost; and let two tokens have one
    /// label
    #[arg(long)]
    force: bool,
}

impl Args {
    /// The database, if it is to be in one.
    pub(super) fn at(&self) -> Option<At<'_>> {
        self.store.at()
    }

    pub(super) fn order(&self) -> Order<'_> {
        Order {
            label: &self.label,
            slot: self.slot,
            is_new: self.new,
            so_pin: self.so_pin_source.as_deref(),
            pin: self.pin_source.as_deref(),
            force: self.force,
        }
    }
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let done = init(app, &args.order())?;
    let uri = done.token.uri().to_string();
    let report = Report {
        text: format!("initialised {} in slot {}\n{uri}\n", done.token.name(), done.token.slot),
        json: json!({"token": super::list::json(&done.token)}),
        uris: vec![uri],
    };
    done.print(app, &report)
}

/// A token that is to be made, and where its PINs are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) label: &'a str,
    /// None for the first without a token.
    pub(crate) slot: Option<u64>,
    /// In a slot that is made for it.
    pub(crate) is_new: bool,
    pub(crate) so_pin: Option<&'a str>,
    pub(crate) pin: Option<&'a str>,
    /// Whether a token that is there may go, and another have the label.
    pub(crate) force: bool,
}

/// A token with PINs that were set now, each of so many bytes.
#[derive(Debug)]
pub(crate) struct NewPins {
    pub(crate) token: Token,
    pub(super) pins: Vec<(Role, usize)>,
}

impl NewPins {
    /// Prints what was done, and what the PINs are worth.
    pub(crate) fn print(&self, app: &App, report: &Report) -> Result<()> {
        let cost = self.token.cost;
        app.output.print_warning(report, &pin::cost::warnings(cost, &self.pins))?;
        if let Some((role, _)) = self.pins.first() {
            pin::cost::tell(app.output, cost, *role);
        }
        Ok(())
    }
}

/// Reads or asks for the PINs, and makes the token.
pub(crate) fn init(app: &App, order: &Order<'_>) -> Result<NewPins> {
    let order = &Order { label: check_label(order.label)?, ..*order };
    if order.is_new {
        return init_beside(app, order);
    }
    let usual = Usual::look();
    let host = app.host(&Uri::default())?;
    if let Some(token) = half_made(host, order)? {
        app.output.note(&format!("finishing {} in slot {}", token.name(), token.slot));
        return Pins::read(app, order, Some(&token))?.finish(host, &token, order);
    }
    let token = first_free(host, order.slot)?;
    if let Some(problem) = &token.problem {
        let what = format!("the token in slot {} cannot be read: {problem}", token.slot);
        return Err(Failure::failed(what).hint(format!("it was left as it is; {BESIDE}")));
    }
    let exists = token.has(ck::CKF_TOKEN_INITIALIZED);
    if exists && !order.force {
        confirm(&token)?;
    }
    if !order.force {
        refuse_same_label(host, &token, order.label)?;
    }
    let pins = Pins::read(app, order, exists.then_some(&token))?;
    let made = pins.make(host, &token, order)?;
    usual.keep().map(|()| made)
}

/// A token whose making was ended by a kill has its label and no user PIN: nothing in it is lost when it gets one. One that another
/// process is making has it soon.
fn half_made(host: &Host, order: &Order<'_>) -> Result<Option<Token>> {
    let is_it = |token: &Token| {
        token.has(ck::CKF_TOKEN_INITIALIZED | ck::CKF_LOGIN_REQUIRED)
            && !token.has(ck::CKF_USER_PIN_INITIALIZED)
            && token.info.label == order.label
            && order.slot.is_none_or(|slot| token.slot == SlotId(slot))
    };
    if order.force {
        return Ok(None);
    }
    let end = Instant::now() + MAKING;
    loop {
        match host.tokens()?.into_iter().find(is_it) {
            Some(_) if Instant::now() < end => sleep(PAUSE),
            found => return Ok(found),
        }
    }
}

/// The module reads the configuration when it is loaded: the slot is there before, and the PINs before that.
fn init_beside(app: &App, order: &Order<'_>) -> Result<NewPins> {
    let place = Place::find(order.label)?;
    let pins = Pins::read(app, order, None)?;
    let slot = place.add()?;
    let host = app.host(&Uri::default())?;
    let token = slot.token(host)?;
    if !order.force {
        refuse_same_label(host, &token, order.label)?;
    }
    let made = pins.make(host, &token, order)?;
    slot.keep(app.output);
    Ok(made)
}

/// The PINs of a token that is to be made.
struct Pins {
    so: Secret,
    user: Secret,
}

impl Pins {
    /// A token that is `there` has an SO PIN.
    fn read(app: &App, order: &Order<'_>, there: Option<&Token>) -> Result<Self> {
        if pin::is_interactive() {
            app.output.note(
                "the SO PIN sets the user's PIN and empties the token; the user PIN opens the keys",
            );
        }
        let none = Uri::default();
        let source = Source::find(Role::So, order.so_pin, &none)?;
        let so = match there {
            Some(token) => token.pin(Role::So, source.as_ref())?,
            None => pin::chosen(Role::So, order.label, source.as_ref())?,
        };
        let source = Source::find(Role::User, order.pin, &none)?;
        let user = pin::chosen(Role::User, order.label, source.as_ref())?;
        Ok(Self { so, user })
    }

    /// Before anything is changed: a PIN that the token refuses would leave it half made.
    fn check(&self, token: &Token) -> Result<()> {
        check_length(Role::So, &self.so, &token.info)?;
        check_length(Role::User, &self.user, &token.info)
    }

    fn new_pins(&self, token: Token) -> NewPins {
        NewPins { token, pins: vec![(Role::User, self.user.len()), (Role::So, self.so.len())] }
    }

    /// Sets the user's PIN of a token that has none.
    fn finish(&self, host: &Host, token: &Token, order: &Order<'_>) -> Result<NewPins> {
        self.check(token)?;
        let made = set_user_pin(host, token, order.label, (&self.so, &self.user))?;
        Ok(self.new_pins(made))
    }

    fn make(&self, host: &Host, token: &Token, order: &Order<'_>) -> Result<NewPins> {
        self.check(token)?;
        let mut again = 0..MAKINGS;
        let made = loop {
            let made = make(host, token, order.label, &self.so, &self.user)?;
            let refused = (!order.force).then(|| refuse_same_label(host, &made, order.label));
            let Some(Err(refused)) = refused else { break made };
            // Another command has given it to another token meanwhile: the later of two sees that, or both.
            match self.taken_back(host, token, made.slot, order.label) {
                true if token.has(ck::CKF_TOKEN_INITIALIZED) => {
                    return Err(refused.context(format!(
                        "{} is emptied, and keeps its label and has the new PINs",
                        token.name()
                    )));
                }
                // Where both gave up, the one that waits less makes it.
                true if again.next().is_some() => {
                    sleep(pause());
                    refuse_same_label(host, token, order.label)?;
                }
                true => return Err(refused),
                false => {
                    return Err(refused.hint(
                        "there are two now: 'metaslot token rename' gives one another label",
                    ));
                }
            }
        };
        Ok(self.new_pins(made))
    }

    /// Whether the label is no more in the slot: with the token, which is new, or as the token was called that was emptied.
    fn taken_back(&self, host: &Host, before: &Token, slot: SlotId, label: &str) -> bool {
        let (module, so_pin) = (host.module(), self.so.expose());
        let done = match before.has(ck::CKF_TOKEN_INITIALIZED) {
            true => module.rename_token((slot, ck::CKU_SO, so_pin), &before.info.label),
            false => module.remove_token(slot, so_pin, label),
        };
        done.is_some_and(|done| done.is_ok())
    }
}

/// How long who gave a label up waits: not as long as another.
fn pause() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis(u64::from(now.subsec_micros() % 1000))
}

/// The label as a token has it. Refuses one that has no room (PKCS#11 3.2 §3.2), and one with control characters: messages
/// name the token by it.
pub(super) fn check_label(label: &str) -> Result<&str> {
    // Blanks at the end fill the field, so a label of nothing else is none.
    match label.len() {
        1..=32 if printable(label) != label => Err(Failure::usage(format!(
            "a label must not contain control characters: {}",
            printable(label)
        ))),
        1..=32 if !label.trim_end().is_empty() => Ok(label.trim_end_matches(' ')),
        1..=32 => Err(Failure::usage("a label of blanks only is none")),
        _ => Err(Failure::usage("a label has 1 to 32 bytes")),
    }
}

/// The slot that was named, else the first without a token, else the only one.
pub(super) fn first_free(host: &Host, wanted: Option<u64>) -> Result<Token> {
    let mut tokens = host.tokens()?;
    let at = match wanted {
        Some(number) => tokens.iter().position(|token| token.slot == SlotId(number)),
        None => {
            let is_free =
                |token: &Token| !token.has(ck::CKF_TOKEN_INITIALIZED) && token.problem.is_none();
            let free = tokens.iter().position(is_free);
            free.or_else(|| (tokens.len() == 1).then_some(0))
        }
    };
    match (at, wanted) {
        (Some(at), _) => Ok(tokens.swap_remove(at)),
        (None, Some(number)) => Err(Failure::not_found(format!("there is no slot {number}"))
            .hint("'metaslot token list' shows the slots")),
        (None, None) => Err(none_is_free(&tokens)),
    }
}

/// No slot is without a token, or it is not known of all.
fn none_is_free(tokens: &[Token]) -> Failure {
    let unreadable = tokens.iter().find_map(|token| Some((token.slot, token.problem.as_ref()?)));
    match unreadable {
        None => Failure::not_found("every slot has a token already").hint(BESIDE),
        Some((slot, problem)) => {
            let what =
                format!("no slot is free: the token in slot {slot} cannot be read: {problem}");
            Failure::not_found(what)
                .hint(format!("'metaslot doctor' says what stands in the way; {BESIDE}"))
        }
    }
}

/// Two tokens of one label need their serial numbers in every URI.
pub(super) fn refuse_same_label(host: &Host, token: &Token, label: &str) -> Result<()> {
    let is_it = |other: &&Token| {
        other.slot != token.slot
            && other.has(ck::CKF_TOKEN_INITIALIZED)
            && other.info.label == label
    };
    match host.tokens()?.iter().find(is_it) {
        None => Ok(()),
        Some(other) => {
            let message = format!("slot {} already has a {}", other.slot, other.name());
            Err(Failure::failed(message).hint("choose another label, or allow two with --force"))
        }
    }
}

fn confirm(token: &Token) -> Result<()> {
    let name = token.name();
    if !pin::is_interactive() {
        let message = format!("slot {} already has {name}", token.slot);
        return Err(Failure::failed(message).hint(format!(
            "{BESIDE}; --force empties the one that is there, and every key in it is lost"
        )));
    }
    let question = format!("slot {} has {name}: delete every key in it?", token.slot);
    if pin::confirm(&question)? { Ok(()) } else { Err(Failure::failed("nothing was changed")) }
}

/// Refuses a PIN that the token would not take.
pub(super) fn check_length(role: Role, pin: &Secret, info: &TokenInfo) -> Result<()> {
    let (shortest, longest) = info.pin_lengths;
    if (shortest..=longest.max(shortest)).contains(&pin.len()) || longest == 0 {
        return Ok(());
    }
    let words = role.words();
    Err(Failure::pin(format!("the {words} must have {shortest} to {longest} bytes")))
}

fn make(
    host: &Host,
    token: &Token,
    label: &str,
    so_pin: &Secret,
    user_pin: &Secret,
) -> Result<Token> {
    let was_free = !token.has(ck::CKF_TOKEN_INITIALIZED);
    let is_overtaken = || {
        let info = host.module().token_info(token.slot);
        was_free && info.is_ok_and(|info| info.has(ck::CKF_TOKEN_INITIALIZED))
    };
    let overtaken = || {
        let what = format!("another process has just made a token in slot {}", token.slot);
        Failure::failed(what).hint(format!("it was left as it is; {BESIDE}"))
    };
    if is_overtaken() {
        return Err(overtaken());
    }
    let initialised = host.module().init_token(token.slot, so_pin.expose(), label);
    initialised.map_err(|error| match is_overtaken() {
        true => overtaken(),
        false => host.login_failure(token, Role::So, error),
    })?;
    set_user_pin(host, token, label, (so_pin, user_pin)).inspect_err(|_| {
        // It is half made, on a full disk for example. Nothing can be done about another failure.
        if was_free {
            host.module().remove_token(token.slot, so_pin.expose(), label);
        }
    })
}

fn set_user_pin(
    host: &Host,
    token: &Token,
    label: &str,
    (so_pin, user_pin): (&Secret, &Secret),
) -> Result<Token> {
    // A module may move a new token to another slot: it is found by its label and state.
    let made = moved(host, token, label)?;
    let session = host.module().open_session(made.slot, Access::ReadWrite)?;
    let opened = session.login(User::SecurityOfficer, so_pin.expose());
    opened.map_err(|error| host.login_failure(&made, Role::So, error))?;
    session.init_pin(user_pin.expose())?;
    session.logout()?;
    moved(host, token, label)
}

fn moved(host: &Host, token: &Token, label: &str) -> Result<Token> {
    let is_it = |found: &&Token| found.has(ck::CKF_TOKEN_INITIALIZED) && found.info.label == label;
    let tokens = host.tokens()?;
    let same_slot = tokens.iter().filter(is_it).find(|found| found.slot == token.slot);
    let found = same_slot.or_else(|| tokens.iter().rfind(is_it));
    found.cloned().ok_or_else(|| Failure::failed("the new token is not to be found"))
}
