// SPDX-License-Identifier: Apache-2.0
//! Identities: named users of a token, each with a PIN and a wrap of the master key of its own.

use crate::crypto::{self, Keys};
use crate::error::{Error, Result};
use crate::limit::PinRow;
use metaslot_spi::store::Name;

/// The most identities that a token has.
pub(crate) const MOST: usize = 256;

/// An identity as it is stored.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What it is called.
    pub name: Name,
    /// Chosen by chance when it was added: one of the same name that was added later has another.
    pub incarnation: u64,
    /// Its wrap of the master key, and its counter.
    pub pin: PinRow,
}

/// Those of a token, by their names.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    all: Vec<Identity>,
    /// Whether rows were read that are no identities: nothing writes such ones.
    is_strange: bool,
}

impl Identities {
    /// From the rows that were read, `None` for one that is no identity.
    #[must_use]
    pub fn new(rows: Vec<Option<Identity>>) -> Self {
        let count = rows.len();
        let mut all: Vec<_> = rows.into_iter().flatten().collect();
        all.sort_unstable_by_key(|identity| identity.name);
        Self { is_strange: all.len() != count, all }
    }

    /// All, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Identity> {
        self.all.iter()
    }

    /// The one of this name. Takes as long for every name.
    #[must_use]
    pub fn find(&self, name: Name) -> Option<&Identity> {
        self.all.iter().fold(None, |found, identity| {
            let is_it = crypto::equal(identity.name.padded(), name.padded());
            if is_it { Some(identity) } else { found }
        })
    }

    /// Whether rows were read that are no identities.
    pub(crate) const fn is_strange(&self) -> bool {
        self.is_strange
    }

    /// Adds one.
    ///
    /// # Errors
    /// [`Error::Identity`] where it is there already, or there are too many.
    pub fn add(&mut self, identity: Identity) -> Result<()> {
        if self.find(identity.name).is_some() {
            return Err(Error::Identity { name: identity.name, reason: "is there already" });
        }
        if self.all.len() >= MOST {
            return Err(Error::Identity { name: identity.name, reason: "would be one too many" });
        }
        self.all.push(identity);
        self.all.sort_unstable_by_key(|identity| identity.name);
        Ok(())
    }

    /// Removes the one of this name.
    ///
    /// # Errors
    /// [`Error::Identity`] where it is not there.
    pub fn remove(&mut self, name: Name) -> Result<()> {
        self.existing(name)?;
        self.all.retain(|identity| identity.name != name);
        Ok(())
    }

    /// Gives the one of this name the wrap of a new PIN, and clears its counter.
    ///
    /// # Errors
    /// [`Error::Identity`] where it is not there.
    pub fn set_wrap(&mut self, name: Name, wrap: Vec<u8>) -> Result<()> {
        self.existing(name)?;
        for identity in self.all.iter_mut().filter(|identity| identity.name == name) {
            identity.pin = PinRow { wrap: Some(wrap.clone()), failures: 0, failed_at: 0 };
        }
        Ok(())
    }

    /// Checks that a new PIN may be set: the identity was not removed since, nor added again. Where it sets the PIN itself, it must still
    /// have the PIN that it has shown.
    ///
    /// # Errors
    /// [`Error::IdentityRefused`] for itself, [`Error::Identity`] for the officer, whose `keys` are bound to none.
    pub fn check_still(&self, keys: &Keys, identity: &Identity) -> Result<()> {
        let is_it = |now: &&Identity| now.incarnation == identity.incarnation;
        match (self.find(identity.name).filter(is_it), keys.bound) {
            (Some(now), Some(_)) if now.pin.wrap == identity.pin.wrap => Ok(()),
            (Some(_), None) => Ok(()),
            (_, Some(_)) => Err(Error::IdentityRefused),
            (None, None) => Err(Error::Identity { name: identity.name, reason: "is not there" }),
        }
    }

    /// The one of this name, for the officer.
    ///
    /// # Errors
    /// [`Error::Identity`]
    pub fn existing(&self, name: Name) -> Result<&Identity> {
        self.find(name).ok_or(Error::Identity { name, reason: "is not there" })
    }
}

impl Identity {
    /// What its wrap is bound to.
    pub(crate) fn owner(&self) -> Vec<u8> {
        let mut owner = vec![2];
        owner.extend_from_slice(&self.incarnation.to_le_bytes());
        owner.extend_from_slice(self.name.as_str().as_bytes());
        owner
    }
}
