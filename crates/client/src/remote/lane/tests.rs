// SPDX-License-Identifier: Apache-2.0

use super::*;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool as Flag, AtomicU64 as Modelled, Ordering};

/// A lane with room for 16 bytes.
const WORDS: usize = BYTES + 2;

word!(Modelled);

fn words() -> [AtomicU64; WORDS] {
    [const { AtomicU64::new(0) }; WORDS]
}

/// In every order of events bytes arrive once and whole: through the lane, or, where `put` refused them, through the socket, to which
/// the reader then goes.
#[test]
fn what_is_put_while_the_reader_goes_arrives_once() {
    let text = *b"more than one";
    loom::model(move || {
        let words: Arc<[Modelled; WORDS]> = Arc::new(std::array::from_fn(|_| Modelled::new(0)));
        let socket = Arc::new(Flag::new(false));
        Lane::new(&words[..]).open();
        let (theirs, sent) = (Arc::clone(&words), Arc::clone(&socket));
        let writer = loom::thread::spawn(move || {
            if !Lane::new(&theirs[..]).put(&text) {
                sent.store(true, Ordering::Release);
            }
        });
        let mut room = [0; 16];
        let lane = Lane::new(&words[..]);
        let found = match lane.look(&mut room) {
            Found::Nothing => lane.leave(&mut room),
            found => found,
        };
        match found {
            Found::Bytes(length) => assert_eq!(room[..length], text),
            other => assert_eq!(other, Found::Socket),
        }
        writer.join().expect("no panic");
        assert_eq!(socket.load(Ordering::Acquire), found == Found::Socket);
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0), "it is wiped");
    });
}

/// The reader of one exchange opens its lane before it asks, and finds what is the answer to that.
#[test]
fn what_is_taken_makes_room_for_the_next() {
    loom::model(|| {
        let words: Arc<[Modelled; WORDS]> = Arc::new(std::array::from_fn(|_| Modelled::new(0)));
        Lane::new(&words[..]).open();
        let theirs = Arc::clone(&words);
        let writer = loom::thread::spawn(move || {
            let first = Lane::new(&theirs[..]).put(&[1; 16]);
            let second = Lane::new(&theirs[..]).put(&[2; 9]);
            (first, second)
        });
        let (lane, mut room) = (Lane::new(&words[..]), [0; 16]);
        let first = lane.look(&mut room);
        if first == Found::Bytes(16) {
            assert_eq!(room, [1; 16]);
            lane.open();
        }
        let put = writer.join().expect("no panic");
        assert!(put.0, "it looks");
        match (first, lane.leave(&mut room)) {
            (Found::Bytes(16), Found::Bytes(9)) => assert!(put.1 && room[..9] == [2; 9]),
            (Found::Bytes(16), Found::Socket) => assert!(!put.1),
            (Found::Nothing, Found::Bytes(16)) => assert!(!put.1 && room == [1; 16]),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_state_of_nonsense_is_found_to_be_that() {
    let words = words();
    let lane = Lane::new(&words[..]);
    let mut room = [0; 16];
    for state in [FULL + 17, FULL + (1 << 32), u64::MAX] {
        words[0].store(state, Ordering::Relaxed);
        assert_eq!(lane.look(&mut room), Found::Nonsense, "{state}");
        assert_eq!(lane.leave(&mut room), Found::Nonsense, "{state}");
        lane.open();
        lane.divert();
        assert!(!lane.put(b"x"));
    }
    words[0].store(FULL + 16, Ordering::Relaxed);
    assert_eq!(lane.look(&mut room[..15]), Found::Nonsense, "there is no room");
    assert_eq!(lane.look(&mut room), Found::Bytes(16));
}

#[test]
fn what_is_too_long_or_not_looked_for_goes_through_the_socket() {
    let words = words();
    let lane = Lane::new(&words[..]);
    let mut room = [0; 17];
    assert!(!lane.put(b"x"), "it does not look");
    lane.open();
    assert_eq!(lane.look(&mut room), Found::Nothing);
    assert!(!lane.put(&[7; 17]));
    assert_eq!(lane.look(&mut room), Found::Socket);
    lane.open();
    assert!(lane.put(b""));
    assert_eq!(lane.look(&mut room), Found::Bytes(0));
    lane.open();
    assert!(lane.put(&[7; 16]) && !lane.put(b"x"), "it is full");
    lane.open();
    assert_eq!((lane.leave(&mut room), room[15]), (Found::Bytes(16), 7));
    assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0), "it is wiped");
}
