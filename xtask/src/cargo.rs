// SPDX-License-Identifier: Apache-2.0
//! What this repository is: its root, its target directory, its packages as Cargo sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::report::check;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Where Cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The release module.
pub(crate) fn module() -> PathBuf {
    target().join("release/libmetaslot.so")
}

/// The release provider for OpenSSL.
pub(crate) fn openssl_provider() -> PathBuf {
    target().join("release/libmetaslot_ossl.so")
}

/// The release command.
pub(crate) fn command() -> PathBuf {
    target().join("release/metaslot")
}

/// The release daemon.
pub(crate) fn daemon() -> PathBuf {
    target().join("release/metaslotd")
}

/// The release program that `metaslot lab` starts.
pub(crate) fn lab() -> PathBuf {
    target().join("release/metaslot-lab")
}

/// The release program that `metaslot lab lanes` starts.
pub(crate) fn kernels() -> PathBuf {
    target().join("release/metaslot-kernels")
}

/// `cargo` itself, in the repository's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// What `cargo metadata` says.
pub(crate) struct Metadata(Value);

impl Metadata {
    pub(crate) fn read() -> Result<Self> {
        let output = cargo(&["metadata", "--format-version", "1", "--locked"])
            .output()
            .context("run cargo metadata")?;
        ensure!(
            output.status.success(),
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Self(serde_json::from_slice(&output.stdout).context("parse cargo metadata")?))
    }

    /// Every package, of our own and of others.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &Value> {
        self.0["packages"].as_array().into_iter().flatten()
    }

    /// The directory of a dependency's source.
    pub(crate) fn source_of(&self, name: &str) -> Result<PathBuf> {
        let package = self
            .packages()
            .find(|package| package["name"] == name)
            .with_context(|| format!("no package named {name}"))?;
        let manifest = package["manifest_path"].as_str().context("no manifest path")?;
        Path::new(manifest).parent().map(Path::to_path_buf).context("a manifest without directory")
    }

    /// The workspace's own crates without their prefix, each with its directory.
    pub(crate) fn homes(&self) -> BTreeMap<String, PathBuf> {
        self.packages()
            .filter(|package| package["source"].is_null())
            .filter_map(|package| {
                let manifest = Path::new(package["manifest_path"].as_str()?);
                Some((short(package["name"].as_str()?), manifest.parent()?.to_path_buf()))
            })
            .collect()
    }

    /// The workspace's own crates without their prefix, each with those of its own kind that it
    /// depends on (development dependencies left out).
    pub(crate) fn edges(&self) -> BTreeMap<String, BTreeSet<String>> {
        let own: BTreeSet<&str> = self
            .packages()
            .filter(|package| package["source"].is_null())
            .filter_map(|package| package["name"].as_str())
            .collect();
        self.packages()
            .filter(|package| package["source"].is_null())
            .filter_map(|package| {
                let name = package["name"].as_str()?;
                let needs = package["dependencies"]
                    .as_array()?
                    .iter()
                    .filter(|edge| edge["kind"].is_null())
                    .filter_map(|edge| edge["name"].as_str())
                    .filter(|needed| own.contains(needed))
                    .map(short)
                    .collect();
                Some((short(name), needs))
            })
            .collect()
    }
}

/// The release build that every client, the tarball and `run` use.
pub(crate) fn build() -> Result<()> {
    let packages = ["module", "cli", "daemon", "lab", "openssl-provider"]
        .map(|name| format!("--package=metaslot-{name}"));
    check(release("build")?.args(packages)).map(|_| ())
}

/// The release module with an OpenSSL of its own, as it is installed; the other one has its place again after the next [`build`].
pub(crate) fn build_with_openssl() -> Result<()> {
    let module = ["--package=metaslot-module", "--features=openssl"];
    check(release("build")?.args(module)).map(|_| ())
}

/// The test of what kernels leave in the stack, with the frames that they have in the release build: it finds all but itself compiled.
pub(crate) fn stack() -> Result<Command> {
    let mut test = release("test")?;
    test.args(["--package=metaslot-lanes", "--test=stack"]);
    Ok(test)
}

/// A release build, or tests of one, in which nothing says where it was made: who makes it again elsewhere gets the same.
fn release(task: &str) -> Result<Command> {
    let home = std::env::home_dir().context("there is no home directory")?;
    let home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let places = [(home, "/cargo"), (target(), "/target"), (root(), "/metaslot")]
        .map(|(place, name)| format!("{}={name}", place.display()));
    let flags = |variable: &str, option: &str| {
        let given = std::env::var(variable).into_iter();
        let all: Vec<String> =
            given.chain(places.iter().map(|place| format!("{option}={place}"))).collect();
        all.join(" ")
    };
    let mut command = cargo(&[task, "--release", "--locked"]);
    command.env("RUSTFLAGS", flags("RUSTFLAGS", "--remap-path-prefix"));
    // Cargo has set it for this program as .cargo/config.toml says.
    command.env("CFLAGS", flags("CFLAGS", "-ffile-prefix-map"));
    Ok(command)
}

/// Every package that is built into `name` on this platform, itself not counted.
pub(crate) fn built_into(name: &str) -> Result<BTreeSet<String>> {
    let arguments = ["tree", "--edges", "normal", "--prefix", "none", "--no-dedupe", "--locked"];
    let output = cargo(&arguments).args(["--package", name]).output().context("run cargo tree")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let names = text.lines().filter_map(|line| line.split(' ').next());
    Ok(names.filter(|found| !found.is_empty() && *found != name).map(str::to_owned).collect())
}

/// The packages that are built with this one, whichever features are on. None where it is in no build: then it is not in the lock
/// file, or stands there for a feature that does not exist here.
pub(crate) fn users_of(name: &str) -> Result<BTreeSet<String>> {
    let arguments = ["tree", "--workspace", "--all-features", "--target", "all", "--locked"];
    let only =
        ["--edges", "normal,build,dev", "--depth", "1", "--prefix", "none", "--invert", name];
    let output = cargo(&arguments).args(only).output().context("run cargo tree")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("did not match any packages") {
        return Ok(BTreeSet::new());
    }
    ensure!(output.status.success(), "cargo tree: {said}");
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.split(' ').next());
    Ok(names.filter(|found| !found.is_empty() && *found != name).map(str::to_owned).collect())
}

/// The features that `name` has where this selection of packages is built.
pub(crate) fn features(name: &str, selection: &[&str]) -> Result<String> {
    let arguments = ["tree", "--prefix", "none", "--format", "{f}", "--depth", "0", "--locked"];
    let tree = cargo(&arguments).args(["--invert", name]).args(selection).output();
    let output = tree.context("run cargo tree")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn short(name: &str) -> String {
    name.strip_prefix("metaslot-").unwrap_or(name).to_owned()
}
