// SPDX-License-Identifier: Apache-2.0
//! Who has opened a token that all clients share, and what is known of the daemon's own PIN.

use metaslot_spi::store::Role;

/// Who has opened the store.
#[derive(Debug, Default)]
pub(crate) struct Login {
    pub(crate) role: Option<Role>,
    /// How often it was opened: a login of before is none.
    pub(crate) times: u64,
    /// The daemon's PIN is right, too: it has opened the store, or could have.
    pub(crate) own: Option<Owner>,
    /// How many clients.
    pub(crate) clients: usize,
    /// Of the daemon's PIN, which outlasts what is open.
    pub(crate) pin: Known,
}

/// What is known of the daemon's PIN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// It has been tried, or could have been. What comes of that at the start is told by the service.
    pub(crate) tried: bool,
    /// It is not this one's any more: each further try would count, and lock it in the end.
    pub(crate) refused: Option<Refused>,
    /// Until when it was said that it is not tried.
    pub(crate) pause: u64,
}

/// Whose the daemon's PIN is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Owner {
    /// The user without a name.
    User,
    /// The incarnation: an identity that is added again under that name has another.
    Identity(u64),
}

/// A PIN of the daemon that was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    owner: Owner,
    times: u32,
}

impl Refused {
    /// After this one.
    pub(crate) fn again(before: Option<Self>, owner: Owner) -> Self {
        let before = before.filter(|before| before.owner == owner);
        Self { owner, times: 1 + before.map_or(0, |before| before.times) }
    }

    /// Whether it is not tried again.
    pub(crate) fn holds(self, owner: Owner) -> bool {
        self.owner == owner && self.times >= owner.tries()
    }
}

impl Owner {
    /// How often a wrong PIN of this one is tried: that of an identity is refused as well where another's failure has begun a pause in the
    /// same moment.
    const fn tries(self) -> u32 {
        match self {
            Self::User => 1,
            Self::Identity(_) => 3,
        }
    }
}

impl Login {
    /// Whether the daemon's PIN opens what was opened at this time.
    pub(crate) const fn is_own(&self, time: u64) -> bool {
        self.own.is_some() && self.times == time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others' failures in the same moment are not told apart from a wrong PIN.
    #[test]
    fn the_pin_of_an_identity_is_tried_three_times_and_the_users_once() {
        let (one, another) = (Owner::Identity(1), Owner::Identity(2));
        let mut refused = None;
        for times in 1..=3 {
            let now = Refused::again(refused, one);
            assert_eq!(now.holds(one), times == 3);
            assert!(!now.holds(another), "it was added anew");
            refused = Some(now);
        }
        assert!(!Refused::again(refused, another).holds(another));
        assert!(Refused::again(None, Owner::User).holds(Owner::User));
    }
}
