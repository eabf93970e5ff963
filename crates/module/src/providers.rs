// SPDX-License-Identifier: Apache-2.0
//! What does cryptography in this process.

use crate::config::Config;
use metaslot_awslc::AWSLC;
use metaslot_lanes::provider::Lanes;
use metaslot_memory::PerProcess;
use metaslot_router::Settings;
use metaslot_spi::provider::{Algorithm, Provider};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// In the order in which the metaslot asks them. OpenSSL is the last, so that without it the others keep their places, which
/// are their numbers in the counters.
static PROVIDERS: &[&dyn Provider] = &[
    #[cfg(feature = "panicking-provider")]
    &crate::panicking::Panicking,
    &LANES,
    &AWSLC,
    #[cfg(feature = "openssl")]
    &metaslot_openssl::OPENSSL,
];
static LANES: Lanes = Lanes::beside(&AWSLC);

/// What a configuration says of routes.
pub(crate) fn settings(config: &Config) -> Settings {
    let mut settings = config.routes.clone();
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

type Providers = &'static [&'static dyn Provider];

/// Our own providers, OpenSSL only where it is wanted, then those of other modules. A list is never freed, and made once.
pub(crate) fn providers(openssl: bool, others: &[&'static dyn Provider]) -> Providers {
    let left_out = usize::from(cfg!(feature = "openssl") && !openssl);
    let ours = &PROVIDERS[..PROVIDERS.len() - left_out];
    if others.is_empty() {
        return ours;
    }
    let all: Vec<_> = ours.iter().chain(others).copied().collect();
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
        let [one, two] = [&OTHERS[0], &OTHERS[1]].map(|other| providers(true, &[other]));
        assert!(!ptr::eq(one, two), "the second is not asked");
        assert!(ptr::eq(one, providers(true, &[&OTHERS[0]])), "a list for each start");
        assert!(ptr::eq(PROVIDERS, providers(true, &[])));
    }
}
