// SPDX-License-Identifier: Apache-2.0
//! `lab tcp` as a user starts it: small runs, whose cost decides nothing, and what is left of them when
//! they end well, by ^C and by a kill.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_metaslot-lab");
/// What a busy machine may take for what is done at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory for experiments that goes away. Every process of a run has its name among its arguments.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lab-tcp-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn experiment(&self) -> PathBuf {
        self.0.join("x.labx")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["tcp", "--json"]).args(arguments).arg("--output").arg(self.experiment());
        command
    }

    fn run(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Starts a long run, and waits for its first sample.
    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.args(["--window", "20", "--repetitions", "10000"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        await_that("there is a sample", || {
            fs::metadata(self.experiment().join("samples.jsonl")).is_ok_and(|file| file.len() > 0)
        });
        assert!(self.processes() >= 3, "the lab, a sender, a receiver");
        child
    }

    fn samples(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.experiment().join("samples.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Processes of this place's runs.
    fn processes(&self) -> usize {
        let name = self.0.display().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let command = |path: &Path| fs::read_to_string(path.join("cmdline")).unwrap_or_default();
        entries.filter(|entry| command(&entry.path()).contains(&name)).count()
    }

    /// The text of `lab print`.
    fn printed(&self) -> String {
        let output = Command::new(PROGRAM).arg("print").arg(self.experiment()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn await_that(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        sleep(Duration::from_millis(10));
    }
}

/// Control groups that a process has made.
fn groups_of(pid: u32) -> usize {
    fn count(directory: &Path, prefix: &str, depth: usize) -> usize {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let found = |entry: fs::DirEntry| {
            let own = entry.file_name().to_string_lossy().starts_with(prefix);
            usize::from(own) + if depth > 0 { count(&entry.path(), prefix, depth - 1) } else { 0 }
        };
        folders.map(found).sum()
    }
    count(Path::new("/sys/fs/cgroup"), &format!("metaslot-lab-{pid}-"), 6)
}

/// Ends of veth pairs that this machine's own network has.
fn devices() -> usize {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let lab = |name: &str| name.strip_prefix("lab").is_some_and(|pid| pid.parse::<u32>().is_ok());
    entries.filter(|entry| lab(&entry.file_name().to_string_lossy())).count()
}

fn number(sample: &Value, counter: &str) -> f64 {
    sample["counters"][counter].as_f64().unwrap()
}

/// Whether this user may make namespaces and devices.
fn may_make_namespaces() -> bool {
    let unshared = Command::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    unshared.is_ok_and(|status| status.success())
}

#[test]
fn what_is_sent_is_received_in_every_cell() {
    let place = Sandbox::new("cells");
    let cells = ["--connections", "1,20", "--writes", "64K,1000", "--window", "30"];
    let summary = place.run(&[&cells[..], &["--repetitions", "2"]].concat());
    assert_eq!(summary["cells"].as_array().unwrap().len(), 4);
    assert_eq!(summary["manifest"]["scenario"], "tcp");
    let samples = place.samples();
    assert_eq!(samples.len(), 8);
    for sample in samples {
        let (work, sent) = (sample["work"].as_f64().unwrap(), number(&sample, "bytes_sent"));
        let size = if sample["cell"].as_str().unwrap().contains("64K") { 65_536.0 } else { 1000.0 };
        assert!(work > 0.0 && sample["cpu_ns"].as_f64().unwrap() > 0.0, "{sample}");
        // Each write has moved some bytes and never more than its size.
        assert!(number(&sample, "writes") * size * 1.01 >= sent, "{sample}");
        assert!(number(&sample, "reads") > 0.0 && number(&sample, "segments") > 0.0, "{sample}");
    }
    assert_eq!(place.processes(), 0);
    let text = place.printed();
    assert!(text.contains("20 connections against 1"), "{text}");
    assert!(text.contains("sender and receiver on one CPU"), "{text}");
}

#[test]
fn a_buffer_that_the_system_does_not_give_is_flagged() {
    let place = Sandbox::new("clamped");
    let load = ["--connections", "1", "--writes", "8K", "--buffers", "32K,250M"];
    place.run(&[&load[..], &["--window", "20", "--repetitions", "1"]].concat());
    for sample in place.samples() {
        let large = sample["cell"].as_str().unwrap().contains("250M");
        let flags = sample["flags"].to_string();
        assert_eq!(flags.contains("clamped_buffer"), large, "{sample}");
    }
}

#[test]
fn an_interrupted_run_leaves_its_samples_and_nothing_else() {
    let place = Sandbox::new("interrupted");
    let mut child = place.start(&["--connections", "3,30", "--writes", "8K"]);
    let pid = child.id();
    Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
    assert!(!child.wait().unwrap().success());
    assert_eq!((place.processes(), groups_of(pid)), (0, 0));
    let text = place.printed();
    assert!(text.contains("interrupted: ") && text.contains("8K"), "{text}");
}

#[test]
fn a_process_that_is_killed_ends_the_run_and_not_its_samples() {
    let place = Sandbox::new("lost");
    let mut child = place.start(&["--connections", "4", "--writes", "8K"]);
    let pid = child.id();
    let of_it = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let receiver = of_it.split_ascii_whitespace().next().unwrap();
    Command::new("kill").args(["-KILL", receiver]).status().unwrap();
    assert!(!child.wait().unwrap().success());
    assert_eq!((place.processes(), groups_of(pid)), (0, 0));
    assert!(place.printed().contains("interrupted: "));
}

#[test]
fn a_killed_run_takes_its_processes_and_networks_with_it() {
    let place = Sandbox::new("killed");
    let path = if may_make_namespaces() { "mixed" } else { "loopback" };
    let mut child = place.start(&["--connections", "5", "--writes", "8K", "--path", path]);
    let pid = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    await_that("the processes are gone", || place.processes() == 0);
    await_that("the devices are gone", || devices() == 0);
    assert!(place.printed().contains("interrupted: "));
    // A group cannot remove itself: the next run does it.
    fs::remove_dir_all(place.experiment()).unwrap();
    place.run(&["--connections", "1", "--writes", "8K", "--window", "20", "--repetitions", "1"]);
    assert_eq!(groups_of(pid), 0);
}

#[test]
fn transfers_go_by_every_call_and_every_path() {
    if !may_make_namespaces() {
        return;
    }
    let place = Sandbox::new("transfer");
    place.run(&["--transfer", "3", "--repetitions", "1"]);
    let samples = place.samples();
    assert_eq!(samples.len(), 9);
    for sample in &samples {
        assert_eq!(sample["work"], 3e6, "{sample}");
        assert!(number(sample, "segments") > 0.0, "{sample}");
    }
    assert_eq!(place.processes(), 0);
    await_that("the devices are gone", || devices() == 0);
    assert!(place.printed().contains("sendfile"));
}

#[test]
fn two_identical_arms_run_two_small_cells() {
    let place = Sandbox::new("aa");
    let mut command = Command::new(PROGRAM);
    command.args(["aa", "--of", "tcp", "--repetitions", "2", "--output"]).arg(place.experiment());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let samples = place.samples();
    assert_eq!(samples.len(), 2 * 2 * 2);
    let of = |name: &str| samples.iter().filter(|sample| sample["cell"] == name).count();
    assert_eq!(of("connections=4 write=64K buffer=default"), 4);
    assert_eq!(of("connections=100 write=8K buffer=default"), 4);
    assert_eq!(place.processes(), 0);
}

#[test]
fn another_generator_is_a_second_arm_where_it_is_installed() {
    let place = Sandbox::new("beside");
    let run = ["--beside", "iperf3", "--repetitions", "1", "--window", "20"];
    let without = place.command(&run).env("PATH", "/nowhere").output().unwrap();
    assert!(said(&without).contains("apt-get install iperf3"), "{}", said(&without));
    let uperf = ["--beside", "uperf"];
    let without = place.command(&uperf).env("PATH", "/nowhere").output().unwrap();
    assert!(said(&without).contains("https://uperf.org"), "{}", said(&without));
    if Command::new("iperf3").arg("--version").output().is_err() {
        println!("not run: iperf3 is not installed");
        return;
    }
    let summary = place.run(&run);
    assert!(summary["manifest"]["settings"]["iperf3"].as_str().unwrap().starts_with("iperf 3"));
    let samples = place.samples();
    let arms: Vec<&str> = samples.iter().map(|sample| sample["arm"].as_str().unwrap()).collect();
    assert!(arms.contains(&"own") && arms.contains(&"iperf3"), "{arms:?}");
    assert!(samples.iter().all(|sample| sample["work"].as_f64().unwrap() > 0.0), "{samples:?}");
    let raw = fs::read(place.experiment().join("adapters/iperf3-000.json")).unwrap();
    let raw: Value = serde_json::from_slice(&raw).unwrap();
    assert_eq!(raw["start"]["test_start"]["blksize"], 131_072);
    assert_eq!(place.processes(), 0);
}

/// Users without privileges have the system's own congestion control, and processes instead of a group.
#[test]
fn a_user_without_privileges_measures_too() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Sandbox::new("nobody");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&place.0, open).unwrap();
    let program = place.0.join("metaslot-lab");
    fs::copy(PROGRAM, &program).unwrap();
    let mut lab = Command::new(&program);
    lab.args([
        "tcp",
        "--connections",
        "4",
        "--writes",
        "8K",
        "--repetitions",
        "1",
        "--window",
        "20",
    ]);
    lab.args(["--output", "x.labx"]).current_dir(&place.0);
    let output = std::os::unix::process::CommandExt::uid(&mut lab, 65_534).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("/proc/PID/schedstat of the experiment's processes"), "{text}");
}

#[test]
fn bad_input_is_named() {
    let place = Sandbox::new("bad");
    let refused = |arguments: &[&str], reason: &str| {
        let output = place.command(arguments).output().unwrap();
        let text = said(&output);
        assert!(!output.status.success() && text.contains(reason), "{arguments:?}: {text}");
        assert!(!place.experiment().exists(), "{arguments:?}");
    };
    refused(&["--congestion", "nonsense"], "congestion control nonsense is not here");
    refused(&["--writes", "8X"], "is no size");
    refused(&["--connections", "0"], "connections are between 1 and");
    refused(&["--transfer", "5", "--writes", "8K"], "cannot be used with");
    refused(&["--path", "nowhere"], "invalid value");
    refused(&["--beside", "iperf3", "--transfer", "1"], "cannot be used with");
    let limited = format!("ulimit -n 60; exec {PROGRAM} tcp --connections 100");
    let output = Command::new("sh").args(["-c", &limited]).current_dir(&place.0).output().unwrap();
    assert!(said(&output).contains("may have 60 descriptors"), "{}", said(&output));
}
