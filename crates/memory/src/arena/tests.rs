// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::per_process::tests::is_so_in_a_child;
use std::fs;

fn take(size: usize) -> NonNull<u8> {
    allocate(size).expect("there is memory")
}

fn fill(start: NonNull<u8>, length: usize, byte: u8) {
    // SAFETY: the tests allocate at least `length` bytes.
    unsafe { start.as_ptr().write_bytes(byte, length) };
}

fn bytes<'a>(start: NonNull<u8>, length: usize) -> &'a [u8] {
    // SAFETY: arena pages stay mapped, also after a block in them was freed.
    unsafe { std::slice::from_raw_parts(start.as_ptr(), length) }
}

fn give(start: NonNull<u8>) {
    // SAFETY: the tests free what they allocated, once but where they say so.
    unsafe { free(start) };
}

/// Runs `body` in a forked child; its answer must be true.
fn in_child(body: impl FnOnce() -> bool) {
    assert!(is_so_in_a_child(body));
}

/// The flags of the mapping that holds `start`, from /proc/self/smaps.
fn flags(start: NonNull<u8>) -> Vec<String> {
    let wanted = start.as_ptr().addr();
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    for line in smaps.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-')
            && let (Ok(from), Ok(to)) =
                (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
        {
            inside = (from..to).contains(&wanted);
        }
        if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
            return flags.split_whitespace().map(str::to_owned).collect();
        }
    }
    Vec::new()
}

#[test]
fn pages_are_locked_undumped_and_wiped_on_fork() {
    let start = take(100);
    fill(start, 100, 1);
    let flags = flags(start);
    assert!(flags.iter().any(|flag| flag == "dd"), "left out of core dumps: {flags:?}");
    assert!(flags.iter().any(|flag| flag == "wf"), "wiped on fork: {flags:?}");
    if os_may_lock() {
        assert!(flags.iter().any(|flag| flag == "lo"), "locked: {flags:?}");
        assert!(stats().locked > 0);
    }
    give(start);
}

fn os_may_lock() -> bool {
    crate::os::lock_limit() >= 8 << 20
}

#[test]
fn freed_memory_is_zero_and_fresh_memory_too() {
    for size in [1, 15, 16, 17, 100, 511, 512, 513, 4096, 4097, 70_000, 1 << 20] {
        let start = take(size);
        assert!(size_of_allocation(start) >= size);
        assert!(start.as_ptr().addr().is_multiple_of(ALIGNMENT));
        assert!(bytes(start, size_of_allocation(start)).iter().all(|byte| *byte == 0), "{size}");
        let whole = size_of_allocation(start);
        fill(start, whole, 0xff);
        give(start);
        // Another test's thread may have taken the block meanwhile, but does not write 0xff.
        assert!(bytes(start, whole).iter().all(|byte| *byte != 0xff), "{size}");
    }
}

#[test]
fn blocks_do_not_overlap() {
    let mut taken: Vec<_> = (0..3000_usize)
        .map(|at| {
            let size = 1 + at * 7 % 700;
            let start = take(size);
            fill(start, size, u8::try_from(at % 251).unwrap());
            (start, size, at)
        })
        .collect();
    for (start, size, at) in taken.drain(..) {
        let byte = u8::try_from(at % 251).unwrap();
        assert!(bytes(start, size).iter().all(|there| *there == byte));
        give(start);
    }
}

#[test]
fn eight_threads_allocate_and_free_each_others_blocks() {
    let (sender, receiver) = std::sync::mpsc::channel::<usize>();
    std::thread::scope(|scope| {
        for number in 0..8_u8 {
            let sender = sender.clone();
            scope.spawn(move || {
                for round in 0..2000_usize {
                    let size = 1 + (round * 37 + usize::from(number)) % 5000;
                    let start = take(size);
                    assert!(bytes(start, size).iter().all(|byte| *byte == 0));
                    fill(start, size, number + 1);
                    if round % 3 == 0 {
                        sender.send(start.as_ptr().expose_provenance()).unwrap();
                    } else {
                        assert!(bytes(start, size).iter().all(|byte| *byte == number + 1));
                        give(start);
                    }
                }
            });
        }
        drop(sender);
        for address in receiver {
            give(NonNull::new(ptr::with_exposed_provenance_mut(address)).unwrap());
        }
    });
}

#[test]
fn freeing_twice_or_something_foreign_does_no_harm() {
    let start = take(64);
    give(start);
    give(start);
    let mut foreign = [1_u8; 16];
    give(NonNull::from(&mut foreign).cast());
    assert_eq!(foreign, [1; 16]);
    assert_eq!(size_of_allocation(NonNull::from(&mut foreign).cast()), 0);
}

#[test]
fn a_child_finds_zeros_and_gets_a_region_of_its_own() {
    let start = take(300);
    fill(start, 300, 0x77);
    let secret = crate::Secret::copy_of(b"parent's");
    in_child(|| {
        let wiped = bytes(start, 300).iter().all(|byte| *byte == 0)
            && secret.expose().iter().all(|byte| *byte == 0);
        give(start);
        let fresh = take(300);
        fill(fresh, 300, 1);
        let apart = fresh != start && size_of_allocation(start) >= 300;
        give(start);
        let unharmed = bytes(fresh, 300).iter().all(|byte| *byte == 1);
        drop(secret);
        wiped && apart && unharmed && stats().live == 1
    });
    assert!(bytes(start, 300).iter().all(|byte| *byte == 0x77), "the parent's is as it was");
    give(start);
}

#[test]
fn without_a_right_to_lock_everything_works_and_is_counted() {
    in_child(|| {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: reads the structure.
        if unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) } != 0 {
            return false;
        }
        let start = take(100);
        fill(start, 100, 3);
        let stats = stats();
        let good = stats.unlocked > 0 && stats.locked == 0 && stats.degraded;
        give(start);
        good && flags(start).iter().any(|flag| flag == "wf")
    });
}

#[test]
fn beyond_the_locked_part_allocation_goes_on() {
    let taken: Vec<_> = (0..2000).map(|_| take(4000)).collect();
    let last = *taken.last().unwrap();
    let stats = stats();
    assert!(stats.locked <= 4 << 20);
    assert!(stats.unlocked > 0);
    let flags = flags(last);
    assert!(flags.iter().any(|flag| flag == "dd") && flags.iter().any(|flag| flag == "wf"));
    taken.into_iter().for_each(give);
}

#[test]
fn empty_slabs_serve_other_sizes() {
    in_child(|| {
        for size in [16, 64, 500, 1000, 4000, 30_000] {
            for _ in 0..4 {
                let taken: Vec<_> = (0..(2 << 20) / size).map(|_| take(size)).collect();
                taken.into_iter().for_each(give);
            }
        }
        let stats = stats();
        stats.live == 0 && stats.locked + stats.unlocked <= 8 << 20
    });
}
