// SPDX-License-Identifier: Apache-2.0
//! `OSSL_PARAM`: values by name, read from libcrypto's arrays, answered into them, and sent in arrays of ours (OSSL_PARAM(3)).

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::slice;

/// One entry.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Param {
    key: *const c_char,
    kind: u32,
    data: *mut c_void,
    size: usize,
    returned: usize,
}

// SAFETY: what the tables of this crate hold has no data, and nothing changes it.
unsafe impl Sync for Param {}

/// What a value is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub(crate) enum Kind {
    Integer = 1,
    Unsigned = 2,
    Utf8 = 4,
    Octets = 5,
    Utf8Pointer = 6,
    OctetPointer = 7,
}

/// "There is no answer yet."
const UNANSWERED: usize = usize::MAX;

impl Param {
    /// The last entry.
    pub(crate) const END: Self =
        Self { key: ptr::null(), kind: 0, data: ptr::null_mut(), size: 0, returned: 0 };

    /// A name and what its values are.
    pub(crate) const fn named(name: &'static CStr, kind: Kind) -> Self {
        Self { key: name.as_ptr(), kind: kind as u32, ..Self::END }
    }

    fn name(&self) -> Option<&[u8]> {
        // SAFETY: every entry but the last has a name, which ends with a zero.
        (!self.key.is_null()).then(|| unsafe { CStr::from_ptr(self.key) }.to_bytes())
    }

    /// The bytes at `data`; none where it is NULL.
    fn bytes(&self) -> &[u8] {
        self.bytes_of(0)
    }

    /// The same, `whole` of them where a length of -1 means all that there are.
    fn bytes_of(&self, whole: usize) -> &[u8] {
        let size = if self.size == usize::MAX { whole } else { self.size };
        if self.data.is_null() || size == 0 || isize::try_from(size).is_err() {
            return &[];
        }
        // SAFETY: `data` has `size` bytes, which the one who made the array keeps while it is passed.
        unsafe { slice::from_raw_parts(self.data.cast(), size) }
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        if self.data.is_null() {
            return None;
        }
        // SAFETY: as above; where an answer is asked for, they may be written.
        Some(unsafe { slice::from_raw_parts_mut(self.data.cast(), self.size) })
    }

    /// Makes the pointer at `data` point to `bytes`.
    fn point(&mut self, bytes: &[u8]) -> bool {
        self.returned = bytes.len();
        let place = self.data.cast::<*const u8>();
        // SAFETY: NULL, or a place for a pointer, as the kind says.
        if let Some(place) = unsafe { place.as_mut() } {
            *place = bytes.as_ptr();
        }
        true
    }

    /// The string that a pointer at `data` points to.
    fn pointed(&self) -> Option<&CStr> {
        let place = self.data.cast::<*const c_char>();
        // SAFETY: the kind says that there is a pointer.
        let text = unsafe { place.as_ref() }.copied().filter(|text| !text.is_null())?;
        // SAFETY: to a string that ends with a zero and lives as long as the one who passes it.
        Some(unsafe { CStr::from_ptr(text) })
    }
}

/// An array that the last entry ends, or NULL.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Params(*mut Param);

impl Params {
    fn entry(&self, number: usize) -> Option<&Param> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: an entry of the array: none before it was the last.
        let entry = unsafe { self.0.wrapping_add(number).as_ref() }?;
        (!entry.key.is_null()).then_some(entry)
    }

    fn entry_mut(&mut self, number: usize) -> Option<&mut Param> {
        self.entry(number)?;
        // SAFETY: the same entry; an array with room for answers is one thread's.
        unsafe { self.0.wrapping_add(number).as_mut() }
    }

    fn entries(&self) -> impl Iterator<Item = &Param> {
        (0..).map_while(|number| self.entry(number))
    }

    /// The value of this name.
    pub(crate) fn find(&self, name: &CStr) -> Option<Given<'_>> {
        self.entries().find(|entry| entry.name() == Some(name.to_bytes())).map(Given)
    }

    /// All names and values, for what is asked often.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&[u8], Given<'_>)> {
        self.entries().map(|entry| (entry.name().unwrap_or_default(), Given(entry)))
    }

    /// All values of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a CStr) -> impl Iterator<Item = Given<'a>> {
        self.entries().filter(|entry| entry.name() == Some(name.to_bytes())).map(Given)
    }

    /// Answers every name that `answer` knows, and whether a text is wanted; whether all answers had room.
    pub(crate) fn answer<'a>(
        &mut self,
        answer: impl Fn(&[u8], bool) -> Option<Answer<'a>>,
    ) -> bool {
        let mut fits = true;
        for number in 0.. {
            let Some(entry) = self.entry_mut(number) else { break };
            let is_text = entry.kind == Kind::Utf8 as u32 || entry.kind == Kind::Utf8Pointer as u32;
            if let Some(value) = entry.name().and_then(|name| answer(name, is_text)) {
                fits &= value.write(entry);
            }
        }
        fits
    }
}

/// A value that was passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a>(&'a Param);

impl<'a> Given<'a> {
    /// A text.
    pub(crate) fn text(self) -> Option<&'a str> {
        if self.0.kind == Kind::Utf8 as u32 {
            let bytes = self.0.bytes();
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            return str::from_utf8(text).ok();
        }
        (self.0.kind == Kind::Utf8Pointer as u32).then(|| self.0.pointed()?.to_str().ok())?
    }

    /// How many bytes it has, or has room for.
    pub(crate) const fn size(self) -> usize {
        self.0.size
    }

    /// Bytes.
    pub(crate) fn octets(self) -> Option<&'a [u8]> {
        (self.0.kind == Kind::Octets as u32).then(|| self.0.bytes())
    }

    /// Bytes, as many as `whole` where a length of -1 says so.
    pub(crate) fn octets_of(self, whole: usize) -> Option<&'a [u8]> {
        (self.0.kind == Kind::Octets as u32).then(|| self.0.bytes_of(whole))
    }

    /// A number that is not too large.
    pub(crate) fn number(self) -> Option<i64> {
        let bytes = self.0.bytes();
        let signed = self.0.kind == Kind::Integer as u32;
        if !signed && self.0.kind != Kind::Unsigned as u32 || bytes.len() > 8 {
            return None;
        }
        let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut whole = [if negative { 0xff } else { 0 }; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        Some(i64::from_le_bytes(whole))
    }

    /// A large number, big-endian and without zeros before it.
    pub(crate) fn large(self) -> Option<Vec<u8>> {
        self.digits(0)
    }

    /// The same of so many bytes at least, zeros first.
    pub(crate) fn digits(self, width: usize) -> Option<Vec<u8>> {
        (self.0.kind == Kind::Unsigned as u32).then(|| {
            let digits = self.0.bytes();
            let used = digits.len() - digits.iter().rev().take_while(|digit| **digit == 0).count();
            let mut number = vec![0; used.max(width)];
            for (place, digit) in number.iter_mut().rev().zip(&digits[..used]) {
                *place = *digit;
            }
            number
        })
    }
}

/// A value that is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer<'a> {
    Number(i64),
    Constant(&'static CStr),
    Text(String),
    Octets(&'a [u8]),
    Own(Vec<u8>),
    /// Big-endian.
    Large(&'a [u8]),
}

impl Answer<'_> {
    /// A length.
    pub(crate) fn size(size: usize) -> Self {
        Self::Number(size.try_into().unwrap_or_default())
    }

    /// Whether there was room, or only the length was asked for.
    fn write(&self, param: &mut Param) -> bool {
        let pointed = match self {
            Self::Constant(text) => (Kind::Utf8Pointer, text.to_bytes()),
            // What the context or the key keeps.
            Self::Octets(bytes) => (Kind::OctetPointer, *bytes),
            _ => (Kind::Utf8, &[][..]),
        };
        if param.kind == Kind::Utf8Pointer as u32 || param.kind == Kind::OctetPointer as u32 {
            return param.kind == pointed.0 as u32 && param.point(pointed.1);
        }
        match self {
            Self::Number(number) => little(param, &number.to_le_bytes(), *number < 0),
            Self::Large(digits) => {
                let mut reversed: Vec<u8> = digits.iter().rev().copied().collect();
                let fits = little(param, &reversed, false);
                // It may be a secret.
                reversed.fill(0);
                std::hint::black_box(&reversed);
                fits
            }
            Self::Constant(text) => plain(param, text.to_bytes(), true),
            Self::Text(text) => plain(param, text.as_bytes(), true),
            Self::Octets(bytes) => plain(param, bytes, false),
            Self::Own(bytes) => plain(param, bytes, false),
        }
    }
}

/// A number of any length, its lowest byte first.
fn little(param: &mut Param, bytes: &[u8], negative: bool) -> bool {
    let signed = param.kind == Kind::Integer as u32;
    if !signed && (negative || param.kind != Kind::Unsigned as u32) {
        return false;
    }
    // Most are lengths, in the program's own form.
    if let Some(room) = param.room().filter(|room| room.len() == bytes.len())
        && bytes.last().is_some_and(|top| *top < 0x80)
    {
        room.copy_from_slice(bytes);
        param.returned = param.size;
        return true;
    }
    // What a longer number begins with.
    let filler = if negative { 0xff } else { 0 };
    let used = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == filler).count();
    let top = used.checked_sub(1).map_or(filler, |last| bytes[last]);
    let needed = used + usize::from(signed && (top ^ filler) & 0x80 != 0);
    let Some(room) = param.room() else {
        param.returned = needed.max(1);
        return true;
    };
    if room.len() < needed {
        param.returned = needed;
        return false;
    }
    room.fill(filler);
    room[..used].copy_from_slice(&bytes[..used]);
    param.returned = param.size;
    true
}

fn plain(param: &mut Param, bytes: &[u8], ends: bool) -> bool {
    let kind = if ends { Kind::Utf8 } else { Kind::Octets };
    if param.kind != kind as u32 {
        return false;
    }
    param.returned = bytes.len();
    let Some(room) = param.room() else { return true };
    let Some(place) = room.get_mut(..bytes.len()) else { return false };
    place.copy_from_slice(bytes);
    if let Some(end) = room.get_mut(bytes.len()).filter(|_| ends) {
        *end = 0;
    }
    true
}

/// An array of ours: names with their values, which it keeps.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    entries: Vec<(&'static CStr, Kind, Vec<u64>, usize)>,
}

impl Builder {
    pub(crate) fn number(self, name: &'static CStr, number: i32) -> Self {
        self.with(name, Kind::Integer, &number.to_le_bytes())
    }

    pub(crate) fn text(self, name: &'static CStr, text: &str) -> Self {
        self.with(name, Kind::Utf8, text.as_bytes())
    }

    pub(crate) fn octets(self, name: &'static CStr, bytes: &[u8]) -> Self {
        self.with(name, Kind::Octets, bytes)
    }

    /// A big-endian number.
    pub(crate) fn large(self, name: &'static CStr, digits: &[u8]) -> Self {
        self.of(name, Kind::Unsigned, digits.iter().rev().copied())
    }

    fn with(self, name: &'static CStr, kind: Kind, bytes: &[u8]) -> Self {
        self.of(name, kind, bytes.iter().copied())
    }

    fn of(
        mut self,
        name: &'static CStr,
        kind: Kind,
        bytes: impl ExactSizeIterator<Item = u8>,
    ) -> Self {
        // Numbers are read as words, and a text ends with a zero.
        let length = bytes.len();
        let mut words = vec![0_u64; length / 8 + 1];
        for (place, byte) in bytes.enumerate() {
            let mut word = words[place / 8].to_ne_bytes();
            word[place % 8] = byte;
            words[place / 8] = u64::from_ne_bytes(word);
        }
        self.entries.push((name, kind, words, length));
        self
    }

    /// Does something with the array.
    pub(crate) fn build<T>(&mut self, with: impl FnOnce(&[Param]) -> T) -> T {
        let entries = self.entries.iter_mut().map(|(name, kind, words, size)| Param {
            data: words.as_mut_ptr().cast(),
            size: *size,
            returned: UNANSWERED,
            ..Param::named(name, *kind)
        });
        let params: Vec<Param> = entries.chain([Param::END]).collect();
        with(&params)
    }
}

impl Drop for Builder {
    /// What is sent may be a key's.
    fn drop(&mut self) {
        for (.., words, _) in &mut self.entries {
            words.fill(0);
            std::hint::black_box(&words);
        }
    }
}

/// One text that is asked for by a function of libcrypto.
pub(super) fn asked(name: &CStr, ask: impl FnOnce(*mut Param)) -> Option<String> {
    let mut text: *const c_char = ptr::null();
    let entry = Param {
        key: name.as_ptr(),
        kind: Kind::Utf8Pointer as u32,
        data: (&raw mut text).cast(),
        size: size_of::<*const c_char>(),
        returned: UNANSWERED,
    };
    let mut params = [entry, Param::END];
    ask(params.as_mut_ptr());
    Some(params[0].pointed()?.to_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_read() {
        let mut sent = Builder::default()
            .number(c"type", -2)
            .text(c"data-type", "RSA")
            .octets(c"data", &[0, 7])
            .large(c"n", &[1, 2, 0, 3]);
        sent.build(|params| {
            let params = Params(params.as_ptr().cast_mut());
            assert_eq!(params.find(c"type").and_then(Given::number), Some(-2));
            assert_eq!(params.find(c"data-type").and_then(Given::text), Some("RSA"));
            assert_eq!(params.find(c"data").and_then(Given::octets), Some(&[0, 7][..]));
            assert_eq!(params.find(c"n").and_then(Given::large), Some(vec![1, 2, 0, 3]));
            assert!(params.find(c"e").is_none());
        });
        assert!(Params(ptr::null_mut()).find(c"n").is_none());
    }

    #[test]
    fn answers_keep_to_their_room() {
        let mut room = [0xff_u8; 4];
        let mut answered = |kind, size, answer: Answer<'_>| {
            let mut array = [
                Param {
                    data: room.as_mut_ptr().cast(),
                    size,
                    returned: usize::MAX,
                    ..Param::named(c"x", kind)
                },
                Param::END,
            ];
            let fits = Params(array.as_mut_ptr()).answer(|_, _| Some(answer.clone()));
            (fits, array[0].returned, room)
        };
        assert_eq!(answered(Kind::Integer, 4, Answer::Number(258)), (true, 4, [2, 1, 0, 0]));
        assert_eq!(
            answered(Kind::Integer, 4, Answer::Number(-2)),
            (true, 4, [0xfe, 0xff, 0xff, 0xff])
        );
        assert_eq!(answered(Kind::Integer, 4, Answer::Number(258)), (true, 4, [2, 1, 0, 0]));
        assert_eq!(answered(Kind::Integer, 1, Answer::Number(200)), (false, 2, [2, 1, 0, 0]));
        assert!(!answered(Kind::Unsigned, 4, Answer::Number(-2)).0);
        assert_eq!(answered(Kind::Unsigned, 1, Answer::Number(258)), (false, 2, [2, 1, 0, 0]));
        assert_eq!(answered(Kind::Utf8, 4, Answer::Constant(c"ab")), (true, 2, *b"ab\0\0"));
        assert_eq!(answered(Kind::Octets, 1, Answer::Octets(b"xy")), (false, 2, *b"ab\0\0"));
        assert_eq!(
            answered(Kind::Utf8Pointer, 0, Answer::Number(1)),
            (false, usize::MAX, *b"ab\0\0")
        );
        assert_eq!(answered(Kind::Unsigned, 4, Answer::Large(&[9, 8])), (true, 4, [8, 9, 0, 0]));
    }
}
