// SPDX-License-Identifier: Apache-2.0
//! IVs that are made for messages (PKCS#11 3.2 §6.13.2): none comes twice for a key.
//!
//! The numbers of a key of the store stand in its row, and a block of them is written there before the first is used, so
//! processes share none; what a process that ends has not used is lost. Those of a session's key are counted beside it.

use crate::engine::Engine;
use crate::object::{Location, Object, record};
use crate::token::Token;
use metaslot_ck::attribute::CKA_IV_SERIES;
use metaslot_ck::*;
use metaslot_rules::counted;
use metaslot_rules::series::{RANDOM_BITS, Series, SeriesOfKey, free_bits, randomize};
use metaslot_spi::store::Change;
use metaslot_spi::{Bytes, Message, Secrets, Value, detail};
use std::cell::Cell;
use std::ops::Range;

impl Engine {
    /// Makes the IV of a message, as its generator says.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID`, `CKR_KEY_EXHAUSTED`, and what writing the key's row says.
    pub(super) fn generate_iv(
        &self,
        token: &Token,
        key: &Object,
        message: &mut Message,
    ) -> Result<()> {
        let bits = 8 * message.iv.len() as u64;
        let fixed = message.fixed_bits;
        let free = bits.checked_sub(fixed);
        match (message.generator, free) {
            (CKG_NO_GENERATE, _) => Ok(()),
            (CKG_GENERATE_RANDOM | CKG_GENERATE, Some(RANDOM_BITS..)) => {
                self.number(token, key, &Series::random())?;
                let mut random = Bytes::from_elem(0, message.iv.len());
                self.random_bytes(&mut random)?;
                randomize(&mut message.iv, fixed, &random);
                Ok(())
            }
            (CKG_GENERATE | CKG_GENERATE_COUNTER | CKG_GENERATE_COUNTER_XOR, Some(_)) => {
                let mut base = message.iv.clone();
                if message.generator != CKG_GENERATE_COUNTER_XOR {
                    base.iter_mut().zip(0..).for_each(|(byte, at)| *byte &= !free_bits(at, fixed));
                }
                let series = Series::counted(&base, fixed)?;
                message.iv = series.iv(self.number(token, key, &series)?);
                Ok(())
            }
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }

    /// The next number of a series of this key.
    fn number(&self, token: &Token, key: &Object, series: &Series) -> Result<u64> {
        if let Some(home) = self.home_of(key) {
            // Other programs use it there, and nothing can be noted.
            if series.is_random() {
                return Ok(0);
            }
            let name = home.home.name();
            detail::set(format_args!("{name} keeps its keys: no counter of IVs goes with them"));
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let mut taken = token.taken(key).series();
        if key.place == Location::Session {
            SeriesOfKey::of(key.attributes())?.admits(series)?;
            return taken.take(series, 1).map(|numbers| numbers.start);
        }
        if let Some(number) = taken.next(series) {
            return Ok(number);
        }
        let block = self.reserve(token, key, series, taken.block(series)?)?;
        taken.put(series, block);
        taken.next(series).ok_or_else(|| {
            detail::set(format_args!(
                "the token's file was replaced by an older one: this process has given these IVs already"
            ));
            Error::MECHANISM_PARAM_INVALID
        })
    }

    /// Takes a block of numbers out of the key's row.
    fn reserve(
        &self,
        token: &Token,
        key: &Object,
        series: &Series,
        most: u64,
    ) -> Result<Range<u64>> {
        let block = Cell::new(0..0);
        let name = key.attributes().get(CKA_UNIQUE_ID);
        let written = self.write_version(token, key.handle, |key, id, version| {
            let mut attributes = key.attributes().clone();
            // An older store may have another key in the row.
            let same = (attributes.get(CKA_UNIQUE_ID) == name).then_some(());
            same.ok_or(Error::KEY_HANDLE_INVALID)?;
            counted::counts(&attributes, series, &*token.store)?;
            let mut stored = SeriesOfKey::of(&attributes)?;
            block.set(stored.take(series, most)?);
            attributes.set(CKA_IV_SERIES, Value::Bytes(stored.encode()));
            Ok(Change::Update { id, version, record: record(&attributes, &Secrets::new())? })
        })?;
        // While it waited for other writers the token may have been restored.
        counted::counts(written.attributes(), series, &*token.store)?;
        Ok(block.take())
    }
}
