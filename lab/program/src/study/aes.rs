// SPDX-License-Identifier: Apache-2.0
//! AES in CBC: tables, bit slices, instructions for a block and for four; one stream and sixteen.

use super::bench::{Job, Subject, head, leave_out, number, thread_counts};
use super::findings::Findings;
use super::page::{scaling, versions};
use super::view::{Clock, THREADS, View, threads};
use crate::experiment::{Factor, level};
use crate::random::Random;
use crate::scenario::Head;
use crate::table::digits;
use crate::{Failure, Result};
use metaslot_studies::aes::{Block, Key, MANY, Stream, Version, decrypt, encrypt};

const DIRECTION: &str = "op";
const BITS: &str = "key";
const STREAMS: &str = "streams";

const TABLES: &str = "tables";
const SLICED: &str = "bit slices";
const INSTRUCTIONS: &str = "AES-NI";
const WIDE: &str = "VAES";

/// Blocks of a single stream, and of each of several.
const LONG: usize = 512;
const SHORT: usize = 64;
const BLOCK: usize = 16;

/// The versions by name.
const ARMS: [(&str, Version); 4] = [
    (TABLES, Version::Tables),
    (SLICED, Version::Sliced),
    (INSTRUCTIONS, Version::Instructions),
    (WIDE, Version::Wide),
];

/// The study; its versions agree with each other and with the library.
pub(super) struct Aes;

impl Aes {
    /// Checks all versions against each other, and the first one's cipher against AWS-LC.
    ///
    /// # Errors
    /// They do not agree.
    pub(super) fn new() -> Result<Self> {
        let mut random = Random::new(Random::seed_from_clock());
        let mut secret = [0; 32];
        random.fill(&mut secret);
        library(&secret, &mut random)?;
        let mut stream = |_| {
            let (mut iv, mut input) = ([0; 16], vec![[0; 16]; 37]);
            random.fill(&mut iv);
            random.fill(input.as_flattened_mut());
            Stream::new(iv, input)
        };
        let plain: Vec<Stream> = (0..MANY).map(&mut stream).collect();
        let key = Key::new_256(&secret);
        let mut expected = plain.clone();
        encrypt(Version::Tables, &key, &mut expected);
        for (name, version) in ARMS.into_iter().filter(|(_, version)| version.available()) {
            let mut streams = plain.clone();
            let mut same = encrypt(version, &key, &mut streams);
            same &= streams.iter().zip(&expected).all(|(one, other)| one.output == other.output);
            streams.iter_mut().for_each(|stream| stream.input.clone_from(&stream.output));
            same &= decrypt(version, &key, &mut streams);
            same &= streams.iter().zip(&plain).all(|(one, plain)| one.output == plain.input);
            if !same {
                return Err(Failure::new(format!("AES by {name} gives other blocks")));
            }
        }
        Ok(Self)
    }
}

/// A block of a stream that begins with zeros is the cipher itself, and so is the counter mode's stream.
fn library(secret: &[u8; 32], random: &mut Random) -> Result<()> {
    let (mut block, mut expected): (Block, Block) = ([0; 16], [0; 16]);
    random.fill(&mut block);
    metaslot_bare::Ctr::new(secret)?.apply(&block, &[0; 16], &mut expected);
    let mut streams = [Stream::new([0; 16], vec![block])];
    encrypt(Version::Tables, &Key::new_256(secret), &mut streams);
    if streams[0].output[0] == expected {
        return Ok(());
    }
    Err(Failure::new("AES by tables gives another block than the library"))
}

impl Subject for Aes {
    fn head(&self) -> Head {
        let mut head = head("study-aes", "byte");
        let absent = ARMS.iter().filter(|(_, version)| !version.available());
        leave_out(&mut head, absent.map(|(name, _)| *name));
        head
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new(DIRECTION, ["encrypt", "decrypt"]),
            Factor::new(BITS, [128, 256]),
            Factor::new(STREAMS, [1, MANY]),
            Factor::new(THREADS, thread_counts()),
        ]
    }

    fn arms(&self) -> Vec<String> {
        let available = ARMS.iter().filter(|(_, version)| version.available());
        available.map(|(name, _)| (*name).to_owned()).collect()
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let shown = level(cell, DIRECTION) == Some("encrypt") && level(cell, BITS) == Some("128");
        let all = threads(cell) > 1 && !shown;
        all.then(|| "several threads: encryption with keys of 128 bits only".to_owned())
    }

    fn job(&self, cell: &str, arm: &str) -> Result<Job> {
        let version = ARMS.iter().find(|(name, _)| *name == arm);
        let (_, version) = *version.ok_or_else(|| Failure::new(format!("no AES by {arm}")))?;
        let count = number(cell, STREAMS)?;
        let blocks = if count == 1 { LONG } else { SHORT };
        let key = match number(cell, BITS)? {
            128 => Key::new_128(b"sixteen byte key"),
            _ => Key::new_256(b"a key of as much as thirty-two b"),
        };
        let mut streams: Vec<Stream> = (0..count).map(|_| stream(blocks)).collect();
        let apply = if level(cell, DIRECTION) == Some("encrypt") { encrypt } else { decrypt };
        let units = (count * blocks * BLOCK) as f64;
        Ok(Job::new(units, move || {
            apply(version, &key, &mut streams);
        }))
    }
}

/// Room that is left between what goes in and what comes out: a store to the same place of a page that
/// the next load comes from would hold the load up.
const APART: usize = 65;

fn stream(blocks: usize) -> Stream {
    let mut input = Vec::with_capacity(blocks + APART);
    input.resize(blocks, [9; 16]);
    Stream::new([7; 16], input)
}

/// The cell of one thread.
fn cell(view: &View<'_>, direction: &str, bits: &str, streams: usize) -> String {
    let streams = streams.to_string();
    let levels = [(DIRECTION, direction), (BITS, bits), (STREAMS, &streams), (THREADS, "1")];
    view.cell(&levels).unwrap_or_default()
}

/// What the experiment says.
pub(super) fn findings(view: &View<'_>) -> Findings {
    let of = |streams: usize| {
        [
            ("encrypt 128", cell(view, "encrypt", "128", streams)),
            ("decrypt 128", cell(view, "decrypt", "128", streams)),
            ("encrypt 256", cell(view, "encrypt", "256", streams)),
            ("decrypt 256", cell(view, "decrypt", "256", streams)),
        ]
    };
    let heading = |streams: &str| {
        format!(
            "{streams}, one thread: ticks of the time stamp for a byte; CPU cost over the first version, \
             encrypting with keys of 128 bits"
        )
    };
    let mut tables = versions(view, &heading("One stream of 8192 bytes"), &of(1));
    tables += &versions(view, &heading("Sixteen streams of 1024 bytes"), &of(MANY));
    let (one, most) = (cell(view, "encrypt", "128", MANY), view.most_threads());
    let many = MANY.to_string();
    let levels = [(DIRECTION, "encrypt"), (BITS, "128"), (STREAMS, &many), (THREADS, &most)];
    let all = view.cell(&levels).unwrap_or_default();
    if all != one {
        let heading = "Encryption of sixteen streams on all threads";
        tables += &scaling(view, heading, &one, &all);
    }
    Findings {
        tables,
        sun: vec![
            "special instructions for AES give AES in CBC only about 6 times".to_owned(),
            "AES-256 in 8192 bytes on a Xeon X5560: 136.9 MB/s with 1 thread, 1,212.6 MB/s with 16; \
             AES-128-CBC 44 Gb/s by the units of an UltraSPARC T2, 6.8 GB/s by those of a T2 Plus with 16 cores"
                .to_owned(),
        ],
        effects: effects(view),
        reason: reason(view),
    }
}

fn effects(view: &View<'_>) -> Vec<String> {
    let (single, many) = (cell(view, "encrypt", "128", 1), cell(view, "encrypt", "128", MANY));
    let decrypt = cell(view, "decrypt", "128", 1);
    let planned = [
        ("instructions, encrypting one stream", &single, [INSTRUCTIONS, TABLES]),
        ("instructions, decrypting one stream", &decrypt, [INSTRUCTIONS, TABLES]),
        ("instructions, encrypting sixteen streams", &many, [INSTRUCTIONS, TABLES]),
        ("four blocks an instruction, encrypting one stream", &single, [WIDE, INSTRUCTIONS]),
        ("four blocks an instruction, decrypting one stream", &decrypt, [WIDE, INSTRUCTIONS]),
        ("four blocks an instruction, encrypting sixteen streams", &many, [WIDE, INSTRUCTIONS]),
        ("bit slices, encrypting one stream", &single, [SLICED, TABLES]),
        ("bit slices, encrypting sixteen streams", &many, [SLICED, TABLES]),
    ];
    let there = planned.into_iter().filter(|(_, _, arms)| arms.iter().all(|arm| view.has(arm)));
    there.map(|(what, cell, arms)| view.effect(what, cell, arms, Clock::Cpu)).collect()
}

fn reason(view: &View<'_>) -> [String; 2] {
    let (single, many) = (cell(view, "encrypt", "128", 1), cell(view, "encrypt", "128", MANY));
    let decrypt = cell(view, "decrypt", "128", 1);
    let best = if view.has(WIDE) { WIDE } else { INSTRUCTIONS };
    if !view.has(INSTRUCTIONS) {
        let [one, several] = [&single, &many].map(|cell| digits(view.ticks(cell, SLICED)));
        return [
            format!(
                "Bit slices cost {one} ticks a byte when one of eight blocks is used, {several} when all are."
            ),
            "This processor has no instructions for AES.".to_owned(),
        ];
    }
    let block = view.ticks(&single, INSTRUCTIONS) * BLOCK as f64;
    let times = |cell: &str, arm: &str| digits(1.0 / view.ratio(cell, arm, TABLES));
    [
        format!(
            "Encrypting one stream, a block must wait for the one before: {} ticks for its ten rounds, {} \
             for each, whether an instruction takes one block or four ({} by {best}); sixteen streams \
             fill the time with each other's rounds, and a block costs {} ticks by {best}.",
            digits(block),
            digits(block / 10.0),
            digits(view.ticks(&single, best) * BLOCK as f64),
            digits(view.ticks(&many, best) * BLOCK as f64),
        ),
        format!(
            "So the instructions are worth {} times the tables in one stream's encryption, which is what \
             the chain allows, but {} times in its decryption, where nothing waits, and {} times in \
             sixteen streams (by {best} {} and {} times).",
            times(&single, INSTRUCTIONS),
            times(&decrypt, INSTRUCTIONS),
            times(&many, INSTRUCTIONS),
            times(&decrypt, best),
            times(&many, best),
        ),
    ]
}
