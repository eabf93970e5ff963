// SPDX-License-Identifier: Apache-2.0
//! A lane of shared memory: two sides that keep to its rules, and a third hand that writes anything into any word of it. Bytes arrive
//! as they were put, until the hand has written; from then on what is found is within its bounds, and wiped where it was taken.

use crate::input::{Input, Seen};
use metaslot_client::{Found, Lane};
use std::sync::atomic::{AtomicU64, Ordering};

/// A lane with room for 64 bytes, so that every length is met often.
const WORDS: usize = 16;
const ROOM: usize = 64;

/// What there is, if both sides kept to the rules.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Expected {
    Away,
    Looks,
    Full(Vec<u8>),
}

pub(crate) fn run(bytes: &[u8]) -> u64 {
    let words: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
    let lane = Lane::new(&words);
    let input = &mut Input(bytes);
    let mut expected = Some(Expected::Away);
    // More would be new answers without end.
    let mut last = [(0, 0); 3];
    while !input.is_empty() {
        let step = input.byte() % 7;
        last = [last[1], last[2], (step, words[0].load(Ordering::Relaxed).min(80) / 8)];
        match step {
            0 => {
                lane.open();
                expected =
                    expected.map(|now| if now == Expected::Away { Expected::Looks } else { now });
            }
            kind @ (1 | 2) => {
                let length = usize::from(input.byte()) % (ROOM + 16);
                taken(&words, length, kind == 2, &mut expected);
            }
            3 => {
                let text = input.bytes();
                let looked = words[0].load(Ordering::Relaxed) == 1;
                let put = lane.put(text);
                assert_eq!(put, looked && text.len() <= ROOM, "{} bytes", text.len());
                let then = if put { Expected::Full(text.to_vec()) } else { Expected::Away };
                expected = expected.map(|now| if looked { then } else { now });
            }
            4 => {
                lane.divert();
                expected =
                    expected.map(|now| if now == Expected::Looks { Expected::Away } else { now });
            }
            5 => {
                words[0].store(u64::from(input.byte()), Ordering::Relaxed);
                expected = None;
            }
            _ => {
                let at = usize::from(input.byte()) % WORDS;
                words[at].store(input.number(), Ordering::Relaxed);
                expected = None;
            }
        }
    }
    let mut seen = Seen::default();
    seen.note(last);
    seen.finish()
}

/// Looks, or `leaves`, with room for so many bytes.
fn taken(words: &[AtomicU64; WORDS], length: usize, leaves: bool, expected: &mut Option<Expected>) {
    let (lane, mut space) = (Lane::new(words), [0xee; ROOM + 32]);
    let state = words[0].load(Ordering::Relaxed);
    let room = &mut space[..length];
    let found = if leaves { lane.leave(room) } else { lane.look(room) };
    assert!(space[length..].iter().all(|byte| *byte == 0xee), "more than there is room for");
    let now = words[0].load(Ordering::Relaxed);
    match found {
        Found::Bytes(much) => {
            assert!(much <= length.min(ROOM) && now == 0, "{much} bytes, and {now}");
            let wiped = words[8..8 + much.div_ceil(8)].iter();
            assert!(wiped.map(|word| word.load(Ordering::Relaxed)).all(|word| word == 0));
        }
        Found::Nonsense => assert_eq!(now, state, "it is left as it is"),
        Found::Nothing | Found::Socket => {}
    }
    if let Some(rightly) = expected {
        match (&*rightly, found) {
            (Expected::Away, Found::Socket) => {}
            (Expected::Looks, Found::Nothing) => assert!(!leaves),
            (Expected::Looks, Found::Socket) => assert!(leaves),
            (Expected::Full(text), Found::Bytes(much)) => assert_eq!(space[..much], text[..]),
            (Expected::Full(text), Found::Nonsense) => assert!(text.len() > length),
            other => panic!("{other:?}"),
        }
        if matches!(found, Found::Bytes(_) | Found::Socket) {
            *rightly = Expected::Away;
        }
    }
}
