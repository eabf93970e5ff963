// SPDX-License-Identifier: Apache-2.0
//! Our own interface, `Vendor Metaslot` 1.9: what return codes cannot say.
//! `include/metaslot/metaslot.h` declares it.

use crate::caught::caught;
use crate::decode::{Callback, Caller, Given};
use crate::enter::{enter, enter_library};
use crate::functions;
use crate::library::Library;
use crate::routing::{self, Estimate, Job};
use metaslot_ck::*;
use metaslot_counters as counters;
use metaslot_keystore::fast_login_place;
use metaslot_spi::detail;
use metaslot_spi::store::{
    Examination, Examined as Seen, Identities, Name, NewPin, PinState, Remark as Told, Role,
};
use metaslot_wiring::audit::{Act, audited};
use metaslot_wiring::cancel::Uncancelled;
use metaslot_wiring::config::source::Source;
use metaslot_wiring::environment::volatile_directories;
use metaslot_wiring::text::padded;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) const NAME: &CStr = c"Vendor Metaslot";
pub(crate) const VERSION: CK_VERSION = CK_VERSION { major: 1, minor: 9 };

/// `METASLOT_PIN_STATUS`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PinStatus {
    /// Wrong attempts since the last right one.
    failures: CK_ULONG,
    /// Attempts that are left before the PIN is locked.
    left: CK_ULONG,
    /// No attempt is taken before then, in seconds since 1970; 0 when one may try now.
    retry_at: CK_ULONG,
}

/// `METASLOT_TOKEN_STATUS`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TokenStatus {
    user: PinStatus,
    so: PinStatus,
}

/// `METASLOT_IDENTITY`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Identity {
    /// Padded with blanks.
    name: [CK_UTF8CHAR; Name::LONGEST],
    pin: PinStatus,
}

/// `METASLOT_PIN_COST`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PinCost {
    /// Argon2id's memory in KiB; 0 for PBKDF2.
    memory: CK_ULONG,
    /// Argon2id's passes, PBKDF2's iterations; 0 without a PIN.
    passes: CK_ULONG,
    /// What it took when this process did it last; 0 when it did not.
    microseconds: CK_ULONG,
}

/// `METASLOT_TOKEN_COST`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TokenCost {
    user: PinCost,
    so: PinCost,
}

/// `METASLOT_FAST_LOGIN`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct FastLogin {
    /// How long one lasts after a login; 0 where none is configured.
    seconds: CK_ULONG,
    /// Whether there is a place for its secret.
    possible: CK_BBOOL,
    /// Which, or why there is none, padded with blanks.
    text: [CK_UTF8CHAR; 256],
}

/// `METASLOT_CANDIDATE`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Candidate {
    /// Its name, padded with blanks.
    provider: [CK_UTF8CHAR; 16],
    /// `CKF_…` of the operations that it has.
    flags: CK_FLAGS,
    /// What stands in its way, padded with blanks.
    remark: [CK_UTF8CHAR; 96],
}

/// `METASLOT_RULE`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Rule {
    /// As `allow` in the configuration knows it, padded with blanks.
    name: [CK_UTF8CHAR; 24],
    /// What is refused, padded with blanks.
    sentence: [CK_UTF8CHAR; 192],
    refused: CK_BBOOL,
}

/// `METASLOT_REMARK`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Remark {
    /// How many objects were looked at.
    done: CK_ULONG,
    /// Of so many.
    total: CK_ULONG,
    /// The object's number in the store; `CK_UNAVAILABLE_INFORMATION` for the token as a whole.
    object: CK_ULONG,
    /// What is wrong, padded with blanks; nothing where only time has passed.
    text: [CK_UTF8CHAR; 192],
}

/// `METASLOT_EXAMINED`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Examined {
    objects: CK_ULONG,
    unverified: CK_ULONG,
    findings: CK_ULONG,
    removed: CK_ULONG,
}

/// `METASLOT_NOTIFY`
type Notify<'a> = Callback<'a, Remark>;

/// A function that says a text: UTF-8 without an end mark.
type Says = extern "C" fn(Given<'_, CK_UTF8CHAR>, Given<'_, CK_ULONG>) -> CK_RV;

/// A function that changes a token: its slot, the user, the PIN, a label.
type Changes = extern "C" fn(
    CK_SLOT_ID,
    CK_USER_TYPE,
    Given<'_, CK_UTF8CHAR>,
    CK_ULONG,
    Given<'_, CK_UTF8CHAR>,
    CK_ULONG,
) -> CK_RV;

/// `METASLOT_FUNCTION_LIST`
#[derive(Debug)]
#[repr(C)]
pub(crate) struct List {
    version: CK_VERSION,
    last_error: Says,
    token_status: extern "C" fn(CK_SLOT_ID, Given<'_, TokenStatus>) -> CK_RV,
    counters_path: Says,
    candidates:
        extern "C" fn(CK_MECHANISM_TYPE, Given<'_, Candidate>, Given<'_, CK_ULONG>) -> CK_RV,
    token_cost: extern "C" fn(CK_SLOT_ID, Given<'_, TokenCost>) -> CK_RV,
    examine_token: extern "C" fn(
        CK_SLOT_ID,
        CK_USER_TYPE,
        Given<'_, CK_UTF8CHAR>,
        CK_ULONG,
        CK_BBOOL,
        Notify<'_>,
        Given<'_, c_void>,
        Given<'_, Examined>,
    ) -> CK_RV,
    token_policy: extern "C" fn(CK_SLOT_ID, Given<'_, Rule>, Given<'_, CK_ULONG>) -> CK_RV,
    estimates: extern "C" fn(Given<'_, Job>, Given<'_, Estimate>, Given<'_, CK_ULONG>) -> CK_RV,
    copy_token: extern "C" fn(
        CK_SLOT_ID,
        CK_USER_TYPE,
        Given<'_, CK_UTF8CHAR>,
        CK_ULONG,
        Given<'_, CK_UTF8CHAR>,
        CK_ULONG,
        CK_BBOOL,
        Notify<'_>,
        Given<'_, c_void>,
        Given<'_, Examined>,
    ) -> CK_RV,
    rename_token: Changes,
    remove_token: Changes,
    fast_login: extern "C" fn(CK_SLOT_ID, Given<'_, FastLogin>) -> CK_RV,
    configuration_problem: Says,
    whole: extern "C" fn(
        CK_SESSION_HANDLE,
        CK_FLAGS,
        Given<'_, CK_MECHANISM>,
        CK_OBJECT_HANDLE,
        Given<'_, CK_BYTE>,
        CK_ULONG,
        Given<'_, CK_BYTE>,
        Given<'_, CK_ULONG>,
    ) -> CK_RV,
    identities: extern "C" fn(
        CK_SLOT_ID,
        Given<'_, CK_UTF8CHAR>,
        CK_ULONG,
        CK_ULONG,
        Given<'_, CK_UTF8CHAR>,
        CK_ULONG,
        Given<'_, CK_UTF8CHAR>,
        CK_ULONG,
        Given<'_, Identity>,
        Given<'_, CK_ULONG>,
    ) -> CK_RV,
}

pub(crate) static LIST: List = List {
    version: VERSION,
    last_error: says::<LastError>,
    token_status: token_says,
    counters_path: says::<CountersPath>,
    candidates,
    token_cost: token_says,
    examine_token,
    token_policy,
    estimates: routing::estimates,
    copy_token,
    rename_token: change_token::<false>,
    remove_token: change_token::<true>,
    fast_login: token_says,
    configuration_problem: says::<ConfigurationProblem>,
    whole: functions::whole,
    identities,
};

/// What is said, before `C_Initialize` too.
trait Said {
    fn say<R>(to: impl FnOnce(&[u8]) -> R) -> R;
}

/// Says it.
extern "C" fn says<T: Said>(text: Given<'_, CK_UTF8CHAR>, length: Given<'_, CK_ULONG>) -> CK_RV {
    let caller = Caller::new();
    let _uncancelled = Uncancelled::begin();
    // What was said of the last call stays, also after a buffer that was too small.
    let _said = detail::aside();
    caught(|| T::say(|said| caller.list(said, text, length)))
}

/// What is known of why the calling thread's last call failed, empty when the code says it all.
struct LastError;

impl Said for LastError {
    fn say<R>(to: impl FnOnce(&[u8]) -> R) -> R {
        detail::with(|detail| to(detail.as_bytes()))
    }
}

/// The file in which this process counts; empty when it has none.
struct CountersPath;

impl Said for CountersPath {
    fn say<R>(to: impl FnOnce(&[u8]) -> R) -> R {
        to(counters::path().map(|path| path.as_os_str().as_bytes()).unwrap_or_default())
    }
}

/// Why the configuration that is in force now is not taken; empty when it is. None of the modules that it names is loaded.
struct ConfigurationProblem;

impl Said for ConfigurationProblem {
    fn say<R>(to: impl FnOnce(&[u8]) -> R) -> R {
        let problem = Source::of_environment().read().err();
        to(problem.map(|problem| problem.to_string()).unwrap_or_default().as_bytes())
    }
}

/// What is said of a slot's token.
trait OfToken: Copy {
    fn of(library: &Library, slot: SlotId) -> Result<Self>;
}

/// Says it.
extern "C" fn token_says<T: OfToken>(slot: CK_SLOT_ID, said: Given<'_, T>) -> CK_RV {
    enter_library(Function::GetTokenInfo, |library, caller| {
        let place = caller.place(said)?;
        place.set(T::of(library, SlotId(slot))?);
        Ok(())
    })
}

impl OfToken for TokenStatus {
    fn of(library: &Library, slot: SlotId) -> Result<Self> {
        let token = library.engine()?.token_info(slot)?;
        if token.other.is_some() {
            // Its module says by flags whether there were wrong PINs, and no number.
            return Err(Error::FUNCTION_NOT_SUPPORTED);
        }
        Ok(Self { user: status_of(token.user), so: status_of(token.so) })
    }
}

fn status_of(pin: PinState) -> PinStatus {
    let (failures, left) = (CK_ULONG::from(pin.failures), CK_ULONG::from(pin.left));
    PinStatus { failures, left, retry_at: pin.retry_at }
}

impl OfToken for TokenCost {
    fn of(library: &Library, slot: SlotId) -> Result<Self> {
        let token = library.engine()?.token_info(slot)?;
        Ok(Self { user: cost_of(token.user), so: cost_of(token.so) })
    }
}

impl OfToken for FastLogin {
    fn of(library: &Library, slot: SlotId) -> Result<Self> {
        // That there is the slot, whose token may not be made yet.
        drop(library.engine()?.slot_info(slot)?);
        let Some(lifetime) = library.fast_login(slot) else {
            return Ok(Self { seconds: 0, possible: CK_FALSE, text: padded("") });
        };
        let place = fast_login_place(&Vec::from_iter(volatile_directories()));
        let possible = CK_BBOOL::from(place.is_ok());
        let text = place.unwrap_or_else(|reason| reason);
        Ok(Self { seconds: lifetime.as_secs(), possible, text: padded(&text) })
    }
}

fn cost_of(pin: PinState) -> PinCost {
    let [memory, passes, microseconds] =
        [pin.cost.memory_kib, pin.cost.passes, pin.cost.microseconds].map(CK_ULONG::from);
    PinCost { memory, passes, microseconds }
}

/// Who serves a mechanism, in the order in which they are asked.
extern "C" fn candidates(
    mechanism: CK_MECHANISM_TYPE,
    list: Given<'_, Candidate>,
    count: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter(Function::GetMechanismInfo, |engine, caller| {
        let candidate = |row: metaslot_engine::Candidate| Candidate {
            provider: padded(&row.provider),
            flags: row.flags,
            remark: padded(&row.remark),
        };
        let all: Vec<_> = engine.candidates(mechanism)?.into_iter().map(candidate).collect();
        caller.list(&all, list, count)
    })
}

/// What the policy of a slot's token refuses.
extern "C" fn token_policy(
    slot: CK_SLOT_ID,
    list: Given<'_, Rule>,
    count: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter(Function::GetTokenInfo, |engine, caller| {
        let rules = engine.token_policy(SlotId(slot))?.rules();
        let rules = rules.map(|(name, sentence, refused)| Rule {
            name: padded(name),
            sentence: padded(sentence),
            refused: CK_BBOOL::from(refused),
        });
        caller.list(&rules.collect::<Vec<_>>(), list, count)
    })
}

/// Looks at all of a token.
extern "C" fn examine_token(
    slot: CK_SLOT_ID,
    user: CK_USER_TYPE,
    pin: Given<'_, CK_UTF8CHAR>,
    pin_length: CK_ULONG,
    repair: CK_BBOOL,
    notify: Notify<'_>,
    application: Given<'_, c_void>,
    examined: Given<'_, Examined>,
) -> CK_RV {
    let what = if repair == CK_FALSE { Examination::Look } else { Examination::Repair };
    enter_library(Function::Login, |library, caller| {
        let place = caller.place(examined)?;
        let pin = caller.pin(pin, pin_length)?;
        let told = Some((notify, application));
        let mut asked = Asked { slot: SlotId(slot), user, told, identities: vec![] };
        place.set(asked.examine(library, pin.expose(), what)?);
        Ok(())
    })
}

/// Copies a token into a file, or makes a file the token.
extern "C" fn copy_token(
    slot: CK_SLOT_ID,
    user: CK_USER_TYPE,
    pin: Given<'_, CK_UTF8CHAR>,
    pin_length: CK_ULONG,
    path: Given<'_, CK_UTF8CHAR>,
    path_length: CK_ULONG,
    restore: CK_BBOOL,
    notify: Notify<'_>,
    application: Given<'_, c_void>,
    examined: Given<'_, Examined>,
) -> CK_RV {
    enter_library(Function::Login, |library, caller| {
        let place = caller.place(examined)?;
        let pin = caller.pin(pin, pin_length)?;
        let path = Path::new(OsStr::from_bytes(caller.bytes(path, path_length)?));
        let what = match restore {
            CK_FALSE => Examination::Backup(path),
            _ => Examination::Restore(path),
        };
        let told = Some((notify, application));
        let mut asked = Asked { slot: SlotId(slot), user, told, identities: vec![] };
        place.set(asked.examine(library, pin.expose(), what)?);
        Ok(())
    })
}

/// Gives a token another label, or takes away the files of the token that has this one.
extern "C" fn change_token<const REMOVE: bool>(
    slot: CK_SLOT_ID,
    user: CK_USER_TYPE,
    pin: Given<'_, CK_UTF8CHAR>,
    pin_length: CK_ULONG,
    label: Given<'_, CK_UTF8CHAR>,
    label_length: CK_ULONG,
) -> CK_RV {
    enter_library(Function::Login, |library, caller| {
        let pin = caller.pin(pin, pin_length)?;
        let label = str::from_utf8(caller.bytes(label, label_length)?).ok();
        // As long as the field of CK_TOKEN_INFO (PKCS#11 3.2 §3.2).
        let label = label.filter(|label| (1..=32).contains(&label.len()));
        let label = label.ok_or(Error::ARGUMENTS_BAD)?;
        let what = match REMOVE {
            true => Examination::Remove(label),
            false => Examination::Rename(label),
        };
        let mut asked = Asked { slot: SlotId(slot), user, told: None, identities: vec![] };
        asked.examine(library, pin.expose(), what).map(drop)
    })
}

/// Lists or changes the identities of a token.
extern "C" fn identities(
    slot: CK_SLOT_ID,
    pin: Given<'_, CK_UTF8CHAR>,
    pin_length: CK_ULONG,
    what: CK_ULONG,
    name: Given<'_, CK_UTF8CHAR>,
    name_length: CK_ULONG,
    new_pin: Given<'_, CK_UTF8CHAR>,
    new_pin_length: CK_ULONG,
    list: Given<'_, Identity>,
    count: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter_library(Function::Login, |library, caller| {
        let pin = caller.pin(pin, pin_length)?;
        let name = || Name::of_user(CKU_USER, caller.bytes(name, name_length)?);
        let new_pin = || {
            let new_pin = caller.pin(new_pin, new_pin_length)?;
            let (shortest, longest) = library.engine()?.token_info(SlotId(slot))?.pin_length;
            match (shortest..=longest).contains(&(new_pin.len() as u64)) {
                true => Ok(new_pin),
                false => Err(Error::PIN_LEN_RANGE),
            }
        };
        let mut asked = Asked { slot: SlotId(slot), user: CKU_SO, told: None, identities: vec![] };
        let mut ask = |what| asked.examine(library, pin.expose(), Examination::Identities(what));
        match what {
            0 => ask(Identities::List)?,
            1 => ask(Identities::Add(name()?, NewPin(new_pin()?.expose())))?,
            2 => ask(Identities::Revoke(name()?))?,
            3 => ask(Identities::SetPin(name()?, NewPin(new_pin()?.expose())))?,
            _ => return Err(Error::ARGUMENTS_BAD),
        };
        match what {
            0 => caller.list(&asked.identities, list, count),
            _ => Ok(()),
        }
    })
}

/// An examination as the application asks for it.
struct Asked<'a> {
    slot: SlotId,
    user: CK_USER_TYPE,
    /// Who is told how far it is, with what the application has it know.
    told: Option<(Notify<'a>, Given<'a, c_void>)>,
    /// Those that it was told of.
    identities: Vec<Identity>,
}

impl Asked<'_> {
    fn examine(
        &mut self,
        library: &Library,
        pin: &[u8],
        what: Examination<'_>,
    ) -> Result<Examined> {
        let engine = library.engine()?;
        let role = match self.user {
            CKU_SO => Role::So,
            CKU_USER => Role::User,
            _ => return Err(Error::USER_TYPE_INVALID),
        };
        let (mut done, mut total) = (0, 0);
        let mut remark = |told: Told<'_>| {
            let (object, what) = match told {
                Told::Progress { done: so_many, total: of } => {
                    (done, total) = (so_many, of);
                    (UNAVAILABLE, "")
                }
                Told::Finding { id, what } => (id.unwrap_or(UNAVAILABLE), what),
                Told::Identity(name, pin) => {
                    let name = padded(name.as_str());
                    self.identities.push(Identity { name, pin: status_of(pin) });
                    return true;
                }
            };
            let remark = Remark { done, total, object, text: padded(what) };
            self.told.as_ref().is_none_or(|(notify, application)| notify.tell(application, &remark))
        };
        let mut seen = Seen::default();
        audited(
            library.log(),
            Act::examination(what),
            |log| log.slot(engine, self.slot),
            |note| {
                note.user(self.user);
                if let Examination::Identities(
                    Identities::Add(name, _)
                    | Identities::Revoke(name)
                    | Identities::SetPin(name, _),
                ) = what
                {
                    note.name(name);
                }
                seen = engine.examine_token(self.slot, role, pin, what, &mut remark)?;
                note.number("removed", seen.removed);
                Ok(())
            },
        )?;
        Ok(Examined {
            objects: seen.rows,
            unverified: seen.unverified,
            findings: seen.findings,
            removed: seen.removed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::VERSION;

    #[test]
    fn the_header_and_the_book_have_the_version_and_every_function() {
        let header = include_str!("../../../include/metaslot/metaslot.h");
        let book = include_str!("../../../docs/functions.md");
        let named = format!("\"Vendor Metaslot\" {}.{}", VERSION.major, VERSION.minor);
        assert!(header.contains(&format!("{named} of")) && book.contains(&format!("{named}.")));
        let (_, list) = header.split_once("METASLOT_FUNCTION_LIST {").unwrap();
        for function in list.split("CK_RV (*").skip(1) {
            let (name, _) = function.split_once(')').unwrap();
            assert!(book.contains(&format!("`{name}`")), "{name}");
        }
    }
}
