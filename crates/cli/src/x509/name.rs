// SPDX-License-Identifier: Apache-2.0
//! Distinguished names, as RFC 4514 writes them: the last part of the name stands first.

use crate::encoding::der::{
    self, Element, IA5_STRING, NUMERIC_STRING, OBJECT_IDENTIFIER, PRINTABLE_STRING, SEQUENCE, SET,
    TELETEX_STRING, UTF8_STRING,
};
use crate::encoding::printable;
use crate::failure::{Failure, Result};

/// A type of attribute: its names, the first of which is shown, its identifier, its kind of string, and how many characters it may have
/// (RFC 5280, appendix A.1; X.520 has STREET, RFC 4524 UID, RFC 1035 DC).
struct Type(&'static [&'static str], &'static [u32], u8, usize);

const TYPES: &[Type] = &[
    Type(&["CN"], &[2, 5, 4, 3], UTF8_STRING, 64),
    Type(&["SN"], &[2, 5, 4, 4], UTF8_STRING, 32_768),
    Type(&["serialNumber"], &[2, 5, 4, 5], PRINTABLE_STRING, 64),
    Type(&["C"], &[2, 5, 4, 6], PRINTABLE_STRING, 2),
    Type(&["L"], &[2, 5, 4, 7], UTF8_STRING, 128),
    Type(&["ST", "SP", "S"], &[2, 5, 4, 8], UTF8_STRING, 128),
    Type(&["STREET"], &[2, 5, 4, 9], UTF8_STRING, 128),
    Type(&["O"], &[2, 5, 4, 10], UTF8_STRING, 64),
    Type(&["OU"], &[2, 5, 4, 11], UTF8_STRING, 64),
    Type(&["T", "title"], &[2, 5, 4, 12], UTF8_STRING, 64),
    Type(&["GN", "givenName"], &[2, 5, 4, 42], UTF8_STRING, 32_768),
    Type(&["UID"], &[0, 9, 2342, 19_200_300, 100, 1, 1], UTF8_STRING, 256),
    Type(&["DC"], &[0, 9, 2342, 19_200_300, 100, 1, 25], IA5_STRING, 63),
    Type(&["E", "MAIL", "emailAddress"], &[1, 2, 840, 113_549, 1, 9, 1], IA5_STRING, 255),
];

/// The DER of a name such as `CN=site, O=Acme, C=DE`.
pub(crate) fn name(text: &str) -> Result<Vec<u8>> {
    let parts = split(text).ok_or_else(|| wrong(text, "a quote or a backslash is left open"))?;
    let mut parts: Vec<Vec<u8>> =
        parts.iter().map(|part| attribute(text, part)).collect::<Result<_>>()?;
    parts.reverse();
    Ok(der::element(SEQUENCE, &parts.concat()))
}

fn wrong(text: &str, why: &str) -> Failure {
    Failure::usage(format!("'{text}' is no distinguished name: {why}"))
        .hint("for example 'CN=site, O=Acme, C=DE'")
}

/// A set of one attribute.
fn attribute(text: &str, (kind, value): &(String, String)) -> Result<Vec<u8>> {
    let known = |row: &&Type| row.0.iter().any(|name| name.eq_ignore_ascii_case(kind));
    let row = TYPES.iter().find(known);
    let row = row.ok_or_else(|| wrong(text, &format!("'{kind}' is unknown")))?;
    let Type(_, arcs, tag, longest) = row;
    let fits = match *tag {
        PRINTABLE_STRING => {
            value.chars().all(|c| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c))
        }
        IA5_STRING => value.is_ascii(),
        _ => true,
    };
    if value.is_empty() || !fits || (kind.eq_ignore_ascii_case("C") && value.len() != 2) {
        return Err(wrong(text, &format!("{kind} cannot be '{value}'")));
    }
    if value.chars().count() > *longest {
        let message = format!("{kind} has at most {longest} characters, and '{value}' has more");
        return Err(Failure::usage(message)
            .hint("give a shorter name; a host's stands in the alternative names: --subject CN=site --dns HOST"));
    }
    let pair = der::sequence(&[&der::identifier(arcs), &der::element(*tag, value.as_bytes())]);
    Ok(der::element(SET, &pair))
}

/// Types and values; `None` where a quote or a backslash is left open.
fn split(text: &str) -> Option<Vec<(String, String)>> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let last = parts.last_mut()?;
        match character {
            '\\' => last.push(characters.next()?),
            '"' => quoted = !quoted,
            ',' if !quoted => parts.push(String::new()),
            other => last.push(other),
        }
    }
    let pair = |part: &String| {
        let (kind, value) = part.split_once('=').unwrap_or((part, ""));
        (kind.trim().to_owned(), value.trim().to_owned())
    };
    (!quoted).then(|| parts.iter().map(pair).collect())
}

/// Whether another one's name can be certified: all of it is text that shows as what it is.
pub(crate) fn is_name(mut name: &[u8]) -> bool {
    let Some(mut sets) = der::take(&mut name, SEQUENCE) else { return false };
    while !sets.is_empty() {
        if attributes(&mut sets).is_none() {
            return false;
        }
    }
    name.is_empty()
}

/// Takes a set of attributes off.
fn attributes(sets: &mut &[u8]) -> Option<()> {
    let mut set = der::take(sets, SET).filter(|set| !set.is_empty())?;
    while !set.is_empty() {
        let mut pair = der::take(&mut set, SEQUENCE)?;
        let kind = der::next(&mut pair).filter(|it| it.tag == OBJECT_IDENTIFIER)?;
        let value = der::next(&mut pair)?;
        (is_text(value) && fits(kind, value) && pair.is_empty()).then_some(())?;
    }
    Some(())
}

/// Whether a value is not too long for its type. A character of more than one byte begins with one of these alone.
fn fits(kind: Element<'_>, value: Element<'_>) -> bool {
    let is_first = |byte: &&u8| value.tag != UTF8_STRING || **byte & 0xc0 != 0x80;
    let length = value.content.iter().filter(is_first).count();
    let row = TYPES.iter().find(|row| der::identifier(row.1) == kind.whole);
    row.is_none_or(|row| length <= row.3)
}

/// One-byte characters or UTF-8. A control character ends a name early for some programs.
fn is_text(value: Element<'_>) -> bool {
    let is_known = match value.tag {
        UTF8_STRING => str::from_utf8(value.content).is_ok(),
        NUMERIC_STRING | PRINTABLE_STRING | TELETEX_STRING | IA5_STRING => true,
        _ => false,
    };
    is_known && !value.content.iter().any(u8::is_ascii_control)
}

/// A name in text. Another one wrote it, so what would be a command to a terminal is escaped.
pub(crate) fn shown(name: &[u8]) -> Option<String> {
    let mut sets = der::take(&mut &*name, SEQUENCE)?;
    let mut parts = Vec::new();
    while !sets.is_empty() {
        let mut pairs = der::take(&mut sets, SET)?;
        while !pairs.is_empty() {
            let mut pair = der::take(&mut pairs, SEQUENCE)?;
            let identifier = der::next(&mut pair).filter(|it| it.tag == OBJECT_IDENTIFIER)?;
            let value = String::from_utf8_lossy(der::next(&mut pair)?.content);
            let known = TYPES.iter().find(|row| der::identifier(row.1) == identifier.whole);
            let kind = known.map_or("?", |row| row.0[0]);
            parts.push(format!("{kind}={}", escaped(&value)));
        }
    }
    parts.reverse();
    Some(parts.join(", "))
}

fn escaped(value: &str) -> String {
    let special = |c| matches!(c, ',' | '"' | '\\').then_some('\\');
    let escaped: String = value.chars().flat_map(|c| special(c).into_iter().chain([c])).collect();
    printable(&escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for text in ["CN=site, O=Acme, C=DE", "CN=a\\, b, O=\\\"x\\\"", "E=me@example.org, DC=org"]
        {
            assert_eq!(shown(&name(text).unwrap()).as_deref(), Some(text));
        }
        assert_eq!(name("o=\"a, b\" ,c=DE").unwrap(), name("O=a\\, b,C=DE").unwrap());
        let first = name("CN=x, C=DE").unwrap();
        // The country stands first, and is a PrintableString.
        assert_eq!(first[2..13], [0x31, 11, 0x30, 9, 6, 3, 0x55, 4, 6, 19, 2]);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in
            ["", "site", "CN=", "XX=1", "CN=\"a", "CN=a\\", "C=Germany", "E=é", "CN=a,,C=DE"]
        {
            assert!(name(text).is_err(), "{text}");
        }
        assert_eq!(shown(&[0x30, 1, 0x31]), None);
    }

    #[test]
    fn a_value_that_is_too_long_for_its_type_is_refused_and_not_certified() {
        for (kind, longest) in [("CN", 64), ("O", 64), ("L", 128), ("E", 255)] {
            let character = if kind == "E" { "e" } else { "é" };
            let text = |length| format!("{kind}={}", character.repeat(length));
            let whole = name(&text(longest)).expect("not too long");
            assert!(is_name(&whole) && name(&text(longest + 1)).is_err(), "{kind}");
        }
        let pair = |length: usize| {
            let value = der::element(UTF8_STRING, &vec![b'a'; length]);
            let pair = der::sequence(&[&der::identifier(&[2, 5, 4, 3]), &value]);
            der::sequence(&[&der::element(SET, &pair)])
        };
        assert!(is_name(&pair(64)) && !is_name(&pair(65)));
    }

    #[test]
    fn what_shows_as_another_name_is_not_certified() {
        assert!(is_name(&name("CN=Zoë, O=\"Acme, Ltd\", C=DE").unwrap()) && is_name(&[0x30, 0]));
        for text in ["CN=good.example\0.evil", "CN=a\nb", "CN=a\u{7f}"] {
            assert!(!is_name(&name(text).unwrap()), "{text:?}");
        }
        let whole = name("CN=a, C=DE").unwrap();
        for at in 0..whole.len() {
            assert!(!is_name(&whole[..at]), "cut at {at}");
        }
        assert!(!is_name(&[&whole[..], &[0]].concat()));
        assert!(!is_name(&der::sequence(&[&der::integer(&[5])])));
        assert!(!is_name(&der::sequence(&[&[SET, 0]])));
    }

    #[test]
    fn a_terminal_is_not_commanded() {
        let hostile = name("CN=a\u{1b}[2Jb").unwrap();
        assert_eq!(shown(&hostile).as_deref(), Some("CN=a\\u{1b}[2Jb"));
    }
}
