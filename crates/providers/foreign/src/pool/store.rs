// SPDX-License-Identifier: Apache-2.0
//! A pool where the engine expects a store.

use super::{Late, Pool};
use crate::store::ForeignStore;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Home, ObjectRow, OtherToken, PinState, Remark, Role,
    Scope, Store, Term, TokenRow,
};
use metaslot_spi::{Secrets, detail};

/// One token over several of other modules.
#[derive(Debug)]
pub struct PoolStore {
    pool: &'static Pool,
    /// Closed when this is dropped.
    _tokens: Vec<ForeignStore>,
}

impl PoolStore {
    /// The pool of this name over these tokens, which are slots no more. Those with the labels that are missing are among the
    /// tokens that are not there yet, if anywhere.
    #[must_use]
    pub fn new(
        name: &str,
        tokens: Vec<ForeignStore>,
        missing: &[String],
        absent: &[&ForeignStore],
    ) -> Self {
        let members: Vec<_> = tokens.iter().map(ForeignStore::token).collect();
        let late = Late::new(missing, absent.iter().map(|token| token.token()));
        Self { pool: Pool::find(name, &members, late), _tokens: tokens }
    }

    /// For a view that shows it. What it does when it is dropped is its slot's to do.
    pub(crate) const fn of(pool: &'static Pool) -> Self {
        Self { pool, _tokens: Vec::new() }
    }

    pub(crate) const fn pool(&self) -> &'static Pool {
        self.pool
    }

    fn refused(&self) -> Error {
        detail::set(format_args!(
            "{} is several tokens: each is managed by itself",
            self.pool.name
        ));
        Error::TOKEN_WRITE_PROTECTED
    }
}

impl Drop for PoolStore {
    fn drop(&mut self) {
        // The tokens end what logins are ours when they are closed.
        self.pool.forget();
    }
}

impl Store for PoolStore {
    fn token(&self) -> Result<TokenRow> {
        let pin = PinState { left: 10, ..PinState::default() };
        let asks_by_itself = self.pool.asks_by_itself();
        Ok(TokenRow {
            initialized: true,
            label: self.pool.name.to_owned(),
            serial: self.pool.name.to_owned(),
            user_pin_set: true,
            so: pin,
            user: pin,
            writable: false,
            other: Some(OtherToken {
                manufacturer: String::from("Metaslot"),
                model: String::from("pool"),
                login_required: true,
                asks_by_itself,
            }),
            ..TokenRow::default()
        })
    }

    fn initialize(&self, _: &[u8], _: &str) -> Result<()> {
        Err(self.refused())
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        match role {
            Role::User => self.pool.login(pin),
            Role::So => Err(Error::USER_TYPE_INVALID),
        }
    }

    fn check_pin(&self, _: Role, _: &[u8]) -> Result<()> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    fn logout(&self) {
        self.pool.logout();
    }

    /// As each of the tokens.
    fn keeps_login(&self) -> bool {
        true
    }

    fn init_pin(&self, _: &[u8]) -> Result<()> {
        Err(self.refused())
    }

    fn set_pin(&self, _: Role, _: &[u8], _: &[u8]) -> Result<()> {
        Err(self.refused())
    }

    fn write(&self, _: Vec<Change>) -> Result<Vec<u64>> {
        Err(self.refused())
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        let table = self.pool.table();
        let row = table.read(id).map(|(version, private, attributes)| ObjectRow {
            version,
            private,
            verified: true,
            attributes: attributes.encode(),
            has_secrets: attributes.ulong(CKA_CLASS) == Some(CKO_PRIVATE_KEY),
        });
        Ok(row)
    }

    /// Whatever a token would show: several of them show nothing.
    fn secrets(&self, _: u64, _: u64) -> Result<Secret> {
        Secrets::new().encode()
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        if after == 0 {
            self.pool.look_at_all();
        }
        Ok(self.pool.table().search(query, scope, after, limit))
    }

    fn examine(
        &self,
        _: Role,
        _: &[u8],
        _: Examination<'_>,
        _: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        self.refused();
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    fn restored(&self) -> Result<u64> {
        Ok(0)
    }

    fn generation(&self) -> Option<u64> {
        Some(self.pool.generation())
    }

    fn home(&self) -> Option<&'static dyn Home> {
        Some(self.pool)
    }
}
