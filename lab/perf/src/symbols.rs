// SPDX-License-Identifier: Apache-2.0
//! Names of functions and lines of source: the kernel's from `/proc/kallsyms`, a file's from its own
//! tables.

use crate::spaces::{CodePlace, Placed};
use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};
use std::collections::BTreeMap;
use std::path::Path;

/// What a place is called.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Named {
    /// The function, where there is a name.
    pub function: Option<String>,
    /// It is the kernel's.
    pub kernel: bool,
    /// The file's path; empty for the kernel.
    pub file: String,
    /// The address as the file's own tables have it, where they know the function; else the offset in the
    /// file. The kernel's address as it is.
    pub address: u64,
    /// Where the function begins, by the same count.
    pub start: u64,
}

/// A line of source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Line {
    /// The path as the compiler was told.
    pub file: String,
    /// The number, from 1.
    pub line: u32,
}

/// Who looks names up, with what it has read already.
#[derive(Debug)]
pub struct Symbols {
    names: Symbolizer,
}

impl Default for Symbols {
    fn default() -> Self {
        Self { names: Symbolizer::builder().enable_inlined_fns(false).build() }
    }
}

impl Symbols {
    /// The names of all places, in their order.
    #[must_use]
    pub fn names(&self, placed: &Placed) -> Vec<Named> {
        let mut names: Vec<Named> =
            placed.places.iter().map(|place| bare(placed, *place)).collect();
        for (source, numbers, input) in batches(placed, 0..placed.places.len(), false) {
            let found = self.names.symbolize(&source, input.as_ref());
            for (number, symbol) in numbers.iter().zip(found.unwrap_or_default()) {
                if let Symbolized::Sym(symbol) = symbol {
                    name(&mut names[*number], &symbol);
                }
            }
        }
        names
    }

    /// The lines of some places of files; nothing for those without.
    #[must_use]
    pub fn lines(&self, placed: &Placed, places: &[u32]) -> BTreeMap<u32, Line> {
        let mut lines = BTreeMap::new();
        let numbers = places.iter().map(|number| *number as usize);
        for (source, numbers, input) in batches(placed, numbers, true) {
            if matches!(source, Source::Kernel(_)) {
                continue;
            }
            let found = self.names.symbolize(&source, input.as_ref());
            for (number, symbol) in numbers.iter().zip(found.unwrap_or_default()) {
                let line = symbol.as_sym().and_then(line);
                let number = u32::try_from(*number).unwrap_or(u32::MAX);
                lines.extend(line.map(|line| (number, line)));
            }
        }
        lines
    }
}

/// Addresses of one source, which are looked up together.
type Batch = (Source<'static>, Vec<usize>, Addresses);

/// Numbers that mean addresses, or offsets in a file.
struct Addresses {
    of_kernel: bool,
    numbers: Vec<u64>,
}

impl Addresses {
    fn as_ref(&self) -> Input<&[u64]> {
        if self.of_kernel {
            Input::AbsAddr(&self.numbers)
        } else {
            Input::FileOffset(&self.numbers)
        }
    }
}

fn batches(placed: &Placed, numbers: impl Iterator<Item = usize>, debug: bool) -> Vec<Batch> {
    let mut of: BTreeMap<Option<u32>, (Vec<usize>, Vec<u64>)> = BTreeMap::new();
    for number in numbers {
        let (source, address) = match placed.places[number] {
            CodePlace::Kernel(address) => (None, address),
            CodePlace::File(file, offset) => (Some(file), offset),
            CodePlace::Nowhere => continue,
        };
        let batch = of.entry(source).or_default();
        batch.0.push(number);
        batch.1.push(address);
    }
    let batch = |(source, (places, numbers)): (Option<u32>, (Vec<usize>, Vec<u64>))| {
        let of_kernel = source.is_none();
        let source = match source {
            None => Source::Kernel(kernel()),
            Some(file) => Source::Elf(elf(&placed.files[file as usize], debug)?),
        };
        Some((source, places, Addresses { of_kernel, numbers }))
    };
    of.into_iter().filter_map(batch).collect()
}

/// The running kernel by its own table alone: an image on the disk may be another one's.
fn kernel() -> Kernel {
    Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() }
}

/// A file that can be read; not one of the names in brackets.
fn elf(path: &str, debug: bool) -> Option<Elf> {
    let path = Path::new(path);
    (path.is_absolute() && path.is_file()).then(|| {
        let mut elf = Elf::new(path);
        elf.debug_syms = debug;
        elf
    })
}

fn bare(placed: &Placed, place: CodePlace) -> Named {
    match place {
        CodePlace::Kernel(address) => Named { kernel: true, address, ..Named::default() },
        CodePlace::File(file, address) => {
            Named { file: placed.files[file as usize].clone(), address, ..Named::default() }
        }
        CodePlace::Nowhere => Named::default(),
    }
}

fn name(named: &mut Named, symbol: &Sym<'_>) {
    if named.kernel && symbol.addr == 0 {
        // The table is hidden from this user: every function seems to begin at 0.
        return;
    }
    named.function = Some(symbol.name.to_string()).filter(|name| !name.is_empty());
    if !named.kernel {
        named.address = symbol.addr + symbol.offset as u64;
    }
    named.start = symbol.addr;
}

fn line(symbol: &Sym<'_>) -> Option<Line> {
    let code = symbol.code_info.as_ref()?;
    let file = code.to_path().to_string_lossy().into_owned();
    Some(Line { file, line: code.line? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spaces::Stack;
    use std::fs;

    /// The file offset of this test's own code: where it is mapped, by `/proc/self/maps`.
    fn placed() -> Placed {
        let address = fs::read_to_string("/proc/kallsyms").unwrap();
        let known = address.lines().find(|line| line.ends_with(" schedule")).unwrap_or_default();
        let kernel = u64::from_str_radix(known.split(' ').next().unwrap_or("0"), 16).unwrap_or(0);
        let exe = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let here = Symbols::default as *const () as u64;
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let offset = maps.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let (start, end) = fields.next()?.split_once('-')?;
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let (start, end) = (number(start)?, number(end)?);
            let offset = number(fields.nth(1)?)?;
            (start..end).contains(&here).then_some(here - start + offset)
        });
        Placed {
            places: vec![
                CodePlace::Kernel(kernel),
                CodePlace::File(0, offset.unwrap()),
                CodePlace::File(1, 0x10),
                CodePlace::Nowhere,
            ],
            files: vec![exe, "/no/such/file".to_owned()],
            stacks: vec![Stack { places: vec![0, 1], count: 1 }],
            ..Placed::default()
        }
    }

    #[test]
    fn a_function_of_this_program_is_named_with_its_line() {
        let (symbols, placed) = (Symbols::default(), placed());
        let names = symbols.names(&placed);
        assert!(names[1].function.as_ref().unwrap().contains("Symbols"), "{:?}", names[1]);
        let lines = symbols.lines(&placed, &[1, 2, 3]);
        assert!(lines[&1].file.ends_with("symbols.rs"), "{lines:?}");
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn the_kernels_functions_are_named_where_this_user_may_see_them() {
        let (symbols, placed) = (Symbols::default(), placed());
        let CodePlace::Kernel(address) = placed.places[0] else {
            panic!("no address of the kernel")
        };
        let named = &symbols.names(&placed)[0];
        assert!(named.kernel);
        if address > 0 {
            assert_eq!(named.function.as_deref(), Some("schedule"));
        }
    }

    #[test]
    fn what_has_no_name_keeps_file_and_offset() {
        let (symbols, placed) = (Symbols::default(), placed());
        let names = symbols.names(&placed);
        let file = "/no/such/file".to_owned();
        assert_eq!(names[2], Named { file, address: 0x10, ..Named::default() });
        assert_eq!(names[3], Named::default());
    }
}
