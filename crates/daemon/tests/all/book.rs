// SPDX-License-Identifier: Apache-2.0
//! The lines of the book's pages, as they are printed, in a system whose changes are in memory and gone at the end.

use metaslot_testkit::{module_path, not_run};
use std::path::Path;
use std::process::Command;

const HOST: &str = include_str!("../../../../docs/daemon-host.md");
const FLEET: &str = include_str!("../../../../docs/daemon-fleet.md");
const CONTAINERS: &str = include_str!("../../../../docs/daemon-containers.md");

/// What is changed below these directories is in memory. What the package brings is there, and of systemd what the pages ask.
const BEFORE: &str = include_str!("book.sh");
/// What a fleet has besides.
const DATABASE: &str = include_str!("book-database.sh");

/// The lines of the blocks for a shell.
fn lines(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect()
}

/// What the lines print; `None` where they cannot be run here.
fn run(what: &str, lines: &str) -> Option<String> {
    let programs = module_path().and_then(|module| Some(module.parent()?.to_owned()));
    let lack = match &programs {
        _ if !rustix::process::geteuid().is_root() => Some("it needs root"),
        None => Some("there is no libmetaslot.so"),
        Some(built)
            if !["metaslot", "libmetaslot_ossl.so"].iter().all(|one| built.join(one).exists()) =>
        {
            Some("the command and the provider are not built")
        }
        _ if !["/usr/sbin/nginx", "/usr/bin/systemd-creds"]
            .iter()
            .all(|one| Path::new(one).exists()) =>
        {
            Some("nginx and systemd are not installed")
        }
        Some(_) => None,
    };
    if let Some(lack) = lack {
        not_run("metaslotd", what, lack);
        return None;
    }
    let mut command = Command::new("timeout");
    command.args(["60", "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]);
    command.args(["--mount-proc", "bash", "-c", &format!("{BEFORE}\nset -x\n{lines}")]);
    command.env_clear().env("BUILT", programs.expect("it is there"));
    command.env("DAEMON", env!("CARGO_BIN_EXE_metaslotd"));
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let output = command.output().expect("it is installed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let noted = String::from_utf8_lossy(&output.stderr);
    if noted.lines().any(|line| line.starts_with("unshare: ") || line.starts_with("mount: ")) {
        not_run("metaslotd", what, "file systems cannot be mounted here");
        return None;
    }
    assert!(output.status.success(), "{}\n{said}\n{noted}", output.status);
    Some(said)
}

/// What the daemon did for a user: calls that ended an operation.
fn operations(said: &str, user: &str) -> u32 {
    let (_, clients) = said.rsplit_once("\nclients of process ").expect("there are some");
    let line = clients.lines().find(|line| line.split(' ').next() == Some(user));
    let count = line.and_then(|line| line.split_whitespace().nth(4)?.parse().ok());
    count.unwrap_or_else(|| panic!("{user} did nothing: {said}"))
}

#[test]
fn a_server_on_a_host_and_a_program_in_a_container_sign_by_the_lines_of_the_pages() {
    let lines = lines(HOST) + &lines(CONTAINERS);
    let group = "\"cgroup:/system.slice/nginx.service\"";
    assert!(lines.contains(group));
    // Without systemd there is no such group.
    let lines = lines.replace(group, "\"user:root\", \"user:www-data\"");
    // The PINs of the page cost seconds without optimisation.
    let lines = lines.replace("[[token]]\n", "[[token]]\nkdf = \"weak-for-tests\"\n");
    let Some(said) = run("the pages of hosts and containers", &lines) else { return };
    assert!(said.contains("\nhello\n"), "{said}");
    assert!(operations(&said, "www-data") > 0);
    let seen = ["private+public  sign ", " /tmp/signature\n"];
    assert!(seen.iter().all(|text| said.contains(text)), "{said}");
    assert_eq!(operations(&said, "10001"), 1);
}

#[test]
fn a_machine_of_a_fleet_makes_a_key_by_the_lines_of_the_page() {
    let what = "the page of a fleet";
    if !Path::new("/usr/lib/postgresql").is_dir() {
        return not_run("metaslotd", what, "there is no server of PostgreSQL");
    }
    let Some(said) = run(what, &format!("{DATABASE}\n{}", lines(FLEET))) else { return };
    assert!(said.contains("\nsite   ec:p256  public "), "{said}");
    assert!(operations(&said, "root") > 1, "{said}");
}
