// SPDX-License-Identifier: Apache-2.0
//! Mechanisms, slots and tokens in the form in which the original shows them.

use crate::encoding::printable;
use metaslot_ck::*;
use metaslot_client::{MechanismInfo, Module, SlotInfo, TokenInfo};

/// A mechanism, its sizes of keys, and what it does.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    sizes: (u64, u64),
    pub(super) flags: CK_FLAGS,
}

impl Row {
    /// As a slot knows it; one that it does not have does nothing.
    pub(super) fn read(module: &Module, slot: SlotId, number: CK_MECHANISM_TYPE) -> Self {
        let none = MechanismInfo { min_key_size: 0, max_key_size: 0, flags: 0 };
        let info = module.mechanism_info(slot, number).unwrap_or(none);
        Self {
            name: crate::command::provider::called(number),
            sizes: (info.min_key_size, info.max_key_size),
            flags: info.flags,
        }
    }
}

/// The flags of mechanisms on elliptic curves.
pub(super) const CURVES: CK_FLAGS = CKF_EC_F_P
    | CKF_EC_F_2M
    | CKF_EC_ECPARAMETERS
    | CKF_EC_NAMEDCURVE
    | CKF_EC_UNCOMPRESS
    | CKF_EC_COMPRESS;

/// The columns of the wide table; their headings stand upright.
const COLUMNS: &[(&str, CK_FLAGS)] = &[
    ("HW", CKF_HW),
    ("Enc", CKF_ENCRYPT),
    ("Dec", CKF_DECRYPT),
    ("Dig", CKF_DIGEST),
    ("Sign", CKF_SIGN),
    ("Sig+R", CKF_SIGN_RECOVER),
    ("Vrfy", CKF_VERIFY),
    ("Vrf+R", CKF_VERIFY_RECOVER),
    ("KeyGen", CKF_GENERATE),
    ("PairGen", CKF_GENERATE_KEY_PAIR),
    ("Wrap", CKF_WRAP),
    ("Unwrap", CKF_UNWRAP),
    ("Derive", CKF_DERIVE),
    ("EC", CURVES),
];

/// The list, or the wide table.
pub(super) fn mechanisms(rows: &[Row], verbose: bool) -> String {
    let heading = if verbose { headings() } else { String::new() };
    let line = |row: &Row| match verbose {
        false => format!("{}\n", row.name),
        true => {
            let mark = |column: &(_, CK_FLAGS)| if row.flags & column.1 != 0 { "X" } else { "." };
            let marks: Vec<&str> = COLUMNS.iter().map(mark).collect();
            let (min, max) = row.sizes;
            format!("{:<33} {min:<5} {max:<5} {}\n", row.name, marks.join("  "))
        }
    };
    format!("Mechanisms:\n{heading}{}", rows.iter().map(line).collect::<String>())
}

fn headings() -> String {
    let height = COLUMNS.iter().map(|column| column.0.len()).max().unwrap_or(0);
    let line = |from_end: usize| {
        let letter = |column: &(&'static str, _)| {
            let at = column.0.len().checked_sub(from_end);
            at.and_then(|at| column.0.get(at..=at)).unwrap_or(" ")
        };
        let letters: Vec<&str> = COLUMNS.iter().map(letter).collect();
        let before = if from_end == 1 { ["mechanism name", "min", "max"] } else { [""; 3] };
        let [name, min, max] = before;
        let line = format!("{name:<33} {min:<5} {max:<5} {}", letters.join("  "));
        format!("{}\n", line.trim_end())
    };
    (1..=height).rev().map(line).collect()
}

/// The slots of one module, numbered.
pub(super) fn slots(module: &Module, slots: &[(SlotId, SlotInfo)]) -> String {
    let (major, minor) = module.version();
    let mut text = format!("Number of slots: {}\n", slots.len());
    for (at, (slot, info)) in slots.iter().enumerate() {
        text += &format!(
            "\nSlot #{}\nDescription: {}\nManufacturer: {}\nPKCS#11 Version: {major}.{minor}\n{}Slot Flags: {}\n",
            at + 1,
            printable(&info.description),
            printable(&info.manufacturer),
            present(info),
            set(SLOT_FLAGS, info.flags),
        );
        if let Ok(token) = module.token_info(*slot) {
            let (min, max) = token.pin_lengths;
            let pins = format!("PIN Min Length: {min}\nPIN Max Length: {max}\n");
            text += &described(&token, &pins);
        }
    }
    text
}

/// The details of the metaslot.
pub(super) fn metaslot(info: &SlotInfo, token: &TokenInfo) -> String {
    let (min, max) = token.pin_lengths;
    let pins = format!("PIN Length: {min}-{max}\n");
    let description = printable(&info.description);
    format!(
        "actual status: enabled.\nDescription: {description}\n{}{}",
        present(info),
        described(token, &pins)
    )
}

fn present(info: &SlotInfo) -> String {
    let is_there = info.flags & CKF_TOKEN_PRESENT != 0;
    format!("Token Present: {}\n", if is_there { "True" } else { "False" })
}

fn described(token: &TokenInfo, pins: &str) -> String {
    format!(
        "Token Label: {}\nManufacturer ID: {}\nModel: {}\nSerial Number: {}\n{pins}Flags: {}\n",
        printable(&token.label),
        printable(&token.manufacturer),
        printable(&token.model),
        printable(&token.serial),
        set(TOKEN_FLAGS, token.flags)
    )
}

fn set(names: &[(CK_FLAGS, &str)], flags: CK_FLAGS) -> String {
    let set = names.iter().filter(|row| flags & row.0 != 0).map(|row| row.1);
    set.collect::<Vec<_>>().join(" ")
}

const SLOT_FLAGS: &[(CK_FLAGS, &str)] = &[
    (CKF_TOKEN_PRESENT, "CKF_TOKEN_PRESENT"),
    (CKF_REMOVABLE_DEVICE, "CKF_REMOVABLE_DEVICE"),
    (CKF_HW_SLOT, "CKF_HW_SLOT"),
];

const TOKEN_FLAGS: &[(CK_FLAGS, &str)] = &[
    (CKF_RNG, "CKF_RNG"),
    (CKF_WRITE_PROTECTED, "CKF_WRITE_PROTECTED"),
    (CKF_LOGIN_REQUIRED, "CKF_LOGIN_REQUIRED"),
    (CKF_USER_PIN_INITIALIZED, "CKF_USER_PIN_INITIALIZED"),
    (CKF_RESTORE_KEY_NOT_NEEDED, "CKF_RESTORE_KEY_NOT_NEEDED"),
    (CKF_CLOCK_ON_TOKEN, "CKF_CLOCK_ON_TOKEN"),
    (CKF_PROTECTED_AUTHENTICATION_PATH, "CKF_PROTECTED_AUTHENTICATION_PATH"),
    (CKF_DUAL_CRYPTO_OPERATIONS, "CKF_DUAL_CRYPTO_OPERATIONS"),
    (CKF_TOKEN_INITIALIZED, "CKF_TOKEN_INITIALIZED"),
    (CKF_USER_PIN_COUNT_LOW, "CKF_USER_PIN_COUNT_LOW"),
    (CKF_USER_PIN_FINAL_TRY, "CKF_USER_PIN_FINAL_TRY"),
    (CKF_USER_PIN_LOCKED, "CKF_USER_PIN_LOCKED"),
    (CKF_USER_PIN_TO_BE_CHANGED, "CKF_USER_PIN_TO_BE_CHANGED"),
    (CKF_SO_PIN_COUNT_LOW, "CKF_SO_PIN_COUNT_LOW"),
    (CKF_SO_PIN_FINAL_TRY, "CKF_SO_PIN_FINAL_TRY"),
    (CKF_SO_PIN_LOCKED, "CKF_SO_PIN_LOCKED"),
    (CKF_SO_PIN_TO_BE_CHANGED, "CKF_SO_PIN_TO_BE_CHANGED"),
];
