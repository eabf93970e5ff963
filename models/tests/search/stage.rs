// SPDX-License-Identifier: Apache-2.0
//! Plays steps against an engine of its own, and sees what no caller sees: the values of keys.

use crate::alphabet;
use crate::step::{Data, Function, Name, Step};
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_engine::{Answer, Apart, Engine, NonceBy, Policy};
use metaslot_lanes::provider::Lanes;
use metaslot_models::{MemoryStore, collect, engine_by, open, row};
use metaslot_spi::provider::Direction::{Backward, Forward};
use metaslot_spi::provider::Provider;
use metaslot_spi::store::{Change, Record, Store};
use metaslot_spi::{Attributes, Params, Secrets, Template, Value};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Of RSA in one sequence: each has a stock of its own, so that no two are the same.
const MAX_PAIRS: usize = 2;

/// Where the values of keys are.
pub(crate) const SECRET_ATTRIBUTES: [CK_ATTRIBUTE_TYPE; 4] =
    [CKA_VALUE, CKA_PRIVATE_EXPONENT, CKA_PRIME_1, CKA_PRIME_2];
const SO_PIN: &[u8] = b"so-pin";
const PIN: &[u8] = b"user-pin";

/// What a step led to.
#[derive(Debug)]
pub(crate) enum Done {
    Made(Vec<Name>),
    Gave(Vec<u8>),
    /// Attributes changed, or a signature was judged.
    Nothing,
}

/// An object as it is now.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) class: u64,
    pub(crate) key_type: u64,
    on: Vec<CK_ATTRIBUTE_TYPE>,
    pub(crate) allowed: Vec<u64>,
    /// What its templates impose on the keys that it unwraps and derives.
    unwraps: Vec<(CK_ATTRIBUTE_TYPE, bool)>,
    derives: Vec<(CK_ATTRIBUTE_TYPE, bool)>,
}

impl Facts {
    /// Whether this attribute is true.
    pub(crate) fn has(&self, attribute: CK_ATTRIBUTE_TYPE) -> bool {
        self.on.contains(&attribute)
    }

    /// Whether a key that this one unwrapped or derived is what its template imposes.
    pub(crate) fn imposed_on(&self, function: Function, made: &Self) -> bool {
        let imposed = match function {
            Function::Unwrap => &self.unwraps,
            Function::Derive => &self.derives,
            _ => return true,
        };
        imposed.iter().all(|(attribute, flag)| made.has(*attribute) == *flag)
    }

    /// Whether its template keeps all that is derived from it from being read.
    pub(crate) fn hides(&self) -> bool {
        self.derives.contains(&(CKA_SENSITIVE, true))
            || self.derives.contains(&(CKA_EXTRACTABLE, false))
    }

    /// Whether what was derived from this one has a usage that its template switches off.
    pub(crate) fn is_exceeded_by(&self, made: &Self) -> bool {
        self.derives.iter().any(|(attribute, flag)| !flag && made.has(*attribute))
    }

    /// Whether its value may be read.
    pub(crate) fn readable(&self) -> bool {
        match self.class {
            CKO_SECRET_KEY | CKO_PRIVATE_KEY => {
                !self.has(CKA_SENSITIVE) && self.has(CKA_EXTRACTABLE)
            }
            _ => true,
        }
    }
}

/// RSA pairs, which take long to make: each is made once for its templates and put into other stages.
#[derive(Debug)]
pub(crate) struct Stock {
    pub(crate) policy: Policy,
    pairs: Mutex<BTreeMap<String, Rows>>,
}

type Rows = Vec<(Attributes, Vec<u8>)>;

impl Stock {
    pub(crate) const fn new(policy: Policy) -> Self {
        Self { policy, pairs: Mutex::new(BTreeMap::new()) }
    }
}

/// An engine with one token, and the user's session.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    engine: Engine,
    store: MemoryStore,
    session: SessionHandle,
    stock: &'a Stock,
    pairs_made: usize,
    objects: BTreeMap<Name, ObjectHandle>,
    outputs: BTreeMap<usize, Vec<u8>>,
    last_row: u64,
}

/// Which provider is asked first changes from one stage to the next: a key is as safe with each.
fn next_providers() -> &'static [&'static dyn Provider] {
    static LANES: Lanes = Lanes::beside(&AWSLC);
    static ORDERS: [&[&dyn Provider]; 2] = [&[&LANES, &AWSLC], &[&AWSLC, &LANES]];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    ORDERS[NEXT.fetch_add(1, Ordering::Relaxed) % ORDERS.len()]
}

impl<'a> Stage<'a> {
    pub(crate) fn new(stock: &'a Stock) -> Self {
        let store = MemoryStore::default();
        let engine = engine_by(next_providers(), store.clone(), stock.policy);
        let session = open(&engine);
        engine.login(session, CKU_USER, PIN).expect("the PIN is right");
        let (objects, outputs) = (BTreeMap::new(), BTreeMap::new());
        Self { engine, store, session, stock, pairs_made: 0, objects, outputs, last_row: 0 }
    }

    /// Objects that are there, in the order of their making.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Name> {
        self.objects.keys().copied()
    }

    /// Steps that gave data out.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.outputs.iter().map(|(step, bytes)| (*step, &bytes[..]))
    }

    /// The bytes, where the step that gives them was played.
    pub(crate) fn data(&self, data: &Data) -> Result<Vec<u8>> {
        match data {
            Data::Constant(_, bytes) => Ok(bytes.to_vec()),
            Data::Output { step, cut } => {
                self.outputs.get(step).map(|bytes| cut.of(bytes)).ok_or(Error::DATA_INVALID)
            }
        }
    }

    /// What anybody may read of an object.
    pub(crate) fn facts(&self, name: Name) -> Option<Facts> {
        let object = self.engine.object(self.session, *self.objects.get(&name)?).ok()?;
        let on = |attribute: &CK_ATTRIBUTE_TYPE| {
            matches!(object.answer(*attribute), Ok(Answer::Value(Value::Bool(true))))
        };
        let allowed = match object.answer(CKA_ALLOWED_MECHANISMS) {
            Ok(Answer::Value(Value::Ulongs(numbers))) => numbers.clone(),
            _ => Vec::new(),
        };
        let key_type = match object.answer(CKA_KEY_TYPE) {
            Ok(Answer::Value(Value::Ulong(key_type))) => *key_type,
            _ => UNAVAILABLE,
        };
        let flags = |template| match object.answer(template) {
            Ok(Answer::Value(Value::Template(rows))) => {
                let flag = |row: (_, &Value)| match row {
                    (attribute, Value::Bool(flag)) => Some((attribute, *flag)),
                    _ => None,
                };
                rows.iter().filter_map(flag).collect()
            }
            _ => Vec::new(),
        };
        let (unwraps, derives) = (flags(CKA_UNWRAP_TEMPLATE), flags(CKA_DERIVE_TEMPLATE));
        let on = FLAGS.iter().copied().filter(on).collect();
        Some(Facts { class: object.class(), key_type, on, allowed, unwraps, derives })
    }

    /// What `C_GetAttributeValue` gives of the value.
    pub(crate) fn read(&self, name: Name) -> Vec<Vec<u8>> {
        let Some(handle) = self.objects.get(&name) else { return Vec::new() };
        let Ok(object) = self.engine.object(self.session, *handle) else { return Vec::new() };
        let shown = |attribute: &CK_ATTRIBUTE_TYPE| match object.answer(*attribute) {
            Ok(Answer::Secret(bytes)) => Some(bytes.to_vec()),
            Ok(Answer::Value(Value::Bytes(bytes))) => Some(bytes.clone()),
            _ => None,
        };
        SECRET_ATTRIBUTES.iter().filter_map(shown).collect()
    }

    /// The values of what was stored since the last time: what no caller may see.
    pub(crate) fn stored(&mut self) -> Vec<Vec<Vec<u8>>> {
        let rows = self.store.rows_above(self.last_row);
        self.last_row = rows.last().map_or(self.last_row, |row| row.0);
        let values = |secrets: &Secrets| {
            SECRET_ATTRIBUTES
                .iter()
                .filter_map(|value| Some(secrets.get(*value)?.to_vec()))
                .collect()
        };
        rows.iter().map(|(_, _, secrets)| values(secrets)).collect()
    }

    /// Makes the call. What it made and gave is there for later steps by the step's number.
    pub(crate) fn play(&mut self, step: &Step) -> Result<Done> {
        let done = self.call(step)?;
        if let Done::Gave(bytes) = &done {
            self.outputs.insert(step.number, bytes.clone());
        }
        Ok(done)
    }

    /// What is wrapped, behind the nonce where the token says one.
    fn wrap(
        &self,
        step: &Step,
        number: CK_MECHANISM_TYPE,
        params: impl Fn() -> Result<Params>,
    ) -> Result<Vec<u8>> {
        let (engine, session) = (&self.engine, self.session);
        let (by, key) = (self.key(step, 0)?, self.key(step, 1)?);
        if !step.mechanism.is_some_and(alphabet::Mechanism::is_told) {
            return collect(|out| engine.wrap_key(session, number, params()?, by, key, out));
        }
        let mut apart = Apart { fixed_bits: Some(0), ..Apart::default() };
        let wrapped = collect(|out| {
            let chosen = (number, params()?);
            engine.wrap_key_apart(session, chosen, by, key, Some(&mut apart), out)
        })?;
        Ok([&apart.nonce, &wrapped[..]].concat())
    }

    fn unwrap(
        &self,
        step: &Step,
        number: CK_MECHANISM_TYPE,
        params: Params,
        wrapped: &[u8],
    ) -> Result<ObjectHandle> {
        let (engine, session) = (&self.engine, self.session);
        let (by, template) = (self.key(step, 0)?, self.template(step));
        match step.mechanism.filter(|mechanism| mechanism.is_told()) {
            Some(mechanism) => {
                let (nonce, wrapped) =
                    wrapped.split_first_chunk().ok_or(Error::WRAPPED_KEY_LEN_RANGE)?;
                let chosen = (number, mechanism.told(*nonce), NonceBy::Token);
                engine.unwrap_key_apart(session, chosen, by, wrapped, template)
            }
            None => engine.unwrap_key(session, number, params, by, wrapped, template),
        }
    }

    fn call(&mut self, step: &Step) -> Result<Done> {
        let number = step.mechanism.map_or(UNAVAILABLE, |mechanism| mechanism.number);
        let salt = step.keys.get(1).map_or(Ok(ObjectHandle(0)), |_| self.key(step, 1));
        let params = || -> Result<_> {
            step.mechanism.map(|by| Ok(by.params(salt?))).ok_or(Error::MECHANISM_INVALID)?
        };
        let input = |at: usize| step.data.get(at).map_or_else(|| Ok(Vec::new()), |d| self.data(d));
        let (engine, session) = (&self.engine, self.session);
        let name = Name::of(step.number);
        let made = match step.function {
            Function::Create => engine.create_object(session, self.template(step))?,
            Function::Generate => {
                engine.generate_key(session, number, params()?, self.template(step))?
            }
            Function::Pair => return self.pair(step, number),
            Function::Copy => {
                engine.copy_object(session, self.key(step, 0)?, labelled(&step.words, name))?
            }
            Function::Set => {
                let template = alphabet::template(&step.words);
                engine.set_attributes(session, self.key(step, 0)?, template)?;
                return Ok(Done::Nothing);
            }
            Function::Trust => return self.trust(step),
            Function::Unwrap => self.unwrap(step, number, params()?, &input(0)?)?,
            Function::Derive => return self.derive(step, number, params()?),
            Function::Wrap => return self.wrap(step, number, params).map(Done::Gave),
            Function::Encrypt | Function::Decrypt => {
                let encrypts = step.function == Function::Encrypt;
                let direction = if encrypts { Forward } else { Backward };
                let data = input(0)?;
                engine.cipher_init(direction, session, number, params()?, self.key(step, 0)?)?;
                return collect(|out| engine.cipher(direction, session, &data, out))
                    .map(Done::Gave);
            }
            Function::Sign => {
                let data = input(0)?;
                engine.sign_init(session, number, params()?, self.key(step, 0)?)?;
                return collect(|out| engine.sign(session, &data, out)).map(Done::Gave);
            }
            Function::SignRecover => {
                let data = input(0)?;
                engine.sign_recover_init(session, number, params()?, self.key(step, 0)?)?;
                return collect(|out| engine.sign_recover(session, &data, out)).map(Done::Gave);
            }
            Function::Verify => {
                let (data, signature) = (input(0)?, input(1)?);
                engine.verify_init(session, number, params()?, self.key(step, 0)?)?;
                return engine.verify(session, &data, &signature).map(|()| Done::Nothing);
            }
            Function::Digest | Function::State => return self.digest(step, number),
            Function::Resume => {
                let none = ObjectHandle(0);
                engine.set_operation_state(session, &input(0)?, none, none)?;
                let result = self.resumed(step);
                if result.is_err() {
                    drop(collect(|out| engine.digest_final(session, out)));
                }
                return result;
            }
        };
        self.objects.insert(name, made);
        Ok(Done::Made(vec![name]))
    }

    fn key(&self, step: &Step, at: usize) -> Result<ObjectHandle> {
        let name = step.keys.get(at).ok_or(Error::KEY_HANDLE_INVALID)?;
        self.objects.get(name).copied().ok_or(Error::KEY_HANDLE_INVALID)
    }

    /// The words, a label to find the object by, and a place in the store, where its value is seen.
    fn template(&self, step: &Step) -> Template {
        in_store(labelled(&step.words, Name::of(step.number)))
    }

    /// One key, or two of one derivation.
    fn derive(
        &mut self,
        step: &Step,
        mechanism: CK_MECHANISM_TYPE,
        mut params: Params,
    ) -> Result<Done> {
        let mut names = vec![Name::of(step.number)];
        if let Params::Sp800108 { additional, .. } = &mut params
            && !step.private.is_empty()
        {
            names.push(Name { private: true, ..names[0] });
            additional.push(in_store(labelled(&step.private, names[1])));
        }
        let (base, template) = (self.key(step, 0)?, self.template(step));
        let (key, more) =
            self.engine.derive_key(self.session, mechanism, params, base, template)?;
        self.objects.extend(names.iter().copied().zip(std::iter::once(key).chain(more)));
        Ok(Done::Made(names))
    }

    fn pair(&mut self, step: &Step, mechanism: CK_MECHANISM_TYPE) -> Result<Done> {
        let public = Name::of(step.number);
        let names = vec![public, Name { private: true, ..public }];
        let slow = mechanism == CKM_RSA_PKCS_KEY_PAIR_GEN;
        if slow && self.pairs_made == MAX_PAIRS {
            return Err(Error::DEVICE_MEMORY);
        }
        let what = format!("{} {:?} {:?}", self.pairs_made, step.words, step.private);
        let made = slow.then(|| self.stock.pairs.lock().expect("no panic").get(&what).cloned());
        if let Some(rows) = made.flatten() {
            let records =
                names.iter().zip(rows).map(|(name, row)| Change::Insert(record(*name, row)));
            self.store.write(records.collect())?;
            self.find(&names)?;
        } else {
            let before = self.store.rows_above(0).last().map_or(0, |row| row.0);
            let template = in_store(labelled(&step.words, public));
            let private = in_store(labelled(&step.private, names[1]));
            let params = Params::None;
            let session = self.session;
            let made =
                self.engine.generate_key_pair(session, mechanism, params, template, private)?;
            self.objects.extend([(names[0], made.0), (names[1], made.1)]);
            let rows = self.store.rows_above(before).into_iter();
            let rows = rows.map(|(_, all, secrets)| {
                (all, secrets.encode().expect("there is memory").expose().to_vec())
            });
            self.stock.pairs.lock().expect("no panic").insert(what, rows.collect());
        }
        self.pairs_made += usize::from(slow);
        Ok(Done::Made(names))
    }

    /// Handles of objects that are in the store, by their labels.
    fn find(&mut self, names: &[Name]) -> Result<()> {
        for name in names {
            self.engine.find_init(self.session, vec![row(CKA_LABEL, name.to_string().as_str())])?;
            let found = self.engine.find(self.session, 1);
            self.engine.find_final(self.session)?;
            match found?.first() {
                Some(handle) => drop(self.objects.insert(*name, *handle)),
                None => drop(self.objects.remove(name)),
            }
        }
        Ok(())
    }

    fn trust(&mut self, step: &Step) -> Result<Done> {
        let names: Vec<Name> = self.objects().collect();
        self.engine.logout(self.session)?;
        self.engine.login(self.session, CKU_SO, SO_PIN)?;
        let trusted = self.find(&step.keys).and_then(|()| self.key(step, 0)).and_then(|key| {
            self.engine.set_attributes(self.session, key, vec![row(CKA_TRUSTED, true)])
        });
        self.engine.logout(self.session)?;
        self.engine.login(self.session, CKU_USER, PIN)?;
        self.find(&names)?;
        trusted.map(|()| Done::Nothing)
    }

    /// The rest of a digest: the keys, then the data behind its state.
    fn resumed(&self, step: &Step) -> Result<Done> {
        for at in 0..step.keys.len() {
            self.engine.digest_key(self.session, self.key(step, at)?)?;
        }
        for data in step.data.iter().skip(1) {
            self.engine.digest_update(self.session, &self.data(data)?)?;
        }
        collect(|out| self.engine.digest_final(self.session, out)).map(Done::Gave)
    }

    fn digest(&self, step: &Step, mechanism: CK_MECHANISM_TYPE) -> Result<Done> {
        let (engine, session) = (&self.engine, self.session);
        let data = |at: usize| step.data.get(at).map(|data| self.data(data)).transpose();
        let (before, after) = (data(0)?, data(1)?);
        let keys = (0..step.keys.len()).map(|at| self.key(step, at)).collect::<Result<Vec<_>>>()?;
        engine.digest_init(session, mechanism)?;
        let digest = || {
            before.map_or(Ok(()), |data| engine.digest_update(session, &data))?;
            keys.iter().try_for_each(|key| engine.digest_key(session, *key))?;
            after.map_or(Ok(()), |data| engine.digest_update(session, &data))?;
            if step.function == Function::State {
                return Ok(engine.operation_state(session)?.expose().to_vec());
            }
            collect(|out| engine.digest_final(session, out))
        };
        let result = digest();
        if step.function == Function::State || result.is_err() {
            // Whatever is left of the operation ends here.
            drop(collect(|out| engine.digest_final(session, out)));
        }
        result.map(Done::Gave)
    }
}

fn labelled(words: &[&'static alphabet::Word], name: Name) -> Template {
    let mut template = alphabet::template(words);
    template.push(row(CKA_LABEL, name.to_string().as_str()));
    template
}

fn in_store(mut template: Template) -> Template {
    template.retain(|row| row.0 != CKA_TOKEN);
    template.push(row(CKA_TOKEN, true));
    template
}

fn record(name: Name, (mut all, secrets): (Attributes, Vec<u8>)) -> Record {
    let label = name.to_string().into_bytes();
    all.set(CKA_LABEL, Value::Bytes(label.clone()));
    let secrets = (!secrets.is_empty()).then(|| metaslot_memory::Secret::copy_of(&secrets));
    let private = all.bool(CKA_PRIVATE);
    Record { private, attributes: all.encode(), secrets, terms: vec![(CKA_LABEL, label)] }
}

/// Attributes that are true or false.
const FLAGS: &[CK_ATTRIBUTE_TYPE] = &[
    CKA_ENCRYPT,
    CKA_DECRYPT,
    CKA_SIGN,
    CKA_SIGN_RECOVER,
    CKA_VERIFY,
    CKA_WRAP,
    CKA_UNWRAP,
    CKA_DERIVE,
    CKA_PRIVATE,
    CKA_COPYABLE,
    CKA_SENSITIVE,
    CKA_EXTRACTABLE,
    CKA_TRUSTED,
    CKA_WRAP_WITH_TRUSTED,
    CKA_ALWAYS_AUTHENTICATE,
];
