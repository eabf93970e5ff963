// SPDX-License-Identifier: Apache-2.0
//! Installation from the source: what the packages have, below a prefix, and a list by which it is taken out again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::target;
use crate::dist;
use crate::packages::is_root;
use crate::report::Count;
use crate::tree::{Tree, files_below, providers};

/// What is installed, one path a line, and which directories were made for it, with a slash at the end; below the prefix.
const LIST: &str = "share/metaslot/installed";

/// What the command line says.
struct Place {
    /// Absolute.
    prefix: PathBuf,
    /// The root of the system for which it is installed.
    root: PathBuf,
    /// Where p11-kit is told of it, if not where it looks.
    p11_kit: Option<PathBuf>,
}

impl Place {
    fn of(arguments: &[String]) -> Result<Self> {
        let usual = match is_root() {
            true => PathBuf::from("/usr/local"),
            false => home()?.join(".local"),
        };
        let mut place = Self { prefix: usual, root: PathBuf::from("/"), p11_kit: None };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a directory"));
            match word.as_str() {
                "--prefix" => place.prefix = PathBuf::from(value()?),
                "--destdir" => place.root = std::path::absolute(value()?)?,
                _ => bail!("unknown argument {word}; there are --prefix DIR and --destdir DIR"),
            }
        }
        ensure!(place.prefix.is_absolute(), "the prefix must be an absolute path");
        Ok(place)
    }

    fn tree(&self) -> Result<Tree> {
        let tree = Tree::new(&self.root, &self.prefix);
        // Below another prefix it does not look by itself.
        let place = (self.prefix == Path::new("/usr")).then(providers).flatten();
        let tree = match place {
            Some(place) => tree.with_providers(place),
            None => tree,
        };
        Ok(match &self.p11_kit {
            Some(place) => tree.with_p11_kit(place.clone()),
            None if self.prefix == Path::new("/usr") => tree,
            // There p11-kit looks besides.
            None if is_root() => tree.with_p11_kit(PathBuf::from("/etc/pkcs11/modules")),
            None => tree.with_p11_kit(config_home()?.join("pkcs11/modules")),
        })
    }

    fn install(&self) -> Result<()> {
        let mut tree = self.tree()?;
        println!("==> building (release; some minutes the first time)");
        let pages = dist::man()?;
        println!("==> installing below {}", self.prefix.display());
        tree.token(&pages)?;
        tree.lab(&pages)?;
        self.list(&mut tree)?;
        for path in &tree.placed {
            println!("    {}", tree.at(path).display());
        }
        println!("module: {}", tree.installed_module().display());
        println!("provider for OpenSSL: {}", tree.installed_provider().display());
        let programs = self.prefix.join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|directory| directory == programs) {
            println!(
                "put the commands into the search path: export PATH={}:$PATH",
                programs.display()
            );
        }
        let destdir = match self.root == Path::new("/") {
            true => String::new(),
            false => format!(" --destdir {}", self.root.display()),
        };
        println!(
            "take it out again: cargo xtask uninstall --prefix {}{destdir}",
            self.prefix.display()
        );
        Ok(())
    }

    /// Writes down what is to be taken out again. What an earlier installation made stays its own.
    fn list(&self, tree: &mut Tree) -> Result<()> {
        let list = self.prefix.join(LIST);
        let earlier = fs::read_to_string(tree.at(&list)).unwrap_or_default();
        tree.make_parent(&list)?;
        let placed = tree.placed.iter().map(|path| path.display().to_string());
        let made = tree.made.iter().map(|path| format!("{}/", path.display()));
        let earlier = earlier.lines().filter(|line| line.ends_with('/')).map(str::to_owned);
        let lines: Vec<_> = placed.chain(made).chain(earlier).collect();
        tree.write(list, &(lines.join("\n") + "\n"))
    }

    fn uninstall(&self) -> Result<()> {
        let tree = self.tree()?;
        let list = tree.at(&self.prefix.join(LIST));
        let lines = fs::read_to_string(&list)
            .with_context(|| format!("nothing is installed there: read {}", list.display()))?;
        let (mut directories, files): (Vec<_>, Vec<_>) =
            lines.lines().partition(|line| line.ends_with('/'));
        for path in files.iter().map(Path::new) {
            match fs::remove_file(tree.at(path)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => {
                    removed.with_context(|| format!("remove {}", tree.at(path).display()))?
                }
            }
        }
        fs::remove_file(&list).with_context(|| format!("remove {}", list.display()))?;
        // What is inside before what it is in.
        directories.sort_by_key(|directory| std::cmp::Reverse(directory.len()));
        for directory in directories {
            // What somebody else has put there stays.
            fs::remove_dir(tree.at(Path::new(directory))).ok();
        }
        println!("{} files taken out", files.len());
        Ok(())
    }
}

fn home() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    home.context("HOME is not set: name a directory with --prefix")
}

fn config_home() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    named.filter(|path| path.is_absolute()).map_or_else(|| Ok(home()?.join(".config")), Ok)
}

/// Builds and installs.
pub(crate) fn install(arguments: &[String]) -> Result<()> {
    Place::of(arguments)?.install()
}

/// Takes out what was installed; tokens and configurations are not part of it.
pub(crate) fn uninstall(arguments: &[String]) -> Result<()> {
    Place::of(arguments)?.uninstall()
}

/// What is installed works where it is, and nothing of it stays when it is taken out.
pub(crate) fn test() -> Result<Count> {
    let root = target().join("installed");
    drop(fs::remove_dir_all(&root));
    let words = ["--prefix", "/opt/metaslot", "--destdir", &root.to_string_lossy()];
    let words = words.map(str::to_owned);
    let mut place = Place::of(&words)?;
    // Nothing is written beside the tree, no matter who tests.
    place.p11_kit = Some(place.prefix.join("share/p11-kit/modules"));
    place.install()?;
    let command = place.tree()?.at(&place.prefix.join("bin/metaslot"));
    let said = Command::new(&command)
        .args(["mechanisms", "--json"])
        .env_clear()
        .env("HOME", &root)
        .output()
        .with_context(|| format!("run {}", command.display()))?;
    let text = String::from_utf8_lossy(&said.stdout);
    ensure!(said.status.success() && text.contains("CKM_AES_GCM"), "it finds its module: {said:?}");
    let modules = place.prefix.join("lib/x86_64-linux-gnu/ossl-modules");
    let said = Command::new("openssl")
        .args(["storeutl", "-noout", "-provider-path"])
        .arg(place.tree()?.at(&modules))
        .args(["-provider", "metaslot", "-provider", "default", "pkcs11:token=none"])
        .env_clear()
        .env("HOME", &root)
        .output()
        .context("run openssl")?;
    let text = String::from_utf8_lossy(&said.stderr);
    ensure!(
        text.contains("there is no such token"),
        "OpenSSL finds it and it finds its module: {said:?}"
    );
    let mut doctor = Command::new(&command);
    doctor.arg("doctor").env_clear().env("HOME", &root).env("PATH", "/usr/bin:/bin");
    let said = doctor.output().with_context(|| format!("run {}", command.display()))?;
    let tree = place.tree()?;
    let provider = fs::canonicalize(tree.at(&tree.installed_provider())).context("no provider")?;
    let found = format!("{}: programs of OpenSSL's can use keys", provider.display());
    ensure!(String::from_utf8_lossy(&said.stdout).contains(&found), "no {found}: {said:?}");
    place.uninstall()?;
    let left = files_below(&root)?;
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(Count::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_go_with_what_was_installed_but_those_that_others_use() {
        let root = std::env::temp_dir().join(format!("metaslot-install-{}", std::process::id()));
        fs::create_dir_all(root.join("opt/lib")).unwrap();
        let place = Place { prefix: "/opt".into(), root: root.clone(), p11_kit: None };
        // Twice: the second finds the directories of the first.
        for _ in 0..2 {
            let mut tree = Tree::new(&root, "/opt");
            for path in ["/opt/lib/arch/pkcs11/module", "/opt/share/man/man1/page"] {
                tree.write(path.into(), "").unwrap();
            }
            place.list(&mut tree).unwrap();
        }
        fs::write(root.join("opt/share/man/theirs"), "").unwrap();
        place.uninstall().unwrap();
        let left = |path: &str| root.join(path).exists();
        let there = ["opt/lib", "opt/share/man/theirs"].map(left);
        let gone = ["opt/lib/arch", "opt/share/man/man1", "opt/share/metaslot"].map(left);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((there, gone), ([true; 2], [false; 3]));
    }
}
