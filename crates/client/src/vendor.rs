// SPDX-License-Identifier: Apache-2.0
//! The interface "Vendor Metaslot": why the last call of this thread failed, in words, how the PINs of a
//! token stand, and who serves a mechanism.

use crate::info::text;
use crate::interface::named_interface;
use crate::{length, ulong};
use metaslot_ck::*;
use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::{self, NonNull};

/// Longest explanation that is fetched, in bytes.
const LONGEST: usize = 4096;

/// A module has no more providers.
const MOST_CANDIDATES: usize = 16;

/// A policy has no more rules.
const MOST_RULES: usize = 64;

/// `METASLOT_REMARK`
#[repr(C)]
#[derive(Clone, Copy)]
struct RawRemark {
    done: CK_ULONG,
    total: CK_ULONG,
    object: CK_ULONG,
    text: [CK_UTF8CHAR; 192],
}

/// What an examination of a token tells while it goes on.
#[derive(Clone, Debug)]
pub struct Remark {
    /// How many objects were looked at.
    pub done: u64,
    /// Of so many.
    pub total: u64,
    /// The object's number in the store; `None` for the token as a whole.
    pub object: Option<u64>,
    /// What is wrong; empty when only time has passed.
    pub what: String,
}

/// `METASLOT_EXAMINED`: what an examination found.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Examined {
    /// How many objects were looked at.
    pub objects: CK_ULONG,
    /// How many of them were made without a login, and can be anybody's.
    pub unverified: CK_ULONG,
    /// How much is wrong.
    pub findings: CK_ULONG,
    /// How many objects were taken out.
    pub removed: CK_ULONG,
}

type Notify = unsafe extern "C" fn(*mut c_void, Option<&RawRemark>) -> CK_RV;

type ExamineToken = unsafe extern "C" fn(
    CK_SLOT_ID,
    CK_USER_TYPE,
    *const CK_UTF8CHAR,
    CK_ULONG,
    CK_BBOOL,
    Option<Notify>,
    *mut c_void,
    *mut Examined,
) -> CK_RV;

type CopyToken = unsafe extern "C" fn(
    CK_SLOT_ID,
    CK_USER_TYPE,
    *const CK_UTF8CHAR,
    CK_ULONG,
    *const CK_UTF8CHAR,
    CK_ULONG,
    CK_BBOOL,
    Option<Notify>,
    *mut c_void,
    *mut Examined,
) -> CK_RV;

type ChangeToken = unsafe extern "C" fn(
    CK_SLOT_ID,
    CK_USER_TYPE,
    *const CK_UTF8CHAR,
    CK_ULONG,
    *const CK_UTF8CHAR,
    CK_ULONG,
) -> CK_RV;

/// The function list behind the name. Later versions only append.
#[repr(C)]
#[derive(Clone, Copy)]
struct FunctionList {
    version: CK_VERSION,
    detail: Option<Sayer>,
    token_status: Option<Teller<TokenStatus>>,
    counters_path: Option<Sayer>,
    candidates: Option<Lister<RawCandidate>>,
    /// Since 1.1.
    token_cost: Option<Teller<TokenCost>>,
    examine: Option<ExamineToken>,
    /// Since 1.2.
    token_policy: Option<Lister<RawRule>>,
    /// Since 1.3.
    estimates: Option<Lister<RawEstimate, NonNull<Job>>>,
    /// Since 1.4.
    copy: Option<CopyToken>,
    /// Since 1.5.
    rename: Option<ChangeToken>,
    remove: Option<ChangeToken>,
    /// Since 1.6.
    fast_login: Option<Teller<RawFastLogin>>,
    /// Since 1.7.
    configuration_problem: Option<Sayer>,
    /// Since 1.8.
    whole: Option<Whole>,
    identities: Option<IdentitiesFunction>,
}

impl FunctionList {
    const NONE: Self = Self {
        version: CK_VERSION { major: 0, minor: 0 },
        detail: None,
        token_status: None,
        counters_path: None,
        candidates: None,
        token_cost: None,
        examine: None,
        token_policy: None,
        estimates: None,
        copy: None,
        rename: None,
        remove: None,
        fast_login: None,
        configuration_problem: None,
        whole: None,
        identities: None,
    };

    /// How much of it there is.
    const fn length(version: CK_VERSION) -> Option<usize> {
        Some(match (version.major, version.minor) {
            (1, 0) => offset_of!(Self, token_cost),
            (1, 1) => offset_of!(Self, token_policy),
            (1, 2) => offset_of!(Self, estimates),
            (1, 3) => offset_of!(Self, copy),
            (1, 4) => offset_of!(Self, rename),
            (1, 5) => offset_of!(Self, fast_login),
            (1, 6) => offset_of!(Self, configuration_problem),
            (1, 7) => offset_of!(Self, whole),
            (1, _) => size_of::<Self>(),
            _ => return None,
        })
    }
}

/// An `Init` function and the one that does all at once.
pub(crate) type Whole = unsafe extern "C" fn(
    CK_SESSION_HANDLE,
    CK_FLAGS,
    *mut CK_MECHANISM,
    CK_OBJECT_HANDLE,
    *mut CK_BYTE,
    CK_ULONG,
    *mut CK_BYTE,
    *mut CK_ULONG,
) -> CK_RV;

/// `Identities` of `METASLOT_FUNCTION_LIST`
type IdentitiesFunction = unsafe extern "C" fn(
    CK_SLOT_ID,
    *const CK_UTF8CHAR,
    CK_ULONG,
    CK_ULONG,
    *const CK_UTF8CHAR,
    CK_ULONG,
    *const CK_UTF8CHAR,
    CK_ULONG,
    *mut RawIdentity,
    *mut CK_ULONG,
) -> CK_RV;

/// A function that says a text.
type Sayer = unsafe extern "C" fn(*mut CK_UTF8CHAR, *mut CK_ULONG) -> CK_RV;

/// What such a function says; `None` when it fails.
fn words(function: Sayer) -> Option<String> {
    let call = |text: &mut [u8]| {
        let mut used = ulong(text.len());
        let place = if text.is_empty() { ptr::null_mut() } else { text.as_mut_ptr() };
        // SAFETY: `text` has room for so many bytes; NULL asks how many there are.
        let rv = unsafe { function(place, &raw mut used) };
        (rv == CKR_OK).then_some(length(used))
    };
    // A longer text than is fetched is not promised room.
    let mut text = vec![0; call(&mut [])?.min(LONGEST)];
    if !text.is_empty() {
        let used = call(&mut text)?;
        text.truncate(used);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A function that says something of a slot's token.
type Teller<T> = unsafe extern "C" fn(CK_SLOT_ID, *mut T) -> CK_RV;

/// What such a function says; `None` when it fails.
fn said<T: Default>(function: Teller<T>, slot: SlotId) -> Option<T> {
    let mut told = T::default();
    // SAFETY: only Metaslot's lists have such a function, and `told` is a structure of its layout to be written.
    let rv = unsafe { function(slot.0, &raw mut told) };
    (rv == CKR_OK).then_some(told)
}

/// A function that lists what there is of a mechanism, a slot or a job.
type Lister<R, O = CK_ULONG> = unsafe extern "C" fn(O, *mut R, *mut CK_ULONG) -> CK_RV;

/// What a function of the module lists; `None` when it fails, or lists more than there is room for.
fn listed<R: Copy, O>(function: Lister<R, O>, of: O, room: &mut [R]) -> Option<&[R]> {
    let mut count = ulong(room.len());
    // SAFETY: only Metaslot's lists have such a function, and `room` has room for `count` structures; `of` is a
    // number, or points to a job of the caller's.
    let rv = unsafe { function(of, room.as_mut_ptr(), &raw mut count) };
    room.get(..length(count)).filter(|_| rv == CKR_OK)
}

/// `METASLOT_RULE`
#[repr(C)]
#[derive(Clone, Copy)]
struct RawRule {
    name: [CK_UTF8CHAR; 24],
    sentence: [CK_UTF8CHAR; 192],
    refused: CK_BBOOL,
}

/// `METASLOT_FAST_LOGIN`
#[repr(C)]
#[derive(Clone, Copy)]
struct RawFastLogin {
    seconds: CK_ULONG,
    possible: CK_BBOOL,
    text: [CK_UTF8CHAR; 256],
}

impl Default for RawFastLogin {
    fn default() -> Self {
        Self { seconds: 0, possible: 0, text: [b' '; 256] }
    }
}

/// What becomes of the fast login that is configured for a token.
#[derive(Clone, Debug)]
pub struct FastLogin {
    /// How long one lasts after a login, in seconds.
    pub seconds: CK_ULONG,
    /// Whether there is a place for its secret.
    pub possible: bool,
    /// Which, or why there is none.
    pub text: String,
}

/// Something that a token's policy refuses or allows.
#[derive(Clone, Debug)]
pub struct Rule {
    /// As `allow` in the configuration knows it.
    pub name: String,
    /// What is refused.
    pub sentence: String,
    /// Whether this token refuses it.
    pub refused: bool,
}

/// `METASLOT_CANDIDATE`
#[repr(C)]
#[derive(Clone, Copy)]
struct RawCandidate {
    provider: [CK_UTF8CHAR; 16],
    flags: CK_FLAGS,
    remark: [CK_UTF8CHAR; 96],
}

/// A provider that serves a mechanism, or could.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name.
    pub provider: String,
    /// `CKF_…` of the operations that it has.
    pub flags: CK_FLAGS,
    /// What stands in its way; empty when nothing does.
    pub remark: String,
}

impl From<&RawCandidate> for Candidate {
    fn from(raw: &RawCandidate) -> Self {
        Self { provider: text(&raw.provider), flags: raw.flags, remark: text(&raw.remark) }
    }
}

/// How one PIN stands.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PinStatus {
    /// Wrong attempts since the last right one.
    pub failures: CK_ULONG,
    /// Attempts that are left before the PIN is locked.
    pub left: CK_ULONG,
    /// No attempt is taken before then, in seconds since 1970; 0 when one may try now.
    pub retry_at: CK_ULONG,
}

/// How both PINs of a token stand.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct TokenStatus {
    /// The user's.
    pub user: PinStatus,
    /// The security officer's.
    pub so: PinStatus,
}

/// `METASLOT_IDENTITY`
#[repr(C)]
#[derive(Clone, Copy)]
struct RawIdentity {
    name: [CK_UTF8CHAR; 64],
    pin: PinStatus,
}

/// A token has no more identities.
const MOST_IDENTITIES: usize = 256;

/// An identity of a token.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What it is called.
    pub name: String,
    /// How its PIN stands.
    pub pin: PinStatus,
}

/// What the officer does with identities, as `METASLOT_IDENTITY_…` numbers it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IdentityAct {
    /// Lists all.
    List = 0,
    /// Adds the named one with this PIN.
    Add = 1,
    /// Revokes the named one.
    Revoke = 2,
    /// Gives the named one this PIN.
    SetPin = 3,
}

/// What a guess at one PIN costs who has a copy of the token's file.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PinCost {
    /// Argon2id's memory, in KiB; 0 for PBKDF2.
    pub memory: CK_ULONG,
    /// Argon2id's passes, PBKDF2's iterations; 0 where there is no PIN.
    pub passes: CK_ULONG,
    /// Microseconds of one processor when this process did it last; 0 when it did not.
    pub microseconds: CK_ULONG,
}

/// The cost of both PINs of a token.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct TokenCost {
    /// The user's.
    pub user: PinCost,
    /// The security officer's.
    pub so: PinCost,
}

/// Something to be done, for who asks what it takes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Job {
    /// `CKM_…`
    pub mechanism: CK_MECHANISM_TYPE,
    /// `CKF_DIGEST`, `CKF_ENCRYPT`, `CKF_DECRYPT`, `CKF_SIGN` or `CKF_VERIFY`
    pub operation: CK_FLAGS,
    /// Bits of an asymmetric key; otherwise 0.
    pub key_bits: CK_ULONG,
    /// Bytes of data.
    pub bytes: CK_ULONG,
    /// How long each provider is measured; 0 asks what is expected.
    pub microseconds: CK_ULONG,
}

/// `METASLOT_ESTIMATE`
#[repr(C)]
#[derive(Clone, Copy)]
struct RawEstimate {
    provider: [CK_UTF8CHAR; 16],
    picoseconds: CK_ULONG,
    failures: CK_ULONG,
    flags: CK_FLAGS,
}

/// What one provider takes for a job.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Its name.
    pub provider: String,
    /// `None` where it is not known.
    pub nanoseconds: Option<f64>,
    /// How often it failed at what another one then did; where it was measured, how often it did it.
    pub failures: u64,
    /// It would be taken now.
    pub chosen: bool,
    /// It fails, and is left alone for a while.
    pub out: bool,
    /// What it computes is not what the others compute; known where it was measured.
    pub differs: bool,
}

impl From<&RawEstimate> for Estimate {
    fn from(raw: &RawEstimate) -> Self {
        let known = (raw.picoseconds != UNAVAILABLE).then_some(raw.picoseconds);
        Self {
            provider: text(&raw.provider),
            nanoseconds: known.map(|picoseconds| picoseconds as f64 / 1e3),
            failures: raw.failures,
            chosen: raw.flags & 1 != 0,
            out: raw.flags & 2 != 0,
            differs: raw.flags & 4 != 0,
        }
    }
}

/// Hands what the module tells to the closure behind `application`. The module's structure lives until this returns.
unsafe extern "C" fn told(application: *mut c_void, raw: Option<&RawRemark>) -> CK_RV {
    let Some(raw) = raw else { return CKR_ARGUMENTS_BAD };
    // SAFETY: it is what `examine` passes, which waits meanwhile.
    let remark = unsafe { &mut *application.cast::<&mut dyn FnMut(Remark) -> bool>() };
    let goes_on = remark(Remark {
        done: raw.done,
        total: raw.total,
        object: (raw.object != UNAVAILABLE).then_some(raw.object),
        what: text(&raw.text),
    });
    if goes_on { CKR_OK } else { CKR_CANCEL }
}

/// A module's vendor functions.
pub(crate) struct Vendor(FunctionList);

impl Vendor {
    /// The vendor functions, where the module has them.
    pub(crate) fn of(
        function: unsafe extern "C" fn(
            *mut CK_UTF8CHAR,
            *mut CK_VERSION,
            *mut *mut CK_INTERFACE,
            CK_FLAGS,
        ) -> CK_RV,
    ) -> Option<Self> {
        let list = named_interface(function, c"Vendor Metaslot", None)?;
        // SAFETY: only Metaslot has an interface of this name, and its lists begin with the version.
        let version = unsafe { list.cast::<CK_VERSION>().read() };
        let length = FunctionList::length(version)?;
        let mut all = FunctionList::NONE;
        let into = NonNull::from(&mut all).cast::<u8>();
        // SAFETY: the module's list of this version is so long, and all functions are optional in ours,
        // which is at least as long.
        unsafe { list.cast::<u8>().copy_to_nonoverlapping(into, length) };
        Some(Self(all))
    }

    /// What does two functions' work in one call.
    #[inline]
    pub(crate) const fn whole(&self) -> Option<Whole> {
        self.0.whole
    }

    /// Whether that signs: since 1.9.
    #[inline]
    pub(crate) const fn signs_whole(&self) -> bool {
        self.0.version.minor >= 9
    }

    /// Looks at all of the token in `slot`; `None` when the module cannot.
    pub(crate) fn examine(
        &self,
        slot: SlotId,
        user: CK_USER_TYPE,
        pin: &[u8],
        repair: bool,
        mut remark: &mut dyn FnMut(Remark) -> bool,
    ) -> Option<(CK_RV, Examined)> {
        let function = self.0.examine?;
        let mut examined = Examined::default();
        // SAFETY: `pin` has so many bytes, `examined` is to be written, and `told` gets what it
        // expects; all of them live until the function returns.
        let rv = unsafe {
            function(
                slot.0,
                user,
                pin.as_ptr(),
                ulong(pin.len()),
                CK_BBOOL::from(repair),
                Some(told),
                (&raw mut remark).cast(),
                &raw mut examined,
            )
        };
        Some((rv, examined))
    }

    /// Copies the token in `slot` into a file, or with `restore` makes the file its token; `None` when the module cannot.
    pub(crate) fn copy(
        &self,
        (slot, user, pin): (SlotId, CK_USER_TYPE, &[u8]),
        path: &[u8],
        restore: bool,
        mut remark: &mut dyn FnMut(Remark) -> bool,
    ) -> Option<(CK_RV, Examined)> {
        let function = self.0.copy?;
        let mut examined = Examined::default();
        // SAFETY: `pin` and `path` have so many bytes, `examined` is to be written, and `told` gets what it
        // expects; all of them live until the function returns.
        let rv = unsafe {
            function(
                slot.0,
                user,
                pin.as_ptr(),
                ulong(pin.len()),
                path.as_ptr(),
                ulong(path.len()),
                CK_BBOOL::from(restore),
                Some(told),
                (&raw mut remark).cast(),
                &raw mut examined,
            )
        };
        Some((rv, examined))
    }

    /// Gives a token another label, or with `remove` takes its files away; `None` when the module cannot.
    pub(crate) fn change(
        &self,
        (slot, user, pin): (SlotId, CK_USER_TYPE, &[u8]),
        label: &str,
        remove: bool,
    ) -> Option<CK_RV> {
        let function = if remove { self.0.remove? } else { self.0.rename? };
        let (pin, pin_length) = (pin.as_ptr(), ulong(pin.len()));
        // SAFETY: `pin` and `label` have so many bytes, and live until the function returns.
        Some(unsafe { function(slot.0, user, pin, pin_length, label.as_ptr(), ulong(label.len())) })
    }

    /// Lists or changes the identities of the token in `slot`, by its officer's PIN; `None` when the module cannot.
    pub(crate) fn identities(
        &self,
        (slot, so_pin): (SlotId, &[u8]),
        act: IdentityAct,
        name: &str,
        pin: &[u8],
    ) -> Option<(CK_RV, Vec<Identity>)> {
        let function = self.0.identities?;
        let none = PinStatus::default();
        let mut list = vec![RawIdentity { name: [0; 64], pin: none }; MOST_IDENTITIES];
        let mut count = ulong(list.len());
        // SAFETY: PINs and name have so many bytes, and `list` has room for `count` structures; all of them live until the
        // function returns.
        let rv = unsafe {
            function(
                slot.0,
                so_pin.as_ptr(),
                ulong(so_pin.len()),
                act as CK_ULONG,
                name.as_ptr(),
                ulong(name.len()),
                pin.as_ptr(),
                ulong(pin.len()),
                list.as_mut_ptr(),
                &raw mut count,
            )
        };
        list.truncate(if act == IdentityAct::List && rv == CKR_OK { length(count) } else { 0 });
        let identity = |raw: &RawIdentity| Identity { name: text(&raw.name), pin: raw.pin };
        Some((rv, list.iter().map(identity).collect()))
    }

    /// How the PINs of the token in `slot` stand; `None` when the module does not say.
    pub(crate) fn token_status(&self, slot: SlotId) -> Option<TokenStatus> {
        said(self.0.token_status?, slot)
    }

    /// What becomes of fast logins to the token in `slot`; `None` where none are configured, or the module does not say.
    pub(crate) fn fast_login(&self, slot: SlotId) -> Option<FastLogin> {
        let raw = said(self.0.fast_login?, slot).filter(|raw| raw.seconds > 0)?;
        let RawFastLogin { seconds, possible, text: raw } = raw;
        Some(FastLogin { seconds, possible: possible != 0, text: text(&raw) })
    }

    /// What a guess at the PINs of the token in `slot` costs; `None` when the module does not say.
    pub(crate) fn token_cost(&self, slot: SlotId) -> Option<TokenCost> {
        said(self.0.token_cost?, slot)
    }

    /// Who serves `mechanism`, in the order in which they are asked; `None` when the module does not say.
    pub(crate) fn candidates(&self, mechanism: CK_MECHANISM_TYPE) -> Option<Vec<Candidate>> {
        let function = self.0.candidates?;
        let mut list =
            [RawCandidate { provider: [0; 16], flags: 0, remark: [0; 96] }; MOST_CANDIDATES];
        let filled = listed(function, mechanism, &mut list)?;
        Some(filled.iter().map(Candidate::from).collect())
    }

    /// Who can do a job, in order, and what each is expected to take, or takes; `None` when the module does not say.
    pub(crate) fn estimates(&self, mut job: Job) -> Option<Vec<Estimate>> {
        let none = RawEstimate { provider: [0; 16], picoseconds: 0, failures: 0, flags: 0 };
        let mut list = [none; MOST_CANDIDATES];
        let filled = listed(self.0.estimates?, NonNull::from(&mut job), &mut list)?;
        Some(filled.iter().map(Estimate::from).collect())
    }

    /// What the policy of the token in `slot` refuses; `None` when the module does not say.
    pub(crate) fn token_policy(&self, slot: SlotId) -> Option<Vec<Rule>> {
        let function = self.0.token_policy?;
        let mut list = [RawRule { name: [0; 24], sentence: [0; 192], refused: 0 }; MOST_RULES];
        let filled = listed(function, slot.0, &mut list)?;
        let rule = |raw: &RawRule| Rule {
            name: text(&raw.name),
            sentence: text(&raw.sentence),
            refused: raw.refused != CK_FALSE,
        };
        Some(filled.iter().map(rule).collect())
    }

    /// The explanation of this thread's last failure; `None` when there is none.
    pub(crate) fn detail(&self) -> Option<String> {
        words(self.0.detail?).filter(|words| !words.is_empty())
    }

    /// Why the configuration is not taken, empty when it is; `None` when the module does not say.
    pub(crate) fn configuration_problem(&self) -> Option<String> {
        words(self.0.configuration_problem?)
    }
}
