// SPDX-License-Identifier: Apache-2.0
//! What a signature and a digest take through the socket, beside the key inside the process and p11-kit's server.

use crate::common::{Killed, Place, USER, compiled, initialized, pairs, started, write_own};
use metaslot_ck::CKA_SIGN;
use metaslot_testkit::{module_path, not_run};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// How often each is measured beside the key inside; `METASLOT_PAIRS` has another number.
const PAIRS: usize = 1;
/// Processes that sign at once.
const CROWD: usize = 16;
/// Where the key is: in the process, in `metaslotd`, behind p11-kit's server.
const PLACES: [&str; 3] = ["inside", "metaslotd", "p11-kit"];

/// A process of speed.c.
struct Client {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    process: Killed,
}

impl Client {
    fn new(place: &Place, module: &Path, name: &str) -> Self {
        let mut command = Command::new(place.path().join("speed"));
        command.arg(module).arg(std::str::from_utf8(USER).expect("it is text"));
        command.env("METASLOT_CONF", place.path().join(name)).env("HOME", place.path());
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was built");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { input, output, process: Killed(process) }
    }

    fn begin(&mut self, letter: u8) {
        self.input.write_all(&[letter]).expect("it reads");
    }

    fn end(&mut self) -> f64 {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it tells");
        line.trim().parse().expect("a number")
    }

    fn measure(&mut self, letter: u8) -> f64 {
        self.begin(letter);
        self.end()
    }
}

fn configure(place: &Place) {
    let at = place.path().display();
    write_own(place.path().join("pin"), USER);
    let token = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n"
    );
    let daemon =
        format!("{token}pin-source = \"file:{at}/pin\"\n[daemon]\nsocket = \"{at}/socket\"\n");
    // Digests go through the socket, too.
    let client = |socket| {
        format!(
            "counters = false\n[[foreign]]\nname = \"held\"\nsocket = \"{at}/{socket}\"\n\
             serves = [\"digest\"]\n[provider.lanes]\ndisable = [\"CKM_SHA256\"]\n\
             [provider.awslc]\ndisable = [\"CKM_SHA256\"]\n"
        )
    };
    let files = [("inside", token), ("metaslotd.toml", daemon), ("metaslotd", client("socket"))];
    for (name, text) in files.into_iter().chain([("p11-kit", client("rival"))]) {
        fs::write(place.path().join(name), text).expect("it is written");
    }
}

fn rival(place: &Place, module: &Path) -> Killed {
    let socket = place.path().join("rival");
    let mut server = Command::new("p11-kit");
    server.args(["server", "-f", "-n"]).arg(&socket).arg("-p").arg(module).arg("pkcs11:token=door");
    server.env("METASLOT_CONF", place.path().join("inside")).env("HOME", place.path());
    let server = server.stdout(Stdio::null()).spawn().expect("it is installed");
    while !socket.exists() {
        sleep(Duration::from_millis(1));
    }
    Killed(server)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Processor time of a process so far, in hundredths of a second.
fn spent(id: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("its name ends");
    let fields: Vec<_> = fields.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().expect("a number")).sum()
}

/// How often a crowd signs in half a second, all of its processes at once; and in a hundredth of a second of its processor time, with
/// that of a server.
fn rates(crowd: &mut [Client], letter: u8, server: Option<&Killed>) -> [f64; 2] {
    let all = crowd.iter().map(|client| &client.process).chain(server);
    let all: Vec<_> = all.map(|process| process.0.id()).collect();
    let sum = || all.iter().map(|id| spent(*id)).sum::<f64>();
    let before = sum();
    crowd.iter_mut().for_each(|client| client.begin(letter));
    let signatures = crowd.iter_mut().map(Client::end).sum::<f64>();
    [signatures, signatures / (sum() - before)]
}

#[test]
fn the_socket_is_measured_beside_the_key_inside() {
    let programs = ["/usr/bin/gcc", "/usr/bin/p11-kit"];
    let missing = programs.iter().any(|file| !Path::new(file).exists());
    let Some(module) = module_path().filter(|_| !missing) else {
        return not_run("metaslotd", "speed", "there is no libmetaslot.so, gcc or p11-kit");
    };
    let module = fs::canonicalize(module).expect("it is there");
    let pairs_wanted = std::env::var("METASLOT_PAIRS").ok().and_then(|number| number.parse().ok());
    let rounds = pairs_wanted.unwrap_or(PAIRS);
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_SIGN);
    configure(&place);
    compiled(&place, "speed");
    let servers = [started(&place), rival(&place, &module)];
    let mut clients = PLACES.map(|name| Client::new(&place, &module, name));
    for (letter, what) in [(b'e', "P-256 signature"), (b'd', "SHA-256 of 64 bytes")] {
        let mut ratios = [Vec::new(), Vec::new()];
        let mut inside = Vec::new();
        for _ in 0..rounds {
            let times = clients.each_mut().map(|client| client.measure(letter));
            inside.push(times[0]);
            ratios.iter_mut().zip(&times[1..]).for_each(|(all, time)| all.push(time / times[0]));
        }
        let (inside, [ours, theirs]) = (median(inside), ratios.map(median));
        println!(
            "{what}: inside {inside} ns; metaslotd {ours:.2}, p11-kit {theirs:.2} times that ({rounds} pairs)"
        );
    }
    drop(clients);
    let crowd = |name| Vec::from_iter((0..CROWD).map(|_| Client::new(&place, &module, name)));
    let (mut inside, mut through) = (crowd("inside"), crowd("metaslotd"));
    let mut threads = [Client::new(&place, &module, "inside")];
    let mut ratios = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        let ours = rates(&mut through, b'r', Some(&servers[0]));
        let processes = rates(&mut inside, b'r', None);
        let threads = rates(&mut threads, b't', None);
        let others = processes.into_iter().chain(threads);
        let all = ratios.iter_mut().zip(ours.into_iter().chain(ours).zip(others));
        all.for_each(|(all, (ours, other))| all.push(ours / other));
    }
    let ratios @ [processes, ..] = ratios.map(median);
    println!(
        "RSA-2048 of {CROWD} processes: metaslotd {:.3} of the rate of as many inside, {:.3} of it by processor time; {:.3} and {:.3} of that of one with as many threads ({rounds} pairs)",
        ratios[0], ratios[1], ratios[2], ratios[3]
    );
    assert!(processes > 0.0);
}
