// SPDX-License-Identifier: Apache-2.0
//! Which service a process belongs to: what `only` and `except` of a provider name of this one, and a `[[client]]` of others.

use super::setting::{Complaint, text, wrong};
use crate::sink::program;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;
use toml::de::DeValue;

/// A process that may belong to one.
#[derive(Clone, Debug)]
pub struct Process {
    /// The user that it acts as.
    pub user: u32,
    /// Its number; `None` for this one.
    pub id: Option<u32>,
    /// What tells whether the number is still its own.
    pub handle: Handle,
}

/// What tells whether the number of a process is still its own: it is until the process has ended.
#[derive(Clone, Debug)]
pub enum Handle {
    /// Nothing does.
    Absent,
    /// A pidfd.
    Held(Arc<OwnedFd>),
    /// It had ended before a pidfd was asked for.
    Gone,
}

impl Process {
    /// One by its number; `None` for this one.
    #[must_use]
    pub const fn new(user: u32, id: Option<u32>) -> Self {
        Self { user, id, handle: Handle::Absent }
    }

    /// Whether it is known to have ended, so that what was read below its number may be another's.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match &self.handle {
            Handle::Absent => false,
            Handle::Gone => true,
            Handle::Held(held) => {
                let mut ready = [PollFd::new(held, PollFlags::IN)];
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                // A signal that comes at this moment says nothing of it.
                retry_on_intr(|| poll(&mut ready, Some(&now))) != Ok(0)
            }
        }
    }

    /// What its program is called, and its systemd unit: the first service in the path of its control group, else the last slice,
    /// since scopes have names made by chance. Both are empty where they are not known.
    #[must_use]
    pub fn names(&self) -> (String, String) {
        let (program, group) = (program(self.id), cgroup(self));
        if self.has_ended() {
            return Default::default();
        }
        (program, group.ok().flatten().as_deref().map(unit).unwrap_or_default())
    }

    /// A file in its directory of `/proc`.
    fn file(&self, name: &str) -> PathBuf {
        let own = self.id.map_or_else(|| String::from("self"), |id| id.to_string());
        [Path::new("/proc"), own.as_ref(), name.as_ref()].iter().collect()
    }
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub enum Peer {
    /// A process of this machine.
    Process(Process),
    /// Whose certificate has these names.
    Named(Vec<String>),
}

/// One name of services.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Selector {
    /// The user that the process acts as, by name or number.
    User(String),
    /// By number.
    Uid(u32),
    /// A control group (version 2) that the process is in, or in a group below it.
    Cgroup(PathBuf),
    /// The file that the process runs.
    Program(PathBuf),
    /// A name in the certificate by which it has connected from another machine: of a host, or a URI.
    Tls(String),
}

/// Whether this process belongs to one of the services of a list.
pub(super) fn is_one_of(list: &Spanned<DeValue<'_>>) -> Result<bool, Complaint> {
    let here = Process::new(geteuid().as_raw(), None);
    let all = local(list)?;
    Ok(all.iter().any(|selector| selector.is(&here).unwrap_or(false)))
}

/// Of processes only: this one is no peer of a daemon.
fn local(list: &Spanned<DeValue<'_>>) -> Result<Vec<Selector>, Complaint> {
    let all = selectors(list)?;
    if all.iter().any(|selector| matches!(selector, Selector::Tls(_))) {
        return Err(wrong(list, "\"tls:NAME\" is a service of a [[client]] only"));
    }
    Ok(all)
}

/// A list of services. All are read: a wrong one is an error in every process.
pub(super) fn selectors(list: &Spanned<DeValue<'_>>) -> Result<Vec<Selector>, Complaint> {
    let DeValue::Array(names) = list.get_ref() else {
        return Err(wrong(list, "must be a list of services such as \"user:www-data\""));
    };
    names.iter().map(Selector::parse).collect()
}

impl Selector {
    fn parse(name: &Spanned<DeValue<'_>>) -> Result<Self, Complaint> {
        let parts = text(name)?.split_once(':').filter(|(_, rest)| !rest.is_empty());
        match parts {
            Some(("user", user)) => Ok(Self::User(user.to_owned())),
            Some(("cgroup", path)) if path.starts_with('/') => Ok(Self::Cgroup(path.into())),
            Some(("program", path)) if path.starts_with('/') => Ok(Self::Program(path.into())),
            Some(("tls", named)) if is_name(named) => Ok(Self::Tls(named.to_owned())),
            Some(("tls", _)) => {
                Err(wrong(name, "must be a host's name or a URI of a certificate, without \"*\""))
            }
            _ => {
                let takes =
                    "must be \"user:NAME\", \"cgroup:/PATH\", \"program:/PATH\" or \"tls:NAME\"";
                Err(wrong(name, takes))
            }
        }
    }

    /// A user that there is becomes its number.
    pub(super) fn settle(&mut self) {
        if let Self::User(user) = self
            && let Some(number) = user_id(user)
        {
            *self = Self::Uid(number);
        }
    }

    /// # Errors
    /// Where it is not known: without a file to spare, say.
    pub(crate) fn is(&self, process: &Process) -> io::Result<bool> {
        Ok(match self {
            Self::User(user) => user_id(user) == Some(process.user),
            Self::Uid(user) => *user == process.user,
            // First looked at, then asked whether it was the process.
            Self::Cgroup(path) => {
                cgroup(process)?.is_some_and(|own| own.starts_with(path)) && !process.has_ended()
            }
            Self::Program(path) => runs(process, path) && !process.has_ended(),
            Self::Tls(_) => false,
        })
    }

    /// The name by which it is one of these; names of hosts have no case.
    pub(super) fn named<'s>(&'s self, names: &[String]) -> Option<&'s str> {
        let Self::Tls(own) = self else { return None };
        let is_own = |name: &String| match own.contains(':') {
            true => own == name,
            false => own.eq_ignore_ascii_case(name),
        };
        names.iter().any(is_own).then_some(own)
    }
}

/// Whether a certificate may have this name for one peer: a URI, or a host's name.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match name.split_once("://") {
        Some((scheme, rest)) => {
            let is_graphic = |byte: u8| byte.is_ascii_graphic() && byte != b'*';
            !scheme.is_empty() && !rest.is_empty() && name.bytes().all(is_graphic)
        }
        None => name.bytes().all(is_plain),
    }
}

/// Whether a process runs this file, or one that an update has replaced. By its name alone none is known whose names are not
/// ours: any user can be root of a mount namespace, in which the name is that of a file of his own.
fn runs(process: &Process, path: &Path) -> bool {
    let exe = process.file("exe");
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let own = file(&exe);
    if own.is_some() && own == file(path) {
        return true;
    }
    let here = Process::new(process.user, None);
    let names = |process: &Process| fs::read_link(process.file("ns/mnt")).ok();
    let same = names(process).is_some_and(|theirs| names(&here) == Some(theirs));
    same && fs::read_link(exe).is_ok_and(|own| {
        let own = as_begun(&own);
        own == path || fs::canonicalize(path).is_ok_and(|path| own == path)
    })
}

/// A program's file by the name that it had when it was begun: that of one which an update has replaced is marked.
fn as_begun(own: &Path) -> &Path {
    let path = own.as_os_str().as_bytes();
    Path::new(OsStr::from_bytes(path.strip_suffix(b" (deleted)").unwrap_or(path)))
}

/// The number of a user, by name or number.
fn user_id(user: &str) -> Option<u32> {
    number_of(user, &users()).or_else(|| user.parse().ok())
}

/// Full names may be in other encodings than ours.
fn users() -> String {
    let users = fs::read("/etc/passwd").unwrap_or_default();
    String::from_utf8_lossy(&users).into_owned()
}

/// The number of a user in the text of `/etc/passwd`.
fn number_of(name: &str, users: &str) -> Option<u32> {
    let fields = users.lines().map(|line| line.split(':'));
    let mut named = fields.filter_map(|mut fields| (fields.next()? == name).then_some(fields));
    named.next()?.nth(1)?.parse().ok()
}

/// Of control groups version 2: a line `0::/PATH`. None where there is none, or no such process that this one sees.
fn cgroup(process: &Process) -> io::Result<Option<PathBuf>> {
    let groups = match fs::read_to_string(process.file("cgroup")) {
        Err(error) if is_for_want(&error) => return Err(error),
        groups => groups.unwrap_or_default(),
    };
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    Ok(own.map(PathBuf::from))
}

/// Whether another time it may be otherwise.
fn is_for_want(error: &io::Error) -> bool {
    let wants = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|number| wants.contains(&number))
}

fn unit(group: &Path) -> String {
    let names = Vec::from_iter(group.iter().filter_map(OsStr::to_str));
    let service = names.iter().find(|name| name.ends_with(".service"));
    let unit = service.or_else(|| names.iter().rfind(|name| name.ends_with(".slice")));
    unit.map(|name| String::from(*name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
    use rustix::thread::gettid;
    use std::hint::spin_loop;
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};
    use toml::de::DeTable;

    fn ask(list: &str) -> Result<bool, String> {
        let text = format!("only = {list}");
        let table = DeTable::parse(&text).expect("this is TOML");
        let list = table.get_ref().get("only").expect("it is there");
        is_one_of(list).map_err(|complaint| complaint.1)
    }

    fn is(selector: &Selector, process: &Process) -> bool {
        selector.is(process).expect("it is known")
    }

    #[test]
    fn a_process_is_known_by_its_user_group_and_program() {
        let own = std::env::current_exe().expect("the test has a file");
        let user = geteuid().as_raw();
        assert_eq!(ask(&format!("[\"program:{}\"]", own.display())), Ok(true));
        assert_eq!(ask("[\"program:/bin/true\", \"user:4294967294\"]"), Ok(false));
        assert_eq!(ask(&format!("[\"program:/bin/true\", \"user:{user}\"]")), Ok(true));
        assert_eq!(ask("[]"), Ok(false));
        if let Some(group) = cgroup(&Process::new(user, None)).expect("there is a file to spare") {
            assert_eq!(ask(&format!("[\"cgroup:{}\"]", group.display())), Ok(true));
            assert_eq!(ask("[\"cgroup:/\"]"), Ok(true), "every group is below the root");
            let below = group.join("below");
            assert_eq!(ask(&format!("[\"cgroup:{}\"]", below.display())), Ok(false));
        }
    }

    #[test]
    fn one_that_is_not_seen_is_known_by_its_user_only() {
        let user = geteuid().as_raw();
        let (here, unseen) = (std::process::id(), Process::new(user, Some(0)));
        let here = Process::new(user, Some(here));
        assert!(is(&Selector::User(user.to_string()), &unseen));
        let own = std::env::current_exe().expect("the test has a file");
        let program = Selector::Program(own);
        assert!(is(&program, &here) && !is(&program, &unseen));
        assert!(!is(&Selector::Cgroup(PathBuf::from("/")), &unseen));
    }

    #[test]
    fn one_that_has_ended_is_not_the_next_of_its_number() {
        let own = std::env::current_exe().expect("the test has a file");
        let selectors = [Selector::Program(own), Selector::Cgroup(PathBuf::from("/"))];
        let here = Process::new(geteuid().as_raw(), Some(std::process::id()));
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().expect("it starts");
        let id = Pid::from_child(&child);
        let held = pidfd_open(id, PidfdFlags::empty()).expect("the kernel has them");
        let reused = Process { handle: Handle::Held(Arc::new(held)), ..here };
        let gone = Process { handle: Handle::Gone, ..here };
        let is = |process| selectors.each_ref().map(|selector| is(selector, process));
        let seen = is(&here);
        assert!(seen[0]);
        assert_eq!((is(&reused), is(&gone)), (seen, [false; 2]));
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(is(&reused), [false; 2]);
    }

    #[test]
    fn a_signal_ends_no_process_that_is_looked_at() {
        let usr2 = signal_hook::consts::SIGUSR2;
        signal_hook::flag::register(usr2, Arc::default()).expect("it can be handled");
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("it has a number");
        let held = pidfd_open(own, PidfdFlags::empty()).expect("the kernel has them");
        let handle = Handle::Held(Arc::new(held));
        let here = Process { handle, ..Process::new(geteuid().as_raw(), None) };
        let looks = gettid();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            // By a thread's number it is that thread which the kernel wakes first.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    kill_process(looks, Signal::USR2).expect("it runs");
                    // As long as a look takes, or its signal comes outside of one.
                    (0..400).for_each(|_| spin_loop());
                }
            });
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(500) && !here.has_ended() {}
            is_over.store(true, Ordering::Relaxed);
            assert!(!here.has_ended() && begun.elapsed() >= Duration::from_millis(500));
        });
    }

    #[test]
    fn a_unit_has_no_name_made_by_chance() {
        for (group, name) in [
            ("/system.slice/nginx.service", "nginx.service"),
            (
                "/system.slice/system-postgresql.slice/postgresql@15-main.service/a",
                "postgresql@15-main.service",
            ),
            ("/user.slice/user-1000.slice/session-3.scope", "user-1000.slice"),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/b.service",
                "user@1000.service",
            ),
            ("/system.slice/docker-0123456789ab.scope", "system.slice"),
            ("/", ""),
        ] {
            assert_eq!(unit(Path::new(group)), name);
        }
    }

    #[test]
    fn a_program_that_an_update_has_replaced_is_the_same_service() {
        assert_eq!(as_begun(Path::new("/usr/sbin/nginx (deleted)")), Path::new("/usr/sbin/nginx"));
        assert_eq!(as_begun(Path::new("/usr/sbin/nginx")), Path::new("/usr/sbin/nginx"));
    }

    #[test]
    fn a_user_that_was_looked_up_is_its_number() {
        let mut root = Selector::User(String::from("root"));
        root.settle();
        assert_eq!(root, Selector::Uid(0));
        // Not the user whose name is a number.
        assert!(is(&root, &Process::new(0, None)) && !is(&root, &Process::new(1, None)));
        let mut absent = Selector::User(String::from("no such user"));
        absent.settle();
        assert_eq!(absent, Selector::User(String::from("no such user")));
    }

    #[test]
    fn a_peer_is_known_by_a_name_of_its_certificate() {
        let parse = |text: &str| {
            let text = format!("only = [{text:?}]");
            let table = DeTable::parse(&text).expect("this is TOML");
            selectors(table.get_ref().get("only").expect("it is there"))
                .map_err(|complaint| complaint.1)
        };
        let is = |text: &str, names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| String::from(*name)).collect();
            parse(text).expect("it is right")[0].named(&names).is_some()
        };
        assert!(is("tls:web1.example", &["a.example", "WEB1.example"]));
        assert!(!is("tls:web1.example", &["*.example"]) && !is("tls:web1.example", &[]));
        assert!(is("tls:spiffe://example/web", &["spiffe://example/web"]));
        assert!(!is("tls:spiffe://example/web", &["spiffe://example/Web"]));
        assert!(!is("tls:spiffe://example/web", &["spiffe://example/web/1"]));
        assert!(!is("user:root", &["root"]));
        let here = Process::new(geteuid().as_raw(), None);
        assert_eq!(parse("tls:root").expect("it is right")[0].is(&here).ok(), Some(false));
        for wrong in ["tls:", "tls:*.example", "tls:spiffe://", "tls:spiffe://*/a", "tls:a b"] {
            parse(wrong).expect_err(wrong);
        }
        assert!(ask("[\"tls:web1.example\"]").is_err(), "of a provider");
    }

    #[test]
    fn users_have_names() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/false\nbroken\n";
        assert_eq!(number_of("www-data", users), Some(33));
        assert_eq!(number_of("www", users), None);
        assert_eq!(number_of("broken", users), None);
    }

    #[test]
    fn a_wrong_name_is_an_error_whoever_asks() {
        for list in [
            "[\"nginx\"]",
            "[\"user:\"]",
            "[\"program:nginx\"]",
            "[\"cgroup:x\"]",
            "\"user:root\"",
            "[1]",
        ] {
            assert!(ask(list).is_err(), "{list}");
        }
        let user = geteuid().as_raw();
        assert!(ask(&format!("[\"user:{user}\", \"nginx\"]")).is_err(), "after one that is here");
    }
}
