// SPDX-License-Identifier: Apache-2.0
//! Samples of a control group, whose processes come later.

use metaslot_perf::{Event, Recording, Target};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A control group that goes away, where this user may make one.
struct Group(PathBuf);

impl Group {
    fn make() -> Option<Self> {
        let name = format!("metaslot-test-{}", std::process::id());
        let parents = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
        let mut paths = parents.iter().map(|parent| Path::new(parent).join(&name));
        paths.find(|path| std::fs::create_dir(path).is_ok()).map(Self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn samples_of_a_group_are_of_its_processes() {
    let Some(group) = Group::make() else {
        eprintln!("not run: this user may not make control groups");
        return;
    };
    let recording = Recording::start(&Target::Group(group.0.clone()), Event::CpuClock, 500_000);
    let recording = match recording {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("not run: this user may not take samples");
            return;
        }
        other => other.unwrap(),
    };
    // It comes into the group when samples are taken already.
    let mut worker = Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    std::fs::write(group.0.join("cgroup.procs"), worker.id().to_string()).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    worker.kill().unwrap();
    worker.wait().unwrap();
    let placed = recording.stop().unwrap().place(|_| true);
    let programs: Vec<&str> = placed.programs.keys().map(String::as_str).collect();
    assert_eq!(programs, ["sh"]);
    assert!(placed.files.iter().any(|file| file.ends_with("sh")), "{:?}", placed.files);
}
