// SPDX-License-Identifier: Apache-2.0
//! `lab speed`, `lab store` and `lab kill` from end to end: short runs, whose figures do not count here.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod built;

use built::{LAB, module};
use metaslot_lab::experiment::{Experiment, State};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory that goes away.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("speed-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn experiment(&self) -> PathBuf {
        self.0.join("x.labx")
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn lab(place: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(LAB);
    command.current_dir(&place.0).env("METASLOT_MODULE", module()).args(arguments);
    command
}

fn text(output: &Output) -> String {
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    text.into_owned()
}

const SHORT: [&str; 8] =
    ["--threads", "2", "--seconds", "0.05", "--repetitions", "2", "--output", "x.labx"];

fn sun(place: &Sandbox, arguments: &[&str]) -> String {
    let line = [&["speed", "--sun"][..], &SHORT, arguments].concat();
    text(&lab(place, &line).output().unwrap())
}

/// The module's signature and the one that was made one hash after the other are compared before anything is measured.
#[test]
fn signatures_of_hashes_are_equal_whoever_makes_them() {
    let place = Sandbox::new("hashes");
    let line =
        [&["speed", "--filter", "slh-dsa-sha2", "--rival", "none", "--no-openssl"][..], &SHORT]
            .concat();
    let printed = text(&lab(&place, &line).output().unwrap());
    assert!(printed.contains("slh-dsa-sha2-128s-sign") && !printed.contains("n/s"), "{printed}");
}

#[test]
fn an_openssl_that_was_named_and_is_none_is_an_error() {
    let place = Sandbox::new("no-openssl");
    for table in [&["--sun"][..], &["--filter", "p256-sign"]] {
        for program in ["no/openssl", "/bin/true"] {
            let line = [&["speed", "--rival", "none", "--openssl", program][..], table, &SHORT];
            let output = lab(&place, &line.concat()).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{told}");
            assert!(told.starts_with(&format!("error: {program}: that is no openssl\n")), "{told}");
        }
    }
}

#[test]
fn the_whole_table_is_measured_checked_sealed_and_printed_again() {
    let place = Sandbox::new("table");
    let printed = sun(&place, &["--rival", "none", "--no-openssl"]);
    assert_eq!(printed, text(&lab(&place, &["print", "x.labx"]).output().unwrap()));
    let experiment = Experiment::read(&place.experiment()).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    // Six operations, with one thread and with two, by three, twice.
    assert_eq!(experiment.samples.len(), 6 * 2 * 3 * 2);
    assert!(experiment.samples.iter().all(|sample| sample.measured.work >= 1.0));
    for part in [
        "rsa1024-private",
        "aes256-cbc-8K",
        "What 2 threads gain over one\n",
        "rival: left out, not asked\n",
        "openssl: left out, not asked\n",
    ] {
        assert!(printed.contains(part), "no {part:?} in\n{printed}");
    }
    let (_, finding) =
        printed.split_once("written: x.labx\n\n").expect("it ends with what was found");
    // What was measured while others used the machine is said to be doubtful first.
    let found = match finding.strip_prefix("Doubtful, as ") {
        Some(doubtful) => doubtful.split_once("): b").map(|(_, found)| found),
        None => finding.strip_prefix('B'),
    };
    let begins =
        "y CPU time an operation through the module costs more than in the bare library in ";
    assert!(found.is_some_and(|found| found.starts_with(begins)), "{finding}");
    assert!(!printed.contains("NaN") && !printed.contains("inf"), "{printed}");
}

#[test]
fn both_clocks_agree_and_no_thread_uses_more_than_one_cpu() {
    let place = Sandbox::new("json");
    let line = ["speed", "--sun", "--filter", "sha1", "--rival", "none", "--no-openssl"];
    let once = ["--threads", "2", "--seconds", "0.05", "--repetitions", "1", "--output", "x.labx"];
    text(&lab(&place, &[&line[..], &once].concat()).output().unwrap());
    let json = text(&lab(&place, &["print", "--json", "x.labx"]).output().unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = json["speed"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    for by in rows[0]["by"].as_array().unwrap() {
        let number = |name: &str, at: usize| by[name][at].as_f64().unwrap();
        for at in [0, 1] {
            // Of one repetition, so that no median stands between them.
            let wall = number("per_cpu_second", at) * number("cpus_used", at);
            let ratio = wall / number("per_wall_second", at);
            assert!((0.999..1.001).contains(&ratio), "{by}");
        }
        // A little more than one CPU at the most: the clocks are not read at one moment.
        assert!(number("cpus_used", 0) < 1.05 && number("cpus_used", 1) < 2.1, "{by}");
    }
    assert_eq!(rows[0]["sun_2008"][0], 356.0);
}

#[test]
fn what_is_not_installed_is_left_out_and_said() {
    let place = Sandbox::new("absent");
    let line = [&["speed", "--sun", "--filter", "md5", "--rival", "none"][..], &SHORT].concat();
    let printed = text(&lab(&place, &line).env("PATH", "/nowhere").output().unwrap());
    assert!(printed.contains("openssl: left out, not installed"), "{printed}");
    assert!(printed.contains("openssl speed: not installed, so there are no figures"), "{printed}");
}

#[test]
fn openssl_is_read_by_both_clocks_and_kept_as_it_printed() {
    let place = Sandbox::new("openssl");
    let printed = sun(&place, &["--rival", "none", "--filter", "md5"]);
    if printed.contains("openssl: left out, not installed") {
        return;
    }
    for how in ["default", "elapsed", "multi"] {
        let kept = place.experiment().join(format!("adapters/openssl-md5-{how}.txt"));
        let kept = std::fs::read_to_string(kept).unwrap();
        assert!(kept.contains("+F:"), "{kept}");
        assert_eq!(kept.lines().next().unwrap().contains("-elapsed"), how != "default");
    }
    let flowing = printed.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains("for md5-8K, one thread on this machine is"), "{printed}");
}

#[test]
fn every_mechanism_is_measured_by_size_and_left_out_with_a_reason() {
    let place = Sandbox::new("all");
    let line = ["--all", "--filter", "SHA256,CKM_ECDSA,RC4", "--seconds", "0.05"];
    let line = [&["speed"][..], &line, &["--repetitions", "1", "--output", "x.labx"]].concat();
    let printed = text(&lab(&place, &line).output().unwrap());
    assert_eq!(printed, text(&lab(&place, &["print", "x.labx"]).output().unwrap()));
    let experiment = Experiment::read(&place.experiment()).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    let has = |start: &str, by: &str| {
        printed
            .lines()
            .any(|line| line.starts_with(start) && line.split_whitespace().nth(2) == Some(by))
    };
    assert!(
        has("SHA256 ", "raw") && has("SHA256 ", "module") && has("SHA256 ", "lanes"),
        "{printed}"
    );
    assert!(has("RC4 ", "raw") && has("SHA256_HMAC ", "lanes") && !has("SHA256_HMAC ", "raw"));
    // Three ways where the raw library is called directly, two where not; five sizes, or one.
    let cells = |begin: &str| {
        let cells = experiment.plan.cells();
        cells.iter().filter(|cell| cell.starts_with(&format!("mechanism={begin} "))).count()
    };
    assert_eq!([cells("CKM_SHA256"), cells("CKM_SHA256_HMAC"), cells("CKM_ECDSA")], [15, 10, 3]);
    assert_eq!(cells("CKM_ECDSA_SHA256"), 2);
    assert!(!printed.contains("NaN") && printed.contains("What lanes change for one thread\n"));
}

#[test]
fn what_a_module_adds_is_measured_beside_the_raw_library_twice() {
    let place = Sandbox::new("overhead");
    let line = ["--filter", "ctr-16,p256-verify,session,random-32,generate-p256", "--no-openssl"];
    let line = [&["speed", "--rival", "none"][..], &line, &SHORT].concat();
    let printed = text(&lab(&place, &line).output().unwrap());
    assert_eq!(printed, text(&lab(&place, &["print", "x.labx"]).output().unwrap()));
    let experiment = Experiment::read(&place.experiment()).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    // Five by three on one thread, but for sessions, which a library does not have; sessions on two as well.
    assert_eq!(experiment.samples.len(), (5 * 3 - 2 + 1) * 2);
    assert!(printed.contains("n/s"), "{printed}");
    assert!(printed.contains("2 threads over 1") && !printed.contains("NaN"), "{printed}");
    let json = text(&lab(&place, &["print", "--json", "x.labx"]).output().unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let cell = &json["overhead"]["cells"][1];
    assert_eq!(
        (&cell["name"], &cell["mechanism"]),
        (&"aes256-ctr-16".into(), &"CKM_AES_CTR".into())
    );
    let arms: Vec<_> =
        cell["arms"].as_array().unwrap().iter().map(|arm| &arm["provider"]).collect();
    assert_eq!(arms, ["raw", "raw again", "module"]);
}

#[test]
fn an_interrupted_run_takes_its_tokens_with_it() {
    let place = Sandbox::new("interrupted");
    let line = ["speed", "--all", "--dir", ".", "--output", "x.labx"];
    let child = lab(&place, &line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let directory = place.0.join(format!("metaslot-lab-{}", child.id()));
    // The configuration of the last one: the signal comes while tokens and keys are made.
    while !directory.join("lanes/metaslot.toml").exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{output:?}");
    assert!(!directory.exists() && !place.experiment().exists());
}

#[test]
fn kills_are_an_experiment_that_says_what_was_lost() {
    let place = Sandbox::new("kill");
    let line = ["kill", "--kills", "3", "--writers", "2", "--output", "x.labx"];
    let printed = text(&lab(&place, &line).output().unwrap());
    assert_eq!(printed, text(&lab(&place, &["print", "x.labx"]).output().unwrap()));
    let experiment = Experiment::read(&place.experiment()).unwrap();
    assert_eq!((experiment.state, experiment.samples.len()), (State::Sealed, 3));
    assert!(printed.contains(", 2 writers, seed ") && printed.contains("3 kills in "), "{printed}");
    assert!(printed.contains(" acknowledged objects: 0 lost, 0 broken\n"), "{printed}");
    let json = text(&lab(&place, &["print", "--json", "x.labx"]).output().unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["kill"]["kills"], 3);
    assert_eq!(json["kill"]["findings"]["resurrected"].as_array().unwrap().len(), 0);
}

#[test]
fn stores_are_asked_in_turns_and_judged_from_their_samples() {
    let place = Sandbox::new("stores");
    let short =
        ["--rounds", "2", "--sample", "1", "--creates", "20", "--starts", "2", "--threads", "2"];
    let line = [&["store", "--objects", "5,20", "--output", "x.labx"][..], &short].concat();
    let printed = text(&lab(&place, &line).output().unwrap());
    assert_eq!(printed, text(&lab(&place, &["print", "x.labx"]).output().unwrap()));
    let experiment = Experiment::read(&place.experiment()).unwrap();
    // Eight things of either store, twice; there is one disk.
    assert_eq!((experiment.state, experiment.samples.len()), (State::Sealed, (2 * 8 - 1) * 2));
    assert!(printed.contains("find by label ≤ 12 µs") && !printed.contains("NaN"), "{printed}");
    let json = text(&lab(&place, &["print", "--json", "x.labx"]).output().unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let stores = json["store"]["stores"].as_array().unwrap();
    assert_eq!((stores.len(), &stores[1]["objects"]), (2, &20.into()));
    assert!(stores[0]["database_bytes"].as_u64().unwrap() > 0);
    assert_eq!(stores[1]["starts"].as_array().unwrap().len(), 2);
}

#[test]
fn an_interrupted_store_goes_away_with_its_processes() {
    let place = Sandbox::new("store");
    let line = ["store", "--objects", "1000000", "--dir", "."];
    let mut child = lab(&place, &line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let directory = place.0.join(format!("metaslot-lab-{}", child.id()));
    let database = || walk(&directory).into_iter().any(|path| path.ends_with("token.db"));
    while !database() {
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(!directory.exists());
}

/// Ends a run after its first samples, and gives what it says and what is printed of it.
fn interrupted(place: &Sandbox, arguments: &[&str]) -> [String; 2] {
    let line = [arguments, &["--output", "x.labx"]].concat();
    let child = lab(place, &line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let samples = place.experiment().join("samples.jsonl");
    let began = std::time::Instant::now();
    while std::fs::read(&samples).map_or(0, |text| text.split(|byte| *byte == b'\n').count()) < 12 {
        assert!(began.elapsed().as_secs() < 120, "there are no samples");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    [said, text(&lab(place, &["print", "x.labx"]).output().unwrap())]
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_says_where() {
    for (name, line) in [
        ("speed", &["speed", "--filter", "sha256-16", "--rival", "none", "--no-openssl"][..]),
        ("lanes", &["lanes", "--only", "md5", "--threads", "1", "--keys", "1", "--no-kernels"][..]),
    ] {
        let place = Sandbox::new(&format!("interrupted-{name}"));
        let often = if name == "lanes" { "--rounds" } else { "--repetitions" };
        let line = [line, &[often, "5000"]].concat();
        let [said, printed] = interrupted(&place, &line);
        // How long it takes stood there before the first sample.
        assert!(
            said.starts_with("about ") && said.contains("^C keeps what was measured"),
            "{said}"
        );
        assert!(said.contains("error: interrupted") && said.contains("x.labx"), "{said}");
        assert!(printed.contains("interrupted: "), "{printed}");
        // And what was measured is told like everything else.
        assert!(printed.trim_end().ends_with('.') && printed.contains(" operation"), "{printed}");
    }
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.flat_map(|entry| [walk(&entry.path()), vec![entry.path()]].concat()).collect()
}

/// What the module did not do has no figure.
#[test]
fn openssl_speed_has_figures_of_the_module_where_its_counters_rose_and_a_reason_elsewhere() {
    let place = Sandbox::new("through");
    let line = ["speed", "--through-openssl", "--provider-mode", "keys", "--filter", "p256-sign"];
    let line = [&line[..], &["--jobs", "2", "--threads", "1", "--repetitions", "1"]].concat();
    let line = [&line[..], &["--json", "-o", "x.labx"]].concat();
    let output = lab(&place, &line).output().unwrap();
    let printed: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    let lines = printed["through_openssl"]["lines"].as_array().unwrap();
    let of = |by: &str| lines.iter().filter(|line| line["by"] == by).count();
    // A key of the token without jobs and with two; the others have keys of their own.
    assert_eq!(
        [of("plain"), of("file"), of("token"), of("engine"), of("provider")],
        [1, 1, 2, 0, 0]
    );
    assert!(lines.iter().all(|line| line["per_wall_second"].as_f64() > Some(0.0)), "{lines:?}");
    let why = printed["through_openssl"]["not_run"].to_string();
    assert!(why.contains("provider, p256-sign: not run: the module's counters say"), "{why}");
    let experiment = Experiment::read(&place.experiment()).unwrap();
    for sample in experiment.samples.iter().filter(|sample| sample.run.cell.contains("by=token")) {
        assert!(sample.measured.counters["counted"] >= sample.measured.work, "{sample:?}");
    }
    let said = text(&lab(&place, &["print", "x.labx"]).output().unwrap());
    assert!(said.contains("p256-sign") && said.contains("Not run\n"), "{said}");
}

#[test]
fn bad_input_is_refused_with_its_name() {
    let place = Sandbox::new("bad");
    let refused = |arguments: &[&str]| {
        let output = lab(&place, &[&["speed", "--sun"], arguments].concat()).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&["--filter", "sha3"]);
    assert!(said.contains("no operation of Sun's table matches sha3"), "{said}");
    let said = refused(&["--threads", "0"]);
    assert!(said.contains("--threads wants numbers from 1"), "{said}");
    let said = refused(&["--module", "/nowhere/libmetaslot.so"]);
    assert!(said.contains("/nowhere/libmetaslot.so"), "{said}");
    let output = lab(&place, &["speed", "--all", "--filter", "rot13"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("digests, signs or encrypts matches rot13"), "{said}");
    let output = lab(&place, &["speed", "--filter", "rot13"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no cell matches rot13"), "{said}");
    assert!(!place.experiment().exists());
}
