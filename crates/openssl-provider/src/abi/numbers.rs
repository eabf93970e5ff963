// SPDX-License-Identifier: Apache-2.0
//! Table: numbers of the provider interface (provider-base(7), provider-keymgmt(7) and the pages beside them).

use std::ffi::c_int;

/// Functions of libcrypto.
pub(crate) const CORE_GET_PARAMS: c_int = 2;
pub(crate) const CORE_NEW_ERROR: c_int = 5;
pub(crate) const CORE_VSET_ERROR: c_int = 7;
pub(crate) const CORE_SET_ERROR_MARK: c_int = 8;
pub(crate) const CORE_CLEAR_LAST_ERROR_MARK: c_int = 9;
pub(crate) const CORE_POP_ERROR_TO_MARK: c_int = 10;
pub(crate) const BIO_READ_EX: c_int = 42;
pub(crate) const BIO_GETS: c_int = 49;
pub(crate) const BIO_WRITE_EX: c_int = 43;

/// Functions of a provider.
pub(crate) mod provider {
    use super::c_int;
    pub(crate) const TEARDOWN: c_int = 1024;
    pub(crate) const GETTABLE_PARAMS: c_int = 1025;
    pub(crate) const GET_PARAMS: c_int = 1026;
    pub(crate) const QUERY_OPERATION: c_int = 1027;
    pub(crate) const GET_REASON_STRINGS: c_int = 1029;
    pub(crate) const GET_CAPABILITIES: c_int = 1030;
}

/// Operations.
pub(crate) mod operation {
    use super::c_int;
    pub(crate) const DIGEST: c_int = 1;
    pub(crate) const CIPHER: c_int = 2;
    pub(crate) const MAC: c_int = 3;
    pub(crate) const KDF: c_int = 4;
    pub(crate) const RAND: c_int = 5;
    pub(crate) const KEYMGMT: c_int = 10;
    pub(crate) const KEYEXCH: c_int = 11;
    pub(crate) const SIGNATURE: c_int = 12;
    pub(crate) const ASYM_CIPHER: c_int = 13;
    pub(crate) const KEM: c_int = 14;
    pub(crate) const ENCODER: c_int = 20;
    pub(crate) const DECODER: c_int = 21;
    pub(crate) const STORE: c_int = 22;
}

/// Functions of digests.
pub(crate) mod digest {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const INIT: c_int = 2;
    pub(crate) const UPDATE: c_int = 3;
    pub(crate) const FINAL: c_int = 4;
    pub(crate) const DIGEST: c_int = 5;
    pub(crate) const FREECTX: c_int = 6;
    pub(crate) const DUPCTX: c_int = 7;
    pub(crate) const GET_PARAMS: c_int = 8;
    pub(crate) const GETTABLE_PARAMS: c_int = 11;
}

/// Functions of ciphers.
pub(crate) mod cipher {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const ENCRYPT_INIT: c_int = 2;
    pub(crate) const DECRYPT_INIT: c_int = 3;
    pub(crate) const UPDATE: c_int = 4;
    pub(crate) const FINAL: c_int = 5;
    pub(crate) const CIPHER: c_int = 6;
    pub(crate) const FREECTX: c_int = 7;
    pub(crate) const DUPCTX: c_int = 8;
    pub(crate) const GET_PARAMS: c_int = 9;
    pub(crate) const GET_CTX_PARAMS: c_int = 10;
    pub(crate) const SET_CTX_PARAMS: c_int = 11;
    pub(crate) const GETTABLE_PARAMS: c_int = 12;
    pub(crate) const GETTABLE_CTX_PARAMS: c_int = 13;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 14;
}

/// Functions of message authentication codes.
pub(crate) mod mac {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const DUPCTX: c_int = 2;
    pub(crate) const FREECTX: c_int = 3;
    pub(crate) const INIT: c_int = 4;
    pub(crate) const UPDATE: c_int = 5;
    pub(crate) const FINAL: c_int = 6;
    pub(crate) const GET_CTX_PARAMS: c_int = 8;
    pub(crate) const SET_CTX_PARAMS: c_int = 9;
    pub(crate) const GETTABLE_CTX_PARAMS: c_int = 11;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 12;
}

/// Functions of key derivation.
pub(crate) mod kdf {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const DUPCTX: c_int = 2;
    pub(crate) const FREECTX: c_int = 3;
    pub(crate) const RESET: c_int = 4;
    pub(crate) const DERIVE: c_int = 5;
    pub(crate) const GETTABLE_CTX_PARAMS: c_int = 7;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 8;
    pub(crate) const GET_CTX_PARAMS: c_int = 10;
    pub(crate) const SET_CTX_PARAMS: c_int = 11;
}

/// Functions of random number generators.
pub(crate) mod random {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const FREECTX: c_int = 2;
    pub(crate) const INSTANTIATE: c_int = 3;
    pub(crate) const UNINSTANTIATE: c_int = 4;
    pub(crate) const GENERATE: c_int = 5;
    pub(crate) const ENABLE_LOCKING: c_int = 8;
    pub(crate) const LOCK: c_int = 9;
    pub(crate) const UNLOCK: c_int = 10;
    pub(crate) const GETTABLE_CTX_PARAMS: c_int = 12;
    pub(crate) const GET_CTX_PARAMS: c_int = 15;
}

/// Functions of key management.
pub(crate) mod keymgmt {
    use super::c_int;
    pub(crate) const NEW: c_int = 1;
    pub(crate) const GEN_INIT: c_int = 2;
    pub(crate) const GEN_SET_TEMPLATE: c_int = 3;
    pub(crate) const GEN_SET_PARAMS: c_int = 4;
    pub(crate) const GEN_SETTABLE_PARAMS: c_int = 5;
    pub(crate) const GEN: c_int = 6;
    pub(crate) const GEN_CLEANUP: c_int = 7;
    pub(crate) const LOAD: c_int = 8;
    pub(crate) const FREE: c_int = 10;
    pub(crate) const GET_PARAMS: c_int = 11;
    pub(crate) const GETTABLE_PARAMS: c_int = 12;
    pub(crate) const SET_PARAMS: c_int = 13;
    pub(crate) const SETTABLE_PARAMS: c_int = 14;
    pub(crate) const QUERY_OPERATION_NAME: c_int = 20;
    pub(crate) const HAS: c_int = 21;
    pub(crate) const VALIDATE: c_int = 22;
    pub(crate) const MATCH: c_int = 23;
    pub(crate) const IMPORT: c_int = 40;
    pub(crate) const IMPORT_TYPES: c_int = 41;
    pub(crate) const EXPORT: c_int = 42;
    pub(crate) const EXPORT_TYPES: c_int = 43;
    pub(crate) const DUP: c_int = 44;
}

/// Which parts of a key are meant.
pub(crate) mod select {
    use super::c_int;
    pub(crate) const PRIVATE: c_int = 0x01;
    pub(crate) const PUBLIC: c_int = 0x02;
}

/// Functions of key exchange.
pub(crate) mod keyexch {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const INIT: c_int = 2;
    pub(crate) const DERIVE: c_int = 3;
    pub(crate) const SET_PEER: c_int = 4;
    pub(crate) const FREECTX: c_int = 5;
    pub(crate) const DUPCTX: c_int = 6;
    pub(crate) const SET_CTX_PARAMS: c_int = 7;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 8;
    pub(crate) const GET_CTX_PARAMS: c_int = 9;
    pub(crate) const GETTABLE_CTX_PARAMS: c_int = 10;
}

/// Functions of signatures.
pub(crate) mod signature {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const SIGN_INIT: c_int = 2;
    pub(crate) const SIGN: c_int = 3;
    pub(crate) const VERIFY_INIT: c_int = 4;
    pub(crate) const VERIFY: c_int = 5;
    pub(crate) const VERIFY_RECOVER_INIT: c_int = 6;
    pub(crate) const VERIFY_RECOVER: c_int = 7;
    pub(crate) const DIGEST_SIGN_INIT: c_int = 8;
    pub(crate) const DIGEST_SIGN_UPDATE: c_int = 9;
    pub(crate) const DIGEST_SIGN_FINAL: c_int = 10;
    pub(crate) const DIGEST_SIGN: c_int = 11;
    pub(crate) const DIGEST_VERIFY_INIT: c_int = 12;
    pub(crate) const DIGEST_VERIFY_UPDATE: c_int = 13;
    pub(crate) const DIGEST_VERIFY_FINAL: c_int = 14;
    pub(crate) const DIGEST_VERIFY: c_int = 15;
    pub(crate) const FREECTX: c_int = 16;
    pub(crate) const DUPCTX: c_int = 17;
    pub(crate) const GET_CTX_PARAMS: c_int = 18;
    pub(crate) const GETTABLE_CTX_PARAMS: c_int = 19;
    pub(crate) const SET_CTX_PARAMS: c_int = 20;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 21;
    pub(crate) const SIGN_MESSAGE_INIT: c_int = 27;
    pub(crate) const SIGN_MESSAGE_UPDATE: c_int = 28;
    pub(crate) const SIGN_MESSAGE_FINAL: c_int = 29;
    pub(crate) const VERIFY_MESSAGE_INIT: c_int = 30;
    pub(crate) const VERIFY_MESSAGE_UPDATE: c_int = 31;
    pub(crate) const VERIFY_MESSAGE_FINAL: c_int = 32;
}

/// Functions of asymmetric ciphers.
pub(crate) mod asym_cipher {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const ENCRYPT_INIT: c_int = 2;
    pub(crate) const ENCRYPT: c_int = 3;
    pub(crate) const DECRYPT_INIT: c_int = 4;
    pub(crate) const DECRYPT: c_int = 5;
    pub(crate) const FREECTX: c_int = 6;
    pub(crate) const DUPCTX: c_int = 7;
    pub(crate) const GET_CTX_PARAMS: c_int = 8;
    pub(crate) const GETTABLE_CTX_PARAMS: c_int = 9;
    pub(crate) const SET_CTX_PARAMS: c_int = 10;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 11;
}

/// Functions of key encapsulation.
pub(crate) mod kem {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const ENCAPSULATE_INIT: c_int = 2;
    pub(crate) const ENCAPSULATE: c_int = 3;
    pub(crate) const DECAPSULATE_INIT: c_int = 4;
    pub(crate) const DECAPSULATE: c_int = 5;
    pub(crate) const FREECTX: c_int = 6;
    pub(crate) const DUPCTX: c_int = 7;
    pub(crate) const SET_CTX_PARAMS: c_int = 10;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 11;
}

/// Functions of encoders and of decoders.
pub(crate) mod coder {
    use super::c_int;
    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const FREECTX: c_int = 2;
    pub(crate) const DOES_SELECTION: c_int = 10;
    pub(crate) const RUN: c_int = 11;
}

/// Functions of stores.
pub(crate) mod store {
    use super::c_int;
    pub(crate) const OPEN: c_int = 1;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 3;
    pub(crate) const SET_CTX_PARAMS: c_int = 4;
    pub(crate) const LOAD: c_int = 5;
    pub(crate) const EOF: c_int = 6;
    pub(crate) const CLOSE: c_int = 7;
}

/// What an object is, for a store's caller.
pub(crate) mod object {
    pub(crate) const KEY: i32 = 2;
    pub(crate) const CERTIFICATE: i32 = 3;
}

/// What a store's caller expects.
pub(crate) mod expect {
    pub(crate) const PUBLIC_KEY: i64 = 3;
    pub(crate) const PRIVATE_KEY: i64 = 4;
    pub(crate) const CERTIFICATE: i64 = 5;
}
