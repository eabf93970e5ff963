// SPDX-License-Identifier: Apache-2.0
//! Objects of the Solaris keystore as they are packed (docs/commands/import.md): nothing is believed of a length.

use crate::keyfile::RSA_PRIVATE;
use metaslot_ck::*;

/// Many more attributes than there are.
const MOST: u64 = 1000;

/// What is wrong with packed bytes, in words.
pub(super) type Result<T> = std::result::Result<T, String>;

/// An object, its values still in the bytes that it came from.
#[derive(Debug)]
pub(super) struct Packed<'a> {
    pub(super) class: CK_OBJECT_CLASS,
    pub(super) key_type: CK_KEY_TYPE,
    pub(super) certificate_type: u64,
    /// One bit for each attribute of [`FLAGS`] that is true.
    pub(super) flags: u64,
    /// The other attributes, each once.
    pub(super) values: Vec<(CK_ATTRIBUTE_TYPE, &'a [u8])>,
    /// Whether all that is in it is known.
    is_known: bool,
}

/// The attribute of each bit.
pub(super) const FLAGS: [CK_ATTRIBUTE_TYPE; 17] = [
    CKA_DERIVE,
    CKA_LOCAL,
    CKA_SENSITIVE,
    CKA_SECONDARY_AUTH,
    CKA_ENCRYPT,
    CKA_DECRYPT,
    CKA_SIGN,
    CKA_SIGN_RECOVER,
    CKA_VERIFY,
    CKA_VERIFY_RECOVER,
    CKA_WRAP,
    CKA_UNWRAP,
    CKA_TRUSTED,
    CKA_EXTRACTABLE,
    CKA_ALWAYS_SENSITIVE,
    CKA_NEVER_EXTRACTABLE,
    // The bit says that it is not.
    CKA_MODIFIABLE,
];

/// What follows the attributes, for one class and type of key or certificate.
struct Layout {
    class: CK_OBJECT_CLASS,
    /// `None` for every one.
    kind: Option<u64>,
    /// Whether a number stands first.
    number: bool,
    values: &'static [CK_ATTRIBUTE_TYPE],
}

const fn layout(
    class: CK_OBJECT_CLASS,
    kind: Option<u64>,
    number: bool,
    values: &'static [CK_ATTRIBUTE_TYPE],
) -> Layout {
    Layout { class, kind, number, values }
}

const DSA: &[CK_ATTRIBUTE_TYPE] = &[CKA_PRIME, CKA_SUBPRIME, CKA_BASE, CKA_VALUE];
const DH: &[CK_ATTRIBUTE_TYPE] = &[CKA_PRIME, CKA_BASE, CKA_VALUE];
const X9_42: &[CK_ATTRIBUTE_TYPE] = &[CKA_PRIME, CKA_BASE, CKA_SUBPRIME, CKA_VALUE];
const RSA_PUBLIC: &[CK_ATTRIBUTE_TYPE] = &[CKA_MODULUS, CKA_PUBLIC_EXPONENT];
#[rustfmt::skip]
const LAYOUTS: &[Layout] = &[
    layout(CKO_PUBLIC_KEY, Some(CKK_RSA), true, RSA_PUBLIC),
    layout(CKO_PUBLIC_KEY, Some(CKK_DSA), false, DSA),
    layout(CKO_PUBLIC_KEY, Some(CKK_EC), false, &[CKA_EC_POINT]),
    layout(CKO_PUBLIC_KEY, Some(CKK_DH), false, DH),
    layout(CKO_PUBLIC_KEY, Some(CKK_X9_42_DH), false, X9_42),
    layout(CKO_PRIVATE_KEY, Some(CKK_RSA), false, RSA_PRIVATE),
    layout(CKO_PRIVATE_KEY, Some(CKK_DSA), false, DSA),
    layout(CKO_PRIVATE_KEY, Some(CKK_EC), false, &[CKA_VALUE]),
    layout(CKO_PRIVATE_KEY, Some(CKK_DH), true, DH),
    layout(CKO_PRIVATE_KEY, Some(CKK_X9_42_DH), false, X9_42),
    layout(CKO_SECRET_KEY, None, false, &[CKA_VALUE]),
    layout(CKO_CERTIFICATE, Some(CKC_X_509), false, &[CKA_SUBJECT, CKA_VALUE]),
    layout(CKO_CERTIFICATE, Some(CKC_X_509_ATTR_CERT), false, &[CKA_OWNER, CKA_VALUE]),
    layout(CKO_DOMAIN_PARAMETERS, None, false, &[]),
];

impl<'a> Packed<'a> {
    /// Takes it apart.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut rest = Rest(bytes);
        let [class, key_type, certificate_type, flags, _mechanism] =
            [rest.number()?, rest.number()?, rest.number()?, rest.number()?, rest.number()?];
        // A byte for what kind of object it is, and three to fill up.
        rest.take(4)?;
        let count = rest.take(4)?;
        let count = count.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        if count > MOST {
            return Err(format!("{count} attributes are more than an object has"));
        }
        let mut packed =
            Self { class, key_type, certificate_type, flags, values: Vec::new(), is_known: false };
        for _ in 0..count {
            let attribute = rest.number()?;
            packed.push(attribute, rest.value()?)?;
        }
        let Some(layout) = packed.layout() else { return Ok(packed) };
        if layout.number {
            rest.number()?;
        }
        for attribute in layout.values {
            let value = rest.value()?;
            // The subject of a certificate stands among the attributes too.
            if packed.value(*attribute) != Some(value) {
                packed.push(*attribute, value)?;
            }
        }
        packed.is_known = true;
        match rest.0.len() {
            0 => Ok(packed),
            more => Err(format!("{more} bytes are more than an object of its kind has")),
        }
    }

    /// Why it cannot be moved, if that is known before a token is asked.
    pub(super) const fn stays_because(&self) -> Option<&'static str> {
        if !self.is_known {
            return Some("objects of this kind are not known here");
        }
        match self.class {
            CKO_DOMAIN_PARAMETERS => Some("no token here keeps parameters without a key"),
            _ => None,
        }
    }

    /// One attribute, if it is there.
    pub(super) fn value(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&'a [u8]> {
        self.values.iter().find(|(known, _)| *known == attribute).map(|(_, value)| *value)
    }

    /// One that is text.
    pub(super) fn text(&self, attribute: CK_ATTRIBUTE_TYPE) -> String {
        String::from_utf8_lossy(self.value(attribute).unwrap_or_default()).into_owned()
    }

    /// The attributes that are true, and whether.
    pub(super) fn flags(&self) -> impl Iterator<Item = (CK_ATTRIBUTE_TYPE, bool)> {
        let bits = self.flags;
        FLAGS.into_iter().enumerate().map(move |(at, attribute)| {
            let set = bits >> at & 1 == 1;
            (attribute, set != (attribute == CKA_MODIFIABLE))
        })
    }

    fn push(&mut self, attribute: CK_ATTRIBUTE_TYPE, value: &'a [u8]) -> Result<()> {
        if self.value(attribute).is_some() {
            return Err(format!("attribute {attribute:#x} is there twice"));
        }
        self.values.push((attribute, value));
        Ok(())
    }

    fn layout(&self) -> Option<&'static Layout> {
        let kind = match self.class {
            CKO_CERTIFICATE => self.certificate_type,
            _ => self.key_type,
        };
        let fits = |layout: &&Layout| {
            layout.class == self.class && layout.kind.is_none_or(|wanted| wanted == kind)
        };
        LAYOUTS.iter().find(fits)
    }
}

/// What was not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A length, so many bytes, and what fills them up to a multiple of 8.
    fn value(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| "it ends too early")?;
        let value = self.take(length)?;
        self.take(length.wrapping_neg() % 8)?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64) -> Vec<u8> {
        value.to_be_bytes().to_vec()
    }

    fn value(bytes: &[u8]) -> Vec<u8> {
        let mut value = [number(bytes.len() as u64), bytes.to_vec()].concat();
        value.resize(value.len().next_multiple_of(8), 0);
        value
    }

    fn secret() -> Vec<u8> {
        let numbers = [CKO_SECRET_KEY, CKK_AES, 0, 1 << 5 | 1 << 16, 0];
        let label = [number(CKA_LABEL), value(b"seal")].concat();
        [numbers.map(number).concat(), vec![3, 0, 0, 0, 0, 0, 0, 1], label, value(&[7; 16])]
            .concat()
    }

    impl<'a> Packed<'a> {
        /// A public key on this curve.
        pub(crate) fn of_point(params: &'a [u8], point: &'a [u8]) -> Self {
            Self {
                class: CKO_PUBLIC_KEY,
                key_type: CKK_EC,
                certificate_type: 0,
                flags: 0,
                values: vec![(CKA_EC_PARAMS, params), (CKA_EC_POINT, point)],
                is_known: true,
            }
        }
    }

    #[test]
    fn a_secret_key_is_taken_apart() {
        let bytes = secret();
        let packed = Packed::parse(&bytes).unwrap();
        assert!(packed.is_known);
        assert_eq!((packed.class, packed.key_type), (CKO_SECRET_KEY, CKK_AES));
        assert_eq!(packed.text(CKA_LABEL), "seal");
        assert_eq!(packed.value(CKA_VALUE), Some([7; 16].as_slice()));
        let on: Vec<_> = packed.flags().filter(|flag| flag.1).map(|flag| flag.0).collect();
        assert_eq!(on, [CKA_DECRYPT], "and not CKA_MODIFIABLE");
    }

    #[test]
    fn no_other_length_is_taken() {
        let bytes = secret();
        for length in 0..bytes.len() {
            assert!(Packed::parse(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Packed::parse(&[&bytes[..], b"x"].concat()).is_err());
        // A count, and lengths, that lie.
        for at in [44, 60, 76] {
            let mut changed = bytes.clone();
            changed[at..at + 4].fill(0xff);
            assert!(Packed::parse(&changed).is_err(), "{at}");
        }
    }
}
