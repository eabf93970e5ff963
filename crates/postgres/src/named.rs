// SPDX-License-Identifier: Apache-2.0
//! Identities: their logins, counted as other PINs are, and what the officer does with them.

use crate::link::{Open, lock};
use crate::open::{PostgresStore, Result, SNAPSHOT};
use crate::pin::{self, Attempt};
use crate::rows::{Whole, signed};
use crate::schema;
use metaslot_counters as counters;
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{self, Group, Identities, Identity, Keys};
use metaslot_spi::store::{Examined, Identities as Asked, Name, NewPin, Remark, Role};
use std::sync::Arc;

/// [`metaslot_spi::store::Store::login_as`]
pub(crate) fn login(store: &PostgresStore, name: Name, pin: &[u8]) -> Result<()> {
    store.set_keys(Some(check(store, name, pin)?));
    Ok(())
}

/// Tries a PIN, and refuses a token that is not as it was last written. Gives its keys.
pub(crate) fn check(store: &PostgresStore, name: Name, pin: &[u8]) -> Result<Keys> {
    let open = store.link.open()?;
    let mut by = Attempt::begin(&open)?;
    let (keys, _) = attempt(store, &mut by, name, pin)?;
    pin::confirm(store, &open, &keys)?;
    Ok(keys)
}

/// [`metaslot_spi::store::Store::set_pin_as`]
pub(crate) fn change(store: &PostgresStore, name: Name, old: &[u8], new: &[u8]) -> Result<()> {
    let open = store.link.open()?;
    let mut by = Attempt::begin(&open)?;
    let (keys, identity) = attempt(store, &mut by, name, old)?;
    set_pin(store, &mut by, &keys, &identity, new)
}

/// Counts, tries, and takes the count back after a right PIN. What is not there, or not tried now, is counted in the row
/// without a name, and costs the same. Gives the keys, and whose PIN it was, as it was then.
fn attempt(
    store: &PostgresStore,
    by: &mut Attempt<'_>,
    name: Name,
    pin: &[u8],
) -> Result<(Keys, Identity)> {
    let open = by.open;
    let (whole, target) = store.transact(open, |whole| {
        let whole = whole.complete(open)?;
        let target = store.pins().target(&whole.token, name, whole.now)?;
        let counted = target.counted.as_ref();
        let failures = counted.map_or(0, |identity| identity.pin.failures + 1);
        write_count(open, &whole, counted, (failures, whole.now))?;
        Ok(((whole, target), false))
    })?;
    let counted = target.counted.as_ref();
    match by.derive(|| store.pins().try_at(&target, pin)) {
        Ok(Some(keys)) => {
            write_count(open, &whole, counted, (0, 0))?;
            target.counted.map(|identity| (keys, identity)).ok_or(Error::IdentityRefused)
        }
        Ok(None) => {
            counters::event(counters::Event::LoginFailure);
            Err(Error::IdentityRefused)
        }
        // No PIN was tried: memory was short, say.
        Err(error) => {
            if let Some(Identity { pin, .. }) = counted {
                let before = (pin.failures, pin.failed_at);
                write_count(open, &whole, counted, before).unwrap_or_default();
            }
            Err(error)
        }
    }
}

fn write_count(
    open: &Open<'_>,
    whole: &Whole,
    counted: Option<&Identity>,
    (failures, failed_at): (u32, u64),
) -> Result<()> {
    if whole.version < schema::IDENTITIES {
        return Ok(());
    }
    let name = counted.map_or("", |identity| identity.name.as_str());
    let failures = i32::try_from(failures).unwrap_or(i32::MAX);
    let sql = "UPDATE metaslot.identity SET failures = $3, failed_at = $4
               WHERE token = $1 AND name = $2";
    open.write(sql, &[&whole.number, &name, &failures, &signed(failed_at)]).map(drop)
}

/// [`metaslot_spi::store::Examination::Identities`]
///
/// # Errors
/// [`Error::NotLoggedIn`] for another PIN than the officer's; [`Error::Identity`]
pub(crate) fn administer(
    store: &PostgresStore,
    (role, pin): (Role, &[u8]),
    asked: Asked<'_>,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let open = store.link.open()?;
    let mut by = Attempt::begin(&open)?;
    let keys = pin::attempt(store, &mut by, role, pin)?;
    if role != Role::So {
        return Err(Error::NotLoggedIn);
    }
    pin::confirm(store, &open, &keys)?;
    match asked {
        Asked::List => {
            let whole = read(store, &open)?;
            for identity in whole.token.identities.iter() {
                let pin = elsewhere::pin_state(&identity.pin, whole.now);
                remark(Remark::Identity(identity.name, pin));
            }
        }
        Asked::Add(name, NewPin(pin)) => add(store, &mut by, &keys, name, pin)?,
        Asked::Revoke(name) => {
            change_set(store, &open, &keys, |whole, identities| {
                identities.remove(name)?;
                let sql = "DELETE FROM metaslot.identity WHERE token = $1 AND name = $2";
                open.write(sql, &[&whole.number, &name.as_str()]).map(drop)
            })?;
        }
        Asked::SetPin(name, NewPin(pin)) => {
            let whole = read(store, &open)?;
            set_pin(store, &mut by, &keys, whole.token.identities.existing(name)?, pin)?;
        }
    }
    Ok(Examined::default())
}

/// [`metaslot_spi::store::Store::retry_at`]
pub(crate) fn retry_at(store: &PostgresStore, name: Name) -> Result<u64> {
    let open = store.link.open()?;
    let _turn = lock(&open.lines.turn);
    let whole = read(store, &open)?;
    let found = whole.token.identities.find(name);
    Ok(found.map_or(0, |identity| elsewhere::pin_state(&identity.pin, whole.now).retry_at))
}

/// All of one moment.
fn read(store: &PostgresStore, open: &Open<'_>) -> Result<Whole> {
    store.around(open, SNAPSHOT, || Ok((Whole::here(open)?.complete(open)?, None)))
}

impl PostgresStore {
    /// The keys, unless they are of an identity that is not there any more.
    pub(crate) fn current_keys(&self) -> Result<Option<Arc<Keys>>> {
        let keys = self.keys();
        match keys.as_deref().is_none_or(|keys| self.is_still_there(keys)) {
            true => Ok(keys),
            false => Err(Error::NotLoggedIn),
        }
    }

    /// Whether the identity of these keys is. One that cannot be looked at now is.
    pub(crate) fn is_still_there(&self, keys: &Keys) -> bool {
        let Some((name, incarnation)) = keys.bound() else { return true };
        match self.incarnation_of(Some(keys), name) {
            Ok(now) => now == Some(incarnation),
            Err(error) => !matches!(error, Error::Uninitialized { .. } | Error::Tampered { .. }),
        }
    }

    /// Which incarnation an identity has.
    pub(crate) fn incarnation_of(&self, keys: Option<&Keys>, name: Name) -> Result<Option<u64>> {
        let of = |identities: &Identities| {
            identities.iter().find(|one| one.name == name).map(|one| one.incarnation)
        };
        if let Some((at, identities)) = &*lock(&self.identities)
            && self.link.generation() == Some(*at)
        {
            return Ok(of(identities));
        }
        // Looks for the generation, where it is not known.
        drop(self.link.open()?);
        let now = self.link.generation();
        let read = identities(self, keys)?;
        let found = of(&read);
        // Without keys what is read was not authenticated.
        if let (Some(now), Some(_)) = (now, keys) {
            *lock(&self.identities) = Some((now, read));
        }
        Ok(found)
    }

    /// Refuses those whose identity was revoked by now: by another machine, of which this one may not have heard yet. What is known is
    /// looked at first, which the token's state says to be right or not. The token's row is locked.
    pub(crate) fn refuse_revoked(
        &self,
        open: &Open<'_>,
        mut whole: Whole,
        group: &mut Group,
    ) -> Result<Whole> {
        if !group.has_identities() {
            return Ok(whole);
        }
        if let Some((_, known)) = &*lock(&self.identities) {
            whole.token.identities = known.clone();
        }
        let is_so =
            |whole: &Whole, keys: &Keys| elsewhere::check(keys, &whole.token, &whole.head).is_ok();
        if !group.keys().all(|keys| is_so(&whole, keys)) {
            whole = whole.complete(open)?;
        }
        group.refuse_revoked(|keys, (name, incarnation)| {
            elsewhere::current(keys, &whole.head)?;
            elsewhere::check(keys, &whole.token, &whole.head)?;
            let found = whole.token.identities.find(name);
            let is_it = found.is_some_and(|one| one.incarnation == incarnation);
            if is_it { Ok(()) } else { Err(Error::NotLoggedIn) }
        })?;
        Ok(whole)
    }
}

/// Those that the token's state knows, as far as there are keys to open that. Where the state says that they are what it was made
/// with, they are of one moment, and neither a transaction is needed for that nor the turn, which is taken while another machine's PIN is tried.
fn identities(store: &PostgresStore, keys: Option<&Keys>) -> Result<Identities> {
    let open = store.link.open()?;
    if let Some(keys) = keys {
        let whole = Whole::read(&open)?.complete_later(&open)?;
        if elsewhere::check(keys, &whole.token, &whole.head).is_ok() {
            return Ok(whole.token.identities);
        }
    }
    let _turn = lock(&open.lines.turn);
    let whole = read(store, &open)?;
    keys.map_or(Ok(()), |keys| elsewhere::check(keys, &whole.token, &whole.head))?;
    Ok(whole.token.identities)
}

fn add(
    store: &PostgresStore,
    by: &mut Attempt<'_>,
    keys: &Keys,
    name: Name,
    pin: &[u8],
) -> Result<()> {
    let open = by.open;
    // The table comes with the first one.
    if Whole::read(open)?.version < schema::IDENTITIES {
        store.around(open, "BEGIN", || Ok((schema::migrate(open, open.place())?, None)))?;
    }
    let made = by.derive(|| store.pins().identity(keys, name, pin))?;
    change_set(store, open, keys, |whole, identities| {
        identities.add(made.clone())?;
        insert(open, whole.number, &made)
    })
}

/// With the row without a name, where it is not there yet.
pub(crate) fn insert(open: &Open<'_>, token: i32, identity: &Identity) -> Result<()> {
    let sql = "INSERT INTO metaslot.identity(token, name, incarnation, wrap, failures, failed_at)
               VALUES($1, $2, $3, $4, $5, $6), ($1, '', 0, '', 0, 0)
               ON CONFLICT(token, name) DO NOTHING";
    let Identity { name, incarnation, pin } = identity;
    let failures = i32::try_from(pin.failures).unwrap_or(i32::MAX);
    let (incarnation, failed_at) = (incarnation.cast_signed(), signed(pin.failed_at));
    open.write(sql, &[&token, &name.as_str(), &incarnation, &pin.wrap, &failures, &failed_at])
        .map(drop)
}

/// By itself, as it was when its PIN was tried, or by the officer. The wrap is bound to its incarnation.
fn set_pin(
    store: &PostgresStore,
    by: &mut Attempt<'_>,
    keys: &Keys,
    identity: &Identity,
    pin: &[u8],
) -> Result<()> {
    let (open, wrap) = (by.open, by.derive(|| store.pins().wrap_of(keys, identity, pin))?);
    change_set(store, open, keys, |whole, identities| {
        identities.check_still(keys, identity)?;
        identities.set_wrap(identity.name, wrap.clone())?;
        let sql = "UPDATE metaslot.identity SET wrap = $3, failures = 0, failed_at = 0
                   WHERE token = $1 AND name = $2";
        open.write(sql, &[&whole.number, &identity.name.as_str(), &wrap]).map(drop)
    })
}

/// One transaction in which `change` is made of the set, as it is in the state, and of the rows.
fn change_set(
    store: &PostgresStore,
    open: &Open<'_>,
    keys: &Keys,
    change: impl FnOnce(&Whole, &mut Identities) -> Result<()>,
) -> Result<()> {
    let head = store.transact(open, |whole| {
        let mut whole = whole.complete(open)?;
        store.advance_anchor(keys, &whole.head)?;
        store.check_floor(keys, &whole.head, store.floor(keys))?;
        let mut identities = whole.token.identities.clone();
        change(&whole, &mut identities)?;
        let state = elsewhere::with_identities(keys, &whole.token, &whole.head, &identities)?;
        let sql = "UPDATE metaslot.token SET row_set = $2 WHERE id = $1";
        open.write(sql, &[&whole.number, &state])?;
        whole.head.state = state;
        Ok((whole.head, true))
    })?;
    store.follow(open, keys, &head)
}
