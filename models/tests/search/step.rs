// SPDX-License-Identifier: Apache-2.0
//! One call of a sequence, and its line in a file: `7 unwrap kwp k2 d6 : generic +sign`.
//!
//! Each line has a number of its own. `k2` is the object that line 2 made (of a pair the public key),
//! `p2` the private key of a pair; `d6` is what line 6 gave out, `d6.head` its first 16 bytes, `=zeros`
//! a constant. A derivation's second key is `p2`, too. What the owner does begins with `owner`.

use crate::alphabet::{self, CONSTANTS, Mechanism, Word};
use std::fmt;

/// An object, by the step that made it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Name {
    pub(crate) step: usize,
    pub(crate) private: bool,
}

impl Name {
    pub(crate) const fn of(step: usize) -> Self {
        Self { step, private: false }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.private { 'p' } else { 'k' }, self.step)
    }
}

/// Data that goes into a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data {
    Constant(&'static str, &'static [u8]),
    Output { step: usize, cut: Cut },
}

/// Which part of an output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cut {
    Whole,
    /// The first 16 bytes.
    Head,
    /// All but the first 16 bytes.
    Tail,
}

impl Data {
    /// All that a step gave out.
    pub(crate) const fn whole(step: usize) -> Self {
        Self::Output { step, cut: Cut::Whole }
    }
}

const CUTS: [(&str, Cut); 3] = [("", Cut::Whole), (".head", Cut::Head), (".tail", Cut::Tail)];

impl Cut {
    pub(crate) fn of(self, bytes: &[u8]) -> Vec<u8> {
        let (head, tail) = bytes.split_at(bytes.len().min(16));
        match self {
            Self::Whole => bytes.to_vec(),
            Self::Head => head.to_vec(),
            Self::Tail => tail.to_vec(),
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(name, _) => write!(f, "={name}"),
            Self::Output { step, cut } => {
                let name = CUTS.iter().find(|row| row.1 == *cut).map_or("", |row| row.0);
                write!(f, "d{step}{name}")
            }
        }
    }
}

/// What is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Function {
    Create,
    Generate,
    Pair,
    Copy,
    Set,
    /// The SO sets `CKA_TRUSTED`.
    Trust,
    Wrap,
    Unwrap,
    Derive,
    Encrypt,
    Decrypt,
    Sign,
    SignRecover,
    Verify,
    /// `C_DigestInit`, `C_DigestUpdate` where there is data, `C_DigestKey`, `C_DigestFinal`.
    Digest,
    /// As [`Self::Digest`], but `C_GetOperationState` at the end.
    State,
    /// `C_SetOperationState`, `C_DigestKey` and `C_DigestUpdate` where there are keys and data, `C_DigestFinal`.
    Resume,
}

const FUNCTIONS: [(&str, Function); 17] = [
    ("create", Function::Create),
    ("generate", Function::Generate),
    ("pair", Function::Pair),
    ("copy", Function::Copy),
    ("set", Function::Set),
    ("trust", Function::Trust),
    ("wrap", Function::Wrap),
    ("unwrap", Function::Unwrap),
    ("derive", Function::Derive),
    ("encrypt", Function::Encrypt),
    ("decrypt", Function::Decrypt),
    ("sign", Function::Sign),
    ("sign-recover", Function::SignRecover),
    ("verify", Function::Verify),
    ("digest", Function::Digest),
    ("state", Function::State),
    ("resume", Function::Resume),
];

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) number: usize,
    pub(crate) owner: bool,
    pub(crate) function: Function,
    pub(crate) mechanism: Option<&'static Mechanism>,
    /// In the order of the call: the wrapping key before the wrapped one, the base before the salt.
    pub(crate) keys: Vec<Name>,
    /// Verify: the data, then the signature. Digest: what comes before the keys, and after them.
    pub(crate) data: Vec<Data>,
    pub(crate) words: Vec<&'static Word>,
    /// The template of a pair's private key, or of a derivation's second key.
    pub(crate) private: Vec<&'static Word>,
}

impl Step {
    pub(crate) const fn new(number: usize, owner: bool, function: Function) -> Self {
        Self {
            number,
            owner,
            function,
            mechanism: None,
            keys: Vec::new(),
            data: Vec::new(),
            words: Vec::new(),
            private: Vec::new(),
        }
    }

    /// What a line says.
    ///
    /// # Panics
    /// Where it is no such line: the files are ours.
    pub(crate) fn parse(line: &str) -> Self {
        let mut tokens = line.split_whitespace().peekable();
        let number = tokens.next().and_then(|token| token.parse().ok()).expect("a number first");
        let owner = tokens.next_if_eq(&"owner").is_some();
        let name = tokens.next().expect("a function");
        let function = FUNCTIONS.iter().find(|row| row.0 == name).expect("a function").1;
        let mut step = Self::new(number, owner, function);
        for token in tokens.by_ref().take_while(|token| *token != ":") {
            step.take(token).unwrap_or_else(|| panic!("what is {token} in: {line}"));
        }
        let known = |token| alphabet::named(token).unwrap_or_else(|| panic!("no word {token}"));
        step.words = tokens.by_ref().take_while(|token| *token != "/").map(known).collect();
        step.private = tokens.map(known).collect();
        step
    }

    fn take(&mut self, token: &str) -> Option<()> {
        if let Some(name) = token.strip_prefix('=') {
            let (name, bytes) = CONSTANTS.iter().find(|row| row.0 == name)?;
            self.data.push(Data::Constant(name, bytes));
        } else if let Some(mechanism) = Mechanism::named(token) {
            self.mechanism = Some(mechanism);
        } else if let Some(rest) = token.strip_prefix('d') {
            let (number, _) = rest.split_once('.').unwrap_or((rest, ""));
            let cut = CUTS.iter().find(|row| row.0 == &rest[number.len()..])?.1;
            self.data.push(Data::Output { step: number.parse().ok()?, cut });
        } else {
            let (kind, number) = token.split_at_checked(1)?;
            let private = ["k", "p"].iter().position(|name| *name == kind)? == 1;
            self.keys.push(Name { step: number.parse().ok()?, private });
        }
        Some(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = FUNCTIONS.iter().find(|row| row.1 == self.function).map_or("", |row| row.0);
        write!(f, "{}{} {name}", self.number, if self.owner { " owner" } else { "" })?;
        self.mechanism.map_or(Ok(()), |mechanism| write!(f, " {}", mechanism.name))?;
        self.keys.iter().try_for_each(|key| write!(f, " {key}"))?;
        self.data.iter().try_for_each(|data| write!(f, " {data}"))?;
        for (mark, words) in [(" :", &self.words), (" /", &self.private)] {
            if !words.is_empty() || (mark == " :" && !self.private.is_empty()) {
                f.write_str(mark)?;
            }
            words.iter().try_for_each(|word| write!(f, " {}", word.name))?;
        }
        Ok(())
    }
}

/// The same steps, numbered from 1 without gaps.
pub(crate) fn numbered(steps: &[Step]) -> Vec<Step> {
    let new = |number: usize| {
        let at = steps.iter().position(|step| step.number == number);
        at.map_or(usize::MAX, |at| at + 1)
    };
    let mut all = steps.to_vec();
    for step in &mut all {
        step.number = new(step.number);
        step.keys.iter_mut().for_each(|key| key.step = new(key.step));
        for data in &mut step.data {
            if let Data::Output { step, .. } = data {
                *step = new(*step);
            }
        }
    }
    all
}
