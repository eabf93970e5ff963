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
use crate::tree::{Tree, files_below};

/// What is installed, one path a line; below the prefix.
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
            let value = words.next().with_context(|| format!("{word} needs a directory"))?;
            match word.as_str() {
                "--prefix" => place.prefix = PathBuf::from(value),
                "--destdir" => place.root = std::path::absolute(value)?,
                _ => bail!("unknown argument {word}; there are --prefix DIR and --destdir DIR"),
            }
        }
        ensure!(place.prefix.is_absolute(), "the prefix must be an absolute path");
        Ok(place)
    }

    fn tree(&self) -> Result<Tree> {
        let tree = Tree::new(&self.root, &self.prefix);
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
        let list: String = tree.placed.iter().map(|path| format!("{}\n", path.display())).collect();
        tree.write(self.prefix.join(LIST), &list)?;
        for path in &tree.placed {
            println!("    {}", tree.at(path).display());
        }
        println!("module: {}", tree.installed_module().display());
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

    fn uninstall(&self) -> Result<()> {
        let tree = self.tree()?;
        let list = tree.at(&self.prefix.join(LIST));
        let paths = fs::read_to_string(&list)
            .with_context(|| format!("nothing is installed there: read {}", list.display()))?;
        let own = [
            "share/metaslot",
            "share/doc/metaslot/docs/commands",
            "share/doc/metaslot/docs",
            "share/doc/metaslot",
            "share/doc/metaslot-lab",
            "include/metaslot",
        ];
        for path in paths.lines().map(Path::new) {
            match fs::remove_file(tree.at(path)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => {
                    removed.with_context(|| format!("remove {}", tree.at(path).display()))?
                }
            }
        }
        fs::remove_file(&list).with_context(|| format!("remove {}", list.display()))?;
        for directory in own {
            // What somebody else has put there stays.
            fs::remove_dir(tree.at(&self.prefix.join(directory))).ok();
        }
        println!("{} files taken out", paths.lines().count());
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
    place.uninstall()?;
    let left = files_below(&root)?;
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(Count::ONE)
}
