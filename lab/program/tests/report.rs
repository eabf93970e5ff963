// SPDX-License-Identifier: Apache-2.0
//! `lab report` on experiments whose samples are known: what the page says, and that all of it says the same.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod made;

use made::{Made, Sandbox, experiment, made as make, measured, provenance};
use metaslot_lab::experiment::{Measured, Recorder, Run};
use std::collections::BTreeMap;
use std::process::Command;

impl Sandbox {
    /// The page of an experiment.
    fn page(&self, name: &str) -> String {
        self.text(&["report", name, "-o", "page.html"]);
        std::fs::read_to_string(self.0.join("page.html")).unwrap()
    }
}

/// What stands at the top.
fn story(html: &str) -> Vec<&str> {
    let story = html.split("<div class=\"story\">").nth(1).unwrap().split("</div>").next().unwrap();
    story.split("<p>").skip(1).map(|rest| rest.split("</p>").next().unwrap()).collect()
}

/// The page without its style and pictures, tags balanced.
fn assert_well_formed(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in html.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.split([' ', '/', '\n']).find(|name| !name.is_empty()).unwrap_or(tag);
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !(tag.ends_with('/') || matches!(name, "!doctype" | "meta" | "link")) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_report_is_one_file_without_network() {
    let place = Sandbox::new("report");
    experiment(&place.0.join("a<b.labx"), "byte", "thread", 90.0);
    experiment(&place.0.join("b.labx"), "byte", "thread", 60.0);
    let said = place.text(&["report", "a<b.labx", "b.labx"]);
    assert!(said.starts_with("written: a<b.html ("), "{said}");
    let html = std::fs::read_to_string(place.0.join("a<b.html")).unwrap();
    assert_well_formed(&html);
    assert!(html.len() < 200_000);
    for foreign in ["http:", "https:", "<script", "src=", "@import", "url(", "NaN", "cycles/KB"] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    assert!(
        html.contains("A is faster in 0, slower in 2, the same in 2")
            && html.contains("a&lt;b.labx")
    );
    assert_eq!(html.matches("class=\"forest\"").count(), 4);
    place.text(&["report", "b.labx", "-o", "one.html"]);
    let html = std::fs::read_to_string(place.0.join("one.html")).unwrap();
    assert_well_formed(&html);
    assert_eq!(
        story(&html),
        [
            "old costs more than new in 2 of 2 cells; on average 1.67 times as much (1.67 to 1.67)",
            "Along write, from 64K to 8K, a KB by new costs 1.10 times as much (1.10 to 1.10), and no counter surely \
             grows by 10 % with it",
        ]
    );
    assert!(place.refusal(&["report", "c.labx"]).contains("c.labx"));
}

#[test]
fn table_and_text_have_one_median_of_an_even_number_of_samples() {
    let place = Sandbox::new("median");
    let factors: &[(&str, &[&str])] = &[("write", &["8K", "64K"])];
    let like = Made { factors, arms: &["own"], repetitions: 10, provenance: provenance() };
    // Two states: five samples of each, and no sample is the median.
    let sample = |run: &Run| measured(if run.repetition.is_multiple_of(2) { 1.0 } else { 3.0 });
    make(&place.0.join("x.labx"), &like, sample).finish().unwrap();
    let html = place.page("x.labx");
    let text = place.text(&["print", "x.labx"]);
    // 2 ns a byte by a clock of 2 GHz.
    assert!(text.contains(" 4096 ") && html.contains(">4096<svg"), "{text}{html}");
    assert!(!html.contains(">6144<"));
    // One state costs half of that and the other half as much again: less than nothing costs nothing.
    assert!(
        html.contains("has every sample of the cell, from 50 % less to 100 % more than the median"),
        "{html}"
    );
}

/// A long table of one arm is folded where its halves have room beside each other, with the room of their numbers.
#[test]
fn large_numbers_are_read_by_threes_and_have_their_room() {
    let place = Sandbox::new("room");
    let tables = |name: &str, cost: f64| {
        let names: Vec<String> = (10..24).map(|at| format!("{name}-{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let factors: &[(&str, &[&str])] = &[("operation", &names)];
        let like = Made { factors, arms: &["own"], repetitions: 6, provenance: provenance() };
        let experiment = format!("{name}-{cost}.labx");
        make(&place.0.join(&experiment), &like, |_: &Run| measured(cost)).finish().unwrap();
        let html = place.page(&experiment);
        let least = html.split("--least: ").nth(1).unwrap().split("rem").next().unwrap();
        let (name, number) = (format!("operation={name}-10").len(), 13);
        assert!(cost < 2.0 || html.contains(">6\u{202f}144\u{202f}000\u{202f}000<svg"), "{html}");
        let room = if cost < 2.0 { 6.0 } else { number as f64 / 2.0 + 3.0 };
        assert!(least.parse::<f64>().unwrap() > name as f64 / 2.0 + room, "{least}");
        html.matches("<th scope=\"col\">cell</th>").count()
    };
    assert_eq!(tables("one-of-many-operations", 1.0), 2);
    assert_eq!(tables("one-of-many-operations", 3e6), 2);
    assert_eq!(tables("one-of-many-operations-whose-names-are-longer", 3e6), 1);
}

/// Six curves of eight sizes, of which half rise and half fall by as much.
fn ways(place: &Sandbox, factor: f64) {
    let curves = ["a", "b", "c", "d", "e", "f"];
    let factors: &[(&str, &[&str])] = &[("curve", &curves), ("size", &["1K", "8K"])];
    let like = Made { factors, arms: &["own"], repetitions: 12, provenance: provenance() };
    let sample = |run: &Run| {
        let rises = matches!(run.level("curve"), Some("a" | "b" | "c"));
        let is_large = run.level("size") == Some("8K");
        let cost = if is_large == rises { factor } else { 1.0 };
        measured(cost * (1.0 + run.repetition as f64 * 1e-4))
    };
    make(&place.0.join("x.labx"), &like, sample).finish().unwrap();
}

#[test]
fn a_mean_of_curves_that_go_different_ways_is_not_told() {
    let place = Sandbox::new("ways");
    ways(&place, 1.5);
    assert_eq!(
        story(&place.page("x.labx")),
        [
            "Along size, from 1K to 8K, the curves go different ways: more on 3 of 6 curves, less on 3 of 6 \
             curves"
        ]
    );
}

#[test]
fn a_headline_of_an_experiment_that_decides_nothing_says_so() {
    let place = Sandbox::new("nothing");
    let sizes = ["1K", "2K", "4K", "8K", "16K", "32K", "64K", "128K", "256K", "512K"];
    let factors: &[(&str, &[&str])] = &[("size", &sizes)];
    let like = Made { factors, arms: &["libc", "new"], repetitions: 6, provenance: provenance() };
    // Clear in each cell by itself, but not with ten of them in view.
    let sample = |run: &Run| measured(if run.arm == "new" { 41.3 } else { 100.0 });
    make(&place.0.join("x.labx"), &like, sample).finish().unwrap();
    let html = place.page("x.labx");
    let story = story(&html);
    assert_eq!(
        story[0],
        "Unresolved in 10 of 10 cells: new cannot be told from libc; 3 more repetitions would decide the \
         clearest of them"
    );
    assert!(!story.iter().any(|sentence| sentence.contains("less")), "{story:?}");
    assert_eq!(html.matches("<small class=\"unresolved\">").count(), 10);
    assert_eq!(html.matches("<small class=\"faster\">").count(), 0);
}

/// A profile of a cell, of the one arm that there is.
fn attach(recorder: &mut Recorder, cell: &str, stacks: &str) {
    let counts = stacks.lines().filter_map(|line| line.rsplit(' ').next());
    let samples: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    let details = format!(
        "{{\"schema\":\"metaslot-lab-profile/1\",\"cell\":\"{cell}\",\"arm\":\"own\",\"sampler\":\"cpu-clock\",\
         \"period\":500250,\"hz\":1999,\"samples\":{samples},\"lost\":0,\"throttled\":0,\"broken\":0,\
         \"user_only\":false,\"cpu_ns\":1e9,\"reader_ns\":0.0,\"cpu_each\":1.0,\"runs\":1,\
         \"programs\":{{}},\"functions\":{{}}}}"
    );
    recorder.attach(&format!("profile/{cell}~own.json"), details.as_bytes()).unwrap();
    recorder.attach(&format!("profile/{cell}~own.folded"), stacks.as_bytes()).unwrap();
}

/// Cost grows with the connections, and so do acknowledgements; every third sample is doubtful.
fn tcp(place: &Sandbox) {
    tcp_of(place, 3);
}

/// The same, where one of so many samples is doubtful.
fn tcp_of(place: &Sandbox, one_of: usize) {
    let factors: &[(&str, &[&str])] =
        &[("connections", &["1", "8", "1000"]), ("write", &["8K", "1K"])];
    let like = Made { factors, arms: &["own"], repetitions: 10, provenance: provenance() };
    let sample = |run: &Run| {
        let (cost, acks) = match run.level("connections") {
            Some("1") => (1.0, 10.0),
            Some("8") => (1.2, 20.0),
            _ => (2.0, 30.0),
        };
        let cost = if run.level("write") == Some("1K") { 4.0 * cost } else { cost };
        let measured = measured(cost * (1.0 + run.repetition as f64 * 1e-4));
        let counters = BTreeMap::from([
            ("acks".to_owned(), acks),
            ("segments".to_owned(), 5.0),
            ("machine_idle".to_owned(), acks),
        ]);
        let doubtful = run.repetition.is_multiple_of(one_of).then(|| "contaminated".to_owned());
        Measured { counters, flags: doubtful.into_iter().collect(), ..measured }
    };
    let mut recorder = make(&place.0.join("x.labx"), &like, sample);
    // A plan's cells as profiles: sorted as text, 1000 would come before 8.
    for connections in ["1", "8", "1000"] {
        let cell = format!("connections={connections} write=8K");
        attach(&mut recorder, &cell, "main;send_[k] 200\nmain;wait_[k] 100\n");
    }
    recorder.finish().unwrap();
}

#[test]
fn the_first_sentence_says_how_cost_grows_with_its_interval_and_what_grows_with_it() {
    let place = Sandbox::new("story");
    tcp(&place);
    assert_eq!(
        story(&place.page("x.labx")),
        [
            "Along write, from 8K to 1K, a KB costs 4.00 times as much on average (4.00 to 4.00), and no counter \
             surely grows by 10 % with it; along connections, from 1 to 1000, it costs 2.00 times as much on \
             average (2.00 to 2.00), with 3.00 times the acks",
            "Along write, curve by curve: connections 1: 4.00 (4.00 to 4.00), connections 8: 4.00 (4.00 to 4.00), \
             connections 1000: 4.00 (4.00 to 4.00)",
            "Along connections, curve by curve: write 8K: 2.00 (2.00 to 2.00), write 1K: 2.00 (2.00 to 2.00)",
            "24 of 60 samples are doubtful: others used the machine, or it was not steady",
        ]
    );
}

#[test]
fn a_headline_over_doubtful_samples_says_so_itself_and_once() {
    let place = Sandbox::new("doubtful");
    tcp_of(&place, 1);
    let html = place.page("x.labx");
    let story = story(&html);
    let begin = "Doubtful, as all 60 samples are (others used the machine, or it was not steady): along write, from";
    assert!(story[0].starts_with(begin), "{story:?}");
    assert!(story[1..].iter().all(|sentence| !sentence.contains("oubtful")), "{story:?}");
    let line = ["compare", "x.labx", "--cell", "connections=8 write=8K", "--against-cell"];
    let text = place.text(&[&line[..], &["connections=1 write=8K"]].concat());
    assert!(text.contains("\nDoubtful, as all 60 samples are (others used"), "{text}");
}

#[test]
fn what_no_cell_counts_takes_no_column_and_the_text_repeats_nothing_of_the_page() {
    let place = Sandbox::new("columns");
    let factors: &[(&str, &[&str])] = &[("write", &["8K", "64K"])];
    let like = Made { factors, arms: &["own"], repetitions: 6, provenance: provenance() };
    let sample = |run: &Run| {
        let acks = if run.level("write") == Some("8K") { 50.0 } else { 0.0 };
        let counters = [("acks", acks), ("eagain", 0.0), ("machine_steal", 0.001)];
        let counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
        Measured { counters, ..measured(1.0 + run.repetition as f64 * 1e-4) }
    };
    make(&place.0.join("x.labx"), &like, sample).finish().unwrap();
    let html = place.page("x.labx");
    assert!(html.contains("as far as digits show it: eagain, machine steal."), "{html}");
    let head = html.split("counters\">\n<thead>").nth(1).unwrap();
    let head = head.split("</thead>").next().unwrap();
    assert_eq!(head, "<tr><th scope=\"col\">cell</th><th scope=\"col\">acks</th></tr>");
    let words = html.split("<pre class=\"words\">").nth(1).unwrap().split("</pre>").next().unwrap();
    assert!(!words.contains("CPU time:") && words.contains("write=8K"), "{words}");
}

#[test]
fn cells_of_profiles_are_in_the_order_of_their_numbers() {
    let place = Sandbox::new("order");
    tcp(&place);
    let places = |text: &str, before: &str| -> Vec<usize> {
        let at =
            |connections: &str| text.find(&format!("{before}connections={connections} ")).unwrap();
        ["1", "8", "1000"].map(at).into()
    };
    assert!(places(&place.page("x.labx"), "<summary>").is_sorted());
    assert!(places(&place.text(&["print", "x.labx", "--functions"]), "").is_sorted());
}

#[test]
fn flame_graphs_on_a_page_and_alone_have_search_and_zoom_of_their_own() {
    let place = Sandbox::new("flames");
    tcp(&place);
    let html = place.page("x.labx");
    let (before, script) = html.split_once("<script>").unwrap();
    assert_well_formed(&format!("{before}{}", script.split_once("</script>").unwrap().1));
    assert_eq!((html.matches("<script>").count(), html.matches("</script>").count()), (1, 1));
    assert!(html.contains("id=\"flame-search\"") && !html.contains("src="));
    let cell = ["--cell", "connections=8 "];
    let alone = place.text(&[&["print", "x.labx", "--flame"][..], &cell].concat());
    assert_eq!(alone.matches("<script>").count(), 1);
}

/// What the page says of itself where a browser opens it: a pointer over a button, a search, Escape.
const TRIED: &str = r#"<script>addEventListener("load", () => {
var button = [].find.call(document.querySelectorAll(".flame .b"), b => b.textContent === "search");
button.scrollIntoView();
var at = button.getBoundingClientRect();
var reached = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2) === button;
var field = document.getElementById("flame-search"), hits = () => document.querySelectorAll(".hit").length;
field.value = "send";
field.dispatchEvent(new Event("input"));
var marked = hits() > 0;
document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
document.title = ["tried", reached, marked, hits(), field.value === ""].join(" ");
});</script>"#;

#[test]
fn in_a_browser_a_flame_graph_s_buttons_are_reached_and_escape_empties_the_search() {
    let place = Sandbox::new("browser");
    tcp(&place);
    let page = place.0.join("tried.html");
    std::fs::write(&page, place.page("x.labx").replace("</body>", &format!("{TRIED}</body>")))
        .unwrap();
    let browser = Command::new("timeout")
        .args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", place.0.join("browser").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    if browser.status.code() == Some(127) {
        // No package that the tests install.
        let what = "flame graphs in a browser";
        return metaslot_testkit::left_out("lab", what, "chromium is not installed");
    }
    let dom = String::from_utf8_lossy(&browser.stdout);
    assert!(dom.contains("<title>tried true true 0 true</title>"), "{browser:?}");
}

#[test]
fn what_of_the_profiles_has_no_room_on_the_page_is_said() {
    let place = Sandbox::new("room");
    let sizes: Vec<String> = (1..=9).map(|size| format!("{size}K")).collect();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    let factors: &[(&str, &[&str])] = &[("size", &sizes)];
    let like = Made { factors, arms: &["own"], repetitions: 6, provenance: provenance() };
    let mut recorder = make(&place.0.join("x.labx"), &like, |_: &Run| measured(1.0));
    // Its graph has more frames than a page has room for.
    let stack = |at: u32| format!("main{} 100\n", format!(";{:0>80}", at).repeat(20));
    let wide: String = (0..200).map(stack).collect();
    for size in &sizes {
        let stacks = if *size == "9K" { &*wide } else { "main;send 300\n" };
        attach(&mut recorder, &format!("size={size}"), stacks);
    }
    recorder.finish().unwrap();
    let html = place.page("x.labx");
    assert!(html.contains("8 of 9 cells"));
    assert!(html.contains("Graphs that have no room on the page: 1."));
    assert!(html.contains("<summary>size=8K") && !html.contains("<summary>size=9K"));
}

#[test]
fn the_verdict_stands_beside_the_name_and_every_median_over_its_samples() {
    let place = Sandbox::new("verdict");
    experiment(&place.0.join("a.labx"), "byte", "thread", 90.0);
    experiment(&place.0.join("b.labx"), "byte", "thread", 60.0);
    place.text(&["report", "a.labx", "b.labx", "-o", "page.html"]);
    let html = std::fs::read_to_string(place.0.join("page.html")).unwrap();
    let heading = html.split("<h2>A against B</h2>").nth(1).unwrap();
    let columns: Vec<&str> = heading.split("<th").skip(2).take(2).collect();
    assert!(columns[0].contains(">cell<") && columns[1].contains(">A is<"), "{columns:?}");
    assert_eq!(html.matches("slower, between runs").count(), 2, "{html}");
    assert_eq!(html.matches("<svg class=\"rug\"").count(), 4);
}

#[test]
fn run_it_again_is_the_whole_command_in_quotes_that_a_shell_reads() {
    let place = Sandbox::new("rerun");
    let line = ["aa", "--of", "work", "--seconds", "0.05", "--repetitions", "2", "-o", "it's.labx"];
    place.text(&line);
    let html = place.page("it's.labx");
    let again = html.split("<h2>Run it again</h2>\n<pre class=\"command\">").nth(1).unwrap();
    let again = again.split("</pre>").next().unwrap();
    let (command, seed) = again.split_once(" --seed ").unwrap();
    assert_eq!(command, "metaslot lab aa --of work --seconds 0.05 --repetitions 2");
    assert!(seed.parse::<u64>().is_ok(), "{again}");
}
