// SPDX-License-Identifier: Apache-2.0
//! What a provider is: a table of rows, each with the operations it implements.
//!
//! A provider never sees a session, a handle (but through [`Keys`]) or another provider. Everything
//! that it could refuse it refuses in `check`, which the engine calls at `*Init`.

use crate::der::Reader;
pub use crate::direction::Direction;
use crate::{Attributes, Key, NewObject, Params};
use metaslot_ck::{CK_MECHANISM_TYPE, Error, ObjectHandle, Result};
use metaslot_memory::Secret;
use std::sync::Arc;

/// Something on this machine that can do cryptography.
pub trait Provider: Sync {
    /// Short and lower case: `awslc`, `lanes`.
    fn name(&self) -> &'static str;

    /// What it does, sorted by mechanism. Of several rows for one mechanism the first that serves a key counts.
    fn algorithms(&'static self) -> &'static [Algorithm];

    /// What stands between this provider and a mechanism, for people; empty when nothing does.
    fn remark(&self, _mechanism: CK_MECHANISM_TYPE) -> String {
        String::new()
    }

    /// Whether an operation takes more or less of the machine when others ask at the same time: it computes several side by side, or
    /// one after the other.
    fn depends_on_company(&self) -> bool {
        false
    }

    /// Whether somebody else answers for what it computes, as another module does for its digests: it is not tested here.
    fn answers_for_itself(&self) -> bool {
        false
    }

    /// Fills `out` with random bytes fit for keys.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` when the source fails, `CKR_RANDOM_NO_RNG` without one.
    fn random(&self, _out: &mut [u8]) -> Result<()> {
        Err(Error::RANDOM_NO_RNG)
    }

    /// Checks a key that the application brings (`C_CreateObject`) and completes it with what
    /// follows from what is there (`CKA_EC_POINT` and `CKA_MODULUS_BITS`, missing CRT values).
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_VALUE_INVALID`, `CKR_TEMPLATE_INCOMPLETE`; `CKR_CURVE_NOT_SUPPORTED` and
    /// `CKR_PARAMETER_SET_NOT_SUPPORTED` where another provider may have it, `CKR_FUNCTION_NOT_SUPPORTED` for keys of no type
    /// of this one's.
    fn complete(&self, _key: &mut NewObject) -> Result<()> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    /// A private key as the DER of a PKCS#8 `PrivateKeyInfo` (PKCS#11 3.2 §6.7).
    ///
    /// # Errors
    /// `CKR_KEY_NOT_WRAPPABLE` for a key type that has no such form here.
    fn encode_private_key(&self, _key: &Key) -> Result<Secret> {
        Err(Error::KEY_NOT_WRAPPABLE)
    }

    /// The attributes of the private key in a PKCS#8 `PrivateKeyInfo`, `CKA_KEY_TYPE` among them.
    ///
    /// # Errors
    /// `CKR_WRAPPED_KEY_INVALID` when the bytes are no such thing.
    fn decode_private_key(&self, _der: &[u8]) -> Result<NewObject> {
        Err(Error::WRAPPED_KEY_INVALID)
    }
}

/// One row: a mechanism and the operations that this provider has for it.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// `CKM_…`
    pub mechanism: CK_MECHANISM_TYPE,
    /// Smallest and largest key, in the unit of the vocabulary row ([`metaslot_ck::mechanism::Unit`]); 0 and 0 without key.
    pub key_sizes: (u64, u64),
    /// `C_Digest…`
    pub digest: Option<&'static dyn Digest>,
    /// `C_Encrypt…`
    pub encrypt: Option<&'static dyn Cipher>,
    /// `C_Decrypt…`
    pub decrypt: Option<&'static dyn Cipher>,
    /// `C_Sign…`
    pub sign: Option<&'static dyn Signature>,
    /// `C_Verify…`
    pub verify: Option<&'static dyn Signature>,
    /// `C_SignRecover…`
    pub sign_recover: Option<&'static dyn Signature>,
    /// `C_VerifyRecover…`
    pub verify_recover: Option<&'static dyn Recover>,
    /// `C_GenerateKey`
    pub generate: Option<&'static dyn Generate>,
    /// `C_GenerateKeyPair`
    pub generate_pair: Option<&'static dyn GeneratePair>,
    /// `C_WrapKey`
    pub wrap: Option<&'static dyn Wrap>,
    /// `C_UnwrapKey`
    pub unwrap: Option<&'static dyn Wrap>,
    /// `C_DeriveKey`
    pub derive: Option<&'static dyn Derive>,
    /// `C_EncapsulateKey`
    pub encapsulate: Option<&'static dyn Encapsulation>,
    /// `C_DecapsulateKey`
    pub decapsulate: Option<&'static dyn Encapsulation>,
    /// Flags that no field shows (`CKF_EC_…`).
    pub extra_flags: u64,
}

impl Algorithm {
    /// A row with nothing in it, for `..Algorithm::NONE`.
    pub const NONE: Self = Self {
        mechanism: 0,
        key_sizes: (0, 0),
        digest: None,
        encrypt: None,
        decrypt: None,
        sign: None,
        verify: None,
        sign_recover: None,
        verify_recover: None,
        generate: None,
        generate_pair: None,
        wrap: None,
        unwrap: None,
        derive: None,
        encapsulate: None,
        decapsulate: None,
        extra_flags: 0,
    };

    /// The row of a signature or a MAC.
    #[must_use]
    pub const fn signature(
        mechanism: CK_MECHANISM_TYPE,
        key_sizes: (u64, u64),
        signature: &'static dyn Signature,
    ) -> Self {
        Self { mechanism, key_sizes, sign: Some(signature), verify: Some(signature), ..Self::NONE }
    }

    /// `CK_MECHANISM_INFO.flags`: a function of which fields are filled.
    #[must_use]
    pub const fn flags(&self) -> u64 {
        use metaslot_ck as ck;
        const fn flag(there: bool, flag: u64) -> u64 {
            if there { flag } else { 0 }
        }
        self.extra_flags
            | flag(self.digest.is_some(), ck::CKF_DIGEST)
            | flag(self.encrypt.is_some(), ck::CKF_ENCRYPT)
            | flag(self.decrypt.is_some(), ck::CKF_DECRYPT)
            | flag(self.sign.is_some(), ck::CKF_SIGN)
            | flag(self.verify.is_some(), ck::CKF_VERIFY)
            | flag(self.sign_recover.is_some(), ck::CKF_SIGN_RECOVER)
            | flag(self.verify_recover.is_some(), ck::CKF_VERIFY_RECOVER)
            | flag(self.generate.is_some(), ck::CKF_GENERATE)
            | flag(self.generate_pair.is_some(), ck::CKF_GENERATE_KEY_PAIR)
            | flag(self.wrap.is_some(), ck::CKF_WRAP)
            | flag(self.unwrap.is_some(), ck::CKF_UNWRAP)
            | flag(self.derive.is_some(), ck::CKF_DERIVE)
            | flag(self.encapsulate.is_some(), ck::CKF_ENCAPSULATE)
            | flag(self.decapsulate.is_some(), ck::CKF_DECAPSULATE)
    }
}

/// Checks a provider's table at compile time: sorted, no duplicate, no row without an operation.
///
/// # Panics
/// When the table is not so; used in a `const`, that is a compile error.
#[must_use]
pub const fn checked<const N: usize>(rows: [Algorithm; N]) -> [Algorithm; N] {
    let mut at = 0;
    while at < N {
        assert!(rows[at].flags() & !rows[at].extra_flags != 0, "a row without an operation");
        assert!(rows[at].key_sizes.0 <= rows[at].key_sizes.1, "an empty range of key sizes");
        if at > 0 {
            assert!(rows[at - 1].mechanism < rows[at].mechanism, "rows are not sorted");
        }
        at += 1;
    }
    rows
}

/// An operation that was begun and is completed later, together with others of its kind.
pub trait Pending: Send {
    /// Whether the result is there. Where no thread computes, this computes it, and what else
    /// waits.
    fn poll(&mut self) -> bool;

    /// Writes the result, as the call that began this would have; waits for it if it is not there.
    ///
    /// # Errors
    /// As that call.
    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<usize>;
}

/// What `*_later` gives: `None` where the provider computes this one at once or not at all.
pub type Postponed = Result<Option<Box<dyn Pending>>>;

/// A hash function.
pub trait Digest: Sync {
    /// Whether a caller that waits gains anything; where not, only asynchronous sessions come here.
    fn for_waiting(&self) -> bool {
        true
    }

    /// [`Self::digest`], to be completed later.
    ///
    /// # Errors
    /// As [`Self::digest`].
    fn digest_later(&self, _data: &[u8]) -> Postponed {
        Ok(None)
    }

    /// Length of the digest, in bytes.
    fn length(&self) -> usize;

    /// Hashes `data` into `out`, which is [`Self::length`] long.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` when the library fails.
    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()>;

    /// Begins a multi-part digest.
    ///
    /// # Errors
    /// `CKR_DEVICE_MEMORY`
    fn start(&self) -> Result<Box<dyn DigestStream>>;

    /// Continues from a state that [`DigestStream::save`] wrote.
    ///
    /// # Errors
    /// `CKR_SAVED_STATE_INVALID`
    fn restore(&self, state: &[u8]) -> Result<Box<dyn DigestStream>>;
}

/// A hash in the middle.
pub trait DigestStream: Send {
    /// Takes more data.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR`
    fn update(&mut self, data: &[u8]) -> Result<()>;

    /// Takes the value of a key, as [`Self::update`] takes data.
    ///
    /// # Errors
    /// `CKR_KEY_INDIGESTIBLE` where keys do not go.
    fn update_by_key(&mut self, value: &[u8]) -> Result<()> {
        self.update(value)
    }

    /// Writes the digest.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR`
    fn finish(&mut self, out: &mut [u8]) -> Result<()>;

    /// The state as portable bytes, for `C_GetOperationState`.
    ///
    /// # Errors
    /// `CKR_STATE_UNSAVEABLE`
    fn save(&self) -> Result<Vec<u8>>;
}

/// A signature or a MAC; verifies what it signs.
pub trait Signature: Sync {
    /// Whether this provider is the one for such a key; where not, the next is asked.
    fn serves(&self, _key: &Key) -> bool {
        true
    }

    /// As [`Digest::for_waiting`].
    fn for_waiting(&self) -> bool {
        true
    }

    /// [`Self::sign`], to be completed later.
    ///
    /// # Errors
    /// As [`Self::sign`].
    fn sign_later(&self, _key: &Arc<Key>, _params: &Params, _data: &[u8]) -> Postponed {
        Ok(None)
    }

    /// [`Self::verify`], to be completed later.
    ///
    /// # Errors
    /// As [`Self::verify`].
    fn verify_later(
        &self,
        _key: &Arc<Key>,
        _: &Params,
        _data: &[u8],
        _signature: &[u8],
    ) -> Postponed {
        Ok(None)
    }

    /// Refuses keys and parameters that cannot work, and prepares the key. Called at `*Init`.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID`, `CKR_KEY_SIZE_RANGE`, `CKR_KEY_TYPE_INCONSISTENT`, …
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()>;

    /// Length of a signature by this key, in bytes; no cryptography is done.
    fn length(&self, key: &Key, params: &Params) -> usize;

    /// Signs `data` into `out`, which is [`Self::length`] long; returns that length.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE` and what the mechanism's section names.
    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize>;

    /// Checks `signature` over `data`.
    ///
    /// # Errors
    /// `CKR_SIGNATURE_INVALID`, `CKR_SIGNATURE_LEN_RANGE`, …
    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()>;

    /// Begins a multi-part signature or verification. Single-part mechanisms, such as `CKM_RSA_PKCS`, leave it out.
    ///
    /// # Errors
    /// `CKR_FUNCTION_NOT_SUPPORTED` for single-part mechanisms.
    fn start(
        &self,
        _direction: Direction,
        _key: &Arc<Key>,
        _params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }
}

/// A signature in the middle.
pub trait SignatureStream: Send {
    /// Takes more data.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE`, `CKR_DEVICE_ERROR`
    fn update(&mut self, data: &[u8]) -> Result<()>;

    /// Writes the signature into `out`, which is [`Signature::length`] long; returns that length.
    ///
    /// # Errors
    /// As [`Signature::sign`].
    fn sign(&mut self, out: &mut [u8]) -> Result<usize>;

    /// Checks the signature.
    ///
    /// # Errors
    /// As [`Signature::verify`].
    fn verify(&mut self, signature: &[u8]) -> Result<()>;
}

/// `C_VerifyRecover`: the data comes out of the signature.
pub trait Recover: Sync {
    /// As [`Signature::check`].
    ///
    /// # Errors
    /// As [`Signature::check`].
    fn check(&self, key: &Key, params: &Params) -> Result<()>;

    /// The longest data that a signature can carry, in bytes.
    fn length(&self, key: &Key, params: &Params) -> usize;

    /// Writes the data into `out` (at least [`Self::length`] long) and returns its length.
    ///
    /// # Errors
    /// `CKR_SIGNATURE_INVALID`, `CKR_SIGNATURE_LEN_RANGE`
    fn recover(
        &self,
        key: &Key,
        params: &Params,
        signature: &[u8],
        out: &mut [u8],
    ) -> Result<usize>;
}

/// Encryption and decryption.
pub trait Cipher: Sync {
    /// As [`Signature::serves`].
    fn serves(&self, _key: &Key) -> bool {
        true
    }

    /// As [`Digest::for_waiting`].
    fn for_waiting(&self, _: Direction) -> bool {
        true
    }

    /// [`Self::run`], to be completed later.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn run_later(&self, _: Direction, _key: &Arc<Key>, _: &Params, _input: &[u8]) -> Postponed {
        Ok(None)
    }

    /// Refuses keys and parameters that cannot work, and prepares the key. Called at `*Init`.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID`, `CKR_KEY_SIZE_RANGE`, …
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()>;

    /// The longest result for `input` bytes in one call, in bytes. It may be larger than the real
    /// one only where unpadding decides (CBC-PAD, RSA).
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE`, `CKR_ENCRYPTED_DATA_LEN_RANGE`
    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize>;

    /// What must fill whole blocks of so many bytes to be encrypted: a secret key that is wrapped is padded with zeros to that.
    fn whole_blocks(&self, _: &Params) -> Option<usize> {
        None
    }

    /// What is wrapped is filled with zeros to a multiple of so many bytes, and encrypted only where it is one by itself.
    fn fills_to(&self) -> usize {
        1
    }

    /// Does it in one call: `out` is [`Self::length`] long. Returns the real length.
    ///
    /// # Errors
    /// `CKR_ENCRYPTED_DATA_INVALID`, …
    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize>;

    /// Begins a multi-part operation. Single-part mechanisms leave it out.
    ///
    /// # Errors
    /// `CKR_FUNCTION_NOT_SUPPORTED` for single-part mechanisms.
    fn start(
        &self,
        _direction: Direction,
        _key: &Arc<Key>,
        _params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }
}

/// Encryption or decryption in the middle.
pub trait CipherStream: Send {
    /// Exactly how many bytes [`Self::update`] will write for `input` more bytes.
    fn update_length(&self, input: usize) -> usize;

    /// Takes more data; `out` is [`Self::update_length`] long.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE`, `CKR_DEVICE_ERROR`
    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()>;

    /// The longest last part, in bytes.
    fn finish_length(&self) -> usize;

    /// Writes the last part (`out` is [`Self::finish_length`] long); returns its real length.
    ///
    /// # Errors
    /// `CKR_ENCRYPTED_DATA_INVALID`, `CKR_DATA_LEN_RANGE`
    fn finish(&mut self, out: &mut [u8]) -> Result<usize>;
}

/// Makes a secret key (or domain parameters).
pub trait Generate: Sync {
    /// `template` is the checked template; what it asks for (`CKA_VALUE_LEN`) is read from it.
    ///
    /// # Errors
    /// `CKR_TEMPLATE_INCOMPLETE`, `CKR_KEY_SIZE_RANGE`, `CKR_ATTRIBUTE_VALUE_INVALID`
    fn generate(&self, params: &Params, template: &Attributes) -> Result<NewObject>;
}

/// Makes a key pair.
pub trait GeneratePair: Sync {
    /// Whether this provider makes what the template of the public key asks for.
    fn serves(&self, _public: &Attributes) -> bool {
        true
    }

    /// The public key first. Both come with every attribute that the standard has for them,
    /// `CKA_EC_PARAMS` and `CKA_MODULUS` in the private one too.
    ///
    /// # Errors
    /// `CKR_TEMPLATE_INCOMPLETE`, `CKR_KEY_SIZE_RANGE`, `CKR_CURVE_NOT_SUPPORTED`, …
    fn generate_pair(&self, params: &Params, public: &Attributes)
    -> Result<(NewObject, NewObject)>;

    /// The same for keys whose parameters are in the template of the private key (`CKA_HSS_LMS_TYPES`).
    ///
    /// # Errors
    /// As [`Self::generate_pair`].
    fn generate_halves(
        &self,
        params: &Params,
        public: &Attributes,
        _private: &Attributes,
    ) -> Result<(NewObject, NewObject)> {
        self.generate_pair(params, public)
    }
}

/// Wraps and unwraps keys; the engine decides whether that is allowed.
pub trait Wrap: Sync {
    /// As [`Cipher::check`].
    ///
    /// # Errors
    /// As [`Cipher::check`].
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()>;

    /// Length of the wrapped form of `plain` bytes; no cryptography is done.
    ///
    /// # Errors
    /// `CKR_KEY_SIZE_RANGE`
    fn length(&self, key: &Key, params: &Params, plain: usize) -> Result<usize>;

    /// Wraps the encoded key; returns the length.
    ///
    /// # Errors
    /// `CKR_KEY_SIZE_RANGE`
    fn wrap(&self, key: &Key, params: &Params, plain: &[u8], out: &mut [u8]) -> Result<usize>;

    /// Opens a wrapped key.
    ///
    /// # Errors
    /// `CKR_WRAPPED_KEY_INVALID`, `CKR_WRAPPED_KEY_LEN_RANGE`
    fn unwrap(&self, key: &Key, params: &Params, wrapped: &[u8]) -> Result<Secret>;

    /// Where in what was opened the key is.
    fn place(&self, _: &Params) -> Place {
        Place::Told
    }
}

/// Where a key is in what was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// The form tells how long it is.
    Told,
    /// At the beginning; zeros fill what follows to a multiple of so many bytes (PKCS#11 3.2 §6.16.3).
    Filled(usize),
    /// A secret key at the beginning, as long as its template or its type says; zeros follow (PKCS#11 3.2 §6.10.4).
    First,
    /// Such a key at the end (`CKM_RSA_X_509`, PKCS#11 3.2 §6.1.12).
    Last,
}

impl Place {
    /// Whether a private key may be there: its encoding says how long it is.
    #[must_use]
    pub const fn takes_private_keys(self) -> bool {
        matches!(self, Self::Told | Self::Filled(_))
    }

    /// How long a secret key in what was opened is, in bytes, by what its template says and the only length of its type.
    ///
    /// # Errors
    /// `CKR_TEMPLATE_INCOMPLETE` where nothing says it (PKCS#11 3.2 §5.18.4), `CKR_WRAPPED_KEY_LEN_RANGE` where it is not there.
    pub fn length(self, said: Option<u64>, only: Option<u64>, opened: &[u8]) -> Result<usize> {
        let length = match self {
            Self::Told | Self::Filled(_) => said,
            Self::First | Self::Last => said.or(only),
        };
        // Zeros may be what stands before the key, or what fills the last block.
        let is_open = self == Self::Last || self == Self::First && opened.ends_with(&[0; 8]);
        if length.is_none() && is_open {
            return Err(Error::TEMPLATE_INCOMPLETE);
        }
        let length = length.map_or(Ok(opened.len()), usize::try_from).ok();
        let length = length.filter(|length| (1..=opened.len()).contains(length));
        length.ok_or(Error::WRAPPED_KEY_LEN_RANGE)
    }

    /// A private key's encoding in what was opened.
    ///
    /// # Errors
    /// As [`Self::secret_key`].
    pub fn private_key(self, opened: &[u8]) -> Result<&[u8]> {
        let mut reader = Reader::new(opened);
        let length = reader.sequence().map_or(opened.len(), |_| opened.len() - reader.rest().len());
        if matches!(self, Self::Filled(_)) { self.secret_key(opened, length) } else { Ok(opened) }
    }

    /// A secret key of this length in what was opened; all of that where the place leaves it to others what a part of it is.
    ///
    /// # Errors
    /// `CKR_WRAPPED_KEY_LEN_RANGE` where more would be left out than fills it, `CKR_WRAPPED_KEY_INVALID` for anything but
    /// zeros there.
    pub fn secret_key(self, opened: &[u8], length: usize) -> Result<&[u8]> {
        let unit = match self {
            Self::Told => 1,
            Self::Filled(unit) => unit,
            Self::First | Self::Last => return Ok(opened),
        };
        let (key, filling) = opened.split_at_checked(length).unwrap_or((opened, &[]));
        match filling.len() < unit {
            true if filling.iter().all(|byte| *byte == 0) => Ok(key),
            true => Err(Error::WRAPPED_KEY_INVALID),
            false => Err(Error::WRAPPED_KEY_LEN_RANGE),
        }
    }
}

/// Other keys that a derivation names by handle.
pub trait Keys {
    /// The key, if the session may use it.
    ///
    /// # Errors
    /// `CKR_KEY_HANDLE_INVALID`
    fn key(&self, handle: ObjectHandle) -> Result<Arc<Key>>;
}

/// Derives keys.
pub trait Derive: Sync {
    /// As [`Signature::serves`].
    fn serves(&self, _key: &Key) -> bool {
        true
    }

    /// As [`Cipher::check`]. PBKDF2 and the like run through `C_GenerateKey` and
    /// [`Generate`] instead.
    ///
    /// # Errors
    /// As [`Cipher::check`].
    fn check(&self, key: &Key, params: &Params) -> Result<()>;

    /// The length that comes out where the template does not say, in bytes; `None` when it must.
    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize>;

    /// One value for each of `lengths` (bytes): the derived key, then [`Params::Sp800108`]'s
    /// additional ones.
    ///
    /// # Errors
    /// `CKR_KEY_SIZE_RANGE`, `CKR_MECHANISM_PARAM_INVALID`, …
    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        keys: &dyn Keys,
    ) -> Result<Vec<Secret>>;

    /// [`Self::derive`] of one value of `length` bytes, to be completed later: all of it is written then.
    ///
    /// # Errors
    /// As [`Self::derive`].
    fn derive_later(&self, _key: &Arc<Key>, _: &Params, _length: usize) -> Postponed {
        Ok(None)
    }
}

/// Agrees on a new secret with the holder of a private key, by one message to it.
pub trait Encapsulation: Sync {
    /// As [`Signature::serves`].
    fn serves(&self, _key: &Key) -> bool {
        true
    }

    /// As [`Cipher::check`].
    ///
    /// # Errors
    /// As [`Cipher::check`].
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()>;

    /// Length of a ciphertext, in bytes; no cryptography is done.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT`
    fn ciphertext_length(&self, key: &Key, params: &Params) -> Result<usize>;

    /// As [`Derive::natural_length`].
    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize>;

    /// Whether a secret can have this length, in bytes.
    fn gives(&self, key: &Key, params: &Params, length: usize) -> bool {
        self.natural_length(key, params) == Some(length)
    }

    /// Whether the ciphertext carries a secret that the caller makes, and says how long it is.
    fn carries(&self) -> bool {
        false
    }

    /// Writes a new secret, or takes the one that is there where this [carries](Self::carries) it; its ciphertext goes to `out`,
    /// which is [`Self::ciphertext_length`] long.
    ///
    /// # Errors
    /// `CKR_PUBLIC_KEY_INVALID` of a public value with which nothing is agreed on, `CKR_DEVICE_ERROR`
    fn encapsulate(
        &self,
        key: &Key,
        params: &Params,
        secret: &mut [u8],
        out: &mut [u8],
    ) -> Result<()>;

    /// The secret of a ciphertext, of this length where one is said.
    ///
    /// # Errors
    /// `CKR_WRAPPED_KEY_LEN_RANGE`, `CKR_WRAPPED_KEY_INVALID`
    fn decapsulate(
        &self,
        key: &Key,
        params: &Params,
        length: Option<usize>,
        ciphertext: &[u8],
    ) -> Result<Secret>;
}
