// SPDX-License-Identifier: Apache-2.0
//! The first touch of memory, which a virtual machine knows twice: the guest supplies a page, and for a
//! page that it never had the host must supply one as well. The second cannot be repeated, nor brought
//! about: so it is looked for once, before everything else, by touching the same area twice.

use super::area::Area;
use super::words::PageSize;
use crate::Result;
use crate::clock::thread_cpu;
use crate::table::nanoseconds;
use std::collections::BTreeMap;

/// As much as is touched.
const LENGTH: usize = 128 << 20;
/// So many times dearer than the second touch: another process supplied pages too.
const DEARER: f64 = 2.0;

/// The manifest's settings about it.
pub(super) fn settings() -> Result<BTreeMap<String, String>> {
    let mut area = Area::new(LENGTH, PageSize::Small)?;
    let first = touch(&mut area);
    area.give_back()?;
    let second = touch(&mut area);
    let seen = if first > DEARER * second {
        "the host supplied pages the first time"
    } else {
        "no sign that the host had to supply pages"
    };
    let text = format!(
        "{} for a page of 4K in new memory, {} again: {seen}",
        nanoseconds(first),
        nanoseconds(second)
    );
    Ok(BTreeMap::from([("first touch".to_owned(), text)]))
}

/// CPU time of a page's first byte, in nanoseconds.
fn touch(area: &mut Area) -> f64 {
    let began = thread_cpu();
    let pages = area.bytes_mut().chunks_mut(4096);
    let count = pages.map(|page| page[0] = 1).count();
    (thread_cpu() - began).as_secs_f64() * 1e9 / count as f64
}
