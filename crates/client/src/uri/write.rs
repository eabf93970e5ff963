// SPDX-License-Identifier: Apache-2.0
//! From [`Uri`] to text.

use super::Uri;
use std::fmt::{self, Write};

/// What need not be escaped in a value: fewer characters than the RFC allows, so that a URI can be
/// pasted into a shell between double quotes or none.
const PLAIN: &str = "-._~:@,+";

impl fmt::Display for Uri {
    /// Everything but `pin-value`: a PIN has no place in an output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Writer { f, before: "" };
        out.f.write_str("pkcs11:")?;
        let version = self.library_version.map(|(major, minor)| format!("{major}.{minor}"));
        let slot_id = self.slot_id.map(|id| id.to_string());
        let class = self.class.map(|class| class.name().to_owned());
        out.text("library-manufacturer", self.library_manufacturer.as_ref(), ';')?;
        out.text("library-description", self.library_description.as_ref(), ';')?;
        out.text("library-version", version.as_ref(), ';')?;
        out.text("slot-manufacturer", self.slot_manufacturer.as_ref(), ';')?;
        out.text("slot-description", self.slot_description.as_ref(), ';')?;
        out.text("slot-id", slot_id.as_ref(), ';')?;
        out.text("token", self.token.as_ref(), ';')?;
        out.text("serial", self.serial.as_ref(), ';')?;
        out.text("manufacturer", self.manufacturer.as_ref(), ';')?;
        out.text("model", self.model.as_ref(), ';')?;
        out.id(self.id.as_deref())?;
        out.text("object", self.object.as_ref(), ';')?;
        out.text("type", class.as_ref(), ';')?;
        out.before = "?";
        out.text("pin-source", self.pin_source.as_ref(), '&')?;
        out.text("module-name", self.module_name.as_ref(), '&')?;
        out.text("module-path", self.module_path.as_ref(), '&')?;
        self.other.iter().try_for_each(|(name, value)| {
            out.name(name, '&')?;
            out.f.write_str(value)
        })
    }
}

struct Writer<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    before: &'static str,
}

impl Writer<'_, '_> {
    fn name(&mut self, name: &str, separator: char) -> fmt::Result {
        write!(self.f, "{}{name}=", self.before)?;
        self.before = if separator == ';' { ";" } else { "&" };
        Ok(())
    }

    fn text(&mut self, name: &str, value: Option<&String>, separator: char) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        self.name(name, separator)?;
        value.bytes().try_for_each(|byte| {
            let c = char::from(byte);
            let slash = c == '/' && separator == '&';
            if c.is_ascii_alphanumeric() || PLAIN.contains(c) || slash {
                self.f.write_char(c)
            } else {
                write!(self.f, "%{byte:02X}")
            }
        })
    }

    /// Escaped throughout, as the RFC advises: it is bytes, not text.
    fn id(&mut self, id: Option<&[u8]>) -> fmt::Result {
        let Some(id) = id else { return Ok(()) };
        self.name("id", ';')?;
        id.iter().try_for_each(|byte| write!(self.f, "%{byte:02X}"))
    }
}
