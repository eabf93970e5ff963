// SPDX-License-Identifier: Apache-2.0
//! `ksslcfg create`

use super::arguments::{Create, Format};
use super::entry::{ENTRY, Entry, Spot, not_ours};
use super::material::Material;
use super::service::{self, Unit};
use super::stage::{Parts, Stage};
use super::suites::Offer;
use crate::app::App;
use crate::command::setup::{self, Proxy, check_paths, may_read};
use crate::configured::Configuration;
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::output::Report;
use crate::places;
use crate::uri::Uri;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(super) fn run(app: &App, args: &Create) -> Result<()> {
    complete(args)?;
    let offer = Offer::parse(args.suites.as_deref())?;
    let spot = Spot::of(&args.place, &args.address)?;
    if spot.port == args.proxy_port {
        let what = format!("port {} cannot be that of TLS and that of the plain server", spot.port);
        return Err(Failure::usage(what).hint("-x is the port of the plain server on 127.0.0.1"));
    }
    setup::own(&spot.base)?;
    check_paths(&[("directory", spot.base.display().to_string())])?;
    former(&spot)?;
    let proxy = Proxy::choose(args.server.as_deref(), app.named_module())?;
    let user = user(args, &proxy)?;
    let material = Material::find(app, args)?;
    let maker =
        Maker { app, args, spot: &spot, proxy: &proxy, user: user.as_deref(), material: &material };
    maker.may_be_used()?;
    open(&spot.base)?;
    let _alone = spot.lock(app)?;
    // Another one may have made it, or one beside it, meanwhile.
    let old = former(&spot)?;
    let said = |what: &str| args.verbose.then(|| app.output.note(what));
    said(&format!("{} checks its configuration", proxy.name()));
    let stage = maker.stage(&offer)?;
    let entry = stage.entry.clone();
    if let Some(old) = &old {
        said(&format!("stopping {} on port {}", old.server, old.port));
        service::stop(old)?;
    }
    said(&format!("starting {} on port {}", entry.server, entry.port));
    stage.place(old.as_ref(), user.as_deref())?;
    let text = match old {
        Some(_) => format!("Note: reconfiguring the existing instance {}.\n", spot.name),
        None => String::new(),
    };
    app.output.print(&Report { text, json: entry.json(), uris: vec![entry.key.clone()] })?;
    if entry.unit.is_none() {
        let start = entry.directory.join("start");
        app.output.note(&format!(
            "it runs without systemd; when the machine was started anew: sh {}",
            start.display()
        ));
    }
    Ok(())
}

/// The proxy of before; refuses one that could not be beside others.
fn former(spot: &Spot) -> Result<Option<Entry>> {
    spot.beside_any()?;
    let old = Entry::read(&spot.directory())?;
    let is_running =
        old.as_ref().is_some_and(|old| old.port == spot.port && service::is_running(old));
    if !is_running {
        spot.is_free()?;
    }
    if old.is_none() && spot.beside().symlink_metadata().is_ok() {
        return Err(not_ours(&spot.beside()));
    }
    Ok(old)
}

/// Refuses what makes no sense together.
fn complete(args: &Create) -> Result<()> {
    if args.softtoken.is_some() {
        return Err(Failure::failed("-d: the configuration says where tokens are").hint(
            "'metaslot import-softtoken DIRECTORY' brings the keys of a Solaris softtoken into one",
        ));
    }
    let is_token = args.format == Format::Pkcs11;
    let missing = match (is_token, &args.token, &args.certificate, &args.file) {
        (true, None, ..) => Some("-T TOKEN"),
        (true, _, None, _) => Some("-C LABEL"),
        (false, .., None) => Some("-i FILE"),
        _ => None,
    };
    if let Some(missing) = missing {
        return Err(Failure::usage(format!("{missing} is missing")));
    }
    let unused = match (is_token, &args.token) {
        (true, _) if args.file.is_some() => Some("-i: with -f pkcs11 the key is in the token"),
        (true, _) if args.pin_source.is_some() => {
            Some("--pin-source: with -f pkcs11 the PIN's file is -p FILE")
        }
        (false, None) if args.certificate.is_some() => {
            Some("-C: it names a certificate in a token: -T TOKEN")
        }
        (false, None) if args.chain.is_some() => {
            Some("-h: with -f pem they are in the file, behind the certificate")
        }
        _ => None,
    };
    unused.map_or(Ok(()), |what| Err(Failure::usage(what)))
}

/// The user whose rights the proxy gets; none where they are the caller's.
fn user(args: &Create, proxy: &Proxy) -> Result<Option<String>> {
    let own = setup::own_user();
    let is_plain = |name: &&str| {
        !name.starts_with('-')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    match args.user.as_deref() {
        Some(name) if own.as_deref() == Some(name) => Ok(None),
        Some(name) if !rustix::process::geteuid().is_root() => {
            Err(Failure::failed(format!("only root gives a proxy the rights of {name}"))
                .hint("leave out -u: the proxy has this user's rights"))
        }
        Some(name) => match Some(name).filter(is_plain).filter(|name| setup::is_user(name)) {
            Some(name) => Ok(Some(name.to_owned())),
            None => Err(Failure::failed(format!("there is no user '{name}'"))
                .hint("'getent passwd' lists the users")),
        },
        None if !rustix::process::geteuid().is_root() => Ok(None),
        None => match proxy.user() {
            Some(name) => Ok(Some(name.to_owned())),
            None => Err(Failure::failed(format!("the user of {} is not there", proxy.name()))
                .hint("name one: -u USER")),
        },
    }
}

/// A directory that every user may look into: nothing in it is secret. One that is there stays as its owner wants it.
fn open(directory: &Path) -> Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let made = fs::create_dir_all(directory)
        .and_then(|()| fs::set_permissions(directory, Permissions::from_mode(0o755)));
    made.map_err(|error| Failure::io(format!("cannot make {}", directory.display()), &error))
}

/// What a proxy is made of.
struct Maker<'a> {
    app: &'a App,
    args: &'a Create,
    spot: &'a Spot,
    proxy: &'a Proxy,
    user: Option<&'a str>,
    material: &'a Material,
}

impl Maker<'_> {
    /// Whether systemd reads the PIN's file, with root's rights, and gives it to the unit.
    fn credential(&self) -> Option<&Path> {
        match self.material {
            Material::InToken(it) if self.spot.has_systemd && self.args.user.is_none() => {
                it.pin.as_deref()
            }
            _ => None,
        }
    }

    /// Refuses a user who could not do it, before anything is made.
    fn may_be_used(&self) -> Result<()> {
        let Some(user) = self.user else { return Ok(()) };
        match self.material {
            Material::File(path) => may_read(user, path, "the file with the key"),
            Material::InToken(it) => {
                let pin = it.pin.as_deref().filter(|_| self.credential().is_none());
                self.proxy.may_use(user, self.app, &it.token, pin)
            }
        }
    }

    fn stage(&self, offer: &Offer) -> Result<Stage> {
        let (server, spot) = (self.proxy.name(), self.spot);
        let mut parts = Parts::new(server, spot, self.args, offer);
        parts.add("program", self.proxy.path().display().to_string());
        // nginx gives its workers another user's rights where root starts it.
        let is_root = self.user.is_none() && rustix::process::geteuid().is_root();
        parts.add("user", if is_root { "user root;\n" } else { "" }.to_owned());
        let mut files: Vec<(String, String)> = Vec::new();
        let (mut openssl, mut for_check) = (None, None);
        match self.material {
            Material::File(path) => {
                check_paths(&[("cert", path.display().to_string())])?;
                parts.add("pem", path.display().to_string());
            }
            Material::InToken(it) => {
                let unit = self.credential().and_then(|_| spot.unit());
                let finds = |unit| {
                    let pin = it.pin.as_deref();
                    self.proxy.finds(self.app, &setup::TokenKey { key: &it.key, pin, unit })
                };
                let ((name, text), key) = finds(unit.as_deref())?;
                if unit.is_some() {
                    for_check = Some(finds(None)?.0.1);
                }
                files.push((name.to_owned(), text));
                files.push(("site.pem".to_owned(), it.chain.clone() + &key));
                parts.add("pem", "site.pem".to_owned());
                openssl = Some(name);
            }
        }
        let configuration = self.proxy.configuration(&parts.values);
        files.extend(configuration.map(|(name, text)| (name.to_owned(), text + "\n")));
        let entry = self.entry(&files);
        let variables = self.variables(openssl);
        let paths = variables.iter().map(|(_, path)| ("conf", path.clone()));
        check_paths(&paths.collect::<Vec<_>>())?;
        let at =
            |place: &Path, run: &Path, what: &str| self.proxy.section(what, &parts.at(place, run));
        let (place, run) = (spot.directory(), spot.run());
        let unit = entry.unit.is_some().then(|| {
            let writes = self.writes();
            let start = at(&place, &run, "service");
            let user = self.user.unwrap_or("root");
            let credential = self.credential();
            Unit {
                entry: &entry,
                user,
                start: &start,
                variables: &variables,
                credential,
                writes: writes.as_deref(),
            }
            .text()
        });
        let prefix = self.user.map(service::as_user).unwrap_or_default();
        if unit.is_none() {
            let line = prefix.clone() + &at(&place, &run, "daemon");
            files.push(("start".to_owned(), service::script(&line, &variables)));
        }
        files.push((ENTRY.to_owned(), format!("{:#}\n", entry.json())));
        let stage = Stage::make(spot, entry, &files, unit)?;
        // Root alone reads what systemd is to hand on.
        let user = self.user.filter(|_| self.credential().is_none());
        let prefix = if user.is_some() { prefix } else { String::new() };
        let line = prefix + &at(&stage.place, &stage.room(user)?, "check");
        let conf: Vec<_> = variables.into_iter().filter(|row| row.0 != "OPENSSL_CONF").collect();
        let line = service::script(&line, &conf);
        stage.check(server, &line, openssl.map(|name| (name, for_check)))?;
        Ok(stage)
    }

    fn entry(&self, files: &[(String, String)]) -> Entry {
        let mut names: Vec<String> = files.iter().map(|file| file.0.clone()).collect();
        let unit = self.spot.unit();
        if unit.is_none() {
            names.push("start".to_owned());
        }
        Entry {
            name: self.spot.name.clone(),
            server: self.proxy.name().to_owned(),
            host: self.spot.host.clone(),
            port: self.spot.port,
            proxy_port: self.args.proxy_port,
            key: self.material.name(),
            unit,
            run: self.spot.run(),
            files: names,
            directory: self.spot.directory(),
        }
    }

    /// By which the process finds its key.
    fn variables(&self, openssl: Option<&str>) -> Vec<(&'static str, String)> {
        let Some(openssl) = openssl else { return Vec::new() };
        let conf = self.spot.directory().join(openssl).display().to_string();
        let named = places::named().and_then(|path| std::path::absolute(path).ok());
        let named = named.map(|path| ("METASLOT_CONF", path.display().to_string()));
        [("OPENSSL_CONF", conf)].into_iter().chain(named).collect()
    }

    /// Where a token of ours is written, and the counters; none where others have a part in it.
    fn writes(&self) -> Option<Vec<String>> {
        let Material::InToken(it) = self.material else { return Some(Vec::new()) };
        let configuration = Configuration::read();
        let module = self.app.host(&Uri::default()).ok()?.module();
        let is_ours = |token: &Token| module.is_metaslot() && !token.is_others();
        let counters = configuration.counters.clone();
        let counters = counters.unwrap_or_else(|| PathBuf::from("/run/metaslot"));
        (is_ours(&it.token) && configuration.foreign.is_empty()).then_some(())?;
        let description = module.slot_info(it.token.slot).ok()?.description;
        let section = configuration.described(&description)?;
        let files = [Some(section.path), section.anchor].into_iter().flatten();
        let directories = files.filter_map(|file| file.parent().map(Path::to_owned));
        let all = directories.chain([counters]).map(|path| path.display().to_string());
        Some(all.collect())
    }
}
