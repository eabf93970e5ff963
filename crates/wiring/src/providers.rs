// SPDX-License-Identifier: Apache-2.0
//! What does cryptography in this process.

use crate::config::{Config, WANTED};
use metaslot_awslc::AWSLC;
use metaslot_classics::CLASSICS;
use metaslot_kernel::Kernel;
use metaslot_lanes::provider::Lanes;
use metaslot_memory::PerProcess;
use metaslot_router::Settings;
use metaslot_spi::provider::{Algorithm, Provider};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// In the order in which the metaslot asks them. Those that are there only where they are wanted are the last, so that without them
/// the others keep their places, which are their numbers in the counters.
static PROVIDERS: &[&dyn Provider] = &[
    #[cfg(feature = "panicking-provider")]
    &crate::panicking::Panicking,
    &LANES,
    &AWSLC,
    &CLASSICS,
    #[cfg(feature = "openssl")]
    &metaslot_openssl::OPENSSL,
    &KERNEL,
];
static LANES: Lanes = Lanes::beside(&AWSLC);
static KERNEL: Kernel = Kernel::beside(&AWSLC);

/// What a configuration says of routes.
pub(crate) fn settings(config: &Config) -> Settings {
    let mut settings = config.routes.clone();
    settings.pairs_tested = config.tests_pairs();
    if !config.lanes {
        settings.left_out.push(LANES.name().to_owned());
        let named = |row: &Algorithm| (LANES.name().to_owned(), row.mechanism);
        settings.disabled.extend(LANES.algorithms().iter().map(named));
        // There is a row for each kernel.
        settings.disabled.sort_unstable();
        settings.disabled.dedup();
    }
    settings
}

/// Lists of providers that were ever used in this process.
static LISTS: PerProcess<Mutex<Vec<Providers>>> = PerProcess::new(|_| Mutex::default());

/// In the order in which they are asked.
pub(crate) type Providers = &'static [&'static dyn Provider];

/// Our own providers, of those that have to be wanted these, then those of other modules. A list is never freed, and made once.
pub(crate) fn providers(wanted: &[&str], others: &[&'static dyn Provider]) -> Providers {
    let is_wanted =
        |one: &&&dyn Provider| !WANTED.contains(&one.name()) || wanted.contains(&one.name());
    let all: Vec<_> = PROVIDERS.iter().filter(is_wanted).chain(others).copied().collect();
    let mut lists = LISTS.get().lock().unwrap_or_else(PoisonError::into_inner);
    // Where one has no size another may have its place: it has another name.
    let each = |list: &[&'static dyn Provider]| -> Vec<_> {
        list.iter().map(|one| (one.name(), ptr::from_ref(*one).cast::<()>())).collect()
    };
    let same = |list: &&Providers| each(list) == each(&all);
    if let Some(list) = lists.iter().find(same) {
        return list;
    }
    let list: Providers = Vec::leak(all);
    lists.push(list);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It makes random numbers, say.
    #[derive(Debug)]
    struct WithoutTable(#[expect(dead_code, reason = "it has a place of its own")] u8);

    impl Provider for WithoutTable {
        fn name(&self) -> &'static str {
            "other"
        }

        fn algorithms(&'static self) -> &'static [Algorithm] {
            &[]
        }
    }

    #[test]
    fn another_provider_of_the_same_name_is_another() {
        static OTHERS: [WithoutTable; 2] = [WithoutTable(0), WithoutTable(1)];
        let [one, two] = [&OTHERS[0], &OTHERS[1]].map(|other| providers(&WANTED, &[other]));
        assert!(!ptr::eq(one, two), "the second is not asked");
        assert!(ptr::eq(one, providers(&WANTED, &[&OTHERS[0]])), "a list for each start");
        assert!(ptr::eq(providers(&WANTED, &[]), providers(&WANTED, &[])));
    }

    #[test]
    fn what_is_not_wanted_is_not_asked_and_the_others_keep_their_places() {
        let names = |wanted: &[&str]| providers(wanted, &[]).iter().map(|one| one.name()).collect();
        let (none, all): (Vec<_>, Vec<_>) = (names(&[]), names(&WANTED));
        assert!(all.starts_with(&none), "{none:?} {all:?}");
        let wanted = WANTED.iter().filter(|name| **name != "openssl" || cfg!(feature = "openssl"));
        assert!(wanted.eq(&all[none.len()..]), "{all:?}");
        assert_eq!(names(&["kernel"]), [&none[..], &["kernel"]].concat());
    }
}
