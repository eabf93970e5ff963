// SPDX-License-Identifier: Apache-2.0
//! A key as a provider sees it.

use crate::{Attributes, Secrets};
use metaslot_ck::{
    CK_ATTRIBUTE_TYPE, CK_OBJECT_CLASS, CKA_CLASS, CKA_KEY_TYPE, Error, Result, UNAVAILABLE,
};
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Attributes that may be shown, secrets that may not, and the prepared forms that providers keep
/// with them (the expanded key schedule, the parsed RSA key with its Montgomery constants).
///
/// Immutable: a changed attribute makes a new `Key` that shares the same material.
#[derive(Debug)]
pub struct Key {
    attributes: Arc<Attributes>,
    material: Arc<Material>,
    one_time: Option<Arc<dyn OneTime>>,
}

/// What counts the one-time keys of a private key (RFC 8554, RFC 8391): one that signs twice gives itself away.
pub trait OneTime: Send + Sync + fmt::Debug {
    /// Takes one; it is on the disk, and nobody else has it or will have it. Says how many are left.
    ///
    /// # Errors
    /// `CKR_KEY_EXHAUSTED`, and what writing says.
    fn spend(&self) -> Result<u64>;
}

/// The secrets of a key and what providers made of them; shared by every copy of the key.
pub struct Material {
    secrets: Secrets,
    prepared: [OnceLock<Prepared>; PREPARED],
}

type Prepared = Box<dyn Any + Send + Sync>;

/// How many prepared forms a key may have at once, over all providers.
const PREPARED: usize = 8;

impl Material {
    /// Material with nothing prepared yet.
    #[must_use]
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, prepared: [const { OnceLock::new() }; PREPARED] }
    }

    /// The secrets.
    #[must_use]
    pub const fn secrets(&self) -> &Secrets {
        &self.secrets
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Material").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

impl Key {
    /// A key of these parts.
    #[must_use]
    pub const fn new(attributes: Arc<Attributes>, material: Arc<Material>) -> Self {
        Self { attributes, material, one_time: None }
    }

    /// A key of one-time keys, with what counts them.
    #[must_use]
    pub fn with_one_time(self, one_time: Arc<dyn OneTime>) -> Self {
        Self { one_time: Some(one_time), ..self }
    }

    /// What counts the one-time keys.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT` where nothing does.
    pub fn one_time(&self) -> Result<&dyn OneTime> {
        self.one_time.as_deref().ok_or(Error::KEY_TYPE_INCONSISTENT)
    }

    /// `CKO_…`
    #[must_use]
    pub fn class(&self) -> u64 {
        self.attributes.ulong(CKA_CLASS).unwrap_or(UNAVAILABLE)
    }

    /// Refuses a key of another class.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT`
    pub fn check_class(&self, class: CK_OBJECT_CLASS) -> Result<()> {
        if self.class() == class { Ok(()) } else { Err(Error::KEY_TYPE_INCONSISTENT) }
    }

    /// `CKK_…`
    #[must_use]
    pub fn key_type(&self) -> u64 {
        self.attributes.ulong(CKA_KEY_TYPE).unwrap_or(UNAVAILABLE)
    }

    /// What may be shown.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The shared material.
    #[must_use]
    pub const fn material(&self) -> &Arc<Material> {
        &self.material
    }

    /// Bytes that may be shown, such as `CKA_MODULUS`.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT` when the key has none.
    pub fn bytes(&self, attribute: CK_ATTRIBUTE_TYPE) -> Result<&[u8]> {
        self.attributes.bytes(attribute).ok_or(Error::KEY_TYPE_INCONSISTENT)
    }

    /// Secret bytes, such as `CKA_VALUE`.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT` when the key has none.
    pub fn secret(&self, attribute: CK_ATTRIBUTE_TYPE) -> Result<&[u8]> {
        self.material.secrets.get(attribute).ok_or(Error::KEY_TYPE_INCONSISTENT)
    }

    /// All the secrets.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.material.secrets
    }

    /// The form of type `T` that a provider prepared for this key; made by `prepare` at first use
    /// and shared by every session. Reading it is one load. `T` must depend on the key alone.
    ///
    /// # Errors
    /// What `prepare` says; `CKR_DEVICE_MEMORY` when a key has too many forms.
    pub fn prepared<T: Any + Send + Sync>(
        &self,
        prepare: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<&T> {
        match self.form() {
            Some(form) => Ok(form),
            None => self.prepare(prepare),
        }
    }

    #[inline]
    fn form<T: Any>(&self) -> Option<&T> {
        let mut forms = self.material.prepared.iter().map_while(OnceLock::get);
        forms.find_map(|form| form.downcast_ref())
    }

    #[cold]
    fn prepare<T: Any + Send + Sync>(
        &self,
        prepare: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<&T> {
        let mut prepare = Some(prepare);
        let form = self.place(TypeId::of::<T>(), &mut || {
            let prepare = prepare.take().ok_or(Error::DEVICE_MEMORY)?;
            Ok(Box::new(prepare(self)?))
        });
        form?.downcast_ref().ok_or(Error::DEVICE_MEMORY)
    }

    /// The form of that type; `make` is called at most once.
    fn place(
        &self,
        id: TypeId,
        make: &mut dyn FnMut() -> Result<Prepared>,
    ) -> Result<&(dyn Any + Send + Sync)> {
        let (mut make, mut made) = (Some(make), None::<Prepared>);
        for place in &self.material.prepared {
            if place.get().is_none() {
                if let Some(make) = make.take() {
                    made = Some(make()?);
                }
                // Where another thread has filled the place meanwhile, ours waits for the next.
                made = made.and_then(|form| place.set(form).err());
            }
            let form = place.get().map(AsRef::as_ref);
            if let Some(form) = form.filter(|form| (*form).type_id() == id) {
                return Ok(form);
            }
        }
        Err(Error::DEVICE_MEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new(Arc::default(), Arc::new(Material::new(Secrets::new())))
    }

    #[test]
    fn two_forms_that_are_made_at_once_both_find_a_place() {
        let key = key();
        // As another thread would, which is faster.
        let slow = key.prepared(|key| {
            assert_eq!(key.prepared(|_| Ok('f'))?, &'f');
            Ok(1_u32)
        });
        assert_eq!(slow, Ok(&1));
        assert_eq!(key.prepared(|_| Ok('x')), Ok(&'f'), "it is made once");
        assert_eq!(key.prepared(|_| Ok(2_u32)), Ok(&1));
    }

    #[test]
    fn of_two_forms_of_one_type_the_first_counts() {
        let key = key();
        let slow = key.prepared(|key| {
            key.prepared(|_| Ok(1_u32))?;
            Ok(2_u32)
        });
        assert_eq!(slow, Ok(&1));
    }
}
