// SPDX-License-Identifier: Apache-2.0
//! How a proxy runs: as a unit of systemd's, or as a daemon that a script starts.

use super::entry::Entry;
use crate::failure::{Failure, Result};
use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The first line of a unit.
const MADE: &str = "# Made by 'ksslcfg create'; 'ksslcfg delete' removes it.";

/// The lines of every unit: a proxy needs its port, its token, and nothing else of the machine.
const HARDENED: &str = "\
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
AmbientCapabilities=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes
ProtectHome=read-only
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_ALG
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
LimitMEMLOCK=8M
";

/// What a token of ours needs; modules of others may need devices, and make code of their own.
const OURS: &str = "\
ProtectSystem=strict
PrivateDevices=yes
MemoryDenyWriteExecute=yes
";

/// How long a proxy may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a unit says.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    pub(super) entry: &'a Entry,
    pub(super) user: &'a str,
    /// The lines that start the server.
    pub(super) start: &'a str,
    pub(super) variables: &'a [(&'static str, String)],
    /// The file with the PIN that systemd reads for it.
    pub(super) credential: Option<&'a Path>,
    /// The directories that the token is written in; none where it is another module's.
    pub(super) writes: Option<&'a [String]>,
}

impl Unit<'_> {
    pub(super) fn text(&self) -> String {
        let Entry { name, port, proxy_port, server, .. } = self.entry;
        let variables = self.variables.iter();
        let variables: String =
            variables.map(|(name, value)| format!("Environment={name}={value}\n")).collect();
        let credential =
            self.credential.map(|pin| format!("LoadCredential=pin:{}\n", pin.display()));
        let credential = credential.unwrap_or_default();
        let writes = match self.writes {
            Some(paths) => {
                let paths = paths.iter().map(|path| format!("ReadWritePaths=-{path}\n"));
                OURS.to_owned() + &paths.collect::<String>()
            }
            None => "ProtectSystem=full\n".to_owned(),
        };
        let Self { user, start, .. } = self;
        // Its workers may not have the kernel load what OpenSSL asks it for.
        let kernel = if server == "nginx" { " modprobe@tls.service" } else { "" };
        format!(
            "{MADE}\n[Unit]\nDescription=TLS of port {port} for the plain server on port {proxy_port}\n\
             Documentation=man:metaslot-ksslcfg(1)\nWants=network-online.target{kernel}\nAfter=network-online.target{kernel} metaslotd.service\n\n\
             [Service]\n{start}\nUser={user}\n{variables}{credential}RuntimeDirectory=metaslot-kssl/{name}\n\
             RuntimeDirectoryMode=0700\nRestart=on-failure\n{HARDENED}{writes}\n\
             [Install]\nWantedBy=multi-user.target\n"
        )
    }
}

/// What a line of a shell begins with so that a user's rights are all that it has, but for low ports.
pub(super) fn as_user(user: &str) -> String {
    let ports = ["inh", "ambient"].map(|set| format!("--{set}-caps=-all,+net_bind_service"));
    format!(
        "setpriv --reuid={user} --regid=\"$(id -g {user})\" --init-groups {} --bounding-set=-all,+net_bind_service --no-new-privs ",
        ports.join(" ")
    )
}

/// The script that starts it, or has it checked. HAProxy goes back to the directory in which it was started, so its user must be
/// able to.
pub(super) fn script(line: &str, variables: &[(&'static str, String)]) -> String {
    let variables = variables.iter().map(|(name, value)| format!("export {name}={value}\n"));
    let variables: String = variables.collect();
    format!("#!/bin/sh\n{MADE}\nPATH=$PATH:/usr/sbin:/sbin\n{variables}cd / && exec {line}\n")
}

/// Starts what stands in its directory now, and has systemd start it with the machine.
pub(super) fn start(entry: &Entry) -> Result<()> {
    let started = match &entry.unit {
        None => {
            let script = entry.directory.join("start").display().to_string();
            said_by(&["timeout", &PATIENCE.as_secs().to_string(), "sh", &script])
        }
        Some(unit) => said_by(&["systemctl", "daemon-reload"])
            .and_then(|_| said_by(&["systemctl", "--quiet", "enable", unit]))
            .and_then(|_| said_by(&["systemctl", "restart", unit])),
    };
    started.map(drop).and_then(|()| answers(entry)).map_err(|failure| {
        // systemctl says where it is said.
        let line = ["journalctl", "--quiet", "--no-pager", "-o", "cat", "-n", "3", "-u"];
        let journal = entry.unit.as_deref().map(|unit| said_by(&[&line[..], &[unit]].concat()));
        let words = journal.and_then(|said| said.ok()).filter(|said| !said.is_empty());
        let words = words.unwrap_or_else(|| failure.message().to_owned());
        Failure::failed(format!("{} does not start: {words}", entry.server))
    })
}

/// Waits until it takes connections, where starting it did not wait for that: systemd does for HAProxy, and daemons begin then.
fn answers(entry: &Entry) -> Result<()> {
    if entry.unit.is_none() || entry.server == "haproxy" {
        return Ok(());
    }
    let end = Instant::now() + PATIENCE;
    let host = entry.host.as_deref().unwrap_or("localhost");
    while TcpStream::connect((host, entry.port)).is_err() {
        if Instant::now() > end || !is_running(entry) {
            let what = format!("nothing takes connections on port {}", entry.port);
            return Err(Failure::failed(what));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Ends it, if it runs.
pub(super) fn stop(entry: &Entry) -> Result<()> {
    if let Some(unit) = &entry.unit {
        if entry.unit_file().is_some_and(|file| file.exists()) {
            said_by(&["systemctl", "--quiet", "disable", "--now", unit])?;
            said_by(&["systemctl", "reset-failed", unit]).ok();
        }
        return Ok(());
    }
    let end = Instant::now() + PATIENCE;
    if let Some(pid) = process(entry) {
        // It may have ended just now.
        kill_process(pid, Signal::TERM).ok();
        wait(entry, end, || (process(entry).is_some() || is_ending(pid)).then_some(pid))?;
    }
    let left = left(entry);
    for pid in &left {
        kill_process(*pid, Signal::TERM).ok();
    }
    wait(entry, end, || left.iter().copied().find(|pid| is_of(entry, *pid) || is_ending(*pid)))
}

/// Until there is none that is waited for.
fn wait(entry: &Entry, end: Instant, remains: impl Fn() -> Option<Pid>) -> Result<()> {
    while let Some(pid) = remains() {
        if Instant::now() > end {
            let what = format!("{} (process {}) does not end", entry.server, pid.as_raw_pid());
            return Err(Failure::failed(what).hint("kill -KILL ends it; then this again"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// What a server that was killed has left behind: its workers, which go on serving its port.
fn left(entry: &Entry) -> Vec<Pid> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let pids = numbers.filter(|number| *number > 1).filter_map(Pid::from_raw);
    pids.filter(|pid| is_of(entry, *pid)).collect()
}

/// Whether a process is of this server and has files of its directory open, which other users do not reach.
fn is_of(entry: &Entry, pid: Pid) -> bool {
    let of = PathBuf::from(format!("/proc/{}", pid.as_raw_pid()));
    let name = fs::read(of.join("comm")).unwrap_or_default();
    let opened = fs::read_dir(of.join("fd")).into_iter().flatten().flatten();
    let mut opened = opened.filter_map(|it| fs::read_link(it.path()).ok());
    name.trim_ascii_end() == entry.server.as_bytes()
        && opened.any(|file| file.starts_with(&entry.run))
}

/// Has systemd forget a unit that is gone.
pub(super) fn forget(entry: &Entry) {
    if entry.unit.is_some() {
        said_by(&["systemctl", "daemon-reload"]).ok();
    }
}

pub(super) fn is_running(entry: &Entry) -> bool {
    match &entry.unit {
        Some(unit) => said_by(&["systemctl", "--quiet", "is-active", unit]).is_ok(),
        None => process(entry).is_some(),
    }
}

/// The process, if it is the server with this configuration: its user writes the file with its number, and may write any.
fn process(entry: &Entry) -> Option<Pid> {
    let number = number_in(&entry.run.join("pid"))?;
    let of = |what: &str| fs::read(format!("/proc/{number}/{what}")).unwrap_or_default();
    let line = String::from_utf8_lossy(&of("cmdline")).replace('\0', " ");
    let is_it = of("comm").trim_ascii_end() == entry.server.as_bytes()
        && line.contains(&entry.configuration().display().to_string());
    Pid::from_raw(number).filter(|_| is_it && number > 1)
}

/// Whether a process has let go of its memory, which says what it is, and not yet of its sockets.
fn is_ending(pid: Pid) -> bool {
    let of = |what: &str| fs::read_to_string(format!("/proc/{}/{what}", pid.as_raw_pid()));
    of("stat").is_ok_and(|stat| !is_over(&stat)) && of("cmdline").is_ok_and(|line| line.is_empty())
}

/// What proc_pid_stat(5) says of one that is dead, waits to be collected, and has nothing open: its first thread can be dead while others, which have
/// the same files, end.
fn is_over(stat: &str) -> bool {
    // The name may have anything in it.
    let Some((_, after)) = stat.rsplit_once(") ") else { return true };
    let mut fields = after.split(' ');
    let is_dead = fields.next().is_some_and(|state| ["Z", "X"].contains(&state));
    let threads = fields.nth(16).and_then(|threads| threads.parse().ok());
    is_dead && threads.is_none_or(|threads: u32| threads <= 1)
}

/// A number, of a file whose owner could as well have made it a pipe without a writer, or a link to what has no end.
fn number_in(file: &Path) -> Option<i32> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let opened = File::options().read(true).custom_flags(flags.try_into().ok()?).open(file);
    let mut text = String::new();
    opened.ok()?.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Runs a program that may leave a daemon behind; its last words, which are the failure where it fails.
fn said_by(line: &[&str]) -> Result<String> {
    let cannot = |error: io::Error| Failure::io(format!("cannot run {}", line[0]), &error);
    let said = memfd_create("said", MemfdFlags::CLOEXEC).map_err(|errno| cannot(errno.into()))?;
    let mut said = File::from(said);
    let [out, err] = [said.try_clone().map_err(cannot)?, said.try_clone().map_err(cannot)?];
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).stdin(Stdio::null()).stdout(out).stderr(err).current_dir("/");
    let status = command.status().map_err(cannot)?;
    let mut bytes = Vec::new();
    said.rewind().and_then(|()| said.read_to_end(&mut bytes)).map_err(cannot)?;
    let said = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    match status.success() {
        true => Ok(last),
        false if last.is_empty() => Err(Failure::failed("it said nothing")),
        false => Err(Failure::failed(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    fn entry() -> Entry {
        Entry {
            name: "any-443".into(),
            server: "haproxy".into(),
            host: None,
            port: 443,
            proxy_port: 8080,
            key: "pkcs11:token=web".into(),
            unit: Some("metaslot-kssl@any-443.service".into()),
            run: "/run/metaslot-kssl/any-443".into(),
            files: Vec::new(),
            directory: "/etc/metaslot/kssl/any-443".into(),
        }
    }

    /// The lines of a unit for a token of ours, and for one of another module.
    fn texts() -> [String; 2] {
        let paths = ["/var/lib/metaslot/web".to_owned()];
        [Some(&paths[..]), None].map(|writes| {
            let unit = Unit {
                entry: &entry(),
                user: "root",
                start: "Type=notify\nExecStart=/bin/true",
                variables: &[("OPENSSL_CONF", "/etc/metaslot/kssl/any-443/openssl.cnf".into())],
                credential: Some(Path::new("/etc/metaslot/pin")),
                writes,
            };
            unit.text()
        })
    }

    #[test]
    fn systemd_reads_every_line_of_a_unit() {
        let place = env::temp_dir().join(format!("metaslot-kssl-{}", std::process::id()));
        fs::create_dir_all(&place).expect("it is made");
        for text in texts() {
            let file = place.join("metaslot-kssl@any-443.service");
            fs::write(&file, text.replace("Documentation=man", "# man")).expect("it is written");
            match Command::new("systemd-analyze").arg("verify").arg(&file).output() {
                Ok(said) => assert_eq!(String::from_utf8_lossy(&said.stderr), ""),
                Err(_) => println!("not run: systemd-analyze is not installed"),
            }
        }
        fs::remove_dir_all(&place).expect("it goes");
    }

    #[test]
    fn a_token_of_ours_is_all_that_is_written_and_others_keep_their_devices() {
        let [ours, others] = texts();
        assert!(
            ours.contains("\nProtectSystem=strict\n") && ours.contains("\nPrivateDevices=yes\n")
        );
        assert!(ours.contains("\nReadWritePaths=-/var/lib/metaslot/web\n"));
        assert!(ours.contains("\nLoadCredential=pin:/etc/metaslot/pin\n"));
        assert!(others.contains("\nProtectSystem=full\n") && !others.contains("PrivateDevices"));
    }

    #[test]
    fn a_process_is_over_when_its_last_thread_is() {
        let stat = |state: char, threads: u32| {
            format!("7 (a) Z) {state} 1 7 7 0 -1 4228108 0 0 0 0 3 1 0 0 20 0 {threads} 0 90 0 0")
        };
        assert!(is_over(&stat('Z', 1)) && is_over(&stat('X', 1)) && is_over(""));
        for (state, threads) in [('Z', 2), ('S', 1), ('R', 3)] {
            assert!(!is_over(&stat(state, threads)), "{state} {threads}");
        }
    }
}
