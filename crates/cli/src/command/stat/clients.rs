// SPDX-License-Identifier: Apache-2.0
//! What clients of daemons did: by user and unit, which are few, and for each connection.

use super::prometheus::{labels, metric};
use crate::output::Table;
use metaslot_counters::clients::{Client, Count, Counts, Level, Served, Server, User};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;

/// Each count, its name for programs, and what it is.
const COUNTS: [(Count, &str, &str); 9] = [
    (Count::Calls, "calls", "calls of clients"),
    (Count::Errors, "errors", "calls of clients that failed"),
    (
        Count::Operations,
        "operations",
        "calls of clients that ended an operation, or used a key otherwise",
    ),
    (Count::Received, "received_bytes", "bytes of clients' requests"),
    (Count::Sent, "sent_bytes", "bytes of answers to clients"),
    (Count::NoMemory, "no_memory", "calls for which the user had no memory left"),
    (
        Count::GivenUp,
        "given_up",
        "connections that were given up: the client stopped within a message, or sent what is none",
    ),
    (Count::Refused, "refused", "connections that were refused: the user had as many as it may"),
    (Count::WrongPins, "wrong_pins", "calls of clients with a wrong PIN"),
];

/// Each level, likewise.
const LEVELS: [(Level, &str, &str); 4] = [
    (Level::Sessions, "sessions", "sessions of clients"),
    (Level::Objects, "objects", "objects of clients' sessions"),
    (Level::Memory, "memory_bytes", "memory that all clients of the user take together"),
    (
        Level::Allowed,
        "memory_allowed_bytes",
        "memory that all clients of the user may take together",
    ),
];

/// So many connections have a row of their own.
const SHOWN: usize = 20;

/// For each daemon a table of users and their units, and one of the connections that called most.
pub(super) fn text(servers: &[Server], users: &Users) -> String {
    servers.iter().map(|server| text_of(server, users)).collect()
}

fn text_of(server: &Server, users: &Users) -> String {
    let headings = [
        "USER",
        "UNIT",
        "CONNECTED",
        "CALLS",
        "OPERATIONS",
        "ERRORS",
        "WRONG PINS",
        "MEMORY",
        "NO MEMORY",
        "REFUSED",
        "GIVEN UP",
    ];
    let mut services = Table::new(&headings, &[2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let by_unit = |one: &Served| {
        let count = |count| one.counts.of(count).to_string();
        let who = [users.name(one.user), or_dash(&one.service), one.connected.to_string()];
        let done = [Count::Calls, Count::Operations, Count::Errors, Count::WrongPins].map(count);
        let met = [Count::NoMemory, Count::Refused, Count::GivenUp].map(count);
        let memory = part(one.level(Level::Memory), one.level(Level::Allowed));
        who.into_iter().chain(done).chain([memory]).chain(met).collect()
    };
    server.services.iter().for_each(|one| services.push(by_unit(one)));
    let headings = [
        "CONNECTION",
        "USER",
        "UNIT",
        "PROGRAM",
        "PID",
        "CALLS",
        "OPERATIONS",
        "IN",
        "OUT",
        "SESSIONS",
        "OBJECTS",
    ];
    let mut connections = Table::new(&headings, &[0, 4, 5, 6, 7, 8, 9, 10]);
    let mut most = Vec::from_iter(&server.clients);
    most.sort_by_key(|client| Reverse(client.counts.of(Count::Calls)));
    most.truncate(SHOWN);
    most.iter().for_each(|client| connections.push(connection(client, users)));
    let (pid, all) = (server.pid, server.clients.len());
    let mut out = format!("\nclients of process {pid}: {all} connected\n{}", services.text());
    if all > 0 {
        out += &format!("\n{}", connections.text());
    }
    if all > SHOWN {
        out += &format!("and {} more, which --json shows\n", all - SHOWN);
    }
    out
}

fn connection(client: &Client, users: &Users) -> Vec<String> {
    let counts = [Count::Calls, Count::Operations, Count::Received, Count::Sent];
    let counts = counts.map(|count| client.counts.of(count).to_string());
    let levels = [Level::Sessions, Level::Objects].map(|level| client.level(level).to_string());
    let process = if client.process == 0 { String::new() } else { client.process.to_string() };
    let who = [client.number.to_string(), users.name(client.user), or_dash(&client.service)];
    let program = [or_dash(&client.program), or_dash(&process)];
    who.into_iter().chain(program).chain(counts).chain(levels).collect()
}

fn or_dash(text: &str) -> String {
    String::from(if text.is_empty() { "-" } else { text })
}

/// In percent; 0 also where it is not known of how much.
fn part(of: u64, all: u64) -> String {
    format!("{}%", (u128::from(of) * 100).checked_div(all.into()).unwrap_or(0))
}

/// For clients that are no user of this machine; one whose name is such is shown by its number.
const REMOTE: &str = "tls";
const OTHERS: &str = "others";

/// Names of users.
#[derive(Debug, Default)]
pub(in crate::command) struct Users(String);

impl Users {
    /// Of this machine.
    pub(in crate::command) fn read() -> Self {
        Self::of(&fs::read_to_string("/etc/passwd").unwrap_or_default())
    }

    /// Of the text of `/etc/passwd`.
    pub(in crate::command) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// A user's name, or its number.
    pub(in crate::command) fn name(&self, user: User) -> String {
        let user = match user {
            User::Local(user) => user.to_string(),
            User::Remote => return String::from(REMOTE),
            User::Others => return String::from(OTHERS),
        };
        let named = |line: &str| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| ![REMOTE, OTHERS].contains(name))?;
            (fields.nth(1)? == user).then(|| name.to_owned())
        };
        self.0.lines().find_map(named).unwrap_or(user)
    }
}

fn number(user: User) -> Option<u32> {
    match user {
        User::Local(user) => Some(user),
        User::Remote | User::Others => None,
    }
}

/// Each daemon with its services and its clients.
pub(super) fn json(servers: &[Server], users: &Users) -> Value {
    let service = |one: &Served| {
        let head = json!({"user": users.name(one.user), "uid": number(one.user), "unit": one.service, "connections": one.connections, "connected": one.connected});
        numbers(head, &one.counts, |level| one.level(level))
    };
    let client = |one: &Client| {
        let head = json!({"number": one.number, "user": users.name(one.user), "uid": number(one.user), "pid": (one.process != 0).then_some(one.process), "program": one.program, "unit": one.service, "since": one.since});
        numbers(head, &one.counts, |level| one.level(level))
    };
    let server = |one: &Server| {
        let services = Vec::from_iter(one.services.iter().map(service));
        let clients = Vec::from_iter(one.clients.iter().map(client));
        json!({"pid": one.pid, "services": services, "clients": clients})
    };
    servers.iter().map(server).collect()
}

fn numbers(head: Value, counts: &Counts, level: impl Fn(Level) -> u64) -> Value {
    let mut all = match head {
        Value::Object(all) => all,
        _ => Map::new(),
    };
    all.extend(COUNTS.map(|(count, name, _)| (name.to_owned(), counts.of(count).into())));
    all.extend(LEVELS.map(|(one, name, _)| (name.to_owned(), level(one).into())));
    all.into()
}

/// By user and unit: a connection has no series of its own. Nothing where no process serves others.
pub(super) fn prometheus(servers: &[Server], users: &Users) -> String {
    let mut out = String::new();
    if servers.is_empty() {
        return out;
    }
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Served) -> u64| {
        let mut sums = BTreeMap::<_, u64>::new();
        for one in servers.iter().flat_map(|server| &server.services) {
            let sum = sums.entry((&one.service, users.name(one.user))).or_default();
            *sum = sum.saturating_add(value(one));
        }
        let series = |((unit, user), sum): ((&String, String), _)| {
            (labels(&[("user", &*user), ("unit", &**unit)]), sum)
        };
        let all = sums.into_iter().map(series);
        metric(&mut out, name, kind, help, &all.collect::<Vec<_>>());
    };
    each("metaslot_client_connections", "gauge", "clients that are connected", &|one| {
        one.connected
    });
    let help = "clients that connected";
    each("metaslot_client_connections_total", "counter", help, &|one| one.connections);
    for (count, name, help) in COUNTS {
        let name = format!("metaslot_client_{name}_total");
        each(&name, "counter", help, &|one| one.counts.of(count));
    }
    for (level, name, help) in LEVELS {
        each(&format!("metaslot_client_{name}"), "gauge", help, &|one| one.level(level));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_has_the_name_of_what_is_none() {
        let users = Users::of("tls:x:5:5::/:\nothers:x:6:6::/:\nweb:x:7:7::/:\n");
        let all = [5, 6, 7].map(User::Local).map(|user| users.name(user));
        assert_eq!(all, ["5", "6", "web"]);
        assert_eq!([User::Remote, User::Others].map(|user| users.name(user)), ["tls", "others"]);
    }
}
