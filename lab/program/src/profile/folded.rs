// SPDX-License-Identifier: Apache-2.0
//! Folded stacks: every stack on one line, the outermost function first, and how often it was seen.
//! The form that flame graph programs read. A function of the kernel ends in `_[k]`.

use super::artefact;
use super::frame::plain;
use crate::{Failure, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Stacks and how often each was seen.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Folded {
    stacks: BTreeMap<Vec<String>, u64>,
}

/// A function, in how many samples it was anywhere in the stack, and in how many at its end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) inclusive: u64,
    pub(crate) exclusive: u64,
}

impl Folded {
    /// Reads folded stacks. Empty lines mean nothing.
    ///
    /// # Errors
    /// A line has no count or no stack; the message says which.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut folded = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let parts = line.rsplit_once(' ').filter(|(stack, _)| !stack.is_empty());
            let count = parts.and_then(|(stack, count)| Some((stack, count.parse().ok()?)));
            let (stack, count) = count.ok_or_else(|| {
                Failure::new(format!("line {}: is no folded stack", number + 1))
                    .hint("a line is functions with ; between, a blank, and a count")
            })?;
            folded.add(stack.split(';').map(str::to_owned).collect(), count);
        }
        Ok(folded)
    }

    /// The text, a line for each stack.
    pub(crate) fn render(&self) -> String {
        self.stacks.iter().fold(String::new(), |mut text, (stack, count)| {
            // Writing to a string does not fail.
            writeln!(text, "{} {count}", stack.join(";")).ok();
            text
        })
    }

    /// A stack, the outermost function first, was seen so often.
    pub(crate) fn add(&mut self, stack: Vec<String>, count: u64) {
        if count > 0 && !stack.is_empty() {
            *self.stacks.entry(stack).or_default() += count;
        }
    }

    /// All stacks.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = (&[String], u64)> {
        self.stacks.iter().map(|(stack, count)| (stack.as_slice(), *count))
    }

    /// How many samples there are.
    pub(crate) fn total(&self) -> u64 {
        self.stacks.values().sum()
    }

    /// In how many samples a function is anywhere in the stack; once in a sample, however often it
    /// calls itself.
    pub(crate) fn inclusive(&self, function: &str) -> u64 {
        let has = |stack: &[String]| stack.iter().any(|name| is(name, function));
        self.stacks().filter(|(stack, _)| has(stack)).map(|(_, count)| count).sum()
    }

    /// In how many samples a function is at the end of the stack.
    #[cfg(test)]
    pub(crate) fn exclusive(&self, function: &str) -> u64 {
        let ends = |stack: &[String]| stack.last().is_some_and(|name| is(name, function));
        self.stacks().filter(|(stack, _)| ends(stack)).map(|(_, count)| count).sum()
    }

    /// All functions, in the order of their names.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (stack, count) in self.stacks() {
            for name in stack.iter().collect::<BTreeSet<_>>() {
                functions.entry(name).or_default().0 += count;
            }
            if let Some(last) = stack.last() {
                functions.entry(last).or_default().1 += count;
            }
        }
        let function = |(name, (inclusive, exclusive)): (&str, _)| Function {
            name: name.to_owned(),
            inclusive,
            exclusive,
        };
        functions.into_iter().map(function).collect()
    }

    /// The same samples, where those that a timer has charged to anyone who allows interrupts again are
    /// charged to its caller.
    pub(crate) fn charged_to_callers(&self) -> Self {
        let mut folded = Self::default();
        for (stack, count) in self.stacks() {
            let kept = stack.iter().rposition(|name| !artefact::is(name)).map_or(1, |at| at + 1);
            folded.add(stack[..kept].to_vec(), count);
        }
        folded
    }

    /// Who calls a function and whom it calls, with the samples below each; the function itself where
    /// it is at the end of the stack.
    pub(crate) fn neighbours(&self, function: &str) -> Neighbours {
        let mut neighbours = Neighbours::default();
        for (stack, count) in self.stacks() {
            let Some(first) = stack.iter().position(|name| is(name, function)) else { continue };
            neighbours.name.clone_from(&stack[first]);
            let caller =
                first.checked_sub(1).map_or("(none: the stack begins here)", |at| &stack[at]);
            *neighbours.callers.entry(caller.to_owned()).or_default() += count;
            // Of a function that calls itself, the innermost call.
            let last = stack.iter().rposition(|name| is(name, function)).unwrap_or(first);
            match stack.get(last + 1) {
                Some(callee) => *neighbours.callees.entry(callee.clone()).or_default() += count,
                None => neighbours.own += count,
            }
        }
        neighbours
    }
}

/// What is around a function.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Neighbours {
    /// The function, as stacks name it.
    pub(crate) name: String,
    pub(crate) callers: BTreeMap<String, u64>,
    pub(crate) callees: BTreeMap<String, u64>,
    /// Samples in the function itself.
    pub(crate) own: u64,
}

/// Whether a frame has this name, with the mark of the kernel or without.
fn is(name: &str, said: &str) -> bool {
    name == said || plain(name).0 == said
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "main;read;copy_[k] 5\nmain;read;copy_[k];_raw_spin_unlock_irqrestore_[k] 3\n\
                        main;main;work 2\nmain 1\n";

    #[test]
    fn what_is_rendered_is_read_again() {
        let folded = Folded::parse(TEXT).unwrap();
        assert_eq!(folded.total(), 11);
        assert_eq!(Folded::parse(&folded.render()).unwrap(), folded);
    }

    #[test]
    fn a_function_counts_once_in_a_sample_and_the_ends_add_up() {
        let folded = Folded::parse(TEXT).unwrap();
        assert_eq!((folded.inclusive("main"), folded.exclusive("main")), (11, 1));
        assert_eq!((folded.inclusive("copy"), folded.exclusive("copy_[k]")), (8, 5));
        let functions = folded.functions();
        assert_eq!(functions.iter().map(|function| function.exclusive).sum::<u64>(), 11);
        for function in functions {
            assert_eq!(function.inclusive, folded.inclusive(&function.name), "{}", function.name);
            assert_eq!(function.exclusive, folded.exclusive(&function.name), "{}", function.name);
        }
    }

    #[test]
    fn who_allows_interrupts_again_is_not_charged() {
        let folded = Folded::parse(TEXT).unwrap();
        let charged = folded.charged_to_callers();
        assert_eq!(charged.total(), folded.total());
        assert_eq!(charged.exclusive("copy"), 8);
        assert_eq!(charged.inclusive("_raw_spin_unlock_irqrestore"), 0);
        let alone = Folded::parse("finish_task_switch.isra.0_[k] 4\n").unwrap();
        assert_eq!(alone.charged_to_callers(), alone);
        let nested = "a_[k];handle_softirqs_[k];_raw_spin_unlock_irq_[k] 2";
        assert_eq!(Folded::parse(nested).unwrap().charged_to_callers().exclusive("a"), 2);
    }

    #[test]
    fn callers_and_callees_hold_all_samples_of_the_function() {
        let folded = Folded::parse(TEXT).unwrap();
        let neighbours = folded.neighbours("copy");
        assert_eq!(neighbours.callers["read"], 8);
        assert_eq!(neighbours.own, 5);
        assert_eq!(neighbours.callees.values().sum::<u64>() + neighbours.own, 8);
        let main = folded.neighbours("main");
        assert_eq!(main.callers.values().sum::<u64>(), 11);
        assert_eq!(main.callees.get("main"), None);
    }

    #[test]
    fn a_line_that_is_no_stack_is_named() {
        for text in ["a;b 1\nnothing\n", "a 1\n 3\n", "a 1\na;b x\n"] {
            let failure = Folded::parse(text).unwrap_err();
            assert!(failure.message.contains("line 2"), "{failure}");
        }
    }
}
