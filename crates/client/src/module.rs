// SPDX-License-Identifier: Apache-2.0
//! A loaded module: its function lists, its slots and its tokens.

use crate::interface::by_interface;
use crate::remote::{Carrier, Remote};
use crate::vendor::{
    Candidate, Estimate, Examined, FastLogin, Identity, IdentityAct, Job, Remark, Rule, TokenCost,
    TokenStatus, Vendor,
};
use crate::{
    Error, Info, Interface, LoadError, MechanismInfo, Result, SlotInfo, TokenInfo, length, room,
    ulong,
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};
use metaslot_ck::{self as ck, *};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, ptr};

/// How often a list is asked for that grows between two calls.
const TRIES: usize = 8;

/// A PKCS#11 library. Clones share it; it is unloaded when the last clone and the last [`Session`]
/// are gone. Loading does not initialise.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    path: PathBuf,
    lists: Lists,
    vendor: Option<Vendor>,
    interface_list: CK_C_GetInterfaceList,
    /// Where it is in another process. Then there are no lists, and what is not carried is not supported.
    remote: Option<Remote>,
    library: Option<Library>,
}

/// Copies of the function lists: reading a field then needs no pointer.
pub(crate) struct Lists {
    pub(crate) v2_40: CK_FUNCTION_LIST,
    pub(crate) v3_0: Option<CK_FUNCTION_LIST_3_0>,
    pub(crate) v3_2: Option<CK_FUNCTION_LIST_3_2>,
}

/// How to initialise (PKCS#11 3.2 §5.4).
#[derive(Clone, Copy, Debug)]
pub enum Initialize<'a> {
    /// `C_Initialize(NULL)`: one thread at a time.
    Null,
    /// `CKF_OS_LOCKING_OK`, the usual way.
    OsLocking,
    /// These flags, and a text for `pReserved`.
    Flags(CK_FLAGS, Option<&'a CStr>),
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module").field(&self.0.path).finish()
    }
}

impl Module {
    /// Opens the library at `path` (`RTLD_NOW | RTLD_LOCAL`) and reads its function lists:
    /// through `C_GetInterface` where there is one, else through `C_GetFunctionList`.
    ///
    /// # Errors
    /// [`LoadError`]: the file is no library, no module, or gives no list.
    pub fn load(path: impl AsRef<Path>) -> std::result::Result<Self, LoadError> {
        let path = path.as_ref().to_path_buf();
        // SAFETY: the caller names a PKCS#11 module; its initialisers are trusted with it.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| LoadError::Open {
            path: path.clone(),
            reason: reason(&path, &error),
        })?;
        let interface: CK_C_GetInterface = symbol(&library, c"C_GetInterface");
        let lists = match lists(&library, interface) {
            Ok(lists) => lists,
            Err(None) => return Err(LoadError::NotAModule { path }),
            Err(Some(error)) => return Err(LoadError::Refused { path, error }),
        };
        let interface_list = symbol(&library, c"C_GetInterfaceList");
        let vendor = interface.and_then(Vendor::of);
        let library = Some(library);
        Ok(Self(Arc::new(Inner { path, lists, vendor, interface_list, remote: None, library })))
    }

    /// The module at `path` in a process of its own, which `carrier` starts. Nothing is loaded here.
    #[must_use]
    pub fn remote(path: impl AsRef<Path>, carrier: Arc<dyn Carrier>) -> Self {
        let lists = Lists { v2_40: CK_FUNCTION_LIST::default(), v3_0: None, v3_2: None };
        Self(Arc::new(Inner {
            path: path.as_ref().to_path_buf(),
            lists,
            vendor: None,
            interface_list: None,
            remote: Some(Remote::new(carrier)),
            library: None,
        }))
    }

    #[inline]
    pub(crate) fn other_process(&self) -> Option<&Remote> {
        self.0.remote.as_ref()
    }

    /// The file that was loaded.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Version of the function list that is in use: 3.2, 3.0 or what the 2.40 list says.
    #[must_use]
    pub fn version(&self) -> (u8, u8) {
        let lists = &self.0.lists;
        let version = match (&lists.v3_2, &lists.v3_0) {
            (Some(list), _) => list.version,
            (None, Some(list)) => list.version,
            (None, None) => lists.v2_40.version,
        };
        (version.major, version.minor)
    }

    pub(crate) fn lists(&self) -> &Lists {
        &self.0.lists
    }

    /// Whether it is a Metaslot: no other module has our own interface.
    #[must_use]
    pub fn is_metaslot(&self) -> bool {
        self.0.vendor.is_some()
    }

    #[inline]
    pub(crate) fn vendor(&self) -> Option<&Vendor> {
        self.0.vendor.as_ref()
    }

    /// Whether it, or a library that it needs, has a function of this name.
    #[must_use]
    pub fn has_function(&self, name: &CStr) -> bool {
        let library = self.0.library.as_ref();
        library.is_some_and(|library| symbol::<CK_C_Initialize>(library, name).is_some())
    }

    /// The module's explanation of this thread's last failure, where it offers one.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        self.0.vendor.as_ref().and_then(Vendor::detail)
    }

    /// Why the module does not take the configuration that the environment names, empty when it does. It loads none of the
    /// modules that are named there. `None` when it does not say.
    #[must_use]
    pub fn configuration_problem(&self) -> Option<String> {
        self.0.vendor.as_ref().and_then(Vendor::configuration_problem)
    }

    /// How many tries the PINs of a slot's token have left; only Metaslot says it. It counts as a
    /// call: [`Self::detail`] then is about this one.
    #[must_use]
    pub fn token_status(&self, slot: SlotId) -> Option<TokenStatus> {
        self.0.vendor.as_ref().and_then(|vendor| vendor.token_status(slot))
    }

    /// What a guess at the PINs of a slot's token costs who has its file; only Metaslot says it.
    #[must_use]
    pub fn token_cost(&self, slot: SlotId) -> Option<TokenCost> {
        self.0.vendor.as_ref().and_then(|vendor| vendor.token_cost(slot))
    }

    /// What becomes of the fast logins that are configured for a slot's token; only Metaslot says it.
    #[must_use]
    pub fn fast_login(&self, slot: SlotId) -> Option<FastLogin> {
        self.0.vendor.as_ref().and_then(|vendor| vendor.fast_login(slot))
    }

    /// Who can do a job, in order, and what each is expected to take, or takes where the job has a time; `None` when the
    /// module does not say, or cannot measure it.
    #[must_use]
    pub fn estimates(&self, job: Job) -> Option<Vec<Estimate>> {
        self.0.vendor.as_ref().and_then(|vendor| vendor.estimates(job))
    }

    /// Who serves `mechanism`, in the order in which they are asked; only Metaslot says it.
    #[must_use]
    pub fn candidates(&self, mechanism: CK_MECHANISM_TYPE) -> Option<Vec<Candidate>> {
        self.0.vendor.as_ref().and_then(|vendor| vendor.candidates(mechanism))
    }

    /// What the policy of a slot's token refuses; only Metaslot says it.
    #[must_use]
    pub fn token_policy(&self, slot: SlotId) -> Option<Vec<Rule>> {
        self.0.vendor.as_ref().and_then(|vendor| vendor.token_policy(slot))
    }

    /// Looks at every object of a token, telling `remark` what it finds; `false` from there ends it.
    /// With `repair` whatever is damaged is then taken out. `None` when the module cannot.
    ///
    /// # Errors
    /// The module's code.
    pub fn examine_token(
        &self,
        slot: SlotId,
        user: CK_USER_TYPE,
        pin: &[u8],
        repair: bool,
        remark: &mut dyn FnMut(Remark) -> bool,
    ) -> Option<Result<Examined>> {
        let vendor = self.0.vendor.as_ref()?;
        let (rv, examined) = vendor.examine(slot, user, pin, repair, remark)?;
        Some(Error::check(Function::Login, rv).map(|()| examined))
    }

    /// Copies a token into a file, or with `restore` makes such a file the token of a slot that has none; telling
    /// `remark` what is wrong with it, in which case nothing is made. `None` when the module cannot.
    ///
    /// # Errors
    /// The module's code.
    pub fn copy_token(
        &self,
        whose: (SlotId, CK_USER_TYPE, &[u8]),
        path: &Path,
        restore: bool,
        remark: &mut dyn FnMut(Remark) -> bool,
    ) -> Option<Result<Examined>> {
        let vendor = self.0.vendor.as_ref()?;
        let (rv, examined) = vendor.copy(whose, path.as_os_str().as_bytes(), restore, remark)?;
        Some(Error::check(Function::Login, rv).map(|()| examined))
    }

    /// Gives a token another label, by the PIN of its user or officer. `None` when the module cannot.
    ///
    /// # Errors
    /// The module's code.
    pub fn rename_token(
        &self,
        whose: (SlotId, CK_USER_TYPE, &[u8]),
        label: &str,
    ) -> Option<Result<()>> {
        let rv = self.0.vendor.as_ref()?.change(whose, label, false)?;
        Some(Error::check(Function::Login, rv))
    }

    /// Takes all files of the token away that has this label, by the officer's PIN. `None` when the module cannot.
    ///
    /// # Errors
    /// The module's code; `CKR_DEVICE_ERROR` while another process has the token open.
    pub fn remove_token(&self, slot: SlotId, so_pin: &[u8], label: &str) -> Option<Result<()>> {
        let rv = self.0.vendor.as_ref()?.change((slot, CKU_SO, so_pin), label, true)?;
        Some(Error::check(Function::Login, rv))
    }

    /// Lists or changes the identities of a token, by its officer's PIN. `None` when the module cannot.
    ///
    /// # Errors
    /// The module's code; `CKR_ARGUMENTS_BAD` where an identity that is to be added is there, or another one is not.
    pub fn identities(
        &self,
        whose: (SlotId, &[u8]),
        act: IdentityAct,
        name: &str,
        pin: &[u8],
    ) -> Option<Result<Vec<Identity>>> {
        let (rv, list) = self.0.vendor.as_ref()?.identities(whose, act, name, pin)?;
        Some(Error::check(Function::Login, rv).map(|()| list))
    }

    /// `C_Initialize` with `CKF_OS_LOCKING_OK`.
    ///
    /// # Errors
    /// The module's code; `CKR_CRYPTOKI_ALREADY_INITIALIZED` when another part of the process did it.
    pub fn initialize(&self) -> Result<()> {
        self.initialize_with(Initialize::OsLocking)
    }

    /// `C_Initialize`.
    ///
    /// # Errors
    /// The module's code.
    pub fn initialize_with(&self, how: Initialize<'_>) -> Result<()> {
        let (flags, reserved) = match how {
            Initialize::Null => (0, None),
            Initialize::OsLocking => (CKF_OS_LOCKING_OK, None),
            Initialize::Flags(flags, reserved) => (flags, reserved),
        };
        if let Some(remote) = self.other_process() {
            return remote.initialize(reserved);
        }
        let mut args = CK_C_INITIALIZE_ARGS {
            CreateMutex: None,
            DestroyMutex: None,
            LockMutex: None,
            UnlockMutex: None,
            flags,
            pReserved: reserved.map_or(ptr::null_mut(), |text| text.as_ptr().cast_mut().cast()),
        };
        let pointer: *mut c_void = match how {
            Initialize::Null => ptr::null_mut(),
            _ => (&raw mut args).cast(),
        };
        self.call(Function::Initialize, self.lists().v2_40.C_Initialize, |f| {
            // SAFETY: NULL, or a CK_C_INITIALIZE_ARGS that outlives the call.
            unsafe { f(pointer) }
        })
    }

    /// `C_Finalize`. Sessions that are still open are gone; closing them later fails quietly.
    ///
    /// # Errors
    /// The module's code.
    pub fn finalize(&self) -> Result<()> {
        if let Some(remote) = self.other_process() {
            return remote.finalize();
        }
        self.call(Function::Finalize, self.lists().v2_40.C_Finalize, |f| {
            // SAFETY: the argument is reserved and must be NULL.
            unsafe { f(ptr::null_mut()) }
        })
    }

    /// `C_GetInfo`
    ///
    /// # Errors
    /// The module's code.
    pub fn info(&self) -> Result<Info> {
        let raw: CK_INFO =
            self.fill(Function::GetInfo, self.lists().v2_40.C_GetInfo, |f, info| {
                // SAFETY: `info` is a CK_INFO to be written.
                unsafe { f(info) }
            })?;
        Ok(raw.into())
    }

    /// `C_GetInterfaceList`; nothing on a module of the 2.40 kind.
    ///
    /// # Errors
    /// The module's code.
    pub fn interfaces(&self) -> Result<Vec<Interface>> {
        if self.0.interface_list.is_none() {
            return Ok(Vec::new());
        }
        let empty = CK_INTERFACE {
            pInterfaceName: ptr::null_mut(),
            pFunctionList: ptr::null_mut(),
            flags: 0,
        };
        let raw = self.list(
            Function::GetInterfaceList,
            self.0.interface_list,
            empty,
            |f, list, count| {
                // SAFETY: NULL, or room for `count` interfaces.
                unsafe { f(list, count) }
            },
        )?;
        Ok(raw.iter().filter_map(read_interface).collect())
    }

    /// `C_GetSlotList`: all slots, or those with a token.
    ///
    /// # Errors
    /// The module's code.
    pub fn slots(&self, token_present: bool) -> Result<Vec<SlotId>> {
        if let Some(remote) = self.other_process() {
            return remote.slots(token_present);
        }
        let list = self.lists().v2_40.C_GetSlotList;
        let slots = self.list(Function::GetSlotList, list, 0, |f, list, count| {
            // SAFETY: NULL, or room for `count` slots.
            unsafe { f(u8::from(token_present), list, count) }
        })?;
        Ok(slots.into_iter().map(SlotId).collect())
    }

    /// `C_WaitForSlotEvent`: the slot whose token came or went.
    ///
    /// # Errors
    /// The module's code: `CKR_NO_EVENT` where nothing changed and the call does not wait,
    /// `CKR_CRYPTOKI_NOT_INITIALIZED` after `C_Finalize`.
    pub fn slot_event(&self, waits: bool) -> Result<SlotId> {
        let function = self.lists().v2_40.C_WaitForSlotEvent;
        let flags = if waits { 0 } else { CKF_DONT_BLOCK };
        let slot = self.fill(Function::WaitForSlotEvent, function, |f, slot| {
            // SAFETY: `slot` is a number to be written; the last argument is reserved and must be NULL.
            unsafe { f(flags, slot, ptr::null_mut()) }
        })?;
        Ok(SlotId(slot))
    }

    /// `C_GetSlotInfo`
    ///
    /// # Errors
    /// The module's code.
    pub fn slot_info(&self, slot: SlotId) -> Result<SlotInfo> {
        if let Some(remote) = self.other_process() {
            return remote.slot_info(slot);
        }
        let function = self.lists().v2_40.C_GetSlotInfo;
        let raw: CK_SLOT_INFO = self.fill(Function::GetSlotInfo, function, |f, info| {
            // SAFETY: `info` is a CK_SLOT_INFO to be written.
            unsafe { f(slot.0, info) }
        })?;
        Ok(raw.into())
    }

    /// `C_GetTokenInfo`
    ///
    /// # Errors
    /// The module's code.
    pub fn token_info(&self, slot: SlotId) -> Result<TokenInfo> {
        if let Some(remote) = self.other_process() {
            return remote.token_info(slot);
        }
        let function = self.lists().v2_40.C_GetTokenInfo;
        let raw: CK_TOKEN_INFO = self.fill(Function::GetTokenInfo, function, |f, info| {
            // SAFETY: `info` is a CK_TOKEN_INFO to be written.
            unsafe { f(slot.0, info) }
        })?;
        Ok(raw.into())
    }

    /// `C_GetMechanismList`
    ///
    /// # Errors
    /// The module's code.
    pub fn mechanisms(&self, slot: SlotId) -> Result<Vec<CK_MECHANISM_TYPE>> {
        if let Some(remote) = self.other_process() {
            return remote.mechanisms(slot);
        }
        let function = self.lists().v2_40.C_GetMechanismList;
        self.list(Function::GetMechanismList, function, 0, |f, list, count| {
            // SAFETY: NULL, or room for `count` mechanisms.
            unsafe { f(slot.0, list, count) }
        })
    }

    /// `C_GetMechanismInfo`
    ///
    /// # Errors
    /// The module's code.
    pub fn mechanism_info(
        &self,
        slot: SlotId,
        mechanism: CK_MECHANISM_TYPE,
    ) -> Result<MechanismInfo> {
        if let Some(remote) = self.other_process() {
            return remote.mechanism_info(slot, mechanism);
        }
        let function = self.lists().v2_40.C_GetMechanismInfo;
        let raw: CK_MECHANISM_INFO =
            self.fill(Function::GetMechanismInfo, function, |f, info| {
                // SAFETY: `info` is a CK_MECHANISM_INFO to be written.
                unsafe { f(slot.0, mechanism, info) }
            })?;
        Ok(raw.into())
    }

    /// `C_GetMechanismInfo` of several mechanisms, in their order; of a module in another process they are asked for together.
    ///
    /// # Errors
    /// Where nothing can be asked. What the module says of one mechanism stands in its place.
    pub fn mechanism_infos(
        &self,
        slot: SlotId,
        mechanisms: &[CK_MECHANISM_TYPE],
    ) -> Result<Vec<Result<MechanismInfo>>> {
        if let Some(remote) = self.other_process() {
            return remote.mechanism_infos(slot, mechanisms);
        }
        Ok(mechanisms.iter().map(|mechanism| self.mechanism_info(slot, *mechanism)).collect())
    }

    /// Whether it is asked to wrap, unwrap, derive, encapsulate and decapsulate keys: of a module in another process, where that speaks a
    /// version of the protocol that is our own.
    #[must_use]
    pub fn carries_key_management(&self) -> bool {
        self.other_process().is_none_or(Remote::is_own)
    }

    /// Whether [`Session::template_attribute`](crate::Session::template_attribute) gives each template whole: of a module in another
    /// process that speaks such a version.
    #[must_use]
    pub fn shows_templates(&self) -> bool {
        self.other_process().is_some_and(Remote::is_own)
    }

    /// `C_InitToken`: makes the token empty. The label is cut to 32 bytes and padded.
    ///
    /// # Errors
    /// The module's code; `CKR_PIN_INCORRECT` when the token exists and the SO PIN is another.
    pub fn init_token(&self, slot: SlotId, so_pin: &[u8], label: &str) -> Result<()> {
        let mut padded = [b' '; 32];
        let used = label.floor_char_boundary(32);
        padded[..used].copy_from_slice(&label.as_bytes()[..used]);
        if let Some(remote) = self.other_process() {
            return remote.init_token(slot, so_pin, &padded);
        }
        self.call(Function::InitToken, self.lists().v2_40.C_InitToken, |f| {
            // SAFETY: a PIN with its length and a label of 32 bytes, all read only.
            unsafe {
                f(slot.0, so_pin.as_ptr().cast_mut(), ulong(so_pin.len()), padded.as_mut_ptr())
            }
        })
    }

    /// `C_CloseAllSessions`
    ///
    /// # Errors
    /// The module's code.
    pub fn close_all_sessions(&self, slot: SlotId) -> Result<()> {
        self.call(Function::CloseAllSessions, self.lists().v2_40.C_CloseAllSessions, |f| {
            // SAFETY: takes a number only.
            unsafe { f(slot.0) }
        })
    }

    /// One call of `pointer`; a library without it gives `CKR_FUNCTION_NOT_SUPPORTED`.
    #[inline]
    pub(crate) fn call<F>(
        &self,
        function: Function,
        pointer: Option<F>,
        call: impl FnOnce(F) -> CK_RV,
    ) -> Result<()> {
        let pointer = pointer.ok_or_else(|| Error::missing(function))?;
        Error::check(function, call(pointer))
    }

    /// One call that writes one plain structure or number.
    pub(crate) fn fill<F, T: Copy + Plain>(
        &self,
        function: Function,
        pointer: Option<F>,
        call: impl FnOnce(F, *mut T) -> CK_RV,
    ) -> Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        self.call(function, pointer, |f| call(f, value.as_mut_ptr()))?;
        // SAFETY: `Plain` types are valid when all their bytes are zero, which they were before.
        Ok(unsafe { value.assume_init() })
    }

    /// The two calls that fetch a list. A list that grew in between is asked for again, a few times.
    fn list<F: Copy, T: Copy>(
        &self,
        function: Function,
        pointer: Option<F>,
        empty: T,
        call: impl Fn(F, *mut T, *mut CK_ULONG) -> CK_RV,
    ) -> Result<Vec<T>> {
        let fetch = || {
            let mut count: CK_ULONG = 0;
            self.call(function, pointer, |f| call(f, ptr::null_mut(), &raw mut count))?;
            let mut list = room(function, count, empty)?;
            self.call(function, pointer, |f| call(f, list.as_mut_ptr(), &raw mut count))?;
            list.truncate(length(count));
            Ok(list)
        };
        let grew = |fetched: &Result<Vec<T>>| {
            fetched.as_ref().is_err_and(|error| error.code == ck::Error::BUFFER_TOO_SMALL)
        };
        (1..TRIES).map(|_| fetch()).find(|fetched| !grew(fetched)).unwrap_or_else(fetch)
    }
}

/// Types of the C ABI that consist of numbers and addresses only: all zero is one of their values.
pub(crate) trait Plain {}
impl Plain for CK_ULONG {}
impl Plain for [CK_ULONG; 2] {}
impl Plain for CK_ASYNC_DATA {}
impl Plain for CK_INFO {}
impl Plain for CK_SLOT_INFO {}
impl Plain for CK_TOKEN_INFO {}
impl Plain for CK_MECHANISM_INFO {}
impl Plain for CK_SESSION_INFO {}

/// The loader's message without the repeated path.
fn reason(path: &Path, error: &libloading::Error) -> String {
    let text = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    let repeated = format!("{}: ", path.display());
    text.strip_prefix(&repeated).unwrap_or(&text).to_owned()
}

/// The function behind a name, or `None`. `T` is one of the binding's `Option<fn>` types.
fn symbol<T: Copy>(library: &Library, name: &CStr) -> Option<T> {
    // SAFETY: the standard fixes the type behind each `C_*` name; each caller names its own.
    let symbol: Option<Symbol<T>> = unsafe { library.get(name.to_bytes_with_nul()) }.ok();
    symbol.map(|symbol| *symbol)
}

/// The lists, or `None` where the library has no entrance.
fn lists(
    library: &Library,
    interface: CK_C_GetInterface,
) -> std::result::Result<Lists, Option<Error>> {
    let v3_2 = interface.and_then(|f| by_interface(f, 3, 2).map(ptr::NonNull::cast));
    let v3_0 = interface.and_then(|f| by_interface(f, 3, 0).map(ptr::NonNull::cast));
    // SAFETY: an interface "PKCS 11" of version 3.2 is a CK_FUNCTION_LIST_3_2.
    let v3_2 = v3_2.map(|list: ptr::NonNull<CK_FUNCTION_LIST_3_2>| unsafe { list.read() });
    // SAFETY: an interface "PKCS 11" of version 3.0 is a CK_FUNCTION_LIST_3_0.
    let v3_0 = v3_0.map(|list: ptr::NonNull<CK_FUNCTION_LIST_3_0>| unsafe { list.read() });
    Ok(Lists { v2_40: function_list(library, interface)?, v3_0, v3_2 })
}

/// The 2.40 list: `C_GetFunctionList`, else the beginning of any interface.
fn function_list(
    library: &Library,
    interface: CK_C_GetInterface,
) -> std::result::Result<CK_FUNCTION_LIST, Option<Error>> {
    let mut list: *mut CK_FUNCTION_LIST = ptr::null_mut();
    let function: CK_C_GetFunctionList = symbol(library, c"C_GetFunctionList");
    if let Some(function) = function {
        // SAFETY: `list` is a pointer to be written.
        let rv = unsafe { function(&raw mut list) };
        Error::check(Function::GetFunctionList, rv).map_err(Some)?;
    } else if let Some(function) = interface {
        // Every version's list begins with the members of 2.40.
        list = by_interface(function, 3, 0).map_or(ptr::null_mut(), |list| list.as_ptr().cast());
    }
    let list = ptr::NonNull::new(list).ok_or(None)?;
    // SAFETY: the module says that this is its function list, which stays while it is loaded.
    Ok(unsafe { list.read() })
}

/// One interface as a value; `None` for one without a name or a list.
fn read_interface(raw: &CK_INTERFACE) -> Option<Interface> {
    let name = ptr::NonNull::new(raw.pInterfaceName)?;
    let list = ptr::NonNull::new(raw.pFunctionList)?;
    // SAFETY: an interface's name is a terminated string of the module's.
    let name = unsafe { CStr::from_ptr(name.as_ptr().cast()) };
    // SAFETY: every function list begins with its version.
    let version = unsafe { list.cast::<CK_VERSION>().read() };
    Some(Interface {
        name: name.to_string_lossy().into_owned(),
        version: (version.major, version.minor),
        flags: raw.flags,
    })
}
