// SPDX-License-Identifier: Apache-2.0
//! Samples of this very process, which does two things of known length.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use metaslot_perf::{Event, Placed, Recording, Symbols, Target};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Works, under a name that samples can be known by.
#[inline(never)]
fn spin_in_the_window(until: Instant) {
    while Instant::now() < until {
        std::hint::black_box(0);
    }
}

/// The same work, under another name.
#[inline(never)]
fn spin_outside_the_window(until: Instant) {
    while Instant::now() < until {
        std::hint::black_box(1);
    }
}

/// Samples in a function of this name or in what it calls, as far as stacks can be followed.
fn samples_of(placed: &Placed, name: &str) -> u64 {
    let names = Symbols::default().names(placed);
    let has = |place: &u32| {
        names[*place as usize].function.as_ref().is_some_and(|function| function.contains(name))
    };
    let stacks = placed.stacks.iter().filter(|stack| stack.places.iter().any(has));
    stacks.map(|stack| stack.count).sum()
}

/// Nanoseconds of the monotonic clock.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
}

#[test]
fn samples_are_of_this_process_and_of_the_window() {
    // A child that was there before belongs to it.
    let mut child =
        std::process::Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let target = Target::Processes(vec![std::process::id()]);
    let recording = Recording::start(&target, Event::CpuClock, 500_000);
    spin_outside_the_window(Instant::now() + Duration::from_millis(200));
    let begin = now();
    // A thread of its own belongs to the process as well.
    let other = std::thread::spawn(|| {
        spin_in_the_window(Instant::now() + Duration::from_millis(300));
    });
    other.join().unwrap();
    let end = now();
    child.kill().unwrap();
    child.wait().unwrap();
    let recording = match recording {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("not run: this user may not take samples");
            return;
        }
        other => other.unwrap(),
    };
    let recorded = recording.stop().unwrap();
    let taken = recorded.samples();
    let placed = recorded.place(|time| (begin..=end).contains(&time));
    let inside = samples_of(&placed, "spin_in_the_window");
    // Every half millisecond at best; a busy machine gives less time, and so fewer.
    assert!(inside > 5, "{inside} of {taken}");
    assert_eq!(samples_of(&placed, "spin_outside_the_window"), 0);
    // No other function does, though the machine has other work.
    assert_eq!(placed.programs.len(), 2, "{:?}", placed.programs);
    assert!(placed.programs["sh"] > 5, "{:?}", placed.programs);
}
