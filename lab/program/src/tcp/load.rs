// SPDX-License-Identifier: Apache-2.0
//! What is sent: how many connections, in writes of which size, through which buffers, over which path.

use super::path::Path;
use crate::experiment::level;
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};

/// More connections than one process may have descriptors for are refused with a better reason later.
const CONNECTIONS: usize = 60_000;
/// The largest write and the largest buffer.
const MAX_BUFFER: usize = 1 << 28;

/// One cell's load.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Load {
    pub(super) connections: usize,
    /// Bytes of a write.
    pub(super) write: usize,
    /// Bytes that each socket is asked to buffer; `None`: what the system gives, which grows by itself.
    pub(super) buffer: Option<usize>,
    /// TCP's congestion control, of both ends.
    pub(super) congestion: Option<String>,
    pub(super) path: Path,
}

impl Load {
    /// The load of a cell: levels that it does not have are taken from this one.
    pub(super) fn of_cell(&self, cell: &str) -> Result<Self> {
        let mut load = self.clone();
        if let Some(text) = level(cell, "connections") {
            load.connections = connections(text).map_err(Failure::new)?;
        }
        if let Some(text) = level(cell, "write") {
            load.write = size(text).map_err(Failure::new)?;
        }
        if let Some(text) = level(cell, "buffer") {
            load.buffer = buffer(text).map_err(Failure::new)?.0;
        }
        if let Some(text) = level(cell, "path") {
            load.path = Path::named(text)?;
        }
        Ok(load)
    }
}

/// A socket buffer on the command line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Buffer(pub(super) Option<usize>);

/// A number of connections.
pub(super) fn connections(text: &str) -> std::result::Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=CONNECTIONS).contains(count));
    count.ok_or_else(|| format!("connections are between 1 and {CONNECTIONS}"))
}

/// A number of bytes: `65483`, `64K`, `1M`.
pub(super) fn size(text: &str) -> std::result::Result<usize, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1024),
        None => text.strip_suffix(['M', 'm']).map_or((text, 1), |digits| (digits, 1024 * 1024)),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|count| count.checked_mul(unit));
    bytes
        .filter(|bytes| (1..=MAX_BUFFER).contains(bytes))
        .ok_or_else(|| format!("{text:?} is no size: 8K, 1M, or bytes up to 256M"))
}

/// A buffer's size, or `default`.
pub(super) fn buffer(text: &str) -> std::result::Result<Buffer, String> {
    if text == "default" { Ok(Buffer(None)) } else { size(text).map(|bytes| Buffer(Some(bytes))) }
}

/// A size as the tables have it: `64K`, or bytes where no unit fits.
pub(super) fn short(bytes: usize) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1024 * 1024) => format!("{}M", bytes / (1024 * 1024)),
        _ if bytes.is_multiple_of(1024) => format!("{}K", bytes / 1024),
        _ => bytes.to_string(),
    }
}

/// A buffer as the tables have it.
pub(super) fn short_buffer(buffer: Buffer) -> String {
    buffer.0.map_or_else(|| "default".to_owned(), short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_shown() {
        for bytes in [1, 708, 1024, 65_483, 65_536, 1 << 20, 3 << 20] {
            assert_eq!(size(&short(bytes)), Ok(bytes));
        }
        for text in ["", "0", "K", "-1", "64KB", "1G", "257M", "99999999999999999999K"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(buffer("default"), Ok(Buffer(None)));
        assert_eq!(buffer("256K"), Ok(Buffer(Some(262_144))));
        assert!(connections("0").is_err() && connections("60001").is_err());
    }

    #[test]
    fn a_cell_says_only_what_is_varied() {
        let all = Load {
            connections: 1,
            write: 1,
            buffer: Some(7),
            congestion: Some("cubic".to_owned()),
            path: Path::Loopback,
        };
        let load = all.of_cell("connections=100 write=8K").unwrap();
        assert_eq!((load.connections, load.write, load.buffer), (100, 8192, Some(7)));
        assert_eq!(load.congestion, all.congestion);
        assert_eq!(all.of_cell("path=exclusive").unwrap().path, Path::Exclusive);
        assert!(all.of_cell("write=many").is_err());
    }
}
