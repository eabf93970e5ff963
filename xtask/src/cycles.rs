// SPDX-License-Identifier: Apache-2.0
//! Which files of a crate import each other in a circle. Files that do are one file in several pieces: none of them
//! can be read, tested or moved without the others.

use std::collections::{BTreeMap, BTreeSet};

/// A file's place among the modules of its crate, and its text.
pub(crate) struct File<'a> {
    /// Below `src`, with `/`.
    pub(crate) path: String,
    pub(crate) text: &'a str,
}

/// The files that are part of a circle, each with one file of the circle that it imports.
pub(crate) fn circles(files: &[File<'_>]) -> Vec<(String, String)> {
    let edges = edges(files);
    let reach: Vec<Vec<bool>> = (0..files.len()).map(|from| reachable(&edges, from)).collect();
    let next = |at: usize| edges[at].iter().find(|to| reach[**to][at]);
    let shown = |at: usize| files[at].path.clone();
    (0..files.len()).filter_map(|at| next(at).map(|to| (shown(at), shown(*to)))).collect()
}

/// Each file with each that it imports.
pub(crate) fn imports(files: &[File<'_>]) -> Vec<(String, String)> {
    let edges = edges(files).into_iter().enumerate();
    let pairs = edges.flat_map(|(from, to)| to.into_iter().map(move |to| (from, to)));
    pairs.map(|(from, to)| (files[from].path.clone(), files[to].path.clone())).collect()
}

/// By file, which others it imports.
fn edges(files: &[File<'_>]) -> Vec<Vec<usize>> {
    let codes: Vec<String> = files.iter().map(|file| code(file.text)).collect();
    let parts: Vec<Part<'_>> =
        files.iter().zip(&codes).map(|(file, code)| Part::of(module(&file.path), code)).collect();
    let tree = Tree::of(&parts);
    (0..parts.len()).map(|at| tree.imports(&parts, at)).collect()
}

/// A file, read.
struct Part<'a> {
    module: Vec<&'a str>,
    tokens: Vec<&'a str>,
}

impl<'a> Part<'a> {
    fn of(module: Vec<&'a str>, code: &'a str) -> Self {
        Self { module, tokens: tokens(code) }
    }

    /// The paths that it names: those that it shows to others as its own, and those that it uses.
    fn paths(&self, is_module: impl Fn(&[&str]) -> bool) -> (Vec<Vec<&'a str>>, Vec<Vec<&'a str>>) {
        let (mut shown, mut used) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < self.tokens.len() {
            let begins = at == 0 || self.tokens[at - 1] != "::";
            let leads = begins && self.tokens.get(at + 1) == Some(&"::");
            let base = match self.tokens[at] {
                "crate" => Some(self.module[..root(&self.module)].to_vec()),
                "super" | "self" => Some(self.module.clone()),
                name => {
                    is_module(&[&self.module[..], &[name]].concat()).then(|| self.module.clone())
                }
            };
            let is_shown =
                at >= 2 && self.tokens[at - 1] == "use" && is_public(self.tokens[at - 2]);
            match base.filter(|_| leads) {
                Some(base) if is_shown => tree(&self.tokens, &mut at, base, &mut shown),
                Some(base) => tree(&self.tokens, &mut at, base, &mut used),
                None => at += 1,
            }
        }
        (shown, used)
    }
}

/// `pub use` or, by its last token, `pub(crate) use`.
fn is_public(token: &str) -> bool {
    matches!(token, "pub" | ")")
}

/// The modules of a crate, and the names that they have from others.
struct Tree<'a> {
    files: BTreeMap<Vec<&'a str>, usize>,
    shown: BTreeMap<Vec<&'a str>, Vec<&'a str>>,
    /// Modules whose files lie elsewhere (`#[path]`).
    elsewhere: BTreeSet<Vec<&'a str>>,
}

impl<'a> Tree<'a> {
    fn of(parts: &[Part<'a>]) -> Self {
        let files = parts.iter().enumerate().map(|(at, part)| (part.module.clone(), at));
        let mut tree =
            Self { files: files.collect(), shown: BTreeMap::new(), elsewhere: BTreeSet::new() };
        for part in parts {
            let declared =
                part.tokens.windows(3).filter(|words| words[0] == "mod" && words[2] == ";");
            let declared = declared.map(|words| [&part.module[..], &[words[1]]].concat());
            tree.elsewhere.extend(declared.filter(|module| !tree.files.contains_key(module)));
            let (shown, _) = part.paths(|path| tree.files.contains_key(path));
            for path in shown {
                let name = path.last().copied().unwrap_or_default();
                tree.shown.insert([&part.module[..], &[name]].concat(), path);
            }
        }
        tree
    }

    fn imports(&self, parts: &[Part<'a>], own: usize) -> Vec<usize> {
        let (_, used) = parts[own].paths(|path| self.files.contains_key(path));
        let least = root(&parts[own].module);
        let homes = used.into_iter().filter_map(|path| self.home(path, least));
        let mut edges: Vec<usize> = homes.filter(|to| *to != own).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// The file where a name is written, by way of the modules that show it.
    fn home(&self, mut path: Vec<&'a str>, least: usize) -> Option<usize> {
        for _ in 0..8 {
            let length =
                (least..=path.len()).rev().find(|at| self.files.contains_key(&path[..*at]))?;
            let name = &path[..(length + 1).min(path.len())];
            if self.elsewhere.contains(name) {
                return None;
            }
            let Some(other) = self.shown.get(name).filter(|_| length < path.len()) else {
                return self.files.get(&path[..length]).copied();
            };
            path = [&other[..], &path[length + 1..]].concat();
        }
        None
    }
}

/// The path of the module that a file is. Each program of a package is a tree of its own.
fn module(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    if matches!(parts.last(), Some(&("mod" | "lib" | "main"))) {
        parts.pop();
    }
    parts
}

/// How many segments lead to the crate's own root: those of a program's folder count.
fn root(module: &[&str]) -> usize {
    if module.first() == Some(&"bin") { 2.min(module.len()) } else { 0 }
}

/// Reads one path or tree of paths, and where each leads.
fn tree<'t>(
    tokens: &[&'t str],
    at: &mut usize,
    mut base: Vec<&'t str>,
    out: &mut Vec<Vec<&'t str>>,
) {
    loop {
        match tokens.get(*at) {
            Some(&"{") => {
                *at += 1;
                while !matches!(tokens.get(*at), Some(&"}") | None) {
                    tree(tokens, at, base.clone(), out);
                    if tokens.get(*at) == Some(&"as") {
                        *at += 2;
                    }
                    if tokens.get(*at) == Some(&",") {
                        *at += 1;
                    } else if tokens.get(*at) != Some(&"}") {
                        return;
                    }
                }
                *at += 1;
                return;
            }
            Some(&("crate" | "self")) => {}
            Some(&"super") => drop(base.pop()),
            Some(name) => base.push(name),
            None => return,
        }
        *at += 1;
        if tokens.get(*at) != Some(&"::") {
            out.push(base);
            return;
        }
        *at += 1;
    }
}

/// Without comments, texts in quotes, and what is compiled for tests only.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Words, `::`, `{`, `}`, `,`; anything else is one token between them.
fn tokens(code: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, tail) = rest.split_at(length);
        if !first.is_whitespace() {
            out.push(token);
        }
        rest = tail;
    }
    out
}

fn reachable(edges: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut open = edges[from].clone();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut seen[at], true) {
            open.extend(&edges[at]);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| File { path: (*path).into(), text }).collect();
        circles(&files).into_iter().map(|(file, _)| file).collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        let one_way = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::X;"), ("b.rs", "")];
        assert!(found(&one_way).is_empty());
        let both = [one_way[0], one_way[1], ("b.rs", "fn f() { super::a::g() }")];
        assert_eq!(found(&both), ["a.rs", "b.rs"]);
    }

    #[test]
    fn a_child_that_uses_its_parent_is_a_circle_where_the_parent_uses_it() {
        let tree = [
            ("a/mod.rs", "mod b;\nfn f() { b::g() }"),
            ("a/b.rs", "use super::{c::Z, W};"),
            ("a/c.rs", "// use super::W;"),
        ];
        assert_eq!(found(&tree), ["a/mod.rs", "a/b.rs"]);
    }

    #[test]
    fn a_name_is_imported_from_where_it_is_written() {
        let shown = [
            ("a/mod.rs", "mod b; mod c;\npub(crate) use b::{X, Y};"),
            ("a/b.rs", "struct X;"),
            ("a/c.rs", "use crate::a::X;"),
        ];
        assert!(found(&shown).is_empty());
        let back = [shown[0], ("a/b.rs", "use super::c::Z;"), shown[2]];
        assert_eq!(found(&back), ["a/b.rs", "a/c.rs"]);
    }

    #[test]
    fn what_only_tests_import_does_not_count() {
        let tests = "use crate::b::X;\n#[cfg(test)]\nmod tests {\n use super::*; use crate::c;\n}";
        assert!(found(&[("a.rs", tests), ("b.rs", ""), ("c.rs", "use crate::a::Y;")]).is_empty());
    }
}
