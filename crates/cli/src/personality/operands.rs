// SPDX-License-Identifier: Apache-2.0
//! Verbs and `keyword=value` operands, as `cryptoadm` and `pktool` have them: a table of each says what
//! has a meaning here, and why the rest has none.

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// A command of this kind; `A` are its options.
#[derive(Debug)]
pub(crate) struct Program<A: 'static> {
    pub(crate) name: &'static str,
    pub(crate) verbs: &'static [Verb<A>],
    /// The exit code for what has no meaning here.
    pub(crate) unserved: Exit,
}

/// One row: a verb, what it takes, what it does.
#[derive(Debug)]
pub(crate) struct Verb<A: 'static> {
    pub(crate) name: &'static str,
    pub(crate) operands: &'static [Operand],
    pub(crate) action: Action<A>,
}

/// What a verb does, or why it does nothing here.
#[derive(Debug)]
pub(crate) enum Action<A> {
    Does(fn(&App, &A, &Operands<'_>) -> Result<()>),
    Not(&'static str),
}

/// An operand that a verb knows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    /// `name=VALUE`
    Value(&'static str),
    /// `name=VALUE`, one of these values
    OneOf(&'static str, &'static [Choice]),
    /// `name`
    Word(&'static str),
    /// Either form, and why it has no meaning here.
    Not(&'static str, &'static str),
}

/// A value, and why it has no meaning here, if it has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice(pub(crate) &'static str, pub(crate) Option<&'static str>);

/// What was given.
#[derive(Debug)]
pub(crate) struct Operands<'a>(Vec<(&'a str, Option<&'a str>)>);

impl<A> Program<A> {
    /// Does what the words say, of which the first is the verb.
    pub(crate) fn run(&self, app: &App, options: &A, words: &[String]) -> Result<()> {
        let verbs = || self.verbs.iter().map(|verb| verb.name).collect::<Vec<_>>().join(", ");
        let Some((first, rest)) = words.split_first() else {
            return Err(Failure::usage(format!("{} needs a verb: {}", self.name, verbs())));
        };
        let Some(verb) = self.verbs.iter().find(|verb| verb.name == first) else {
            return Err(Failure::usage(format!("{} has no verb '{first}'", self.name))
                .hint(format!("it has {}", verbs())));
        };
        let does = match verb.action {
            Action::Not(why) => {
                return Err(self.unserved(first, why));
            }
            Action::Does(does) => does,
        };
        // The original's own lists, for people.
        if app.output.json && ["list", "tokens"].contains(&verb.name) {
            let what = format!("{} {first} prints no JSON document", self.name);
            return Err(Failure::usage(what)
                .hint("'metaslot key list', 'token list', 'provider list' and 'mechanisms' do"));
        }
        does(app, options, &self.operands(verb, rest)?)
    }

    fn operands<'a>(&self, verb: &Verb<A>, words: &'a [String]) -> Result<Operands<'a>> {
        let mut given: Vec<(&str, Option<&str>)> = Vec::new();
        for word in words {
            let (name, value) =
                word.split_once('=').map_or((&**word, None), |(name, value)| (name, Some(value)));
            let value = match (verb.operands.iter().find(|known| known.name() == name), value) {
                (Some(Operand::Value(_) | Operand::OneOf(..)), Some("")) => {
                    return Err(Failure::usage(format!("'{word}' has no value")));
                }
                (Some(Operand::OneOf(_, choices)), Some(value)) => {
                    Some(self.chosen(name, choices, value)?)
                }
                (Some(Operand::Value(_)), Some(_)) | (Some(Operand::Word(_)), None) => value,
                (Some(Operand::Not(_, why)), _) => return Err(self.unserved(name, why)),
                _ => return Err(self.unknown(verb, word)),
            };
            if given.iter().any(|known| known.0 == name) {
                return Err(Failure::usage(format!("'{name}' is given twice")));
            }
            given.push((name, value));
        }
        Ok(Operands(given))
    }

    /// The value as the table has it.
    fn chosen(&self, name: &str, choices: &[Choice], value: &str) -> Result<&'static str> {
        match choices.iter().find(|choice| choice.0.eq_ignore_ascii_case(value)) {
            Some(Choice(value, None)) => Ok(value),
            Some(Choice(value, Some(why))) => Err(self.unserved(&format!("{name}={value}"), why)),
            None => {
                let served = choices.iter().filter(|choice| choice.1.is_none());
                let known: Vec<&str> = served.map(|choice| choice.0).collect();
                Err(Failure::usage(format!("'{name}={value}' makes no sense"))
                    .hint(format!("{name}= is one of {}", known.join(", "))))
            }
        }
    }

    fn unserved(&self, what: &str, why: &str) -> Failure {
        Failure::new(self.unserved, format!("{what}: {why}"))
    }

    fn unknown(&self, verb: &Verb<A>, word: &str) -> Failure {
        let failure =
            Failure::usage(format!("'{} {}' does not take '{word}'", self.name, verb.name));
        let known: Vec<String> = verb.operands.iter().filter_map(Operand::written).collect();
        match known.is_empty() {
            true => failure.hint("it takes nothing"),
            false => failure.hint(format!("it takes {}", known.join(", "))),
        }
    }
}

impl Operand {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Value(name) | Self::OneOf(name, _) | Self::Word(name) | Self::Not(name, _) => {
                name
            }
        }
    }

    fn written(&self) -> Option<String> {
        match self {
            Self::Value(name) | Self::OneOf(name, _) => Some(format!("{name}=")),
            Self::Word(name) => Some((*name).to_owned()),
            Self::Not(..) => None,
        }
    }
}

impl<'a> Operands<'a> {
    /// The value of `name=`.
    pub(crate) fn value(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|given| given.0 == name)?.1
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|given| given.0 == name)
    }

    /// The value of `name=`, which there must be.
    pub(crate) fn needed(&self, name: &str) -> Result<&'a str> {
        self.value(name).ok_or_else(|| Failure::usage(format!("{name}= is missing")))
    }

    /// Of these names the one that was given; several are wrong.
    pub(crate) fn only<'n>(&self, names: &[&'n str]) -> Result<Option<&'n str>> {
        let mut given = names.iter().copied().filter(|name| self.has(name));
        match (given.next(), given.next()) {
            (Some(first), Some(second)) => {
                Err(Failure::usage(format!("'{first}' and '{second}' exclude each other")))
            }
            (only, _) => Ok(only),
        }
    }
}

/// Every verb and every operand of a table stands in its page.
#[cfg(test)]
pub(crate) fn assert_page_names<A>(program: &Program<A>, page: &str) {
    for verb in program.verbs {
        assert!(page.contains(&format!("`{}`", verb.name)), "{}", verb.name);
        for operand in verb.operands {
            let name = operand.name();
            let forms = [format!("`{name}`"), format!("`{name}=`")];
            assert!(forms.iter().any(|form| page.contains(form)), "{} {name}", verb.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program<()> = Program {
        name: "prog",
        unserved: Exit::Failed,
        verbs: &[Verb {
            name: "do",
            operands: &[
                Operand::Value("a"),
                Operand::Word("b"),
                Operand::Not("c", "why"),
                Operand::OneOf("d", &[Choice("one", None), Choice("two", Some("not"))]),
            ],
            action: Action::Not("never"),
        }],
    };

    fn parsed(words: &[&str]) -> std::result::Result<Vec<(String, Option<String>)>, String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let operands = PROGRAM.operands(&PROGRAM.verbs[0], &words);
        let owned =
            |(name, value): (&str, Option<&str>)| (name.to_owned(), value.map(str::to_owned));
        operands
            .map(|operands| operands.0.into_iter().map(owned).collect())
            .map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn operands_are_what_the_verb_takes() {
        let both = vec![("a".into(), Some("x=y".into())), ("b".into(), None)];
        assert_eq!(parsed(&["a=x=y", "b"]), Ok(both));
        assert_eq!(parsed(&["d=ONE"]), Ok(vec![("d".into(), Some("one".into()))]));
        for (words, message) in [
            (&["a="][..], "'a=' has no value"),
            (&["a"], "'prog do' does not take 'a'"),
            (&["b=1"], "'prog do' does not take 'b=1'"),
            (&["c=1"], "c: why"),
            (&["b", "b"], "'b' is given twice"),
            (&["d=three"], "'d=three' makes no sense"),
            (&["d=TWO"], "d=two: not"),
        ] {
            assert_eq!(parsed(words), Err(message.into()), "{words:?}");
        }
    }
}
