// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup --verify`: the program is run until it signs, and what the module counted for its process says whether it did.
//! Where another program can, it verifies the signature by the public key.

use super::files::{Kept, OURS, put_back, taken_back};
use super::program::{Bridge, Plan, Program, Proof};
use super::tree::{Ended, Tree};
use crate::command::doctor::unreadable;
use crate::configured::Configuration;
use crate::failure::{Failure, Result};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{CK_KEY_TYPE, CKK_EC, CKK_EC_EDWARDS, CKK_RSA, Function};
use metaslot_counters::read;
use rustix::fs::{FlockOperation, flock};
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, Permissions};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A program that takes longer does not end.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Directories that stand in a run's way at most: of runs that were killed, or of other users.
const MOST_OTHERS: u32 = 100;

/// A private key is used by one of these. Searches, logins and lists are no proof, and no recipe can say that they are.
const USES: [Function; 2] = [Function::Sign, Function::SignFinal];
/// The key pairs that sign.
const PAIRS: [CK_KEY_TYPE; 3] = [CKK_RSA, CKK_EC, CKK_EC_EDWARDS];

/// What every script has: a server ends with it, and is in a group of its own, because Apache ends its group; a handshake is
/// tried again only until somebody listens, because a server may try its PIN at each. `is_signed` is about a request or a
/// certificate that the key signs itself.
const PRELUDE: &str = r#"set -eu
exec 3<&0 < /dev/null
env -u XDG_RUNTIME_DIR setsid sh watch "$XDG_RUNTIME_DIR" $$ <&3 > /dev/null 2>&1 &
servers=$!
exec 3<&-
trap 'kill $servers 2> /dev/null || true; wait || true' EXIT
serve() {
    setsid "$@" > error.log 2>&1 &
    server=$!
    servers="$servers $server"
    echo $server >> "${XDG_RUNTIME_DIR%/*}/servers"
}
await() {
    tries=0
    until grep -q "$1" "$2"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] && kill -0 $server 2> /dev/null || { cat "$2" >&2; return 1; }
        sleep 0.1
    done
}
handshake() {
    port=$1
    shift
    tries=0
    until OPENSSL_CONF=/dev/null openssl s_client -connect "127.0.0.1:$port" "$@" < request > answer 2> reach.log; do
        tries=$((tries + 1))
        if [ $tries -ge 200 ] || ! grep -q 'errno=111' reach.log || ! kill -0 $server 2> /dev/null; then
            cat reach.log error.log >&2
            return 1
        fi
        sleep 0.1
    done
}
reach() {
    printf 'GET / HTTP/1.0\r\n\r\n' > request
    handshake "$1" -quiet
    grep -q verified answer || { cat answer error.log >&2; return 1; }
}
greet() {
    : > request
    handshake "$1" -starttls "$2"
}
is_signed() {
    if [ "$1" = req ]; then
        OPENSSL_CONF=/dev/null openssl req -inform $2 -in "$3" -noout -verify 2>&1 | grep -q 'verify OK'
    else
        OPENSSL_CONF=/dev/null openssl verify -check_ss_sig -CAfile "$3" "$3" > /dev/null
    fi
    OPENSSL_CONF=/dev/null openssl $1 -inform $2 -in "$3" -noout -pubkey > signer.pem
    cmp signer.pem public.pem
}
database() {
    port=$1
    allowed=$2
    shift 2
    bin=$(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2> /dev/null | sort -V | tail -n 1)
    [ -x "$bin/postgres" ] || { echo 'there is no server of PostgreSQL: apt-get install postgresql' >&2; return 1; }
    as=
    if [ "$(id -u)" = 0 ]; then
        as='setpriv --reuid postgres --regid postgres --init-groups'
        chown -R postgres: db
    fi
    OPENSSL_CONF=/dev/null $as "$bin/initdb" -D "$PWD/db/data" -U verified -A trust --locale=C --no-sync > initdb.log 2>&1 || { cat initdb.log >&2; return 1; }
    echo "$allowed" > hba
    serve $as "$bin/postgres" -D "$PWD/db/data" -c hba_file="$PWD/hba" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
        -c port="$port" -c fsync=off -c ssl=on "$@"
    await 'ready to accept' error.log
}
"#;

/// Who ends what is left where this command was killed: its end of the pipe is closed then. A server is known by its number, and what
/// it does not say of itself by the directory in its environment; the script is the first of its group.
const WATCH: &str = r#"read -r nothing || :
for signal in TERM KILL; do
    kill -$signal $(cat servers) || :
    kill -$signal -- -$2 || :
    for place in $(grep -lszFx "XDG_RUNTIME_DIR=$1" /proc/[0-9]*/environ); do
        place=${place#/proc/}
        kill -$signal ${place%/environ} || :
    done
    sleep 1
done
rm -rf "$PWD"
"#;

/// One process that used the module.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) pid: u32,
    pub(super) function: &'static str,
    pub(super) calls: u64,
}

/// What the run needs beside the recipe's values.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) directory: &'a Path,
    pub(super) plan: &'a Plan,
    pub(super) values: &'a [(&'static str, String)],
    pub(super) pin: Option<&'a Path>,
    /// Whether its token asks for one.
    pub(super) asks: bool,
    /// The public half of the key, in PEM.
    pub(super) public: &'a str,
}

/// Why a program was not seen to use the key.
#[derive(Debug)]
pub(super) enum Unproved {
    Failed(Failure),
    /// By this signal.
    Interrupted(i32),
}

impl From<Failure> for Unproved {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Unproved {
    /// What this run has enabled is as it was before; the signal ends us then.
    pub(super) fn after<T>(self, enabled: Option<Kept>) -> Result<T> {
        match (self, enabled) {
            (Self::Failed(failure), Some(kept)) => {
                let more = failure.advice().map_or_else(String::new, |more| format!("; {more}"));
                let hint = format!("what this run enabled is taken back{more}");
                Err(taken_back(failure.hint(hint), kept))
            }
            (Self::Failed(failure), None) => Err(failure),
            (Self::Interrupted(signal), enabled) => {
                enabled.map_or(Ok(()), put_back)?;
                emulate_default_handler(signal).ok();
                Err(Failure::failed("interrupted"))
            }
        }
    }
}

/// Runs the program, and gives the processes of its that used the key, at least one.
pub(super) fn verify(
    program: &Program,
    run: &Run<'_>,
) -> std::result::Result<(Proof, Vec<Used>), Unproved> {
    run.is_applied()?;
    let unknown = || Failure::failed(format!("{} is not run by this command", program.name));
    let proof = program.proof(&run.all_values(program)?).ok_or_else(unknown)?;
    let room = Room::make()?;
    room.write("public.pem", run.public)?;
    let pages = room.pages()?;
    let before = names(&pages);
    let mut seen = BTreeMap::new();
    let mut look = || look(&pages, &before, &mut seen);
    let ended = room.run(program, run, &proof.script, &mut look)?;
    look();
    match ended {
        Ended::With(status) if status.success() => {}
        Ended::With(_) => {
            return Err(run.of_pin(program).unwrap_or_else(|| room.failed(program)).into());
        }
        Ended::Late => {
            let seconds = PATIENCE.as_secs();
            let failure = room.failed(program);
            return Err(failure.context(format!("it did not end in {seconds} seconds")).into());
        }
        Ended::Interrupted(signal) => return Err(Unproved::Interrupted(signal)),
    }
    let its = seen.values().filter(|page| page.program == proof.process);
    let used: Vec<Used> = its.flat_map(used).collect();
    if used.is_empty() {
        let (name, process) = (program.name, proof.process);
        let functions = USES.map(Function::name).join(" or ");
        let what = format!(
            "{name} ran, and did not use the key: no process {process} called {functions} with success"
        );
        let others: Vec<_> = seen.values().map(|page| page.program.as_str()).collect();
        let hint = match others.join(", ") {
            none if none.is_empty() => String::from(
                "no process had the module, or none could write into the directory of counters",
            ),
            others => format!("the module was used by {others}"),
        };
        return Err(Failure::failed(what).hint(hint).into());
    }
    Ok((proof, used))
}

/// The calls by which a process signed. The length of a signature is asked for by the same functions, so an operation of a
/// mechanism for key pairs has to have ended, too.
fn used(page: &read::Process) -> Vec<Used> {
    let is_of_key = |kind: &read::Kind| {
        let row = MechanismRow::find(kind.mechanism);
        row.is_some_and(|row| PAIRS.iter().any(|pair| row.keys.contains(pair)))
    };
    let ended =
        |(kind, cell): &(read::Kind, read::Cell)| is_of_key(kind) && cell.operations > cell.errors;
    if !page.operations.iter().any(ended) {
        return Vec::new();
    }
    let of = |(function, count): &(Function, read::Calls)| {
        let calls = count.calls.saturating_sub(count.errors);
        let is_one = calls > 0 && USES.contains(function);
        is_one.then(|| Used { pid: page.pid, function: function.name(), calls })
    };
    page.calls.iter().filter_map(of).collect()
}

impl Run<'_> {
    /// What is verified is what stands in the directory.
    fn is_applied(&self) -> Result<()> {
        for (name, content) in &self.plan.files {
            let path = self.directory.join(name);
            let there = fs::read_to_string(&path).unwrap_or_default();
            if there != format!("{OURS}{content}") {
                let what = format!("{} is not as it would be written", path.display());
                return Err(Failure::failed(what)
                    .hint("--apply writes it; then --verify runs the program with it"));
            }
        }
        Ok(())
    }

    /// Whether it failed because processes that have given up root's rights may not read the PIN, as the provider does there.
    fn of_pin(&self, program: &Program) -> Option<Failure> {
        let given_up = rustix::process::geteuid().is_root() && program.reads_late();
        let user = program.user().filter(|_| given_up)?;
        let (why, fix) = unreadable(user, self.pin?, "the file with the PIN")?;
        Some(Failure::failed(why).hint(fix))
    }

    fn all_values(&self, program: &Program) -> Result<Vec<(&'static str, String)>> {
        let mut values = self.values.to_vec();
        values.push(("port", free_port()?.to_string()));
        let wanted = program.proof(&values).map(|proof| proof.script).unwrap_or_default();
        match self.pin {
            Some(pin) => values.push(("pin", pin.display().to_string())),
            None if self.asks && !matches!(program.bridge, Bridge::None | Bridge::All)
                || wanted.contains("{pin}") =>
            {
                let what =
                    format!("{} is run without a terminal, and needs the user PIN", program.name);
                return Err(Failure::pin(what).hint("name a file that holds it: --pin-source FILE"));
            }
            None => {}
        }
        let cert = values.iter().find(|row| row.0 == "cert").map_or("", |row| &row.1);
        if program.names_certificate() || wanted.contains(cert) {
            program.needs(cert)?;
        }
        Ok(values)
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|it| it.local_addr());
    listener.map(|address| address.port()).map_err(|error| Failure::io("there is no port", &error))
}

fn names(pages: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(pages).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "counters")).collect()
}

/// Keeps the last of each page that is new: one of a process that has ended goes when another begins.
fn look(pages: &Path, before: &[PathBuf], seen: &mut BTreeMap<PathBuf, read::Process>) {
    for path in names(pages).into_iter().filter(|path| !before.contains(path)) {
        if let Ok(page) = read::process(&path) {
            seen.insert(path, page);
        }
    }
}

/// A directory for one run, in which servers of other users can be, too. While we live it is locked.
struct Room {
    path: PathBuf,
    _locked: Option<File>,
}

/// How its name begins, before our number.
const ROOM: &str = "metaslot-verify-";

/// The directory, locked; nothing where another has it. Some file systems do not lock directories.
fn locked(place: &Path) -> Option<File> {
    let room = File::open(place).ok()?;
    flock(&room, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(room)
}

/// Takes away what runs of this user's have left that were killed while they cleaned up.
fn sweep(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| {
            name.strip_prefix(ROOM)?
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_digit())
                .then_some(())
        });
        let place = entry.path();
        let is_own = |found: fs::Metadata| {
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw()
        };
        if number.is_some() && entry.metadata().is_ok_and(is_own) && locked(&place).is_some() {
            fs::remove_dir_all(&place).ok();
        }
    }
}

impl Room {
    fn make() -> Result<Self> {
        let number = process::id();
        let named = |name: String| env::temp_dir().join(name);
        sweep(&env::temp_dir());
        let mut place = named(format!("{ROOM}{number}"));
        let cannot = |place: &Path, error: &io::Error| {
            Failure::io(format!("cannot make {}", place.display()), error)
        };
        let mut others = 0..MOST_OTHERS;
        while let Err(error) = fs::create_dir(&place) {
            let other = others.next().filter(|_| error.kind() == io::ErrorKind::AlreadyExists);
            let other = other.ok_or_else(|| cannot(&place, &error))?;
            place = named(format!("{ROOM}{number}-{other}"));
        }
        let cannot = |error: io::Error| cannot(&place, &error);
        let room = Self { path: place.clone(), _locked: locked(&place) };
        let pages = place.join("run/metaslot");
        fs::create_dir_all(&pages).map_err(cannot)?;
        let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        open(&place, 0o755).and_then(|()| open(&pages, 0o1777)).map_err(cannot)?;
        Ok(room)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path.join(name);
        fs::write(&path, text)
            .map_err(|error| Failure::io(format!("cannot write {}", path.display()), &error))
    }

    /// Where the program's processes count.
    fn pages(&self) -> Result<PathBuf> {
        let configuration = Configuration::read();
        if configuration.counters_off {
            return Err(Failure::failed(
                "counters = false: nobody sees whether the module is used",
            )
            .hint("take it out of the configuration for the time of the test"));
        }
        Ok(configuration.counters.unwrap_or_else(|| self.path.join("run/metaslot")))
    }

    fn run(
        &self,
        program: &Program,
        run: &Run<'_>,
        script: &str,
        look: &mut dyn FnMut(),
    ) -> Result<Ended> {
        self.write("script", &format!("{PRELUDE}{script}"))?;
        self.write("watch", WATCH)?;
        let cannot = |error: io::Error| Failure::io("cannot run the script", &error);
        let log = File::create(self.path.join("log")).map_err(cannot)?;
        let mut shell = Command::new("/bin/sh");
        shell.arg("script").current_dir(&self.path).stdin(Stdio::piped());
        shell.stdout(log.try_clone().map_err(cannot)?).stderr(log);
        shell.env("XDG_RUNTIME_DIR", self.path.join("run"));
        if let Some(file) = program.file() {
            shell.env("OPENSSL_CONF", run.directory.join(file));
        }
        let mut path = env::var_os("PATH").unwrap_or_default();
        path.push(":/usr/sbin:/sbin");
        let mut tree = Tree::start(shell.env("PATH", path)).map_err(cannot)?;
        tree.wait(PATIENCE, look).map_err(cannot)
    }

    /// The program's own words.
    fn failed(&self, program: &Program) -> Failure {
        let log = fs::read_to_string(self.path.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join("; ");
        Failure::failed(format!("{} does not work with what was written", program.name)).hint(
            if last.is_empty() { "it said nothing".into() } else { format!("it said: {last}") },
        )
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What a server writes last can come between.
        for _ in 0..10 {
            if fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CK_MECHANISM_TYPE, CKM_ECDSA, CKM_SHA256};

    /// What a process called with success, and what of it ended.
    fn page(calls: &[Function], ended: &[CK_MECHANISM_TYPE]) -> read::Process {
        let calls = calls.iter().map(|call| (*call, read::Calls { calls: 1, errors: 0 }));
        let kind = |mechanism| read::Kind { provider: String::new(), mechanism, size: 0 };
        let cell = read::Cell { operations: 1, ..read::Cell::default() };
        let operations = ended.iter().map(|mechanism| (kind(*mechanism), cell)).collect();
        read::Process { calls: calls.collect(), operations, ..read::Process::default() }
    }

    #[test]
    fn only_a_signature_is_a_use_of_the_key() {
        let others = Function::ALL.iter().copied().filter(|function| !USES.contains(function));
        let others: Vec<Function> = others.collect();
        assert!(used(&page(&others, &[CKM_ECDSA])).is_empty());
        for sign in USES {
            assert!(used(&page(&[sign], &[])).is_empty(), "the length of a signature");
            assert!(used(&page(&[sign], &[CKM_SHA256])).is_empty());
            let used = used(&page(&[Function::FindObjects, sign], &[CKM_ECDSA]));
            assert_eq!(used.len(), 1);
            assert_eq!((used[0].function, used[0].calls), (sign.name(), 1));
        }
    }

    #[test]
    fn what_failed_is_no_use() {
        let mut failed = page(&[Function::Sign], &[CKM_ECDSA]);
        failed.calls[0].1.errors = 1;
        assert!(used(&failed).is_empty());
        let mut failed = page(&[Function::Sign], &[CKM_ECDSA]);
        failed.operations[0].1.errors = 1;
        assert!(used(&failed).is_empty());
    }
}
