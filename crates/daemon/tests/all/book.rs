// SPDX-License-Identifier: Apache-2.0
//! The lines of the book's pages, as they are printed, in a system whose changes are in memory and gone at the end.

use metaslot_testkit::{module_path, not_run};
use std::path::Path;
use std::process::Command;

const HOST: &str = include_str!("../../../../docs/daemon-host.md");

/// What is changed below these directories is in memory. What the package brings is there, and of systemd what the pages ask.
const BEFORE: &str = include_str!("book.sh");

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
    if noted.contains("unshare: unshare failed") || noted.contains("mount: ") {
        not_run("metaslotd", what, "file systems cannot be mounted here");
        return None;
    }
    assert!(output.status.success(), "{}\n{said}\n{noted}", output.status);
    Some(said)
}

#[test]
fn a_server_on_a_host_signs_by_the_lines_of_the_page() {
    let lines = lines(HOST);
    let group = "\"cgroup:/system.slice/nginx.service\"";
    assert!(lines.contains(group));
    // Without systemd there is no such group.
    let lines = lines.replace(group, "\"user:root\", \"user:www-data\"");
    let Some(said) = run("the page of one host", &lines) else { return };
    assert!(said.contains("\nhello\n"), "{said}");
    let (_, clients) = said.split_once("\nclients of process ").expect("there are some");
    let worker = clients.lines().find(|line| line.starts_with("www-data ")).expect("it is one");
    let operations = worker.split_whitespace().nth(4).and_then(|count| count.parse::<u32>().ok());
    assert!(operations.is_some_and(|count| count > 0), "{said}");
}
