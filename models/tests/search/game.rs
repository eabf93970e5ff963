// SPDX-License-Identifier: Apache-2.0
//! One sequence against one engine: after each call, what is true and what the attacker knows of it.

use crate::alphabet::Mechanism;
use crate::knowledge::{self, How, Knowledge, decoded, derives, guess, is_mac};
use crate::stage::{Done, Facts, Stage, Stock};
use crate::step::{Function, Name, Step};
use crate::truth::{Standing, Truth, Value, Wrapped};
use crate::verdict::{self, Breach, Finding};
use metaslot_ck::*;

#[derive(Debug)]
pub(crate) struct Game<'a> {
    pub(crate) stage: Stage<'a>,
    pub(crate) truth: Truth,
    knowledge: Knowledge,
    /// What wraps and encryptions gave out.
    streams: Vec<(usize, &'static Mechanism, Vec<u8>)>,
    /// Keys that computed a GMAC, as indices of values.
    gmacs: Vec<usize>,
}

impl<'a> Game<'a> {
    pub(crate) fn new(stock: &'a Stock) -> Self {
        Self {
            stage: Stage::new(stock),
            truth: Truth::default(),
            knowledge: Knowledge::new(),
            streams: Vec::new(),
            gmacs: Vec::new(),
        }
    }

    /// All steps; the first finding, and the number of steps that led to it. What fails is left out.
    pub(crate) fn replay(stock: &'a Stock, steps: &[Step]) -> Option<(Finding, usize)> {
        let mut game = Self::new(stock);
        let mut played =
            (1..).zip(steps).map(|(count, step)| Some((game.play(step).ok()??, count)));
        played.find_map(|found| found)
    }

    /// Makes a call. `Ok(None)`: it succeeded, and led to nothing that is forbidden.
    pub(crate) fn play(&mut self, step: &Step) -> Result<Option<Finding>> {
        let done = match self.stage.play(step) {
            // It was judged: anyone who asks again and again can tell right from wrong.
            Err(Error::SIGNATURE_INVALID) => Done::Nothing,
            other => other?,
        };
        let breach = self.used(step).map(Finding::Used);
        let found = match done {
            Done::Made(names) => self.all_made(step, &names),
            Done::Gave(bytes) => self.gave(step, bytes),
            Done::Nothing => self.changed(step),
        };
        Ok(if step.owner { None } else { breach.or(found) })
    }

    fn value(&self, step: &Step, at: usize) -> Option<&Value> {
        step.keys.get(at).and_then(|name| self.truth.value(*name))
    }

    fn used(&self, step: &Step) -> Option<Breach> {
        let name = *step.keys.first()?;
        let class = self.stage.facts(name)?.class;
        let other = self.value(step, 1);
        let key = self.truth.value(name)?;
        let used = verdict::breach(step, key, other).filter(|_| class != CKO_PUBLIC_KEY);
        let wrapped = || verdict::wrapped(other.filter(|_| step.function == Function::Wrap)?, key);
        used.or_else(wrapped)
    }

    fn changed(&mut self, step: &Step) -> Option<Finding> {
        let name = *step.keys.first()?;
        match step.function {
            Function::Trust => {
                let index = self.truth.of(name)?;
                self.truth.values[index].trusted = true;
                None
            }
            Function::Set => self.read(name),
            _ => None,
        }
    }

    /// New objects. A public key has the value of its private half.
    fn all_made(&mut self, step: &Step, names: &[Name]) -> Option<Finding> {
        let values = self.stage.stored();
        if step.function == Function::Pair {
            let found = self.made(step, names[1], values.into_iter().next_back()?);
            self.truth.same(names[0], self.truth.of(names[1])?);
            return found;
        }
        let mut values = values.into_iter();
        let made = names.iter().map(|name| (*name, values.next().unwrap_or_default()));
        let made: Vec<_> = made.collect();
        made.into_iter().filter_map(|(name, bytes)| self.made(step, name, bytes)).last()
    }

    /// A new object: whose value it has, and whether that may be read.
    fn made(&mut self, step: &Step, name: Name, mut bytes: Vec<Vec<u8>>) -> Option<Finding> {
        let facts = self.stage.facts(name)?;
        if let [value] = &bytes[..]
            && value.len() > 64
        {
            // An HMAC uses the digest of so long a key (RFC 2104 §2).
            let digest = knowledge::digest(value);
            bytes.push(digest);
        }
        let parent = step.keys.first().and_then(|key| self.truth.of(*key));
        let mut breach = self.imposed(step, &facts);
        let standing = match step.function {
            Function::Copy => {
                self.truth.same(name, parent?);
                let value = &self.truth.values[parent?];
                let born = value.standing == Standing::Protected && facts.class != CKO_PUBLIC_KEY;
                let only = born && !value.birth.has(CKA_COPYABLE);
                return only.then_some(Finding::Used(Breach::Copied)).or_else(|| self.read(name));
            }
            Function::Unwrap => {
                let blob = step.data.first().and_then(|data| self.stage.data(data).ok())?;
                self.truth.unwrapped(parent?, &blob, &bytes, facts.class)
            }
            Function::Derive => {
                let base = self.stage.facts(step.keys[0])?;
                let secret = |name: &Name| self.truth.value(*name).is_some_and(Value::is_secret);
                let keeps = base.class == CKO_SECRET_KEY || base.hides();
                if keeps && !base.readable() && secret(&step.keys[0]) {
                    breach = breach.or_else(|| verdict::derived(&base, &facts));
                    Standing::Derived
                } else {
                    if !step.keys[1..].iter().any(secret) {
                        bytes.iter().for_each(|value| self.knowledge.learn(value.clone()));
                    }
                    Standing::Free
                }
            }
            Function::Create if !step.owner => Standing::Free,
            _ if facts.readable() => Standing::Free,
            _ => Standing::Protected,
        };
        if facts.class == CKO_DATA {
            return breach.map(Finding::Used);
        }
        // What the SO trusts is public, because he sees no other, and so is a copy that was made before.
        let trusted = parent.is_some_and(|parent| self.truth.values[parent].trusted);
        let shown = !facts.has(CKA_PRIVATE) && !trusted;
        let index = self.truth.note(name, bytes, facts, standing);
        if let (Some(parent), true) = (parent, step.mechanism.is_some_and(Mechanism::extracts)) {
            self.truth.extracted.insert(index, parent);
        }
        let value = &self.truth.values[index];
        let born = value.standing == Standing::Protected && value.birth.has(CKA_PRIVATE);
        let breach = breach.or_else(|| (shown && born).then_some(Breach::Shown));
        breach.map(Finding::Used).or_else(|| self.read(name))
    }

    /// Whether a new key is what its parent imposes: as that was born, so that no copy imposes less.
    fn imposed(&self, step: &Step, made: &Facts) -> Option<Breach> {
        let parent = *step.keys.first()?;
        let now = self.stage.facts(parent)?;
        let value = self.truth.value(parent).filter(|value| value.standing == Standing::Protected);
        let imposed = value.map_or(&now, |value| &value.birth).imposed_on(step.function, made);
        let base = self.truth.of(parent).and_then(|of| self.truth.extracted.get(&of));
        let base = base.map(|index| &self.truth.values[*index]).filter(|base| base.is_secret());
        let beyond = base.is_some_and(|base| base.birth.is_exceeded_by(made));
        (!imposed || beyond).then_some(Breach::Imposed)
    }

    fn read(&mut self, name: Name) -> Option<Finding> {
        let shown = self.stage.read(name);
        if let Some(value) = self.truth.value(name)
            && value.is_secret()
            && shown.iter().any(|bytes| value.bytes.contains(bytes))
        {
            return Some(Finding::Held(How::Read, value.standing));
        }
        shown.into_iter().find_map(|bytes| self.learn(bytes, How::Read))
    }

    /// Something new is known: what follows from it?
    fn learn(&mut self, bytes: Vec<u8>, how: How) -> Option<Finding> {
        let found = self.truth.secrets().find(|value| value.is_in(&bytes));
        let found = found.map(|value| Finding::Held(how, value.standing));
        self.knowledge.learn(bytes);
        found.or_else(|| {
            let open = self.knowledge.opens(&self.truth)?;
            Some(Finding::Held(How::KnownKey, open.standing))
        })
    }

    fn gave(&mut self, step: &Step, bytes: Vec<u8>) -> Option<Finding> {
        let key = step.keys.first().and_then(|name| self.truth.of(*name));
        if let (Function::Wrap, Some(mechanism)) = (step.function, step.mechanism) {
            let other = step.keys.get(1).and_then(|name| self.truth.of(*name));
            let (step, bytes) = (step.number, bytes.clone());
            self.truth.wraps.push(Wrapped { step, mechanism, by: key?, key: other?, bytes });
        }
        let computed = self.computed(step, &bytes);
        if let (Function::Wrap | Function::Encrypt, Some(by)) = (step.function, step.mechanism) {
            self.streams.push((step.number, by, bytes.clone()));
        }
        let held = |how| move |value: &Value| Finding::Held(how, value.standing);
        self.learn(bytes, How::Given).or(computed).or_else(|| {
            let value = self.knowledge.subtracts(&self.truth, &self.streams);
            value.map(held(How::OneStream))
        })
    }

    /// What follows from an output with the key that gave it.
    fn computed(&mut self, step: &Step, bytes: &[u8]) -> Option<Finding> {
        let key = step.keys.first().and_then(|name| self.truth.of(*name));
        let number = step.mechanism.map_or(UNAVAILABLE, |mechanism| mechanism.number);
        let held = |how| move |value: &Value| Finding::Held(how, value.standing);
        let computes = !matches!(step.function, Function::Wrap | Function::State);
        if computes && bytes.len() == 256 {
            let plain = decoded(bytes)?;
            return self.truth.secrets().find(|value| value.is_in(&plain)).map(held(How::Encoded));
        }
        let secrets = self.truth.secrets().any(|value| value.standing == Standing::Derived);
        if computes && secrets && (16..=64).contains(&bytes.len()) {
            let found = derives(&self.truth, bytes).map(held(How::Computed));
            if found.is_some() {
                return found;
            }
        }
        let value = key.map(|key| &self.truth.values[key]);
        if step.function == Function::Resume
            && value.is_some_and(|v| {
                v.standing == Standing::Protected
                    && !v.birth.has(CKA_SIGN)
                    && is_mac(v.main(), bytes)
            })
        {
            return Some(Finding::Used(Breach::Usage(CKA_SIGN)));
        }
        if step.function == Function::Sign && value.is_some_and(Value::begins_encoded) {
            return value.map(held(How::Guessed));
        }
        if number == CKM_SHA256_HMAC && value.is_some_and(|v| v.is_secret() && v.main().len() == 1)
        {
            let data = self.stage.data(step.data.first()?).ok()?;
            return guess(number, &data, bytes).and(value).map(held(How::Guessed));
        }
        if number == CKM_AES_GMAC {
            self.gmacs.extend(key);
        }
        let opened = self.truth.wraps.iter().find(|wrap| {
            let secret = self.truth.values[wrap.key].is_secret();
            secret && wrap.mechanism.streams() && self.gmacs.contains(&wrap.by)
        });
        opened.map(|wrap| &self.truth.values[wrap.key]).map(held(How::MacOracle))
    }
}
