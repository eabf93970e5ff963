// SPDX-License-Identifier: Apache-2.0
//! What comes next in a sequence: calls that could succeed with what is there.

use crate::alphabet::{self, CONSTANTS, MECHANISMS, Mechanism};
use crate::chooser::Chooser;
use crate::game::Game;
use crate::stage::Facts;
use crate::step::{Cut, Data, Function, Name, Step};
use crate::verdict;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;

/// Some words, with the weight that they have among others.
type Weighed<T> = [(u64, T)];

/// The usages in a template.
const USAGES: &Weighed<&[&str]> = &[
    (4, &[]),
    (3, &["+wrap"]),
    (4, &["+wrap", "+unwrap"]),
    (2, &["+unwrap"]),
    (2, &["+wrap", "+decrypt"]),
    (2, &["+wrap", "+sign"]),
    (1, &["+wrap", "+encrypt"]),
    (1, &["+unwrap", "+encrypt"]),
    (4, &["+derive"]),
    (3, &["+derive", "+sign"]),
    (1, &["+derive", "+encrypt"]),
    (2, &["+sign"]),
    (2, &["+sign", "+verify", "-encrypt", "-decrypt"]),
    (2, &["+verify", "-sign"]),
    (2, &["+encrypt", "-decrypt"]),
    (1, &["+decrypt"]),
];

/// Of the public and of the private key.
const RSA_USAGES: &Weighed<[&[&str]; 2]> = &[
    (2, [&["+wrap"], &["+unwrap"]]),
    (2, [&["+wrap"], &["+unwrap", "+sign"]]),
    (1, [&["+wrap"], &["+unwrap", "+decrypt"]]),
    (1, [&[], &["+sign", "-decrypt"]]),
    (1, [&["+encrypt"], &["+decrypt", "-sign"]]),
    (1, [&["+wrap"], &["open", "extractable", "+decrypt"]]),
    (1, [&["+wrap"], &["+unwrap", "asks"]]),
    (1, [&[], &["+sign", "asks"]]),
];

const PROTECTION: &Weighed<&[&str]> = &[
    (3, &["sensitive", "extractable"]),
    (3, &["sensitive", "kept"]),
    (1, &[]),
    (1, &["sensitive"]),
];

const ATTACKERS_PROTECTION: &Weighed<&[&str]> = &[
    (3, &["sensitive", "kept"]),
    (3, &["sensitive", "extractable"]),
    (3, &["open", "extractable"]),
    (1, &["sensitive"]),
    (1, &["open"]),
    (2, &[]),
];

/// What a change or a copy says.
const CHANGES: &Weighed<&str> = &[
    (3, "+decrypt"),
    (2, "+encrypt"),
    (3, "+sign"),
    (3, "+wrap"),
    (2, "+unwrap"),
    (3, "+derive"),
    (1, "+verify"),
    (1, "-decrypt"),
    (1, "-encrypt"),
    (1, "-sign"),
    (1, "-wrap"),
    (3, "open"),
    (2, "extractable"),
    (1, "sensitive"),
    (1, "kept"),
    (1, "trusted"),
    (1, "without-trusted"),
    (1, "asks-not"),
    (1, "any-mechanism"),
    (1, "public"),
    (1, "private"),
    (1, "session"),
    (1, "only-cbc"),
];

/// What is unusual in a template.
const UNUSUAL: &[&str] = &[
    "asks",
    "asks-not",
    "with-trusted",
    "only-hmac",
    "only-cbc",
    "any-mechanism",
    "public",
    "private",
    "trusted",
    "uncopyable",
    "unwraps-open",
    "unwraps-deriving",
    "unwraps-decrypting",
    "unwraps-wrapping",
    "unwraps-trusted",
    "derives-wrapping",
    "derives-deriving",
    "derives-imposing",
    "derives-unsigning",
    "derives-signing",
    "derives-trusted",
    "wraps-signers",
    "-sign",
    "-encrypt",
    "-decrypt",
    "-verify",
    "+encrypt",
    "+decrypt",
    "+sign",
    "+wrap",
    "+unwrap",
    "+derive",
];

const NEXT: &Weighed<Function> = &[
    (10, Function::Generate),
    (5, Function::Create),
    (2, Function::Pair),
    (5, Function::Copy),
    (6, Function::Set),
    (20, Function::Wrap),
    (16, Function::Unwrap),
    (12, Function::Derive),
    (6, Function::Encrypt),
    (12, Function::Decrypt),
    (14, Function::Sign),
    (3, Function::SignRecover),
    (2, Function::Verify),
    (3, Function::Digest),
    (1, Function::State),
    (3, Function::Resume),
];

/// What is often done with what a call made or gave out.
const fn after(function: Function) -> &'static [Function] {
    match function {
        Function::Wrap => &[Function::Wrap, Function::Unwrap, Function::Decrypt, Function::Sign],
        Function::Unwrap | Function::Copy | Function::Derive | Function::Set => &[
            Function::Sign,
            Function::Encrypt,
            Function::Decrypt,
            Function::Derive,
            Function::Wrap,
        ],
        Function::Resume => &[Function::Resume],
        _ => &[],
    }
}

/// What is done with the owner's keys.
const USES: &[Function] = &[
    Function::Copy,
    Function::Set,
    Function::Wrap,
    Function::Unwrap,
    Function::Derive,
    Function::Encrypt,
    Function::Decrypt,
    Function::Sign,
    Function::Digest,
    Function::State,
];

const OWNERS_VALUES: [&str; 4] = ["value-1", "value-2", "value-3", "value-4"];

/// The next step of the owner's: keys to protect, of several kinds, and keys that the SO trusts.
pub(crate) fn owners(game: &Game<'_>, chooser: &mut Chooser, number: usize) -> Option<Step> {
    let mut step = if chooser.rarely(25) {
        trusted(game, chooser, number)?
    } else if chooser.rarely(30) {
        transport(chooser, number, "sensitive")
    } else {
        let functions = [(12, Function::Generate), (4, Function::Create), (4, Function::Pair)];
        let function = chooser.weighted(&functions);
        maker(chooser, number, function, PROTECTION)?
    };
    step.owner = true;
    if step.function == Function::Create {
        // Each of the owner's values is another.
        step.words.push(alphabet::named(OWNERS_VALUES[(number - 1) % OWNERS_VALUES.len()])?);
    }
    Some(step)
}

/// A key that the SO can see, as he would trust it, or his word for one.
fn trusted(game: &Game<'_>, chooser: &mut Chooser, number: usize) -> Option<Step> {
    let seen = |facts: &Facts| facts.has(CKA_WRAP) && !facts.has(CKA_PRIVATE);
    if let Some(key) = any_key(game, chooser, seen) {
        let mut step = Step::new(number, true, Function::Trust);
        step.keys = vec![key];
        return Some(step);
    }
    Some(transport(chooser, number, "public"))
}

/// The SO's word for one of the owner's keys, which come first, while the attacker is at work.
pub(crate) fn trusts(
    game: &Game<'_>,
    chooser: &mut Chooser,
    number: usize,
    owners: usize,
) -> Option<Step> {
    let seen = |name: &Name| {
        let facts = game.stage.facts(*name);
        let public = |facts: Facts| facts.has(CKA_WRAP) && !facts.has(CKA_PRIVATE);
        name.step <= owners && facts.is_some_and(public)
    };
    let keys: Vec<Name> = game.stage.objects().filter(seen).collect();
    let mut step = Step::new(number, true, Function::Trust);
    step.keys = vec![chooser.one_of(&keys)?];
    Some(step)
}

/// A key that wraps what the policy protects.
fn transport(chooser: &mut Chooser, number: usize, also: &'static str) -> Step {
    let mut step = Step::new(number, true, Function::Generate);
    step.mechanism = Mechanism::named("aes-gen");
    let usages: &Weighed<&[&str]> =
        &[(2, &["+wrap"]), (4, &["+wrap", "+unwrap"]), (1, &["+wrap", "+decrypt"])];
    let kept = [(3, "kept"), (1, "extractable")];
    let mut said = vec!["length-32", also];
    said.extend(chooser.weighted(usages));
    said.push(chooser.weighted(&kept));
    said.extend(unusual(chooser));
    step.words = alphabet::words(&said);
    step
}

/// The attacker's next step.
pub(crate) fn attackers(
    game: &Game<'_>,
    chooser: &mut Chooser,
    number: usize,
    before: &[Step],
) -> Option<Step> {
    if chooser.rarely(8) {
        return repeated(game, chooser, number, before);
    }
    let exhaustive = chooser.takes_every();
    let follows = before.last().map_or(&[][..], |step| after(step.function));
    let function = if exhaustive {
        chooser.one_of(USES)?
    } else if !follows.is_empty() && chooser.rarely(40) {
        chooser.one_of(follows)?
    } else {
        chooser.weighted(NEXT)
    };
    let mut step = Step::new(number, false, function);
    match function {
        Function::Generate | Function::Create | Function::Pair => {
            return maker(chooser, number, function, ATTACKERS_PROTECTION);
        }
        Function::Copy | Function::Set => {
            step.keys = vec![any_key(game, chooser, |_| true)?];
            let count = 1 + usize::from(chooser.rarely(30));
            let said: Vec<&str> = (0..count).map(|_| chooser.weighted(CHANGES)).collect();
            step.words = alphabet::words(&said);
        }
        Function::Wrap => {
            step.keys = vec![key_for(game, chooser, &mut step, alphabet::WRAPS, CKA_WRAP)?];
            let secret = |facts: &Facts| matches!(facts.class, CKO_SECRET_KEY | CKO_PRIVATE_KEY);
            step.keys.push(any_key(game, chooser, secret)?);
        }
        Function::Unwrap => unwrap(game, chooser, &mut step)?,
        Function::Derive => derive(game, chooser, &mut step)?,
        Function::Encrypt | Function::Decrypt => {
            let used = verdict::usage(function)?;
            step.keys = vec![key_for(game, chooser, &mut step, alphabet::ENCRYPTS, used)?];
            let given = if function == Function::Encrypt { 20 } else { 95 };
            step.data = vec![data(game, chooser, given)?];
            follow(game, chooser, &mut step);
        }
        Function::Sign | Function::SignRecover | Function::Verify => {
            let used = verdict::usage(function)?;
            step.keys = vec![key_for(game, chooser, &mut step, alphabet::SIGNS, used)?];
            let opens = step.mechanism.is_some_and(|by| by.number == CKM_RSA_X_509);
            step.data = vec![data(game, chooser, if opens { 95 } else { 20 })?];
            if function == Function::Verify {
                step.data.push(data(game, chooser, 100)?);
            }
        }
        Function::Digest | Function::State => {
            step.mechanism = Some(mechanism(chooser, alphabet::DIGESTS, |_| true)?);
            let secret = |facts: &Facts| facts.class == CKO_SECRET_KEY;
            step.keys = vec![any_key(game, chooser, secret)?];
            if chooser.rarely(50) {
                // What one derivation gives several keys of is one key of another.
                let pieces = game.stage.objects().filter(|name| name.step == step.keys[0].step);
                step.keys = pieces.collect();
            } else if chooser.below(2) == 1 {
                step.data = vec![constant(chooser)];
            }
        }
        Function::Resume if chooser.rarely(70) => {
            // The outer hash of an HMAC is over the inner one.
            let inner = before.last().filter(|last| last.function == Function::Resume);
            let (pad, over) = match inner {
                Some(last) => ("sha3-opad", Data::whole(last.number)),
                None => ("sha3-ipad", constant(chooser)),
            };
            let secret = |facts: &Facts| facts.class == CKO_SECRET_KEY;
            let keys = inner.map(|last| last.keys.clone()).filter(|keys| !keys.is_empty());
            step.keys = keys.or_else(|| Some(vec![any_key(game, chooser, secret)?]))?;
            step.data = vec![named(pad)?, named("fill")?, over];
        }
        Function::Resume => step.data = vec![data(game, chooser, 100)?],
        Function::Trust => return None,
    }
    Some(step)
}

/// A step that succeeded, with another key, mechanism or word.
fn repeated(
    game: &Game<'_>,
    chooser: &mut Chooser,
    number: usize,
    before: &[Step],
) -> Option<Step> {
    let steps: Vec<usize> = (0..before.len()).filter(|at| !before[*at].owner).collect();
    let mut step = Step { number, ..before[chooser.one_of(&steps)?].clone() };
    if step.function == Function::Pair {
        return None;
    }
    let serves = step.mechanism.map_or(0, |by| by.serves);
    match chooser.below(4) {
        0 if serves != 0 => step.mechanism = Some(mechanism(chooser, serves, |_| true)?),
        1 if !step.keys.is_empty() => {
            let at = chooser.below(step.keys.len());
            step.keys[at] = any_key(game, chooser, |_| true)?;
        }
        2 if !step.words.is_empty() => drop(step.words.pop()),
        _ => step.words.extend(alphabet::named(chooser.one_of(UNUSUAL)?)),
    }
    Some(step)
}

/// A key of the attacker's own.
fn maker(
    chooser: &mut Chooser,
    number: usize,
    function: Function,
    protection: &Weighed<&'static [&'static str]>,
) -> Option<Step> {
    let mut step = Step::new(number, false, function);
    let mut said: Vec<&str> = Vec::new();
    match function {
        Function::Pair => {
            // RSA takes a hundred times as long as all the rest.
            let by = Mechanism::named(chooser.weighted(&[(3, "ec-gen"), (1, "rsa-gen")]))?;
            step.mechanism = Some(by);
            if by.number == CKM_RSA_PKCS_KEY_PAIR_GEN {
                let [public, private] = chooser.weighted(RSA_USAGES);
                let kept: &[&str] = chooser.weighted(&[(1, &["extractable"]), (1, &[])]);
                step.words = alphabet::words(&[&["rsa-2048"], public].concat());
                step.private = alphabet::words(&[kept, private].concat());
                return Some(step);
            }
            step.words = alphabet::words(&["p256"]);
            said.extend(chooser.weighted::<&[&str]>(&[
                (2, &["+derive"]),
                (1, &["+sign"]),
                (1, &[]),
            ]));
            said.extend(chooser.weighted(protection));
            said.extend(unusual(chooser));
            step.private = alphabet::words(&said);
            return Some(step);
        }
        Function::Create if chooser.rarely(15) => {
            step.words = alphabet::words(&["known-rsa", "+wrap"]);
            return Some(step);
        }
        Function::Create => {
            said.push(chooser.weighted(&[(3, "aes"), (2, "generic"), (1, "hkdf")]));
            said.push(chooser.weighted(&[(2, "value-a"), (2, "value-b"), (1, "value-info")]));
        }
        _ => {
            let by = mechanism(chooser, alphabet::GENERATES, |_| true)?;
            step.mechanism = Some(by);
            let length = [(10, "length-32"), (2, "length-16"), (1, "length-80")];
            said.push(chooser.weighted(&length));
        }
    }
    said.extend(chooser.weighted(USAGES));
    said.extend(chooser.weighted(protection));
    said.extend(unusual(chooser));
    step.words = alphabet::words(&said);
    Some(step)
}

fn unusual(chooser: &mut Chooser) -> Option<&'static str> {
    if chooser.rarely(30) { chooser.one_of(UNUSUAL) } else { None }
}

/// What is unwrapped is mostly something that was wrapped, by the same key and mechanism.
fn unwrap(game: &Game<'_>, chooser: &mut Chooser, step: &mut Step) -> Option<()> {
    step.keys = vec![key_for(game, chooser, step, alphabet::WRAPS, CKA_UNWRAP)?];
    step.data = vec![data(game, chooser, 95)?];
    follow(game, chooser, step);
    let mut said = chooser
        .weighted::<&[&str]>(&[
            (5, &["generic"]),
            (5, &["aes"]),
            (1, &["hkdf"]),
            (1, &["rsa"]),
            (1, &["ec"]),
        ])
        .to_vec();
    if chooser.rarely(20) {
        said.push(chooser.weighted(&[(1, "length-1"), (1, "length-16")]));
    }
    said.extend(chooser.weighted(USAGES));
    said.extend(chooser.weighted(ATTACKERS_PROTECTION));
    said.extend(unusual(chooser));
    step.words = alphabet::words(&said);
    Some(())
}

fn derive(game: &Game<'_>, chooser: &mut Chooser, step: &mut Step) -> Option<()> {
    let base = key_for(game, chooser, step, alphabet::DERIVES, CKA_DERIVE)?;
    step.keys = vec![base];
    // With a base that he knows the attacker can read what another key salts.
    let known = |name: &Name| game.stage.facts(*name).is_some_and(|facts| facts.readable());
    if known(&base) && chooser.rarely(50) {
        step.mechanism = Mechanism::named("salted");
    }
    let by = step.mechanism?;
    if by.is_salted() {
        step.keys.push(any_key(game, chooser, |facts| facts.class == CKO_SECRET_KEY)?);
    }
    let data = by.number == CKM_HKDF_DATA;
    let kind: &Weighed<&str> = &[(4, "generic"), (3, "aes"), (1, "hkdf")];
    let mut said = vec![if data { "data" } else { chooser.weighted(kind) }, "length-32"];
    if chooser.rarely(40) {
        let lengths = [(2, "length-1"), (1, "length-16"), (2, "length-64"), (2, "length-80")];
        said.push(chooser.weighted(&lengths));
    }
    if !data {
        said.extend(chooser.weighted(USAGES));
        said.extend(chooser.weighted(ATTACKERS_PROTECTION));
        said.extend(unusual(chooser));
    }
    step.words = alphabet::words(&said);
    if by.number == CKM_SP800_108_COUNTER_KDF && chooser.rarely(25) {
        let mut said = vec![chooser.weighted(kind)];
        said.push(chooser.weighted(&[(2, "length-32"), (1, "length-16")]));
        said.extend(chooser.weighted(USAGES));
        said.extend(chooser.weighted(ATTACKERS_PROTECTION));
        step.private = alphabet::words(&said);
    }
    Some(())
}

/// Opens what a wrap gave out as it was made: with the same mechanism, and the same key or its
/// private half.
pub(crate) fn follow(game: &Game<'_>, chooser: &mut Chooser, step: &mut Step) {
    let Some(Data::Output { step: made, .. }) = step.data.first() else { return };
    let Some(wrap) = game.truth.wraps.iter().find(|wrap| wrap.step == *made) else { return };
    if chooser.rarely(80) {
        step.mechanism = Some(wrap.mechanism);
    }
    if chooser.rarely(70) {
        let same = |name: &Name| game.truth.of(*name) == Some(wrap.by);
        let keys: Vec<Name> = game.stage.objects().filter(same).collect();
        let private = keys.iter().copied().find(|name| name.private);
        step.keys[0] = private.or_else(|| chooser.one_of(&keys)).unwrap_or(step.keys[0]);
    }
}

fn mechanism(
    chooser: &mut Chooser,
    serves: u32,
    also: impl Fn(&Mechanism) -> bool,
) -> Option<&'static Mechanism> {
    let fits = |by: &&Mechanism| by.serves & serves != 0 && also(by);
    let all: Vec<&'static Mechanism> = MECHANISMS.iter().filter(fits).collect();
    chooser.one_of(&all)
}

/// A key that may be used so, mostly, and a mechanism for it.
fn key_for(
    game: &Game<'_>,
    chooser: &mut Chooser,
    step: &mut Step,
    serves: u32,
    usage: CK_ATTRIBUTE_TYPE,
) -> Option<Name> {
    let name = any_key(game, chooser, |facts| facts.has(usage))?;
    let key_type = game.stage.facts(name)?.key_type;
    let row = |by: &Mechanism| MechanismRow::find(by.number);
    let fits = |by: &Mechanism| row(by).is_some_and(|row| row.keys.contains(&key_type));
    step.mechanism = Some(mechanism(chooser, serves, fits)?);
    Some(name)
}

pub(crate) fn any_key(
    game: &Game<'_>,
    chooser: &mut Chooser,
    fits: impl Fn(&Facts) -> bool,
) -> Option<Name> {
    let fits = |name: &Name| game.stage.facts(*name).is_some_and(|facts| fits(&facts));
    let keys: Vec<Name> = game.stage.objects().filter(fits).collect();
    // What was made last is what the steps before were for.
    if chooser.rarely(30) { keys.last().copied() } else { chooser.one_of(&keys) }
}

/// Data: in `given` of a hundred cases something that a call gave out.
fn data(game: &Game<'_>, chooser: &mut Chooser, given: u64) -> Option<Data> {
    let outputs: Vec<usize> = game.stage.outputs().map(|output| output.0).collect();
    let exhaustive = chooser.takes_every();
    if !outputs.is_empty() && (chooser.rarely(given) || (exhaustive && given > 50)) {
        let cut =
            if chooser.rarely(8) { chooser.one_of(&[Cut::Head, Cut::Tail])? } else { Cut::Whole };
        return Some(Data::Output { step: chooser.one_of(&outputs)?, cut });
    }
    (given < 95).then(|| constant(chooser))
}

/// A constant by its name.
pub(crate) fn named(name: &str) -> Option<Data> {
    let row = CONSTANTS.iter().find(|row| row.0 == name)?;
    Some(Data::Constant(row.0, row.1))
}

fn constant(chooser: &mut Chooser) -> Data {
    let (name, bytes) = CONSTANTS[chooser.below(CONSTANTS.len())];
    Data::Constant(name, bytes)
}
