// SPDX-License-Identifier: Apache-2.0
//! Over which network stacks the bytes go.
//!
//! Namespaces belong to the generator's own processes and vanish with them, and with a namespace both
//! ends of its pair of devices: whatever happens to the lab, nothing is left behind.

use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The way from the sender to the receiver.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// The machine's own loopback interface
    Loopback,
    /// Both ends in one network namespace of their own: one stack, its loopback interface
    Shared,
    /// The sender in the machine's stack, the receiver in a namespace, a veth pair between them
    Mixed,
    /// Each end in a namespace of its own, a veth pair between them
    #[value(alias("namespaces"))]
    Exclusive,
}

/// The addresses of a sender and of the receiver with that process number. They are set aside for
/// measurements (RFC 2544, section C.2.2), so no real host has them; each pair has four of its own.
pub(super) fn addresses(receiver: u32) -> [Ipv4Addr; 2] {
    let first = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + 4 * (receiver % (1 << 15));
    [Ipv4Addr::from(first + 1), Ipv4Addr::from(first + 2)]
}

impl Path {
    /// Its name in cells and tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Shared => "shared",
            Self::Mixed => "mixed",
            Self::Exclusive => "exclusive",
        }
    }

    /// The path of that name.
    pub(super) fn named(name: &str) -> Result<Self> {
        let all = [Self::Loopback, Self::Shared, Self::Mixed, Self::Exclusive];
        let found = all.into_iter().find(|path| path.name() == name);
        found.ok_or_else(|| Failure::new(format!("{name:?} is no path")))
    }

    /// Where the receiver with that process number listens.
    pub(super) fn address(self, receiver: u32) -> Ipv4Addr {
        match self {
            Self::Loopback | Self::Shared => Ipv4Addr::LOCALHOST,
            Self::Mixed | Self::Exclusive => addresses(receiver)[1],
        }
    }

    /// Whether the kernel's counters of the network are the experiment's alone.
    pub(super) const fn counts_alone(self) -> bool {
        matches!(self, Self::Shared | Self::Exclusive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_in_the_network_for_measurements() {
        for receiver in [0, 1, 32_767, 32_768, u32::MAX] {
            for address in addresses(receiver) {
                assert!(matches!(address.octets(), [198, 18 | 19, ..]), "{address}");
            }
        }
        assert_ne!(addresses(7), addresses(8));
    }
}
