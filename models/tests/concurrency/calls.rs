// SPDX-License-Identifier: Apache-2.0
//! Which calls a history makes. Each has its own mixture (swarm testing, Groce and others 2012): what
//! is left out leaves more room for the rest to meet.

use crate::history::{Call, Change, Kind};
use crate::stage::Stage;
use metaslot_models::chance::Chance;

#[derive(Clone, Copy, Debug)]
enum Act {
    Open,
    Close,
    Login,
    Logout,
    Create,
    Copy,
    Set,
    Protect,
    Get,
    Find,
    Use,
    Encrypt,
    Destroy,
    InitToken,
}

const ACTS: [Act; 14] = [
    Act::Open,
    Act::Close,
    Act::Login,
    Act::Logout,
    Act::Create,
    Act::Copy,
    Act::Set,
    Act::Protect,
    Act::Get,
    Act::Find,
    Act::Use,
    Act::Encrypt,
    Act::Destroy,
    Act::InitToken,
];

/// How often each call is made, and of what.
#[derive(Clone, Debug)]
pub(crate) struct Mixture {
    weights: [u64; ACTS.len()],
    kinds: &'static [Kind],
}

/// Mixtures in which two things meet that are likely to disturb each other.
const FOCUSED: &[(&str, &[Kind], &[Act])] = &[
    (
        "logout",
        &[Kind::TokenKey, Kind::PrivateKey],
        &[Act::Login, Act::Logout, Act::Create, Act::Get, Act::Find, Act::Use, Act::Encrypt],
    ),
    (
        "destroy",
        &[Kind::TokenKey],
        &[Act::Open, Act::Create, Act::Get, Act::Use, Act::Encrypt, Act::Destroy],
    ),
    ("protect", &[Kind::PublicKey], &[Act::Set, Act::Protect, Act::Get]),
    ("resurrect", &[Kind::PublicKey], &[Act::Set, Act::Get, Act::Destroy]),
    ("change", &[Kind::TokenKey, Kind::TokenData], &[Act::Set, Act::Protect, Act::Get, Act::Use]),
    ("name", &[Kind::TokenKey], &[Act::Create, Act::Copy, Act::Find, Act::Login, Act::Logout]),
    ("close", &Kind::ALL, &[Act::Open, Act::Close, Act::Login, Act::Create, Act::Get, Act::Use]),
    ("officer", &Kind::ALL, &[Act::Open, Act::Close, Act::Login, Act::Logout, Act::Find]),
    ("init", &Kind::ALL, &[Act::Open, Act::Close, Act::Login, Act::Create, Act::InitToken]),
];

impl Mixture {
    /// The mixture called `name`, or any.
    pub(crate) fn new(chance: &mut Chance, name: Option<&str>) -> Self {
        let named = FOCUSED.iter().find(|focused| Some(focused.0) == name);
        let focused = chance.is(1, 2).then(|| chance.one_of(FOCUSED));
        let mut weights = [0; ACTS.len()];
        if let Some((_, kinds, acts)) = named.copied().or(focused) {
            for act in acts {
                weights[*act as usize] = 1 + chance.below(4);
            }
            return Self { weights, kinds };
        }
        for weight in &mut weights {
            *weight = if chance.is(1, 2) { 1 + chance.below(6) } else { 0 };
        }
        weights[chance.index(ACTS.len())] += 1;
        Self { weights, kinds: &Kind::ALL }
    }

    /// The same without what a real store answers otherwise than the model: `C_InitToken` takes the
    /// user's PIN away, and what was written in a login is not changed without one.
    pub(crate) fn over_a_real_store(mut self) -> Self {
        self.kinds = match self.kinds.contains(&Kind::TokenData) {
            true => &[Kind::TokenKey, Kind::PrivateKey, Kind::PublicKey],
            false => self.kinds,
        };
        self.weights[Act::InitToken as usize] = 0;
        self.weights[Act::Get as usize] += 1;
        self
    }

    /// The kinds of things that there are.
    pub(crate) const fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    fn act(&self, chance: &mut Chance) -> Act {
        let mut left = chance.below(self.weights.iter().sum());
        for (act, weight) in ACTS.iter().zip(self.weights) {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return *act,
            }
        }
        Act::Get
    }

    /// A call with handles that a call gave before, mostly of the thread's own process.
    pub(crate) fn call(&self, stage: &Stage, home: u8, chance: &mut Chance) -> Call {
        let process = if chance.is(1, 8) { 1 - home } else { home };
        let session = stage.sessions[usize::from(process)].one(chance).0;
        let (object, kind) = stage.objects[usize::from(process)].one(chance);
        match self.act(chance) {
            Act::Open => {
                let (write, asynchronous) = (chance.is(5, 6), chance.is(1, 3));
                Call::Open { process, write, asynchronous }
            }
            Act::Close => Call::Close { session },
            Act::Login => Call::Login { session, user: chance.is(5, 6) },
            Act::Logout => Call::Logout { session },
            Act::Create => {
                let kind = chance.one_of(self.kinds);
                Call::Create { session, kind, tag: stage.tag(kind) }
            }
            Act::Copy if kind.is_key() => {
                let token = kind.private() && chance.is(1, 2);
                Call::Copy { session, object, token, tag: stage.tag(kind.copied(token)) }
            }
            Act::Set if chance.is(1, 6) => Call::Set { session, object, change: Change::Single },
            Act::Set => {
                let label = 1 + u8::from(chance.is(1, 2));
                Call::Set { session, object, change: Change::Label(label) }
            }
            Act::Protect if kind.is_key() => {
                Call::Set { session, object, change: Change::Sensitive }
            }
            Act::Use if kind.is_key() => Call::Use { session, object },
            Act::Get | Act::Protect | Act::Use | Act::Copy => Call::Get { session, object },
            Act::Find => Call::Find { session, tag: stage.known_tag(chance) },
            Act::Encrypt => Call::Encrypt { session },
            Act::Destroy => Call::Destroy { session, object },
            Act::InitToken => Call::InitToken { process },
        }
    }
}
