// SPDX-License-Identifier: Apache-2.0
//! What clients of daemons did between two looks, by user and unit.

use crate::command::stat::clients::Users;
use metaslot_counters::clients::{Count, Served, Server, User};
use std::cmp::Reverse;

/// What a client should not meet, and what it is called.
const TROUBLES: [(Count, &str); 4] = [
    (Count::WrongPins, "wrong PIN"),
    (Count::NoMemory, "no memory left"),
    (Count::Refused, "connection refused"),
    (Count::GivenUp, "connection given up"),
];

/// What all clients of one user and unit did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Unit {
    /// The daemon.
    pub(super) pid: u32,
    user: User,
    unit: String,
    pub(super) connected: u64,
    pub(super) operations: u64,
    troubles: [u64; TROUBLES.len()],
}

impl Unit {
    fn of(pid: u32, served: &Served) -> Self {
        Self {
            pid,
            user: served.user,
            unit: served.service.clone(),
            connected: served.connected,
            operations: served.counts.of(Count::Operations),
            troubles: TROUBLES.map(|(count, _)| served.counts.of(count)),
        }
    }

    /// Since a look before.
    fn since(&self, before: &[Self]) -> Self {
        let key = |one: &Self| (one.pid, one.user, one.unit.clone());
        let mut done = self.clone();
        if let Some(before) = before.iter().find(|before| key(before) == key(self)) {
            done.operations = done.operations.saturating_sub(before.operations);
            for (now, before) in done.troubles.iter_mut().zip(before.troubles) {
                *now = now.saturating_sub(before);
            }
        }
        done
    }

    /// Its user, and its unit where that is known.
    pub(super) fn name(&self, users: &Users) -> String {
        let user = users.name(self.user);
        if self.unit.is_empty() { user } else { format!("{user} {}", self.unit) }
    }

    /// What it met.
    pub(super) fn troubles(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = TROUBLES.iter().zip(self.troubles).map(|((_, name), count)| (*name, count));
        all.filter(|row| row.1 > 0)
    }
}

/// One of the process 4000: how many are connected, operations, and wrong PINs.
#[cfg(test)]
pub(super) fn unit(user: User, unit: &str, numbers: [u64; 3]) -> Unit {
    let [connected, operations, wrong] = numbers;
    let troubles = [wrong, 0, 0, 0];
    Unit { pid: 4_000, user, unit: unit.into(), connected, operations, troubles }
}

/// So far.
pub(super) fn units(servers: &[Server]) -> Vec<Unit> {
    let of = |server: &Server| {
        let pid = server.pid;
        Vec::from_iter(server.services.iter().map(|one| Unit::of(pid, one)))
    };
    servers.iter().flat_map(of).collect()
}

/// What was done since a look before, by those that are connected or did something: most first.
pub(super) fn since(now: &[Unit], before: &[Unit]) -> Vec<Unit> {
    let mut all = Vec::from_iter(now.iter().map(|unit| unit.since(before)));
    all.retain(|unit| unit.connected + unit.operations > 0 || unit.troubles().next().is_some());
    all.sort_by_key(|unit| Reverse(unit.operations));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_units_did_is_told_since_the_look_before() {
        let (nginx, far) = (User::Local(33), User::Remote);
        let before = [unit(nginx, "nginx.service", [2, 100, 1]), unit(far, "web1", [1, 7, 0])];
        let now = [
            unit(nginx, "nginx.service", [1, 150, 3]),
            unit(far, "web1", [0, 7, 0]),
            unit(far, "web2", [1, 60, 0]),
        ];
        let done = [unit(far, "web2", [1, 60, 0]), unit(nginx, "nginx.service", [1, 50, 2])];
        assert_eq!(since(&now, &before), done);
        assert_eq!(Vec::from_iter(done[1].troubles()), [("wrong PIN", 2)]);
        let users = Users::of("root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n");
        let names = done.map(|unit| unit.name(&users));
        assert_eq!(names, ["tls web2", "www-data nginx.service"]);
        assert_eq!(unit(User::Local(7), "", [0; 3]).name(&users), "7");
    }
}
