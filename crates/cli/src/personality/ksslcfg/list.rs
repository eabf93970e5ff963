// SPDX-License-Identifier: Apache-2.0
//! `ksslcfg list`: the proxies, and what passed through them.

use super::arguments::List;
use super::entry::{self, Entry};
use super::service;
use crate::app::App;
use crate::failure::Result;
use crate::output::{Report, Table};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// HAProxy's answer is shorter.
const LONGEST: u64 = 1 << 16;

/// Handshakes since the process began.
struct Handshakes {
    full: u64,
    resumed: u64,
}

pub(super) fn run(app: &App, args: &List) -> Result<()> {
    let headings = ["NAME", "PORT", "PLAIN", "SERVER", "STATE", "FULL", "RESUMED", "KEY"];
    let mut table = Table::new(&headings, &[1, 2, 5, 6]);
    let (mut list, mut uris) = (Vec::new(), Vec::new());
    for entry in entry::all(&entry::base(&args.place)?) {
        let is_running = service::is_running(&entry);
        let counts = Some(&entry).filter(|entry| is_running && entry.server == "haproxy");
        let counts = counts.and_then(|entry| handshakes(&entry.run.join("stats")));
        let number = |of: fn(&Handshakes) -> u64| counts.as_ref().map(of);
        let (full, resumed) = (number(|it| it.full), number(|it| it.resumed));
        let shown = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |it| it.to_string());
        let state = if is_running { "running" } else { "stopped" };
        let Entry { name, server, port, proxy_port, key, .. } = &entry;
        let cells = [name.clone(), port.to_string(), proxy_port.to_string(), server.clone()];
        let more = [state.to_owned(), shown(full), shown(resumed), key.clone()];
        table.push(cells.into_iter().chain(more).collect());
        let mut value = entry.json();
        value["running"] = json!(is_running);
        value["full_handshakes"] = json!(full);
        value["resumed_sessions"] = json!(resumed);
        list.push(value);
        uris.push(key.clone());
    }
    if list.is_empty() {
        app.output.note("there is no proxy: ksslcfg create makes one");
    }
    app.output.print(&Report { text: table.text(), json: Value::Array(list), uris })
}

fn handshakes(socket: &Path) -> Option<Handshakes> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let limit = Some(Duration::from_secs(2));
    stream.set_read_timeout(limit).and_then(|()| stream.set_write_timeout(limit)).ok()?;
    stream.write_all(b"show info\n").ok()?;
    let mut text = String::new();
    stream.take(LONGEST).read_to_string(&mut text).ok()?;
    counted(&text)
}

/// HAProxy counts connections, those whose handshake failed as well, and sessions that were looked for and not found.
fn counted(text: &str) -> Option<Handshakes> {
    let value = |name: &str| -> Option<u64> {
        let mut rows = text.lines().filter_map(|line| line.split_once(": "));
        rows.find(|row| row.0 == name)?.1.trim().parse().ok()
    };
    let resumed = value("SslCacheLookups")?.saturating_sub(value("SslCacheMisses")?);
    Some(Handshakes { full: value("CumSslConns")?.saturating_sub(resumed), resumed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_haproxy_counts_is_taken_apart() {
        let text = "Name: HAProxy\nCumSslConns: 5\nSslCacheLookups: 3\nSslCacheMisses: 1\n";
        let found = counted(text).expect("all is there");
        assert_eq!((found.full, found.resumed), (3, 2));
        assert!(counted("CumSslConns: 5\n").is_none());
    }
}
