// SPDX-License-Identifier: Apache-2.0
//! Table: one row per attribute and the classes that have it so, sorted by number.

use super::row::Standing::{Empty, False, True, Zero};
use super::row::*;
use crate::*;

const ANY: u32 = DATA | CERTIFICATE | KEYS | DOMAIN | TRUST;
const GIVEN: u32 = CREATE | MAKE;
const FREE: u32 = GIVEN | CHANGE | COPY;
const SAID: u32 = CREATE | CHANGE | COPY;

const fn row(number: CK_ATTRIBUTE_TYPE, kind: Kind, classes: u32, rights: u32) -> AttributeRow {
    let (secret, at_birth, absent, rank) = (false, None, None, 0);
    AttributeRow { number, kind, classes, rights, secret, at_birth, absent, rank }
}

impl AttributeRow {
    const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    const fn at_birth(self, standing: Standing) -> Self {
        Self { at_birth: Some(standing), ..self }
    }

    const fn absent(self, standing: Standing) -> Self {
        Self { absent: Some(standing), ..self }
    }

    const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

#[rustfmt::skip]
pub(super) const ATTRIBUTES: &[AttributeRow] = &[
    row(CKA_CLASS, Kind::Ulong, ANY, GIVEN).rank(10),
    row(CKA_CLASS, Kind::Ulong, FIXED, 0),
    row(CKA_TOKEN, Kind::Bool, ANY, GIVEN | COPY).at_birth(False),
    row(CKA_TOKEN, Kind::Bool, FIXED, 0),
    row(CKA_PRIVATE, Kind::Bool, DATA | CERTIFICATE | DOMAIN | TRUST, GIVEN | COPY | ONLY_ON).at_birth(False),
    row(CKA_PRIVATE, Kind::Bool, FIXED, 0),
    row(CKA_PRIVATE, Kind::Bool, KEYS, GIVEN | COPY | ONLY_ON),
    row(CKA_LABEL, Kind::Bytes, ANY, FREE).absent(Empty).rank(7),
    row(CKA_LABEL, Kind::Bytes, FIXED, 0).absent(Empty),
    row(CKA_UNIQUE_ID, Kind::Bytes, ANY, 0).rank(1),
    row(CKA_UNIQUE_ID, Kind::Bytes, FIXED, 0),
    row(CKA_APPLICATION, Kind::Bytes, DATA, FREE).absent(Empty),
    row(CKA_VALUE, Kind::Bytes, DATA, CREATE | CHANGE | COPY).absent(Empty),
    row(CKA_VALUE, Kind::Bytes, CERTIFICATE | PUBLIC, CREATE),
    row(CKA_VALUE, Kind::Bytes, PRIVATE | SECRET | OTP, CREATE).secret(),
    row(CKA_OBJECT_ID, Kind::Bytes, DATA, FREE).absent(Empty),
    row(CKA_CERTIFICATE_TYPE, Kind::Ulong, CERTIFICATE, CREATE),
    row(CKA_ISSUER, Kind::Bytes, CERTIFICATE, CREATE | CHANGE | COPY).absent(Empty).rank(8),
    row(CKA_ISSUER, Kind::Bytes, TRUST, CREATE).rank(8),
    row(CKA_SERIAL_NUMBER, Kind::Bytes, CERTIFICATE, CREATE | CHANGE | COPY).absent(Empty).rank(5),
    row(CKA_SERIAL_NUMBER, Kind::Bytes, TRUST, CREATE).rank(5),
    row(CKA_AC_ISSUER, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_OWNER, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_ATTR_TYPES, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_TRUSTED, Kind::Bool, CERTIFICATE | PUBLIC | SECRET, FREE | SO).at_birth(False),
    row(CKA_TRUSTED, Kind::Bool, PRIVATE | OTP, FREE | SO),
    row(CKA_CERTIFICATE_CATEGORY, Kind::Ulong, CERTIFICATE, CREATE).at_birth(Zero),
    row(CKA_JAVA_MIDP_SECURITY_DOMAIN, Kind::Ulong, CERTIFICATE, CREATE).absent(Zero),
    row(CKA_URL, Kind::Bytes, CERTIFICATE, CREATE).absent(Empty),
    row(CKA_HASH_OF_SUBJECT_PUBLIC_KEY, Kind::Bytes, CERTIFICATE, CREATE).absent(Empty),
    row(CKA_HASH_OF_ISSUER_PUBLIC_KEY, Kind::Bytes, CERTIFICATE, CREATE).absent(Empty),
    row(CKA_NAME_HASH_ALGORITHM, Kind::Ulong, CERTIFICATE | TRUST, CREATE),
    row(CKA_CHECK_VALUE, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_CHECK_VALUE, Kind::Bytes, SECRET | OTP, GIVEN | IGNORED),
    row(CKA_KEY_TYPE, Kind::Ulong, KEYS | DOMAIN, GIVEN).rank(9),
    row(CKA_SUBJECT, Kind::Bytes, CERTIFICATE, CREATE).rank(6),
    row(CKA_SUBJECT, Kind::Bytes, PUBLIC | PRIVATE, FREE).absent(Empty).rank(6),
    row(CKA_ID, Kind::Bytes, CERTIFICATE | KEYS, FREE).absent(Empty).rank(2),
    row(CKA_SENSITIVE, Kind::Bool, PRIVATE | SECRET | OTP, FREE | ONLY_ON),
    row(CKA_ENCRYPT, Kind::Bool, PUBLIC | SECRET, FREE | USAGE).at_birth(True),
    row(CKA_ENCRYPT, Kind::Bool, PRIVATE | OTP, FREE | USAGE),
    row(CKA_DECRYPT, Kind::Bool, PRIVATE | SECRET, FREE | USAGE).at_birth(True),
    row(CKA_DECRYPT, Kind::Bool, PUBLIC | OTP, FREE | USAGE),
    row(CKA_WRAP, Kind::Bool, PUBLIC | SECRET, FREE | USAGE).at_birth(False),
    row(CKA_WRAP, Kind::Bool, PRIVATE | OTP, FREE | USAGE),
    row(CKA_UNWRAP, Kind::Bool, PRIVATE | SECRET, FREE | USAGE).at_birth(False),
    row(CKA_UNWRAP, Kind::Bool, PUBLIC | OTP, FREE | USAGE),
    row(CKA_SIGN, Kind::Bool, PRIVATE | SECRET | OTP, FREE | USAGE).at_birth(True),
    row(CKA_SIGN, Kind::Bool, PUBLIC, FREE | USAGE),
    row(CKA_SIGN_RECOVER, Kind::Bool, PRIVATE, FREE | USAGE).at_birth(True),
    row(CKA_SIGN_RECOVER, Kind::Bool, PUBLIC | SECRET, FREE | USAGE),
    row(CKA_VERIFY, Kind::Bool, PUBLIC | SECRET | OTP, FREE | USAGE).at_birth(True),
    row(CKA_VERIFY, Kind::Bool, PRIVATE, FREE | USAGE),
    row(CKA_VERIFY_RECOVER, Kind::Bool, PUBLIC, FREE | USAGE).at_birth(True),
    row(CKA_VERIFY_RECOVER, Kind::Bool, PRIVATE | SECRET, FREE | USAGE),
    row(CKA_DERIVE, Kind::Bool, PUBLIC | SECRET, FREE | USAGE).at_birth(False),
    row(CKA_DERIVE, Kind::Bool, PRIVATE | OTP, FREE | USAGE),
    row(CKA_START_DATE, Kind::Date, CERTIFICATE | KEYS, FREE).absent(Empty),
    row(CKA_END_DATE, Kind::Date, CERTIFICATE | KEYS, FREE).absent(Empty),
    row(CKA_MODULUS, Kind::BigInteger, PUBLIC | PRIVATE, CREATE).rank(3),
    row(CKA_MODULUS_BITS, Kind::Ulong, PUBLIC, MAKE),
    row(CKA_PUBLIC_EXPONENT, Kind::BigInteger, PUBLIC | PRIVATE, GIVEN),
    row(CKA_PRIVATE_EXPONENT, Kind::Bytes, PRIVATE, CREATE).secret(),
    row(CKA_PRIME_1, Kind::Bytes, PRIVATE, CREATE).secret(),
    row(CKA_PRIME_2, Kind::Bytes, PRIVATE, CREATE).secret(),
    row(CKA_EXPONENT_1, Kind::Bytes, PRIVATE, CREATE).secret(),
    row(CKA_EXPONENT_2, Kind::Bytes, PRIVATE, CREATE).secret(),
    row(CKA_COEFFICIENT, Kind::Bytes, PRIVATE, CREATE).secret(),
    row(CKA_PUBLIC_KEY_INFO, Kind::Bytes, CERTIFICATE, CREATE).absent(Empty),
    row(CKA_PUBLIC_KEY_INFO, Kind::Bytes, PUBLIC | PRIVATE, CREATE),
    row(CKA_PRIME, Kind::BigInteger, PUBLIC | DOMAIN, GIVEN),
    row(CKA_PRIME, Kind::BigInteger, PRIVATE, CREATE),
    row(CKA_SUBPRIME, Kind::BigInteger, PUBLIC | DOMAIN, GIVEN),
    row(CKA_SUBPRIME, Kind::BigInteger, PRIVATE, CREATE),
    row(CKA_BASE, Kind::BigInteger, PUBLIC, GIVEN),
    row(CKA_BASE, Kind::BigInteger, PRIVATE | DOMAIN, CREATE),
    row(CKA_PRIME_BITS, Kind::Ulong, DOMAIN, MAKE),
    row(CKA_SUBPRIME_BITS, Kind::Ulong, DOMAIN, MAKE),
    row(CKA_VALUE_BITS, Kind::Ulong, PRIVATE, MAKE),
    row(CKA_VALUE_LEN, Kind::Ulong, SECRET | OTP, GIVEN),
    row(CKA_EXTRACTABLE, Kind::Bool, PRIVATE | SECRET | OTP, FREE | ONLY_OFF),
    row(CKA_LOCAL, Kind::Bool, KEYS | DOMAIN, 0),
    row(CKA_NEVER_EXTRACTABLE, Kind::Bool, PRIVATE | SECRET | OTP, 0),
    row(CKA_ALWAYS_SENSITIVE, Kind::Bool, PRIVATE | SECRET | OTP, 0),
    row(CKA_KEY_GEN_MECHANISM, Kind::Ulong, KEYS, 0),
    row(CKA_MODIFIABLE, Kind::Bool, ANY, GIVEN | COPY | ONLY_OFF).at_birth(True),
    row(CKA_MODIFIABLE, Kind::Bool, FIXED, 0),
    row(CKA_COPYABLE, Kind::Bool, ANY, GIVEN | CHANGE | COPY | ONLY_OFF).at_birth(True),
    row(CKA_COPYABLE, Kind::Bool, FIXED, 0),
    row(CKA_DESTROYABLE, Kind::Bool, ANY, GIVEN | COPY).at_birth(True),
    row(CKA_DESTROYABLE, Kind::Bool, FIXED, 0),
    row(CKA_EC_PARAMS, Kind::Bytes, PUBLIC | PRIVATE, GIVEN),
    row(CKA_EC_POINT, Kind::Bytes, PUBLIC, CREATE).rank(4),
    row(CKA_ALWAYS_AUTHENTICATE, Kind::Bool, PRIVATE, GIVEN | COPY | ONLY_ON).at_birth(False),
    row(CKA_WRAP_WITH_TRUSTED, Kind::Bool, PRIVATE | SECRET | OTP, FREE | ONLY_ON).at_birth(False),
    row(CKA_OTP_FORMAT, Kind::Ulong, OTP, GIVEN).absent(Zero),
    row(CKA_OTP_LENGTH, Kind::Ulong, OTP, GIVEN),
    row(CKA_OTP_USER_FRIENDLY_MODE, Kind::Bool, OTP, GIVEN).at_birth(True),
    row(CKA_OTP_CHALLENGE_REQUIREMENT, Kind::Ulong, OTP, GIVEN).absent(Zero),
    row(CKA_OTP_TIME_REQUIREMENT, Kind::Ulong, OTP, GIVEN).absent(Zero),
    row(CKA_OTP_COUNTER_REQUIREMENT, Kind::Ulong, OTP, GIVEN),
    row(CKA_OTP_PIN_REQUIREMENT, Kind::Ulong, OTP, GIVEN).absent(Zero),
    row(CKA_OTP_USER_IDENTIFIER, Kind::Bytes, OTP, FREE).absent(Empty),
    row(CKA_OTP_SERVICE_IDENTIFIER, Kind::Bytes, OTP, FREE).absent(Empty),
    row(CKA_OTP_SERVICE_LOGO, Kind::Bytes, OTP, FREE).absent(Empty),
    row(CKA_OTP_SERVICE_LOGO_TYPE, Kind::Bytes, OTP, FREE).absent(Empty),
    row(CKA_OTP_COUNTER, Kind::Bytes, OTP, GIVEN | CHANGE | ONLY_FEWER),
    row(CKA_OTP_TIME, Kind::Bytes, OTP, 0).absent(Empty),
    row(CKA_MECHANISM_TYPE, Kind::Ulong, FIXED, 0),
    row(CKA_PROFILE_ID, Kind::Ulong, FIXED, 0),
    row(CKA_HSS_LEVELS, Kind::Ulong, PUBLIC | PRIVATE, GIVEN),
    row(CKA_HSS_LMS_TYPE, Kind::Ulong, PUBLIC, GIVEN),
    row(CKA_HSS_LMOTS_TYPE, Kind::Ulong, PUBLIC, GIVEN),
    row(CKA_HSS_LMS_TYPES, Kind::Ulongs, PRIVATE, MAKE),
    row(CKA_HSS_LMOTS_TYPES, Kind::Ulongs, PRIVATE, MAKE),
    row(CKA_HSS_KEYS_REMAINING, Kind::Ulong, PRIVATE, CHANGE | ONLY_FEWER | TOLD_TO_32_BITS),
    row(CKA_PARAMETER_SET, Kind::Ulong, PUBLIC | PRIVATE, GIVEN),
    row(CKA_OBJECT_VALIDATION_FLAGS, Kind::Ulong, KEYS, 0).absent(Zero),
    row(CKA_ENCAPSULATE_TEMPLATE, Kind::Template, PUBLIC, GIVEN).absent(Empty),
    row(CKA_DECAPSULATE_TEMPLATE, Kind::Template, PRIVATE, GIVEN).absent(Empty),
    row(CKA_TRUST_SERVER_AUTH, Kind::Ulong, TRUST, SAID).absent(Zero),
    row(CKA_TRUST_CLIENT_AUTH, Kind::Ulong, TRUST, SAID).absent(Zero),
    row(CKA_TRUST_CODE_SIGNING, Kind::Ulong, TRUST, SAID).absent(Zero),
    row(CKA_TRUST_EMAIL_PROTECTION, Kind::Ulong, TRUST, SAID).absent(Zero),
    row(CKA_TRUST_IPSEC_IKE, Kind::Ulong, TRUST, SAID).absent(Zero),
    row(CKA_TRUST_TIME_STAMPING, Kind::Ulong, TRUST, SAID).absent(Zero),
    row(CKA_TRUST_OCSP_SIGNING, Kind::Ulong, TRUST, SAID).absent(Zero),
    row(CKA_ENCAPSULATE, Kind::Bool, PUBLIC, FREE | USAGE).at_birth(False),
    row(CKA_DECAPSULATE, Kind::Bool, PRIVATE, FREE | USAGE).at_birth(False),
    row(CKA_HASH_OF_CERTIFICATE, Kind::Bytes, TRUST, CREATE).absent(Empty),
    row(CKA_PUBLIC_CRC64_VALUE, Kind::Bytes, PUBLIC | PRIVATE, CREATE).absent(Empty),
    row(CKA_SEED, Kind::Bytes, PRIVATE, CREATE).secret(),
    row(CKA_WRAP_TEMPLATE, Kind::Template, PUBLIC | SECRET, GIVEN).absent(Empty),
    row(CKA_UNWRAP_TEMPLATE, Kind::Template, PRIVATE | SECRET, GIVEN).absent(Empty),
    row(CKA_DERIVE_TEMPLATE, Kind::Template, PRIVATE | SECRET, GIVEN).absent(Empty),
    row(CKA_ALLOWED_MECHANISMS, Kind::Ulongs, KEYS, GIVEN | COPY | ONLY_FEWER).absent(Empty),
    row(CKA_BIRTH_ROLES, Kind::Ulong, KEYS, 0),
    row(CKA_PURPOSES, Kind::Ulong, KEYS, 0),
    row(CKA_FOREIGN_ROW, Kind::Ulong, KEYS, 0),
    row(CKA_METASLOT_HOME, Kind::Bytes, ANY, 0),
    row(CKA_IV_SERIES, Kind::Bytes, SECRET, 0),
    row(CKA_COUNTED_SINCE, Kind::Ulong, PRIVATE | SECRET | OTP, 0),
];

const fn is_born(row: &AttributeRow) -> bool {
    row.at_birth.is_some() || row.may(IGNORED)
}

/// How many rows say what happens to every new object.
const BIRTHS: usize = {
    let (mut at, mut count) = (0, 0);
    while at < ATTRIBUTES.len() {
        count += is_born(&ATTRIBUTES[at]) as usize;
        at += 1;
    }
    count
};

/// Those rows.
pub(super) static BORN: [AttributeRow; BIRTHS] = {
    let mut rows = [ATTRIBUTES[0]; BIRTHS];
    let (mut at, mut place) = (0, 0);
    while at < ATTRIBUTES.len() {
        if is_born(&ATTRIBUTES[at]) {
            rows[place] = ATTRIBUTES[at];
            place += 1;
        }
        at += 1;
    }
    rows
};

/// How many attributes have a rank: ranks are 1 to this.
const RANKED: usize = {
    let (mut at, mut highest) = (0, 0);
    while at < ATTRIBUTES.len() {
        if ATTRIBUTES[at].rank > highest {
            highest = ATTRIBUTES[at].rank;
        }
        at += 1;
    }
    highest as usize
};

/// The ranked attributes in the order of their ranks.
pub(super) static INDEXED: [CK_ATTRIBUTE_TYPE; RANKED] = {
    let mut indexed = [CK_ATTRIBUTE_TYPE::MAX; RANKED];
    let mut at = 0;
    while at < ATTRIBUTES.len() {
        let row = &ATTRIBUTES[at];
        if row.rank > 0 {
            let place = row.rank as usize - 1;
            assert!(
                indexed[place] == CK_ATTRIBUTE_TYPE::MAX || indexed[place] == row.number,
                "two attributes have one rank"
            );
            indexed[place] = row.number;
        }
        at += 1;
    }
    indexed
};

const _: () = {
    let mut at = 1;
    while at < ATTRIBUTES.len() {
        let (before, row) = (&ATTRIBUTES[at - 1], &ATTRIBUTES[at]);
        assert!(before.number <= row.number, "rows are not sorted");
        if before.number == row.number {
            assert!(before.classes & row.classes == 0, "two rows for one class");
            assert!(before.kind as u8 == row.kind as u8, "one attribute of two kinds");
        }
        at += 1;
    }
    at = 0;
    while at < RANKED {
        assert!(INDEXED[at] != CK_ATTRIBUTE_TYPE::MAX, "a rank without an attribute");
        at += 1;
    }
};
