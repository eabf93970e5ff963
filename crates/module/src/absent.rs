use metaslot_ck::{Error, Result};
use metaslot_engine::store::*;
use metaslot_memory::Secret;
#[derive(Debug)]
pub(crate) struct Absent;
impl Store for Absent {
    fn token(&self) -> Result<TokenRow> {
        Ok(TokenRow::default())
    }
    fn initialize(&self, _: &[u8], _: &str) -> Result<()> {
        Err(Error::DEVICE_ERROR)
    }
    fn login(&self, _: Role, _: &[u8]) -> Result<()> {
        Err(Error::DEVICE_ERROR)
    }
    fn check_pin(&self, _: Role, _: &[u8]) -> Result<()> {
        Err(Error::DEVICE_ERROR)
    }
    fn logout(&self) {}
    fn init_pin(&self, _: &[u8]) -> Result<()> {
        Err(Error::DEVICE_ERROR)
    }
    fn set_pin(&self, _: Role, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Error::DEVICE_ERROR)
    }
    fn write(&self, _: Vec<Change>) -> Result<Vec<u64>> {
        Err(Error::DEVICE_ERROR)
    }
    fn read(&self, _: u64) -> Result<Option<Row>> {
        Ok(None)
    }
    fn secrets(&self, _: u64, _: u64) -> Result<Secret> {
        Err(Error::DEVICE_ERROR)
    }
    fn search(&self, _: &[Term], _: bool, _: u64, _: usize) -> Result<Vec<u64>> {
        Ok(Vec::new())
    }
    fn generation(&self) -> Option<u64> {
        Some(0)
    }
    fn before_fork(&self) {}
    fn after_fork(&self) {}
}
