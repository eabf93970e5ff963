// SPDX-License-Identifier: Apache-2.0
//! Whether a process itself listens on a port. A connection that succeeds says only that somebody does: a server that could not have
//! its port would be measured as the one that has it.

use std::fs;
use std::path::Path;

/// `TCP_LISTEN`, as /proc/net/tcp writes it (proc(5)).
const LISTENS: &str = "0A";

/// Whether one of the process's own descriptors listens on the port, of IPv4 or of IPv6.
pub(super) fn listens(process: u32, port: u16) -> bool {
    let process = Path::new("/proc").join(process.to_string());
    let tables = ["net/tcp", "net/tcp6"].map(|name| fs::read_to_string(process.join(name)));
    let sockets: Vec<String> =
        tables.iter().flatten().flat_map(|table| listeners(table, port)).collect();
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    let mut opened = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    opened.any(|opened| sockets.iter().any(|socket| opened == Path::new(socket)))
}

/// The sockets of a table that listen on the port, as links in /proc/PID/fd name them.
fn listeners(table: &str, port: u16) -> Vec<String> {
    let port = format!(":{port:04X}");
    let listener = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, .., inode] = fields.get(..10)? else { return None };
        (local.ends_with(&port) && *state == LISTENS).then(|| format!("socket:[{inode}]"))
    };
    table.lines().filter_map(listener).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    #[test]
    fn the_port_of_another_process_is_not_taken_for_its_own() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        assert!(listens(std::process::id(), port));
        assert!(!listens(other.id(), port));
        drop(other.stdin.take());
        other.wait().unwrap();
        assert!(!listens(other.id(), port));
        drop(listener);
        assert!(!listens(std::process::id(), port));
    }
}
