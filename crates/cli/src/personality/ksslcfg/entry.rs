// SPDX-License-Identifier: Apache-2.0
//! One proxy: its name, its directory, and what is remembered of it there.

use super::arguments::{Address, Place};
use crate::app::App;
use crate::command::setup;
use crate::failure::{Exit, Failure, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// What is remembered.
pub(super) const ENTRY: &str = "entry.json";
/// Where systemd's units of the administrator are.
const UNITS: &str = "/etc/systemd/system";
/// Is there where systemd runs the system.
const SYSTEMD: &str = "/run/systemd/system";
/// The code of the original where one for every address is there.
const ANY_EXISTS: u8 = 3;

/// Which proxy is meant.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) base: PathBuf,
    pub(super) host: Option<String>,
    pub(super) port: u16,
    pub(super) name: String,
    pub(super) has_systemd: bool,
}

impl Spot {
    pub(super) fn of(place: &Place, address: &Address) -> Result<Self> {
        let (host, port) = match &address.words[..] {
            [port] => (None, port),
            [host, port, ..] => (Some(host.as_str()), port),
            [] => return Err(Failure::usage("the port is missing")),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
        if let Some(host) = host.filter(|host| {
            host.is_empty()
                || host.len() > 128
                || host.starts_with(['-', '.'])
                || !host.bytes().all(plain)
        }) {
            return Err(Failure::failed(format!("'{host}' is no host's name or address")));
        }
        let number = port.parse().ok().filter(|port| *port > 0);
        let port: u16 = number.ok_or_else(|| Failure::failed(format!("'{port}' is no port")))?;
        let host = host.map(str::to_ascii_lowercase).filter(|host| host != "any");
        // systemd takes a colon for the end of a directory's name.
        let name = format!("{}-{port}", host.as_deref().unwrap_or("any")).replace(':', "_");
        let is_root = rustix::process::geteuid().is_root();
        let has_systemd = is_root && place.directory.is_none() && Path::new(SYSTEMD).is_dir();
        Ok(Self { base: base(place)?, host, port, name, has_systemd })
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.base.join(&self.name)
    }

    /// Where the process has its sockets.
    pub(super) fn run(&self) -> PathBuf {
        match self.has_systemd {
            true => Path::new("/run/metaslot-kssl").join(&self.name),
            false => self.base.join(format!("{}.run", self.name)),
        }
    }

    /// The unit that systemd has it by.
    pub(super) fn unit(&self) -> Option<String> {
        self.has_systemd.then(|| format!("metaslot-kssl@{}.service", self.name))
    }

    /// What is made outside of the directory. What systemd makes it sees to itself.
    pub(super) fn beside(&self) -> PathBuf {
        match self.unit() {
            Some(unit) => Path::new(UNITS).join(unit),
            None => self.run(),
        }
    }

    /// One at a time changes what is there; who waits says so, for every user can hold this lock. Where the system has no such
    /// lock it is done without.
    pub(super) fn lock(&self, app: &App) -> Result<File> {
        let cannot = |error| Failure::io(format!("cannot use {}", self.base.display()), &error);
        let file = File::open(&self.base).map_err(cannot)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            let base = self.base.display();
            app.output.note(&format!("waiting for another process that has locked {base}"));
            flock(&file, FlockOperation::LockExclusive).ok();
        }
        Ok(file)
    }

    /// Refuses a proxy of one address beside that of all.
    pub(super) fn beside_any(&self) -> Result<()> {
        let any = format!("any-{}", self.port);
        if self.host.is_none() || !self.base.join(&any).join(ENTRY).exists() {
            return Ok(());
        }
        let what = format!("port {} has a proxy for every address", self.port);
        let delete = format!("ksslcfg delete {}, and then this again", self.port);
        Err(Failure::failed(what).hint(delete).coded(|_| ANY_EXISTS))
    }

    /// Refuses a host that there is not, or a port that another program has.
    pub(super) fn is_free(&self) -> Result<()> {
        let (host, port) = (self.host.as_deref(), self.port);
        let tried = match host {
            None => TcpListener::bind(("::", port)).or_else(|error| match error.kind() {
                io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
                _ => TcpListener::bind(("0.0.0.0", port)),
            }),
            Some(host) => {
                if (host, port).to_socket_addrs().is_err() {
                    return Err(Failure::failed(format!("there is no host '{host}'"))
                        .hint("give its address, or leave it out: then every address is served"));
                }
                TcpListener::bind((host, port))
            }
        };
        let Err(error) = tried else { return Ok(()) };
        let place = host.map_or_else(String::new, |host| format!(" of {host}"));
        Err(match error.kind() {
            io::ErrorKind::AddrInUse => self.taken(&place),
            io::ErrorKind::AddrNotAvailable => Failure::failed(format!(
                "'{}' is no address of this machine",
                host.unwrap_or_default()
            ))
            .hint("'ip address' lists them; without a host every address is served"),
            io::ErrorKind::PermissionDenied => {
                Failure::failed(format!("this user may not serve port {port}"))
                    .hint("as root, or with a port above 1023")
            }
            _ => Failure::io(format!("port {port}{place} cannot be served"), &error),
        })
    }

    /// Who has the port.
    fn taken(&self, place: &str) -> Failure {
        let port = self.port;
        let Some(other) = all(&self.base).into_iter().find(|other| other.port == port) else {
            let hint =
                format!("ss -ltnp 'sport = :{port}' says which: stop it, or give another port");
            return Failure::failed(format!("another program has port {port}{place}")).hint(hint);
        };
        let host = other.host.map_or_else(String::new, |host| format!("{host} "));
        Failure::failed(format!("the proxy {} has port {port}", other.name))
            .hint(format!("ksslcfg delete {host}{port}, and then this again"))
    }

    /// What HAProxy or nginx calls the address.
    pub(super) fn address(&self, server: &str) -> String {
        let (port, is_nginx) = (self.port, server == "nginx");
        let has_six = TcpListener::bind(("::", 0)).is_ok();
        // nginx tells the plain server of IPv4 by its own address only where it listens to it apart.
        let both = format!(";\n        listen [::]:{port} ssl");
        let (address, more) = match self.host.as_deref() {
            Some(host) if host.contains(':') && is_nginx => (format!("[{host}]:{port}"), ""),
            Some(host) if host.contains(':') => (format!("ipv6@{host}:{port}"), ""),
            Some(host) => (format!("{host}:{port}"), ""),
            None if is_nginx => (port.to_string(), if has_six { &*both } else { "" }),
            None if !has_six => (format!(":{port}"), ""),
            None => (format!(":::{port}"), " v4v6"),
        };
        format!("{address}{}{more}", if is_nginx { " ssl" } else { "" })
    }
}

/// The directory of all proxies.
pub(super) fn base(place: &Place) -> Result<PathBuf> {
    let directory = setup::directory(place.directory.as_deref())?;
    Ok(if place.directory.is_some() { directory } else { directory.join("kssl") })
}

/// What was made.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) server: String,
    pub(super) host: Option<String>,
    pub(super) port: u16,
    pub(super) proxy_port: u16,
    pub(super) key: String,
    /// The file of systemd's unit.
    pub(super) unit: Option<String>,
    pub(super) run: PathBuf,
    pub(super) files: Vec<String>,
    pub(super) directory: PathBuf,
}

impl Entry {
    /// What stands in a directory, if there is one; what others have made is refused.
    pub(super) fn read(directory: &Path) -> Result<Option<Self>> {
        let text = match fs::read_to_string(directory.join(ENTRY)) {
            Ok(text) => text,
            Err(_) if !directory.exists() && !directory.is_symlink() => return Ok(None),
            Err(_) => return Err(not_ours(directory)),
        };
        let value: Value = serde_json::from_str(&text).map_err(|_| not_ours(directory))?;
        // The server that runs, its sockets and its unit are of that place.
        let made = value["directory"].as_str();
        if let Some(made) = made.filter(|made| Path::new(made) != directory) {
            let what =
                format!("{} was made as {made}: it was copied or moved", directory.display());
            return Err(Failure::failed(what)
                .hint("nothing was changed: move it back, or remove it yourself"));
        }
        Self::parse(&value, directory).map(Some).ok_or_else(|| not_ours(directory))
    }

    fn parse(value: &Value, directory: &Path) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let port = |name: &str| u16::try_from(value[name].as_u64()?).ok();
        let files = value["files"].as_array()?.iter().map(|file| file.as_str().map(str::to_owned));
        let files = files.collect::<Option<Vec<String>>>()?;
        // Names of files, and no ways to others.
        let plain = |file: &String| !file.contains('/') && file != "..";
        let name = directory.file_name()?.to_str()?.to_owned();
        let unit = text("unit").filter(plain);
        (files.iter().all(plain) && text("directory").is_some()).then_some(())?;
        Some(Self {
            name,
            server: text("server")?,
            host: text("host"),
            port: port("port")?,
            proxy_port: port("proxy_port")?,
            key: text("key")?,
            unit,
            run: text("run")?.into(),
            files,
            directory: directory.to_owned(),
        })
    }

    pub(super) fn json(&self) -> Value {
        let Self { name, server, host, port, proxy_port, key, unit, run, files, directory } = self;
        json!({"name": name, "server": server, "host": host, "port": port, "proxy_port": proxy_port, "key": key,
            "unit": unit, "run": run, "files": files, "directory": directory})
    }

    /// The file of its unit.
    pub(super) fn unit_file(&self) -> Option<PathBuf> {
        self.unit.as_ref().map(|unit| Path::new(UNITS).join(unit))
    }

    /// Its configuration.
    pub(super) fn configuration(&self) -> PathBuf {
        let name = if self.server == "nginx" { "nginx.conf" } else { "haproxy.cfg" };
        self.directory.join(name)
    }

    /// Removes the files that were made, and the directory where nothing else is in it.
    pub(super) fn remove(&self) -> Result<()> {
        let cannot = |path: &Path, error: io::Error| {
            Failure::io(format!("cannot remove {}", path.display()), &error)
        };
        let gone = |path: PathBuf| match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot(&path, error)),
            _ => Ok(()),
        };
        let mut files = self.files.iter().map(|file| self.directory.join(file));
        files.try_for_each(gone)?;
        self.unit_file().map_or(Ok(()), gone)?;
        if self.run.exists() {
            fs::remove_dir_all(&self.run).map_err(|error| cannot(&self.run, error))?;
        }
        // The last one says that it is ours: what a failure leaves can be deleted again.
        gone(self.directory.join(ENTRY))?;
        fs::remove_dir(&self.directory).map_err(|error| {
            cannot(&self.directory, error).hint("what others have put there is left as it is")
        })
    }
}

pub(super) fn not_ours(directory: &Path) -> Failure {
    Failure::new(Exit::Failed, format!("{} was not made by this command", directory.display()))
        .hint("nothing was changed: move it away, or say another --directory")
}

/// Every proxy of a directory.
pub(super) fn all(base: &Path) -> Vec<Entry> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let mut found: Vec<Entry> =
        entries.filter_map(|entry| Entry::read(&entry.path()).ok().flatten()).collect();
    found.retain(|entry| !entry.name.starts_with('.'));
    found.sort_by(|one, other| (one.port, &one.name).cmp(&(other.port, &other.name)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(words: &[&str]) -> Result<Spot> {
        let place = Place { directory: Some("/nonexistent/kssl".into()) };
        Spot::of(&place, &Address { words: words.iter().map(ToString::to_string).collect() })
    }

    #[test]
    fn a_proxy_is_named_by_host_and_port() {
        for (words, name) in [
            (&["443"][..], "any-443"),
            (&["www.Example.org", "443"], "www.example.org-443"),
            (&["::1", "8443"], "__1-8443"),
            (&["any", "443"], "any-443"),
        ] {
            assert_eq!(spot(words).expect("it is one").name, name);
        }
        for words in [
            &["0"][..],
            &["x"],
            &["65536"],
            &["a/b", "443"],
            &["..", "443"],
            &["-a", "443"],
            &["", "1"],
            &["a b", "1"],
        ] {
            assert!(spot(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_unit_is_made_in_place_of_no_other() {
        let mut spot = spot(&["443"]).expect("it is one");
        assert_eq!(spot.beside(), Path::new("/nonexistent/kssl/any-443.run"));
        spot.has_systemd = true;
        let unit = "/etc/systemd/system/metaslot-kssl@any-443.service";
        assert_eq!(spot.beside(), Path::new(unit));
    }

    #[test]
    fn the_address_is_in_each_servers_words() {
        let of = |words: &[&str], server| spot(words).expect("it is one").address(server);
        assert_eq!(of(&["::1", "443"], "haproxy"), "ipv6@::1:443");
        assert_eq!(of(&["::1", "443"], "nginx"), "[::1]:443 ssl");
        assert_eq!(of(&["10.0.0.1", "443"], "haproxy"), "10.0.0.1:443");
        assert_eq!(of(&["a.example", "443"], "nginx"), "a.example:443 ssl");
    }

    #[test]
    fn an_entry_names_no_file_elsewhere() {
        let mut value = json!({"server": "haproxy", "port": 443, "proxy_port": 80, "key": "k",
            "unit": null, "run": "/r", "files": ["haproxy.cfg"], "directory": "/etc/metaslot/kssl/any-443"});
        let read = |value: &Value| Entry::parse(value, Path::new("/etc/metaslot/kssl/any-443"));
        assert!(read(&value).is_some_and(|entry| entry.name == "any-443"));
        value["files"] = json!(["../passwd"]);
        assert!(read(&value).is_none());
        value["files"] = json!([".."]);
        assert!(read(&value).is_none());
    }
}
