// SPDX-License-Identifier: Apache-2.0
//! Sun's figures (2008–2009): cycles for 1024 bytes on a 16-core Opteron that sent over 10 Gb/s
//! Ethernet. Core cycles of a sender alone, through a real device: the shape can be compared, the
//! height cannot.

use super::path::Path;

/// Connections, bytes of a write, cycles.
const CYCLES: [(usize, usize, f64); 13] = [
    (1, 65_536, 11_792.0),
    (8, 65_536, 2_815.0),
    (100, 65_536, 3_161.0),
    (1000, 65_536, 8_406.0),
    (6000, 65_536, 17_053.0),
    (8, 8192, 4_385.0),
    (100, 8192, 5_515.0),
    (1000, 8192, 11_388.0),
    (6000, 8192, 18_752.0),
    (8, 1024, 20_890.0),
    (100, 1024, 21_831.0),
    (1000, 1024, 31_557.0),
    (6000, 1024, 40_209.0),
];

/// Seconds for 1,000 MB by FTP between two IP instances of a machine, its network cards between them
/// where there are two stacks: on a V210, and on an X4200.
pub(super) fn seconds(path: Path) -> Option<[f64; 2]> {
    match path {
        Path::Loopback => None,
        Path::Shared => Some([6.6, 4.0]),
        Path::Mixed => Some([17.3, 9.1]),
        Path::Exclusive => Some([17.0, 9.1]),
    }
}

/// Cycles of Sun's for 1024 bytes, where the cell was one of theirs.
pub(super) fn cycles(connections: usize, write: usize) -> Option<f64> {
    let cell = CYCLES.iter().find(|cell| (cell.0, cell.1) == (connections, write));
    cell.map(|cell| cell.2)
}
