// SPDX-License-Identifier: Apache-2.0
//! What lets programs of OpenSSL's use a module: our own provider, pkcs11-provider, the engine of libp11; and where they are.

use crate::failure::{Failure, Result};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the systems keep what OpenSSL loads.
const PLACES: [&str; 4] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];

/// The directory of providers there.
const PROVIDERS: &str = "ossl-modules";

/// Our own provider as it is installed, and as it is built.
const OWN: [&str; 2] = ["metaslot.so", "libmetaslot_ossl.so"];

/// The engine.
const ENGINE: &str = "engines-3/pkcs11.so";

/// Other providers.
const OTHERS: [&str; 2] = ["pkcs11.so", "pkcs11prov.so"];

/// How long OpenSSL may take to load a provider, in seconds.
const PATIENCE: &str = "20";

/// Our own provider: where OpenSSL looks, if that was said; with the module that was named, or with this command; in the system.
pub(crate) fn own(module: Option<&Path>) -> Result<PathBuf> {
    let said = env::var_os("OPENSSL_MODULES").map(PathBuf::from);
    let command = env::current_exe().ok();
    let files = module.map(Path::to_path_buf).into_iter().chain(command);
    let near = files.filter_map(|file| fs::canonicalize(file).ok()).flat_map(|file| beside(&file));
    let far = PLACES.iter().map(|place| Path::new(place).join(PROVIDERS));
    let places = said.into_iter().chain(near).chain(far);
    let mut found = places.flat_map(|place| OWN.map(|name| place.join(name)));
    found.find(|path| path.is_file()).ok_or_else(|| {
        Failure::failed("OpenSSL's provider of ours, metaslot.so, is not installed")
            .hint("install the package metaslot, or cargo xtask install; or choose another bridge")
    })
}

/// Where it is beside a module or a program: in the same directory where they are built; below the prefix where they are installed.
fn beside(file: &Path) -> Vec<PathBuf> {
    let here = file.parent().map(Path::to_path_buf);
    let above = file.ancestors().skip(2).take(2);
    let libraries = ["", "lib", &format!("lib/{}-linux-gnu", env::consts::ARCH)].map(PathBuf::from);
    let above = above.flat_map(|place| libraries.iter().map(|lib| place.join(lib).join(PROVIDERS)));
    here.into_iter().chain(above).collect()
}

/// Whether OpenSSL loads it; otherwise what it says. Where there is no `openssl`, nothing is known.
pub(crate) fn loads(module: Option<&Path>) -> std::result::Result<(), String> {
    let Ok(file) = own(module) else { return Ok(()) };
    let mut openssl = Command::new("timeout");
    openssl.args([PATIENCE, "openssl", "list", "-providers", "-provider", "default"]);
    openssl.arg("-provider").arg(&file).env("OPENSSL_CONF", "/dev/null");
    match openssl.stdin(Stdio::null()).output() {
        Ok(output) if !output.status.success() && output.status.code() != Some(127) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().next_back().unwrap_or_default().trim().to_owned())
        }
        _ => Ok(()),
    }
}

/// Where OpenSSL keeps the engine that speaks PKCS#11.
pub(crate) fn engine() -> Result<PathBuf> {
    let mut places = PLACES.iter().map(|place| Path::new(place).join(ENGINE));
    places.find(|path| path.exists()).ok_or_else(|| {
        Failure::failed("OpenSSL's engine for PKCS#11 is not installed")
            .hint("apt-get install libengine-pkcs11-openssl")
    })
}

/// Whether OpenSSL finds pkcs11-provider.
pub(crate) fn pkcs11_provider() -> bool {
    let said = env::var_os("OPENSSL_MODULES").map(|said| Path::new(&said).join(OTHERS[0]));
    let mut places = PLACES.iter().map(|place| Path::new(place).join(PROVIDERS).join(OTHERS[0]));
    said.map_or_else(|| places.any(|path| path.exists()), |path| path.exists())
}

/// The engine and the providers of others that are there.
pub(crate) fn of_others() -> Vec<PathBuf> {
    let providers = OTHERS.map(|name| Path::new(PROVIDERS).join(name));
    let names = [PathBuf::from(ENGINE)].into_iter().chain(providers);
    let all = names.flat_map(|name| PLACES.iter().map(move |place| Path::new(place).join(&name)));
    all.filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_beside_a_build_and_below_a_prefix() {
        let of = |file: &str| beside(Path::new(file));
        let has = |file: &str, place: &str| of(file).contains(&PathBuf::from(place));
        let arch = format!("/opt/m/lib/{}-linux-gnu", env::consts::ARCH);
        assert!(has("/src/target/release/libmetaslot.so", "/src/target/release"));
        assert!(has("/opt/m/bin/metaslot", "/opt/m/lib/ossl-modules"));
        assert!(has("/opt/m/bin/metaslot", &format!("{arch}/ossl-modules")));
        assert!(has(&format!("{arch}/pkcs11/libmetaslot.so"), "/opt/m/lib/ossl-modules"));
        assert!(has(&format!("{arch}/pkcs11/libmetaslot.so"), &format!("{arch}/ossl-modules")));
    }
}
