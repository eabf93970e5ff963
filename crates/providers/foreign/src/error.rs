// SPDX-License-Identifier: Apache-2.0
//! What a module's failure is for the caller of ours.

use metaslot_ck::{Error, Function};
use metaslot_client::{Error as Failure, Result as Called};
use metaslot_spi::detail;

/// Whether the session, the login or the device is gone, and everything must be opened again: others have the sessions' numbers by now.
pub(crate) const fn is_loss(code: Error) -> bool {
    matches!(
        code,
        Error::CRYPTOKI_NOT_INITIALIZED
            | Error::DEVICE_REMOVED
            | Error::SESSION_CLOSED
            | Error::SESSION_HANDLE_INVALID
            | Error::TOKEN_NOT_PRESENT
    )
}

/// Whether a module says no more than that it does not work.
pub(crate) const fn fails_itself(code: Error) -> bool {
    matches!(code, Error::DEVICE_ERROR | Error::FUNCTION_FAILED | Error::GENERAL_ERROR)
}

/// Whether a session may still have an operation after this. Of a module that fails itself it is not believed that it has
/// ended what it was to end.
pub(crate) const fn leaves_a_trace(code: Error) -> bool {
    matches!(
        code,
        Error::BUFFER_TOO_SMALL
            | Error::DEVICE_ERROR
            | Error::DEVICE_MEMORY
            | Error::FUNCTION_FAILED
            | Error::GENERAL_ERROR
            | Error::HOST_MEMORY
            | Error::OPERATION_ACTIVE
            | Error::PIN_EXPIRED
            | Error::PIN_INCORRECT
            | Error::PIN_INVALID
            | Error::PIN_LEN_RANGE
            | Error::PIN_LOCKED
            | Error::USER_NOT_LOGGED_IN
    )
}

/// The code for our caller, and the sentence that says whose it is. What speaks of sessions, buffers and
/// operations speaks of ours with the module, not of the caller's.
pub(crate) fn told(name: &str, failure: Failure) -> Error {
    detail::set(format_args!("{name}: {failure}"));
    match failure.code {
        Error::TOKEN_NOT_PRESENT => Error::DEVICE_REMOVED,
        Error::OBJECT_HANDLE_INVALID if takes_key(failure.function) => Error::KEY_HANDLE_INVALID,
        // Operations of another slot which shows the token.
        Error::SESSION_EXISTS if failure.function == Function::InitToken => Error::SESSION_EXISTS,
        code if PASSED.contains(&code) => code,
        code if carries(failure.function) && OF_TRANSPORT.contains(&code) => code,
        _ => Error::DEVICE_ERROR,
    }
}

/// Whether an operation with a key begins: some modules say of a key that is not there that the object is not.
const fn takes_key(function: Function) -> bool {
    use Function::{DecryptInit, DeriveKey, EncryptInit, SignInit, VerifyInit};
    carries(function)
        || matches!(function, DecryptInit | DeriveKey | EncryptInit | SignInit | VerifyInit)
}

/// Whether keys leave or arrive.
const fn carries(function: Function) -> bool {
    matches!(function, Function::WrapKey | Function::UnwrapKey | Function::DecapsulateKey)
}

/// What a caller can be answered then.
const OF_TRANSPORT: &[Error] = &[
    Error::KEY_NOT_WRAPPABLE,
    Error::KEY_UNEXTRACTABLE,
    Error::UNWRAPPING_KEY_HANDLE_INVALID,
    Error::UNWRAPPING_KEY_SIZE_RANGE,
    Error::UNWRAPPING_KEY_TYPE_INCONSISTENT,
    Error::WRAPPED_KEY_INVALID,
    Error::WRAPPED_KEY_LEN_RANGE,
    Error::WRAPPING_KEY_HANDLE_INVALID,
    Error::WRAPPING_KEY_SIZE_RANGE,
    Error::WRAPPING_KEY_TYPE_INCONSISTENT,
];

/// What a caller of ours can be answered.
const PASSED: &[Error] = &[
    Error::ACTION_PROHIBITED,
    Error::AEAD_DECRYPT_FAILED,
    Error::ATTRIBUTE_READ_ONLY,
    Error::ATTRIBUTE_SENSITIVE,
    Error::ATTRIBUTE_TYPE_INVALID,
    Error::ATTRIBUTE_VALUE_INVALID,
    Error::CURVE_NOT_SUPPORTED,
    Error::DATA_INVALID,
    Error::DATA_LEN_RANGE,
    Error::DEVICE_ERROR,
    Error::DEVICE_MEMORY,
    Error::DEVICE_REMOVED,
    Error::ENCRYPTED_DATA_INVALID,
    Error::ENCRYPTED_DATA_LEN_RANGE,
    Error::FUNCTION_NOT_SUPPORTED,
    Error::KEY_FUNCTION_NOT_PERMITTED,
    Error::KEY_HANDLE_INVALID,
    Error::KEY_SIZE_RANGE,
    Error::KEY_TYPE_INCONSISTENT,
    Error::MECHANISM_INVALID,
    Error::MECHANISM_PARAM_INVALID,
    Error::OBJECT_HANDLE_INVALID,
    Error::PIN_INCORRECT,
    Error::PIN_INVALID,
    Error::PIN_LEN_RANGE,
    Error::PIN_LOCKED,
    Error::SIGNATURE_INVALID,
    Error::SIGNATURE_LEN_RANGE,
    Error::TEMPLATE_INCOMPLETE,
    Error::TEMPLATE_INCONSISTENT,
    Error::TOKEN_NOT_RECOGNIZED,
    Error::TOKEN_WRITE_PROTECTED,
    Error::USER_NOT_LOGGED_IN,
    Error::USER_PIN_NOT_INITIALIZED,
];

/// Whether a PIN was tried in vain.
pub(crate) const fn is_refusal(code: Error) -> bool {
    matches!(
        code,
        Error::PIN_EXPIRED
            | Error::PIN_INCORRECT
            | Error::PIN_INVALID
            | Error::PIN_LEN_RANGE
            | Error::PIN_LOCKED
    )
}

/// A login that the host has made already is one.
pub(crate) fn logged_in(answer: Called<()>) -> Called<()> {
    match answer {
        Err(failure) if failure.code == Error::USER_ALREADY_LOGGED_IN => Ok(()),
        answer => answer,
    }
}
