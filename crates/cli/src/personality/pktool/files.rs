// SPDX-License-Identifier: Apache-2.0
//! The files that `pktool` reads and writes.

use crate::command::target::Target;
use crate::failure::{Failure, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No certificate, request or file of options is longer.
const LONGEST: u64 = 1 << 20;

/// What stands in a file that anybody may have written.
pub(super) fn contents(file: &Path) -> Result<Vec<u8>> {
    let cannot = |error| Failure::io(format!("cannot read {}", file.display()), &error);
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(cannot)?;
    opened.take(LONGEST + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Failure::failed(format!("{} is longer than {LONGEST} bytes", file.display())));
    }
    Ok(bytes)
}

/// A file that is not there yet, whole or not at all.
pub(super) fn write_new(file: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let mut target = Target::create(file, mode)?;
    target.write(bytes)?;
    target.finish()
}
