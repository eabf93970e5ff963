// SPDX-License-Identifier: Apache-2.0
//! RC4: the order of loads and stores, the size of the table's entries, and streams side by side.

use super::bench::{Job, Subject, head, number, thread_counts};
use super::findings::Findings;
use super::page::{scaling, versions};
use super::view::{Clock, THREADS, View, threads};
use crate::experiment::Factor;
use crate::random::Random;
use crate::scenario::Head;
use crate::table::digits;
use crate::{Failure, Result};
use metaslot_studies::rc4::{BYTES as BY_BYTES, Element, State, Versions, WORDS as BY_WORDS};

const BYTES: &str = "bytes";
const LENGTHS: [usize; 3] = [64, 1024, 8192];

/// The versions by name.
const ARMS: [&str; 9] = [
    "1, bytes",
    "1, words",
    "2, bytes",
    "2, words",
    "3, bytes",
    "3, words",
    "2 streams, words",
    "4 streams, words",
    "4 streams, bytes",
];

/// The study; its versions agree.
pub(super) struct Rc4;

impl Rc4 {
    /// Checks all versions against the first.
    ///
    /// # Errors
    /// They do not agree.
    pub(super) fn new() -> Result<Self> {
        let mut random = Random::new(Random::seed_from_clock());
        for length in [0, 1, 7, 64, 4099] {
            let (mut key, mut plain) = ([0; 16], vec![0; length]);
            random.fill(&mut key);
            random.fill(&mut plain);
            let mut expected = plain.clone();
            BY_BYTES.single[0](&mut State::new(&key), &mut expected);
            for arm in ARMS {
                if work(arm, &key, &plain)?.streams().iter().any(|stream| *stream != expected) {
                    return Err(Failure::new(format!("RC4 {arm} gives another stream")));
                }
            }
        }
        Ok(Self)
    }
}

/// Streams of one version, and their data.
enum Work {
    Bytes(Box<Streams<u8>>),
    Words(Box<Streams<u32>>),
}

struct Streams<T: 'static> {
    versions: &'static Versions<T>,
    how: How,
    states: [State<T>; 4],
    /// A page more than there are bytes in a stream.
    data: [Vec<u8>; 4],
    length: usize,
    /// Where in it the data begin this time: a place of a page where loads of the table follow stores of
    /// data, or the other way round, holds everything up, and must not be one version's lot alone.
    begin: usize,
}

const PAGE: usize = 4096;
/// How much later in the page the next data begin: all lines of it get their turn.
const STRIDE: usize = 5 * 64;

/// One stream by one of the single versions, or the first two or four in one loop.
#[derive(Clone, Copy)]
enum How {
    One(usize),
    Two,
    Four,
}

impl<T: Element> Streams<T> {
    fn new(versions: &'static Versions<T>, how: How, key: &[u8], plain: &[u8]) -> Self {
        let room = || [plain, &[0; PAGE]].concat();
        let (states, data) = ([(); 4].map(|()| State::new(key)), [(); 4].map(|()| room()));
        Self { versions, how, states, data, length: plain.len(), begin: 0 }
    }

    const fn count(&self) -> usize {
        match self.how {
            How::One(_) => 1,
            How::Two => 2,
            How::Four => 4,
        }
    }

    /// What the first call gave.
    fn first(self) -> [Vec<u8>; 4] {
        self.data.map(|mut data| {
            data.truncate(self.length);
            data
        })
    }

    fn once(&mut self) {
        let (begin, end) = (self.begin, self.begin + self.length);
        let [a, b, c, d] = self.data.each_mut().map(|data| &mut data[begin..end]);
        self.begin = (begin + STRIDE) % PAGE;
        match self.how {
            How::One(at) => (self.versions.single[at])(&mut self.states[0], a),
            How::Two => {
                // There are four, so there are two.
                if let Some(pair) = self.states.first_chunk_mut::<2>() {
                    (self.versions.two)(pair, [a, b]);
                }
            }
            How::Four => (self.versions.four)(&mut self.states, [a, b, c, d]),
        }
    }
}

impl Work {
    fn once(&mut self) {
        match self {
            Self::Bytes(streams) => streams.once(),
            Self::Words(streams) => streams.once(),
        }
    }

    /// What all streams give at once.
    fn streams(mut self) -> Vec<Vec<u8>> {
        self.once();
        let count = self.count();
        let data = match self {
            Self::Bytes(streams) => streams.first(),
            Self::Words(streams) => streams.first(),
        };
        data.into_iter().take(count).collect()
    }

    fn count(&self) -> usize {
        match self {
            Self::Bytes(streams) => streams.count(),
            Self::Words(streams) => streams.count(),
        }
    }
}

fn work(arm: &str, key: &[u8], plain: &[u8]) -> Result<Work> {
    let bytes = |how| Work::Bytes(Box::new(Streams::new(&BY_BYTES, how, key, plain)));
    let words = |how| Work::Words(Box::new(Streams::new(&BY_WORDS, how, key, plain)));
    Ok(match arm {
        "1, bytes" => bytes(How::One(0)),
        "1, words" => words(How::One(0)),
        "2, bytes" => bytes(How::One(1)),
        "2, words" => words(How::One(1)),
        "3, bytes" => bytes(How::One(2)),
        "3, words" => words(How::One(2)),
        "2 streams, words" => words(How::Two),
        "4 streams, words" => words(How::Four),
        "4 streams, bytes" => bytes(How::Four),
        _ => return Err(Failure::new(format!("no RC4 version {arm}"))),
    })
}

impl Subject for Rc4 {
    fn head(&self) -> Head {
        head("study-rc4", "byte")
    }

    fn factors(&self) -> Vec<Factor> {
        vec![Factor::new(BYTES, LENGTHS), Factor::new(THREADS, thread_counts())]
    }

    fn arms(&self) -> Vec<String> {
        ARMS.map(str::to_owned).to_vec()
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let all = threads(cell) > 1 && number(cell, BYTES).ok() != Some(8192);
        all.then(|| "several threads: with 8192 bytes only".to_owned())
    }

    fn job(&self, cell: &str, arm: &str) -> Result<Job> {
        let length = number(cell, BYTES)?;
        let mut work = work(arm, b"sixteen byte key", &vec![0; length])?;
        let units = (length * work.count()) as f64;
        Ok(Job::new(units, move || work.once()))
    }
}

/// What the experiment says.
pub(super) fn findings(view: &View<'_>) -> Findings {
    let cell = |bytes: &str, threads: &str| {
        view.cell(&[(BYTES, bytes), (THREADS, threads)]).unwrap_or_default()
    };
    let (main, all) = (cell("8192", "1"), cell("8192", &view.most_threads()));
    let lengths =
        [("8192 B", main.clone()), ("1024 B", cell("1024", "1")), ("64 B", cell("64", "1"))];
    let mut tables = versions(
        view,
        "One thread: ticks of the time stamp for a byte, by length; CPU cost over the first version at \
         8192 bytes",
        &lengths,
    );
    if all != main {
        tables.push_str(&scaling(view, "8192 bytes on all threads", &main, &all));
    }
    Findings {
        tables,
        sun: vec![
            "rearranging the loads and stores gave 15 % on one Xeon and 25 % on a Nehalem"
                .to_owned(),
            "8192 bytes on a Xeon X5560: 317 MB/s with 1 thread, 2,265 MB/s with 16".to_owned(),
        ],
        effects: effects(view, &main),
        reason: reason(view, &main),
    }
}

fn effects(view: &View<'_>, main: &str) -> Vec<String> {
    let effect = |what: &str, arms| view.effect(what, main, arms, Clock::Cpu);
    vec![
        effect("Sun's rearrangement with bytes", ["3, bytes", "1, bytes"]),
        effect("Sun's rearrangement with words", ["3, words", "1, words"]),
        effect("words instead of bytes", ["1, words", "1, bytes"]),
        effect("two streams in one loop", ["2 streams, words", "1, words"]),
        effect("four streams in one loop", ["4 streams, words", "1, words"]),
    ]
}

fn reason(view: &View<'_>, main: &str) -> [String; 2] {
    let ticks = |arm: &str| view.ticks(main, arm);
    let small = view.ratio(main, "1, words", "1, bytes");
    let [byte, word] = [State::<u8>::table_bytes(), State::<u32>::table_bytes()];
    let room = if small < 1.0 {
        "so room in the cache is not what RC4 waits for, but reading and writing parts of words is"
    } else {
        "so parts of words are no burden on this processor"
    };
    let cheapest = |arms: &[&'static str]| {
        let cheapest = arms.iter().min_by(|one, other| ticks(one).total_cmp(&ticks(other)));
        cheapest.map_or((ARMS[0], f64::NAN), |arm| (*arm, ticks(arm)))
    };
    let (single, alone) = cheapest(&ARMS[..6]);
    let (several, together) = cheapest(&ARMS[6..]);
    let idle = (1.0 - together / alone) * 100.0;
    let waits = if idle > 5.0 {
        format!(
            "for about {idle:.0} % of its time a single stream waits for its own previous byte, which no \
             order of its instructions can change"
        )
    } else {
        "so the best single stream hardly waits for its own previous byte: what is left are its loads \
         and stores themselves"
            .to_owned()
    };
    [
        format!(
            "A table of {word} bytes costs {} ticks a byte and one of {byte} bytes {} with the same \
             loop, {room}.",
            digits(ticks("1, words")),
            digits(ticks("1, bytes")),
        ),
        format!(
            "The best single stream ({single}) takes {} ticks a byte, and {several} in one loop {}: {waits}.",
            digits(alone),
            digits(together),
        ),
    ]
}
