// SPDX-License-Identifier: Apache-2.0
//! `lab profile`, `lab print --functions` and `lab annotate` from end to end, on a program whose two
//! functions are known.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where the known program says how long each function took.
const TIMES: &str = "METASLOT_TEST_TIMES";

/// A directory that goes away.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("profile-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[inline(never)]
fn burn_three(rounds: u64) -> u64 {
    (0..3 * rounds).fold(1, |sum, number| {
        std::hint::black_box(sum.wrapping_mul(number | 1)) // the hot line
    })
}

#[inline(never)]
fn burn_one(rounds: u64) -> u64 {
    (0..rounds).fold(1, |sum, number| std::hint::black_box(sum.wrapping_mul(number | 1)))
}

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Three parts of time against one, for a second of CPU time.
fn burn(times: &Path) {
    let (began, mut three, mut one) = (cpu(), 0.0, 0.0);
    while cpu() < began + 1.0 {
        let at = cpu();
        burn_three(20_000);
        let between = cpu();
        burn_one(20_000);
        three += between - at;
        one += cpu() - between;
    }
    fs::write(times, format!("{three} {one}")).unwrap();
}

/// The known program is this test, started again.
#[test]
fn burner() {
    match std::env::var_os(TIMES) {
        Some(times) => burn(Path::new(&times)),
        None => assert_eq!(burn_three(1_000), burn_one(3_000)),
    }
}

fn lab(arguments: &[&str], times: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metaslot-lab"));
    command.args(arguments);
    // A floor that is kept while tests run is worthless.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.envs(times.map(|path| (TIMES, path)));
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = lab(arguments, None);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Samples the known program; nothing where this user may not.
fn profile(place: &Sandbox) -> Option<(String, [f64; 2])> {
    let (experiment, times) = (place.path("x.labx"), place.path("times"));
    let shown = experiment.to_str().unwrap().to_owned();
    let burner = std::env::current_exe().unwrap();
    let burner = burner.to_str().unwrap();
    let arguments = ["profile", "-o", &shown, "--json", "--", burner, "--exact", "burner"];
    let output = lab(&arguments, Some(&times));
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("samples cannot be taken") {
        eprintln!("not run: {errors}");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap();
    let times = fs::read_to_string(times).unwrap();
    let (three, one) = times.split_once(' ').unwrap();
    Some((shown, [three.parse().unwrap(), one.parse().unwrap()]))
}

/// Inclusive samples of the functions whose names contain this.
fn inclusive(functions: &[Value], name: &str) -> f64 {
    let of = functions.iter().filter(|row| row["function"].as_str().unwrap().ends_with(name));
    of.map(|row| row["inclusive_samples"].as_f64().unwrap()).sum()
}

#[test]
fn two_functions_share_the_samples_as_they_share_the_time() {
    let place = Sandbox::new("shares");
    let Some((experiment, [three, one])) = profile(&place) else { return };
    let output = said(&lab(&["print", &experiment, "--functions", "--json"], None));
    let profiles: Value = serde_json::from_str(&output).unwrap();
    let functions = profiles[0]["functions"].as_array().unwrap();
    // Without frame pointers the closures stand by themselves: they belong to the functions.
    let of = |name: &str| {
        inclusive(functions, name).max(inclusive(functions, &format!("{name}::{{{{closure}}}}")))
    };
    let (of_three, of_one) = (of("burn_three"), of("burn_one"));
    let (all, share) = (of_three + of_one, three / (three + one));
    assert!(all >= 100.0, "{of_three} {of_one}");
    // Six standard deviations of a binomial number.
    let deviation = 6.0 * (share * (1.0 - share) / all).sqrt();
    let found = of_three / all;
    assert!((found - share).abs() < deviation, "{found} of {all} where {share} was spent");
    assert!((0.6..0.9).contains(&share), "{share}");
    // Every sample is in one folded stack, and in one function itself.
    let folded = fs::read_dir(Path::new(&experiment).join("profile")).unwrap();
    let folded = folded.map(|entry| entry.unwrap().path());
    let folded = folded.filter(|path| path.extension().is_some_and(|ending| ending == "folded"));
    let text: String = folded.map(|path| fs::read_to_string(path).unwrap()).collect();
    let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    let samples = profiles[0]["samples"].as_u64().unwrap();
    assert_eq!(text.lines().map(count).sum::<u64>(), samples);
    let own = functions.iter().map(|row| row["exclusive_samples"].as_u64().unwrap());
    assert_eq!(own.sum::<u64>(), samples);
}

#[test]
fn the_hot_line_is_named_and_what_is_not_there_is_said() {
    let place = Sandbox::new("lines");
    let Some((experiment, _)) = profile(&place) else { return };
    let output =
        said(&lab(&["print", &experiment, "--functions", "--json", "--sort", "excl"], None));
    let profiles: Value = serde_json::from_str(&output).unwrap();
    let hottest = profiles[0]["functions"].as_array().unwrap().iter();
    let mut names = hottest.map(|row| row["function"].as_str().unwrap());
    let name = names.find(|name| name.contains("burn_three")).unwrap();
    let text = said(&lab(&["annotate", &experiment, "--function", name], None));
    assert!(text.contains("profile.rs:") && text.contains("#####"), "{text}");
    let hot = text.lines().max_by_key(|line| line.matches('#').count()).unwrap();
    let source =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/profile.rs")).unwrap();
    let begin = 1 + source.lines().position(|line| line.starts_with("fn burn_three")).unwrap();
    let number = hot.split("profile.rs:").nth(1).unwrap().split(' ').next().unwrap();
    let number: usize = number.parse().unwrap();
    assert!((begin..begin + 6).contains(&number), "{text}");
    let svg = said(&lab(&["print", &experiment, "--flame"], None));
    assert!(svg.starts_with("<svg") && svg.contains("burn_one"), "{svg}");
    let around = said(&lab(&["print", &experiment, "--callers-callees", name], None));
    assert!(around.contains("(itself)"), "{around}");

    let wrong = refused(&["annotate", &experiment, "--function", "burn_thre"]);
    assert!(wrong.contains("burn_three") || wrong.contains("perhaps"), "{wrong}");
    let wrong = refused(&["print", &experiment, "--functions", "--cell", "size=9"]);
    assert!(wrong.contains("there are: command="), "{wrong}");
    let wrong = refused(&["print", &experiment, "--functions", "--form", "csv"]);
    assert!(wrong.contains("as text or as JSON"), "{wrong}");
    let again = refused(&["profile", "-o", &experiment, "--", "true"]);
    assert!(again.contains("no experiment is overwritten"), "{again}");
}

#[test]
fn an_experiment_without_profiles_and_a_program_that_is_not_there_are_named() {
    let place = Sandbox::new("without");
    let experiment = place.path("aa.labx");
    let shown = experiment.to_str().unwrap();
    let made = lab(&["aa", "--seconds", "0.1", "-o", shown], None);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let wrong = refused(&["print", shown, "--functions"]);
    assert!(wrong.contains("has no profiles") && wrong.contains("--profile"), "{wrong}");
    let wrong = refused(&["annotate", shown, "--function", "main"]);
    assert!(wrong.contains("has no profiles"), "{wrong}");
    let nothing = place.path("n.labx");
    let wrong = refused(&["profile", "-o", nothing.to_str().unwrap(), "--", "/no/such/program"]);
    assert!(wrong.contains("/no/such/program: there is no such program"), "{wrong}");
    assert!(!nothing.exists());
    let wrong = refused(&["profile", "--hz", "0", "--", "true"]);
    assert!(wrong.contains("between 1 and 20000"), "{wrong}");
}

#[test]
fn a_scenario_is_sampled_after_its_runs_when_that_is_asked_for() {
    let place = Sandbox::new("scenario");
    let experiment = place.path("aa.labx");
    let shown = experiment.to_str().unwrap();
    let made = lab(&["aa", "--seconds", "0.1", "--profile=0.3", "-o", shown], None);
    let errors = String::from_utf8_lossy(&made.stderr);
    if errors.contains("samples cannot be taken") {
        eprintln!("not run: {errors}");
        return;
    }
    assert!(made.status.success(), "{errors}");
    let output = said(&lab(&["print", shown, "--functions", "--json"], None));
    let profiles: Value = serde_json::from_str(&output).unwrap();
    let profiles = profiles.as_array().unwrap();
    assert_eq!(profiles.len(), 4);
    for profile in profiles {
        // What the functions cost themselves adds up to what the cell costs.
        let functions = profile["functions"].as_array().unwrap().iter();
        let sum: f64 = functions.map(|row| row["exclusive_cost"].as_f64().unwrap()).sum();
        let cost = profile["cost"].as_f64().unwrap();
        assert!((sum / cost - 1.0).abs() < 1e-9, "{sum} {cost}");
        assert!(profile["sampled_over_unsampled"].as_f64().unwrap() > 0.0);
        assert!(profile["samples"].as_u64().unwrap() > 10, "{profile}");
    }
}
