// SPDX-License-Identifier: Apache-2.0
//! The one way into every function of the interface.

use crate::caught::caught;
use crate::decode::Caller;
use crate::library::Library;
use crate::process::{self, State};
use crate::spare;
use crate::thread::{self, Presence};
use metaslot_awslc_wrapper::random;
use metaslot_ck::{
    CK_RV, CK_SESSION_HANDLE, CKR_CRYPTOKI_NOT_INITIALIZED, CKR_FUNCTION_FAILED, CKR_OK, Error,
    Function, Result, SessionHandle,
};
use metaslot_counters as counters;
use metaslot_engine::Engine;
use metaslot_spi::detail;
use metaslot_wiring::audit::{Act, Log, Note, audited};
use metaslot_wiring::cancel::Uncancelled;
use metaslot_wiring::outside::is_outside;

/// Runs `call` with the engine: initialised? not forked? then caught, counted, answered.
#[inline]
pub(crate) fn enter(
    function: Function,
    call: impl FnOnce(&Engine, Caller<'_>) -> Result<()>,
) -> CK_RV {
    enter_library(function, |library, caller| call(library.engine()?, caller))
}

/// As [`enter`], for functions of a session: that it is none comes before every other error
/// (PKCS#11 3.2 §5.1.7).
#[inline]
pub(crate) fn enter_session(
    function: Function,
    session: CK_SESSION_HANDLE,
    call: impl FnOnce(&Engine, Caller<'_>, SessionHandle) -> Result<()>,
) -> CK_RV {
    let session = SessionHandle(session);
    enter_library(function, |library, caller| {
        in_session(function, library, session, |engine| call(engine, caller, session))
    })
}

/// What [`enter_session`] does of a call that has been entered.
#[inline]
fn in_session(
    function: Function,
    library: &Library,
    session: SessionHandle,
    call: impl FnOnce(&Engine) -> Result<()>,
) -> Result<()> {
    let engine = library.engine()?;
    call(engine).map_err(|error| failed(function, library, engine, session, error))
}

/// What a call of a session answers that failed.
#[cold]
#[inline(never)]
fn failed(
    function: Function,
    library: &Library,
    engine: &Engine,
    session: SessionHandle,
    error: Error,
) -> Error {
    let error = engine.foremost(session, error);
    if let Some(log) = library.log() {
        log.refused(function.name(), error, || log.place(engine, session));
    }
    error
}

/// As [`enter_session`], for what the audit log has a line of; `call` notes what it is about.
pub(crate) fn enter_audited(
    function: Function,
    session: CK_SESSION_HANDLE,
    call: impl FnOnce(&Engine, Caller<'_>, SessionHandle, &mut Note) -> Result<()>,
) -> CK_RV {
    let session = SessionHandle(session);
    enter_library(function, |library, caller| {
        in_audited(function, library, session, |engine, note| call(engine, caller, session, note))
    })
}

/// What [`enter_audited`] does of a call that has been entered.
fn in_audited(
    function: Function,
    library: &Library,
    session: SessionHandle,
    call: impl FnOnce(&Engine, &mut Note) -> Result<()>,
) -> Result<()> {
    let engine = library.engine()?;
    let place = |log: &Log| log.place(engine, session);
    audited(library.log(), Act::of(function), place, |note| {
        call(engine, note).map_err(|error| engine.foremost(session, error))
    })
}

/// `C_AsyncComplete`, whose caller names the function that is completed: of one that makes an object, the audit log has the line
/// that it would have had at once, and none before it is there.
pub(crate) fn enter_completion(
    session: CK_SESSION_HANDLE,
    named: impl FnOnce(Caller<'_>) -> Result<Function>,
    call: impl FnOnce(&Engine, Caller<'_>, SessionHandle, Function, &mut Note) -> Result<()>,
) -> CK_RV {
    let session = SessionHandle(session);
    enter_library(Function::AsyncComplete, |library, caller| match named(caller) {
        Ok(by @ Function::DeriveKey) => {
            in_session(by, library, session, |engine| {
                engine.async_complete(session, by, |_| &mut []).map(drop)
            })?;
            in_audited(by, library, session, |engine, note| call(engine, caller, session, by, note))
        }
        function => in_session(Function::AsyncComplete, library, session, |engine| {
            call(engine, caller, session, function?, &mut Note::default())
        }),
    })
}

/// As [`enter`], for functions that need no engine.
#[inline]
pub(crate) fn enter_library(
    function: Function,
    call: impl FnOnce(&Library, Caller<'_>) -> Result<()>,
) -> CK_RV {
    let call = |library: &Library, caller: Caller<'_>| {
        if (random::prepare().is_err() || spare::is_out()) && !ends(function) {
            return Err(Error::HOST_MEMORY);
        }
        call(library, caller)
    };
    enter_counted(call, |library, rv| {
        counters::call(function, rv);
        if rv != CKR_OK
            && let Some(errors) = library.errors()
        {
            errors.tell(function, rv);
        }
    })
}

/// Whether a function gives memory back.
const fn ends(function: Function) -> bool {
    use Function::{
        CloseAllSessions, CloseSession, DestroyObject, Finalize, FindObjectsFinal, Logout,
        MessageDecryptFinal, MessageEncryptFinal, MessageSignFinal, MessageVerifyFinal,
        SessionCancel,
    };
    matches!(
        function,
        CloseAllSessions
            | CloseSession
            | DestroyObject
            | Finalize
            | FindObjectsFinal
            | Logout
            | MessageDecryptFinal
            | MessageEncryptFinal
            | MessageSignFinal
            | MessageVerifyFinal
            | SessionCancel
    )
}

/// As [`enter_library`]; `count` is told what the call answers.
#[inline]
pub(crate) fn enter_counted(
    call: impl FnOnce(&Library, Caller<'_>) -> Result<()>,
    count: impl FnOnce(&Library, CK_RV),
) -> CK_RV {
    if !process::is_initialized() {
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    }
    loop {
        let presence = thread::enter();
        // SAFETY: the reference is used in this block only, and `presence` outlives it.
        match unsafe { process::library() } {
            // Another module uses us for what it does for us: that would have no end.
            State::Open(_) if presence.is_nested() && is_outside() => return CKR_FUNCTION_FAILED,
            State::Open(library) => {
                let _outer = if presence.is_nested() { detail::aside() } else { None };
                if presence.is_to_look() {
                    library.look_at_configuration();
                }
                let rv = caught(|| call(library, Caller::new()));
                count(library, rv);
                drop(presence);
                return rv;
            }
            State::NotInitialized => return CKR_CRYPTOKI_NOT_INITIALIZED,
            State::Closed => wait_for_the_fork(presence),
        }
    }
}

/// Leaves a call that is to be tried again. Apart, for what is in a loop is prepared before it.
#[cold]
#[inline(never)]
fn wait_for_the_fork(presence: Presence) {
    drop(presence);
    let _uncancelled = Uncancelled::begin();
    std::thread::sleep(std::time::Duration::from_micros(20));
}
