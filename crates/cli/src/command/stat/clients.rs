// SPDX-License-Identifier: Apache-2.0
//! What clients of daemons did: a row for each connection, and for programs that collect one for each user's service, which are few.

use super::prometheus::{labels, metric};
use crate::output::Table;
use metaslot_counters::clients::{Client, Count, Counts, Level, Served, Server, User};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Each count, its name for programs, and what it is.
const COUNTS: [(Count, &str, &str); 9] = [
    (Count::Calls, "calls", "calls of clients"),
    (Count::Errors, "errors", "those that failed"),
    (Count::Operations, "operations", "those that ended an operation, or used a key otherwise"),
    (Count::Received, "received_bytes", "bytes of requests"),
    (Count::Sent, "sent_bytes", "bytes of answers"),
    (Count::NoMemory, "no_memory", "calls for which the user had no memory left"),
    (Count::GivenUp, "given_up", "connections that stopped in a message, or sent none"),
    (Count::Refused, "refused", "connections beyond those that the user may have"),
    (Count::WrongPins, "wrong_pins", "tries of a PIN that was not right"),
];

/// Each level, likewise.
const LEVELS: [(Level, &str, &str); 4] = [
    (Level::Sessions, "sessions", "sessions that are open"),
    (Level::Objects, "objects", "objects of sessions"),
    (Level::Memory, "memory_bytes", "memory that all clients of the user take"),
    (Level::Allowed, "memory_allowed_bytes", "memory that they may take"),
];

/// A table for each daemon; the limits are those that the client met.
pub(super) fn text(servers: &[Server]) -> String {
    let headings = [
        "CLIENT",
        "USER",
        "PROGRAM",
        "PID",
        "UNIT",
        "CALLS",
        "OPERATIONS",
        "ERRORS",
        "IN",
        "OUT",
        "SESSIONS",
        "OBJECTS",
        "MEMORY%",
        "NO MEMORY",
    ];
    let mut out = String::new();
    for server in servers {
        let mut table = Table::new(&headings, &[0, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        server.clients.iter().for_each(|client| table.push(row(client)));
        let count = |count| server.services.iter().map(|one| one.counts.of(count)).sum::<u64>();
        let (refused, given_up) = (count(Count::Refused), count(Count::GivenUp));
        out += &format!(
            "\nclients of process {}: {} connected, {refused} refused, {given_up} given up\n{}",
            server.pid,
            server.clients.len(),
            table.text()
        );
    }
    out
}

fn row(client: &Client) -> Vec<String> {
    let counts = [Count::Calls, Count::Operations, Count::Errors, Count::Received, Count::Sent];
    let counts = counts.map(|count| client.counts.of(count).to_string());
    let [sessions, objects, memory, allowed] = LEVELS.map(|(level, ..)| client.level(level));
    let part = (u128::from(memory) * 100).checked_div(u128::from(allowed)).unwrap_or(0);
    let who = [client.number.to_string(), user(client.user), client.program.clone()];
    let place = [client.process.to_string(), client.service.clone()];
    let levels = [sessions.to_string(), objects.to_string(), part.to_string()];
    let met = client.counts.of(Count::NoMemory).to_string();
    who.into_iter().chain(place).chain(counts).chain(levels).chain([met]).collect()
}

fn user(user: User) -> String {
    match user {
        User::Local(user) => user.to_string(),
        User::Remote => String::from("tls"),
        User::Others => String::from("others"),
    }
}

/// Each daemon with its services and its clients.
pub(super) fn json(servers: &[Server]) -> Value {
    let service = |one: &Served| {
        let head = json!({"user": user(one.user), "unit": one.service, "connections": one.connections, "connected": one.connected});
        numbers(head, &one.counts, |level| one.level(level))
    };
    let client = |one: &Client| {
        let head = json!({"number": one.number, "user": user(one.user), "pid": one.process, "program": one.program, "unit": one.service, "since": one.since});
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
pub(super) fn prometheus(servers: &[Server]) -> String {
    let mut out = String::new();
    if servers.is_empty() {
        return out;
    }
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Served) -> u64| {
        let mut sums = BTreeMap::<_, u64>::new();
        for one in servers.iter().flat_map(|server| &server.services) {
            let sum = sums.entry((&one.service, one.user)).or_default();
            *sum = sum.saturating_add(value(one));
        }
        let series = |((unit, id), sum): ((&String, _), _)| {
            (labels(&[("user", &*user(id)), ("unit", &**unit)]), sum)
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
