// SPDX-License-Identifier: Apache-2.0
//! Which rows this kernel has.

use metaslot_ck::CK_MECHANISM_TYPE;
use metaslot_kernel_wrapper::{Errno, Kind, available, has};
use metaslot_spi::provider::Algorithm;

/// A row, and the kernel's name of what it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) row: Algorithm,
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
}

/// The rows that there are, and why the others are not.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Algorithm>,
    absent: Vec<(CK_MECHANISM_TYPE, String)>,
}

impl Table {
    /// Asks the kernel for each. It loads what it has as modules, where it may; that is not tried again in this process.
    pub(crate) fn of(offers: impl Iterator<Item = Offer>) -> Self {
        let (none, mut known) = (available().err().map(no_socket), Vec::new());
        let (mut rows, mut absent) = (Vec::new(), Vec::new());
        for Offer { row, kind, name } in offers {
            let reason = none.clone().or_else(|| {
                if let Some((_, reason)) = known.iter().find(|(other, _)| *other == name) {
                    return Option::clone(reason);
                }
                let reason = has(kind, name).err().map(no_algorithm);
                known.push((name, reason.clone()));
                reason
            });
            match reason {
                None => rows.push(row),
                Some(reason) => absent.push((row.mechanism, reason)),
            }
        }
        rows.sort_by_key(|row| row.mechanism);
        Self { rows, absent }
    }

    /// Why a row is not there; empty where it is, and where there could be none.
    pub(crate) fn remark(&self, mechanism: CK_MECHANISM_TYPE) -> String {
        let found = self.absent.iter().find(|row| row.0 == mechanism);
        found.map_or_else(String::new, |row| row.1.clone())
    }
}

fn no_socket(error: Errno) -> String {
    match error {
        Errno::AFNOSUPPORT => String::from("the kernel has no AF_ALG"),
        _ => format!("AF_ALG is refused: {error}"),
    }
}

fn no_algorithm(error: Errno) -> String {
    match error {
        Errno::NOENT => String::from("the kernel does not have it"),
        _ => format!("the kernel refuses it: {error}"),
    }
}
