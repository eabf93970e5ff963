// SPDX-License-Identifier: Apache-2.0
//! The functions of OpenSSL that are used here, as its headers declare them.
#![allow(non_camel_case_types, non_snake_case, reason = "names of the library")]

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

/// Types that only the library knows.
macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[derive(Debug)]
        #[repr(C)]
        pub(crate) struct $name([u8; 0]);
    )*};
}

opaque!(
    EVP_MD,
    EVP_MD_CTX,
    EVP_MAC,
    EVP_MAC_CTX,
    EVP_CIPHER,
    EVP_CIPHER_CTX,
    EVP_PKEY,
    EVP_PKEY_CTX,
    EVP_SIGNATURE
);

/// `OSSL_PARAM`
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Param {
    pub(crate) key: *const c_char,
    pub(crate) data_type: c_uint,
    pub(crate) data: *mut c_void,
    pub(crate) data_size: usize,
    pub(crate) return_size: usize,
}

pub(crate) const INTEGER: c_uint = 1;
pub(crate) const UNSIGNED_INTEGER: c_uint = 2;
pub(crate) const UTF8_STRING: c_uint = 4;
pub(crate) const OCTET_STRING: c_uint = 5;

pub(crate) const EVP_PKEY_PUBLIC_KEY: c_int = 0x86;
pub(crate) const EVP_PKEY_KEYPAIR: c_int = 0x87;

/// `RAND_METHOD`
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RandMethod {
    pub(crate) seed: Option<extern "C" fn(*const c_void, c_int) -> c_int>,
    pub(crate) bytes: Option<unsafe extern "C" fn(*mut c_uchar, c_int) -> c_int>,
    pub(crate) cleanup: Option<extern "C" fn()>,
    pub(crate) add: Option<extern "C" fn(*const c_void, c_int, f64) -> c_int>,
    pub(crate) pseudorand: Option<unsafe extern "C" fn(*mut c_uchar, c_int) -> c_int>,
    pub(crate) status: Option<extern "C" fn() -> c_int>,
}

pub(crate) type Malloc = unsafe extern "C" fn(usize, *const c_char, c_int) -> *mut c_void;
pub(crate) type Realloc =
    unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void;
pub(crate) type Free = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);

pub(crate) const OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS: u64 = 0x1;
pub(crate) const OPENSSL_INIT_NO_ADD_ALL_CIPHERS: u64 = 0x10;
pub(crate) const OPENSSL_INIT_NO_ADD_ALL_DIGESTS: u64 = 0x20;
pub(crate) const OPENSSL_INIT_NO_LOAD_CONFIG: u64 = 0x80;
pub(crate) const OPENSSL_INIT_NO_ATEXIT: u64 = 0x80000;

pub(crate) const EVP_CTRL_AEAD_SET_IVLEN: c_int = 0x9;
pub(crate) const EVP_CTRL_AEAD_GET_TAG: c_int = 0x10;
pub(crate) const EVP_CTRL_AEAD_SET_TAG: c_int = 0x11;

unsafe extern "C" {
    pub(crate) fn CRYPTO_set_mem_functions(malloc: Malloc, realloc: Realloc, free: Free) -> c_int;
    pub(crate) fn OPENSSL_init_crypto(options: u64, settings: *const c_void) -> c_int;
    pub(crate) fn RAND_set_rand_method(method: *const RandMethod) -> c_int;
    pub(crate) fn ERR_clear_error();

    pub(crate) fn EVP_MD_fetch(
        library: *mut c_void,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_MD;
    pub(crate) fn EVP_MD_CTX_new() -> *mut EVP_MD_CTX;
    pub(crate) fn EVP_MD_CTX_free(context: *mut EVP_MD_CTX);
    pub(crate) fn EVP_DigestInit_ex2(
        context: *mut EVP_MD_CTX,
        digest: *const EVP_MD,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_DigestUpdate(
        context: *mut EVP_MD_CTX,
        data: *const c_void,
        length: usize,
    ) -> c_int;
    pub(crate) fn EVP_DigestFinal_ex(
        context: *mut EVP_MD_CTX,
        out: *mut c_uchar,
        length: *mut c_uint,
    ) -> c_int;
    pub(crate) fn EVP_MD_CTX_serialize(
        context: *mut EVP_MD_CTX,
        out: *mut c_uchar,
        length: *mut usize,
    ) -> c_int;
    pub(crate) fn EVP_MD_CTX_deserialize(
        context: *mut EVP_MD_CTX,
        state: *const c_uchar,
        length: usize,
    ) -> c_int;

    pub(crate) fn EVP_MAC_fetch(
        library: *mut c_void,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_MAC;
    pub(crate) fn EVP_MAC_CTX_new(mac: *mut EVP_MAC) -> *mut EVP_MAC_CTX;
    pub(crate) fn EVP_MAC_CTX_dup(context: *const EVP_MAC_CTX) -> *mut EVP_MAC_CTX;
    pub(crate) fn EVP_MAC_CTX_free(context: *mut EVP_MAC_CTX);
    pub(crate) fn EVP_MAC_init(
        context: *mut EVP_MAC_CTX,
        key: *const c_uchar,
        length: usize,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_MAC_update(
        context: *mut EVP_MAC_CTX,
        data: *const c_uchar,
        length: usize,
    ) -> c_int;
    pub(crate) fn EVP_MAC_final(
        context: *mut EVP_MAC_CTX,
        out: *mut c_uchar,
        length: *mut usize,
        room: usize,
    ) -> c_int;

    pub(crate) fn EVP_CIPHER_fetch(
        library: *mut c_void,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_CIPHER;
    pub(crate) fn EVP_CIPHER_CTX_new() -> *mut EVP_CIPHER_CTX;
    pub(crate) fn EVP_CIPHER_CTX_dup(context: *const EVP_CIPHER_CTX) -> *mut EVP_CIPHER_CTX;
    pub(crate) fn EVP_CIPHER_CTX_free(context: *mut EVP_CIPHER_CTX);
    pub(crate) fn EVP_CIPHER_CTX_get_key_length(context: *const EVP_CIPHER_CTX) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_get_iv_length(context: *const EVP_CIPHER_CTX) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_set_padding(context: *mut EVP_CIPHER_CTX, padding: c_int)
    -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_ctrl(
        context: *mut EVP_CIPHER_CTX,
        command: c_int,
        length: c_int,
        place: *mut c_void,
    ) -> c_int;
    pub(crate) fn EVP_CipherInit_ex2(
        context: *mut EVP_CIPHER_CTX,
        cipher: *const EVP_CIPHER,
        key: *const c_uchar,
        iv: *const c_uchar,
        encrypt: c_int,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_CipherUpdate(
        context: *mut EVP_CIPHER_CTX,
        out: *mut c_uchar,
        written: *mut c_int,
        data: *const c_uchar,
        length: c_int,
    ) -> c_int;
    pub(crate) fn EVP_CipherFinal_ex(
        context: *mut EVP_CIPHER_CTX,
        out: *mut c_uchar,
        written: *mut c_int,
    ) -> c_int;

    pub(crate) fn EVP_PKEY_free(key: *mut EVP_PKEY);
    pub(crate) fn EVP_PKEY_get_size(key: *const EVP_PKEY) -> c_int;
    pub(crate) fn EVP_PKEY_get_bits(key: *const EVP_PKEY) -> c_int;
    pub(crate) fn EVP_PKEY_CTX_new_from_name(
        library: *mut c_void,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_PKEY_CTX;
    pub(crate) fn EVP_PKEY_CTX_new_from_pkey(
        library: *mut c_void,
        key: *mut EVP_PKEY,
        properties: *const c_char,
    ) -> *mut EVP_PKEY_CTX;
    pub(crate) fn EVP_PKEY_CTX_free(context: *mut EVP_PKEY_CTX);
    pub(crate) fn EVP_PKEY_fromdata_init(context: *mut EVP_PKEY_CTX) -> c_int;
    pub(crate) fn EVP_PKEY_fromdata(
        context: *mut EVP_PKEY_CTX,
        key: *mut *mut EVP_PKEY,
        selection: c_int,
        params: *mut Param,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_get_params(key: *const EVP_PKEY, params: *mut Param) -> c_int;
    pub(crate) fn EVP_PKEY_public_check(context: *mut EVP_PKEY_CTX) -> c_int;
    pub(crate) fn EVP_PKEY_public_check_quick(context: *mut EVP_PKEY_CTX) -> c_int;
    pub(crate) fn EVP_PKEY_private_check(context: *mut EVP_PKEY_CTX) -> c_int;
    pub(crate) fn EVP_PKEY_derive_init_ex(
        context: *mut EVP_PKEY_CTX,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_derive_set_peer_ex(
        context: *mut EVP_PKEY_CTX,
        peer: *mut EVP_PKEY,
        validate: c_int,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_derive(
        context: *mut EVP_PKEY_CTX,
        out: *mut c_uchar,
        length: *mut usize,
    ) -> c_int;
    pub(crate) fn EVP_SIGNATURE_fetch(
        library: *mut c_void,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_SIGNATURE;
    pub(crate) fn EVP_PKEY_sign_message_init(
        context: *mut EVP_PKEY_CTX,
        algorithm: *mut EVP_SIGNATURE,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_verify_message_init(
        context: *mut EVP_PKEY_CTX,
        algorithm: *mut EVP_SIGNATURE,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_sign_init_ex(context: *mut EVP_PKEY_CTX, params: *const Param) -> c_int;
    pub(crate) fn EVP_PKEY_sign(
        context: *mut EVP_PKEY_CTX,
        out: *mut c_uchar,
        length: *mut usize,
        data: *const c_uchar,
        data_length: usize,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_verify_init_ex(
        context: *mut EVP_PKEY_CTX,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_verify(
        context: *mut EVP_PKEY_CTX,
        signature: *const c_uchar,
        length: usize,
        data: *const c_uchar,
        data_length: usize,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_encrypt_init_ex(
        context: *mut EVP_PKEY_CTX,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_encrypt(
        context: *mut EVP_PKEY_CTX,
        out: *mut c_uchar,
        length: *mut usize,
        data: *const c_uchar,
        data_length: usize,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_decrypt_init_ex(
        context: *mut EVP_PKEY_CTX,
        params: *const Param,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_decrypt(
        context: *mut EVP_PKEY_CTX,
        out: *mut c_uchar,
        length: *mut usize,
        data: *const c_uchar,
        data_length: usize,
    ) -> c_int;
}
