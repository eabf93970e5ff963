// SPDX-License-Identifier: Apache-2.0
//! Whether a history is linearisable (Wing and Gong 1993, with Lowe's memory of what was tried): is
//! there an order of the calls, in which each takes effect between its beginning and its end, that
//! gives these answers? A call may take effect in several steps, in their order.

use crate::history::Event;
use crate::model::{Progress, State};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Whether some order explains the history.
pub(crate) fn is_linearisable(events: &[Event]) -> bool {
    let begun = vec![Some(Progress::default()); events.len()];
    Search { events, tried: HashSet::new() }.goes_on(&State::default(), &begun)
}

struct Search<'a> {
    events: &'a [Event],
    /// Hashes of what led nowhere. Two of them that are equal by accident would be one wrong alarm in
    /// 10¹³ histories.
    tried: HashSet<u64>,
}

impl Search<'_> {
    /// `under_way` says how far each call is; `None` when it is over.
    fn goes_on(&mut self, state: &State, under_way: &[Option<Progress>]) -> bool {
        let waiting = || under_way.iter().enumerate().filter_map(|(at, p)| Some((at, p.as_ref()?)));
        // Nothing that began after a call ended comes before it.
        let Some(limit) = waiting().map(|(at, _)| self.events[at].end).min() else { return true };
        if !self.tried.insert(fingerprint(state, under_way)) {
            return false;
        }
        for (at, progress) in waiting() {
            let event = &self.events[at];
            if event.begin > limit {
                continue;
            }
            for (next, progress) in state.steps(*progress, event.call, event.answer) {
                let mut after = under_way.to_vec();
                after[at] = progress;
                if self.goes_on(&next, &after) {
                    return true;
                }
            }
        }
        false
    }
}

fn fingerprint(state: &State, under_way: &[Option<Progress>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (state, under_way).hash(&mut hasher);
    hasher.finish()
}

/// The checker itself: histories of which it is known whether they can be explained.
mod tests {
    use super::is_linearisable;
    use crate::history::{Answer, Call, Change, Event, Kind};
    use metaslot_ck::Error;
    use std::time::{Duration, Instant};

    const SESSION: u64 = 1;
    const OTHER: u64 = 2;
    const KEY: u64 = 100;

    /// Each call with the time from when to when it lasts.
    fn explained(calls: &[(Call, Answer, u64, u64)]) -> bool {
        let start = Instant::now();
        let event = |(call, answer, begin, end): &(Call, Answer, u64, u64)| {
            let at = |time: u64| start + Duration::from_nanos(time);
            Event { thread: 0, call: *call, answer: *answer, begin: at(*begin), end: at(*end) }
        };
        is_linearisable(&calls.iter().map(event).collect::<Vec<_>>())
    }

    /// Two sessions, one logged in, and a key.
    fn with(kind: Kind, then: &[(Call, Answer, u64, u64)]) -> bool {
        let open = Call::Open { process: 0, write: true, asynchronous: false };
        let create = Call::Create { session: SESSION, kind, tag: 0 };
        let mut calls = vec![
            (open, Answer::Handle(SESSION), 0, 1),
            (open, Answer::Handle(OTHER), 2, 3),
            (Call::Login { session: SESSION, user: true }, Answer::Done, 4, 5),
            (create, Answer::Handle(KEY), 6, 7),
        ];
        calls.extend(then);
        explained(&calls)
    }

    const NO_OBJECT: Answer = Answer::No(Error::OBJECT_HANDLE_INVALID);
    const NO_OPERATION: Answer = Answer::No(Error::OPERATION_NOT_INITIALIZED);
    const PROTECT: Call = Call::Set { session: SESSION, object: KEY, change: Change::Sensitive };
    const NAME: Call = Call::Set { session: OTHER, object: KEY, change: Change::Label(1) };
    const GET: Call = Call::Get { session: SESSION, object: KEY };
    const DESTROY: Call = Call::Destroy { session: SESSION, object: KEY };
    const USE: Call = Call::Use { session: OTHER, object: KEY };
    const ENCRYPT: Call = Call::Encrypt { session: OTHER };
    const LOGOUT: Call = Call::Logout { session: SESSION };

    #[test]
    fn two_changes_at_once_are_both_there_afterwards() {
        let both = |label, sensitive, value| {
            let seen = Answer::Attributes(label, sensitive, value);
            let calls = [
                (PROTECT, Answer::Done, 10, 20),
                (NAME, Answer::Done, 11, 19),
                (GET, seen, 21, 22),
            ];
            [Kind::PublicKey, Kind::TokenKey].map(|kind| with(kind, &calls))
        };
        assert_eq!(both(1, true, None), [true; 2]);
        assert_eq!(both(1, false, Some(0)), [false; 2], "the protection is lost");
        assert_eq!(both(0, true, None), [false; 2], "the name is lost");
    }

    #[test]
    fn a_change_that_goes_on_may_be_seen_or_not() {
        for label in [0, 1] {
            let seen = Answer::Attributes(label, false, Some(0));
            let calls = [(NAME, Answer::Done, 10, 20), (GET, seen, 12, 14)];
            assert!(with(Kind::PublicKey, &calls));
        }
        let (new, old) =
            (Answer::Attributes(1, false, Some(0)), Answer::Attributes(0, false, Some(0)));
        let calls = [(NAME, Answer::Done, 10, 20), (GET, new, 12, 13), (GET, old, 14, 15)];
        assert!(!with(Kind::PublicKey, &calls), "and not again unseen");
    }

    #[test]
    fn what_is_destroyed_stays_so_with_its_operations() {
        for kind in [Kind::PublicKey, Kind::TokenKey] {
            let after = |call, answer| {
                let calls = [(USE, Answer::Done, 8, 9), (DESTROY, Answer::Done, 10, 20)];
                with(kind, &[&calls[..], &[(call, answer, 21, 22)]].concat())
            };
            assert!(after(GET, NO_OBJECT) && after(ENCRYPT, NO_OPERATION));
            assert!(!after(GET, Answer::Attributes(0, false, Some(0))));
            assert!(!after(ENCRYPT, Answer::Encrypted(0)));
        }
    }

    #[test]
    fn a_logout_ends_private_things_and_their_handles() {
        let login = (Call::Login { session: SESSION, user: true }, Answer::Done, 30, 31);
        for kind in [Kind::PrivateKey, Kind::TokenKey] {
            let after = |call, answer| {
                let calls = [(USE, Answer::Done, 8, 9), (LOGOUT, Answer::Done, 10, 20), login];
                with(kind, &[&calls[..], &[(call, answer, 32, 33)]].concat())
            };
            assert!(after(GET, NO_OBJECT) && after(ENCRYPT, NO_OPERATION));
            assert!(!after(GET, Answer::Attributes(0, false, Some(0))));
            assert!(!after(ENCRYPT, Answer::Encrypted(0)));
        }
        let find = Call::Find { session: SESSION, tag: 0 };
        let found = |handle| {
            let found = (find, Answer::Found(Some(handle)), 32, 33);
            with(Kind::TokenKey, &[(LOGOUT, Answer::Done, 10, 20), login, found])
        };
        assert!(found(KEY + 1), "the key is there under another handle");
        assert!(!found(KEY), "the old one does not come back");
    }

    #[test]
    fn the_last_session_takes_the_login_with_it() {
        let close = |session, at| (Call::Close { session }, Answer::Done, at, at + 1);
        let open = (
            Call::Open { process: 0, write: true, asynchronous: false },
            Answer::Handle(3),
            14,
            15,
        );
        let info = |answer| {
            let create = Call::Create { session: 3, kind: Kind::PrivateKey, tag: 1 };
            let calls = [close(SESSION, 10), close(OTHER, 12), open, (create, answer, 16, 17)];
            with(Kind::PublicKey, &calls)
        };
        assert!(info(Answer::No(Error::USER_NOT_LOGGED_IN)));
        assert!(!info(Answer::Handle(KEY + 1)));
    }
}
