// SPDX-License-Identifier: Apache-2.0
//! Table of the abilities, in the order in which they are tried: what needs a steady hand first,
//! other people's programs last.

use super::ability::{Ability, Attempt};
use super::outcome::{Outcome, Trouble};
use super::program::Program;
use super::{clocks, counters, files, groups, kernel, memory, network};
use metaslot_system::socket::Kind;
use rustix::io::Errno;

/// The group of programs, which are asked all at the same time.
pub(crate) const PROGRAMS: &str = "programs";

const PERF_RIGHTS: &str = "root or CAP_PERFMON, or a lower kernel.perf_event_paranoid";
const PMU: &str = "a machine, or a virtual one, whose processor's counters can be seen";
const BPF_RIGHTS: &str = "root, or CAP_BPF and CAP_PERFMON";

const PERF_NEEDS: &[(Errno, &str)] = &[
    (Errno::NOENT, PMU),
    (Errno::OPNOTSUPP, PMU),
    (Errno::NODEV, PMU),
    (Errno::ACCESS, PERF_RIGHTS),
    (Errno::PERM, PERF_RIGHTS),
];
const BPF_NEEDS: &[(Errno, &str)] = &[
    (Errno::PERM, BPF_RIGHTS),
    (Errno::ACCESS, BPF_RIGHTS),
    (Errno::INVAL, "a kernel with this kind of program"),
];
const NAMESPACE_NEEDS: &[(Errno, &str)] = &[
    (Errno::PERM, "root, or user namespaces for everybody"),
    (Errno::NOSPC, "a higher limit in /proc/sys/user"),
    (Errno::INVAL, "a kernel with such namespaces"),
];
const LARGE_NEEDS: &[(Errno, &str)] = &[(Errno::NOMEM, "root: vm.nr_hugepages above what is used")];
const NO_NEEDS: &[(Errno, &str)] = &[];

/// One group's rows, written in the order of the columns.
const fn row(
    group: &'static str,
    name: &'static str,
    [how, purpose, fallback]: [&'static str; 3],
    needs: &'static [(Errno, &'static str)],
    call: fn() -> Result<Outcome, Trouble>,
) -> Ability {
    Ability { group, name, how, purpose, fallback, needs, attempt: Attempt::Call(call) }
}

/// An instruction set.
const fn feature(name: &'static str, purpose: &'static str, fallback: &'static str) -> Ability {
    let how = "the processor's features in /proc/cpuinfo";
    let attempt = Attempt::Feature;
    Ability { group: "processor", name, how, purpose, fallback, needs: NO_NEEDS, attempt }
}

/// A program, and the exit code with which it says its version.
const fn program(
    name: &'static str,
    arguments: &'static [&'static str],
    code: i32,
    [purpose, fallback]: [&'static str; 2],
) -> Ability {
    let how = "asked for its version";
    let attempt = Attempt::Program(Program { name, arguments, code });
    Ability { group: PROGRAMS, name, how, purpose, fallback, needs: NO_NEEDS, attempt }
}

/// Everything that is tried.
pub(crate) const ABILITIES: &[Ability] = &[
    row(
        "clocks",
        "time-stamp",
        [
            "nine stretches of 12 ms against CLOCK_MONOTONIC_RAW",
            "time in ticks, for the price of one instruction",
            "CLOCK_MONOTONIC_RAW",
        ],
        NO_NEEDS,
        clocks::time_stamp_rate,
    ),
    row(
        "clocks",
        "core-factor",
        [
            "additions that wait for each other, one core cycle each, timed in ticks",
            "how fast the core runs beside its time stamp; it is printed, never multiplied in",
            "ticks only",
        ],
        NO_NEEDS,
        clocks::core_factor,
    ),
    row(
        "clocks",
        "clock-reading",
        [
            "2,000 readings of CLOCK_MONOTONIC_RAW, the fastest of nine times",
            "what a measurement adds to what it measures",
            "none is needed",
        ],
        NO_NEEDS,
        clocks::clock_reading,
    ),
    row(
        "clocks",
        "clocksource",
        [
            "the file in /sys/devices/system/clocksource",
            "whether the kernel trusts the time stamp",
            "the rate above",
        ],
        NO_NEEDS,
        files::clocksource,
    ),
    row(
        "counters",
        "cycles",
        [
            "perf_event_open; two loops of known lengths",
            "cycles per KB, cycles of a function",
            "time-stamp ticks × CPU time",
        ],
        PERF_NEEDS,
        counters::cycles,
    ),
    row(
        "counters",
        "instructions",
        [
            "perf_event_open; two loops of known lengths",
            "whether fewer instructions or a busier core explain a difference",
            "none",
        ],
        PERF_NEEDS,
        counters::instructions,
    ),
    row(
        "counters",
        "cpu-clock",
        [
            "perf_event_open; 5 ms of work beside the thread's CPU time",
            "whether the timer behind samples counts",
            "CLOCK_THREAD_CPUTIME_ID",
        ],
        PERF_NEEDS,
        counters::cpu_clock,
    ),
    row(
        "counters",
        "task-clock",
        [
            "perf_event_open; 5 ms of work beside the thread's CPU time",
            "CPU time of a thread",
            "CLOCK_THREAD_CPUTIME_ID",
        ],
        PERF_NEEDS,
        counters::task_clock,
    ),
    row(
        "counters",
        "cycle-samples",
        [
            "a sample every 100,000 cycles of a loop of known length",
            "profiles by the processor's own counter",
            "clock-samples",
        ],
        PERF_NEEDS,
        counters::cycle_samples,
    ),
    row(
        "counters",
        "clock-samples",
        [
            "a sample every 100 µs of 5 ms of work",
            "profiles where the processor's counters are not seen",
            "setitimer and SIGPROF: the program's own code only",
        ],
        PERF_NEEDS,
        counters::clock_samples,
    ),
    row(
        "counters",
        "context-switches",
        [
            "perf_event_open; a thread that sleeps five times",
            "how often work was interrupted",
            "getrusage",
        ],
        PERF_NEEDS,
        counters::context_switches,
    ),
    row(
        "counters",
        "whole-cpu",
        [
            "perf_event_open of CPU 0, everybody's work",
            "profiles of the kernel's own work, in soft interrupts and other threads",
            "the experiment's own threads only",
        ],
        PERF_NEEDS,
        counters::whole_cpu,
    ),
    row(
        "counters",
        "perf-paranoid",
        ["/proc/sys/kernel/perf_event_paranoid", "who may count what", "none is needed"],
        NO_NEEDS,
        files::perf_paranoid,
    ),
    row(
        "counters",
        "kernel-symbols",
        [
            "/proc/sys/kernel/kptr_restrict and the first address of /proc/kallsyms",
            "names of the kernel's functions in profiles",
            "one row for the kernel",
        ],
        NO_NEEDS,
        files::kernel_symbols,
    ),
    row(
        "accounts",
        "cgroup-v1",
        [
            "a group made, a process moved in, cpuacct.usage read, the group removed",
            "CPU time of an experiment apart from everybody else's",
            "getrusage of the children",
        ],
        NO_NEEDS,
        groups::version_one,
    ),
    row(
        "accounts",
        "cgroup-v2",
        [
            "a group made, a process moved in, cpu.stat read, the group removed",
            "CPU time of an experiment apart from everybody else's",
            "getrusage of the children",
        ],
        NO_NEEDS,
        groups::version_two,
    ),
    row(
        "accounts",
        "proc-stat",
        [
            "which columns of /proc/stat moved since the machine started",
            "the machine's time in users, system, interrupts; what a hypervisor stole",
            "the experiment's own time only",
        ],
        NO_NEEDS,
        files::stat_columns,
    ),
    row(
        "accounts",
        "pressure",
        [
            "/proc/pressure/cpu",
            "whether work waited for a CPU during a measurement",
            "the load average",
        ],
        &[(Errno::NOENT, "a kernel with PSI"), (Errno::OPNOTSUPP, "the kernel's option psi=1")],
        files::pressure,
    ),
    row(
        "accounts",
        "own-schedstat",
        [
            "/proc/self/schedstat",
            "how long a thread waited although it could run",
            "getrusage, which has no waiting time",
        ],
        NO_NEEDS,
        files::own_schedstat,
    ),
    row(
        "kernel",
        "bpf",
        [
            "a program of two instructions for a socket",
            "counting inside the kernel",
            "files in /proc, and getsockopt",
        ],
        BPF_NEEDS,
        kernel::bpf_program,
    ),
    row(
        "kernel",
        "bpf-softirq",
        [
            "a program attached to irq:softirq_entry of CPU 0 for a moment",
            "time in soft interrupts, to the nanosecond",
            "the softirq column of /proc/stat, in ticks",
        ],
        BPF_NEEDS,
        kernel::bpf_tracepoint,
    ),
    row(
        "kernel",
        "io-uring",
        ["a ring of one entry", "many reads and writes with few calls", "read and write"],
        &[(Errno::PERM, "kernel.io_uring_disabled = 0")],
        kernel::io_uring,
    ),
    row(
        "kernel",
        "user-namespace",
        [
            "unshare in a child",
            "namespaces for users without privileges",
            "root, or the machine's own network",
        ],
        NAMESPACE_NEEDS,
        kernel::user_namespace,
    ),
    row(
        "kernel",
        "network-namespace",
        [
            "unshare in a child, with a user namespace where that is needed",
            "two hosts on one machine",
            "the loopback device",
        ],
        NAMESPACE_NEEDS,
        kernel::network_namespace,
    ),
    row(
        "kernel",
        "veth",
        [
            "a pair of devices in a child's own network",
            "a wire between two hosts on one machine",
            "the loopback device",
        ],
        &[
            (Errno::PERM, "root, or user namespaces for everybody"),
            (Errno::OPNOTSUPP, "a kernel with veth devices"),
        ],
        kernel::veth,
    ),
    row(
        "kernel",
        "capabilities",
        [
            "CapEff in /proc/self/status",
            "what this process may do beyond its user",
            "what works without them",
        ],
        NO_NEEDS,
        files::capabilities,
    ),
    row(
        "memory",
        "thp-mode",
        [
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "large pages for the asking",
            "ordinary pages",
        ],
        NO_NEEDS,
        files::thp_mode,
    ),
    row(
        "memory",
        "thp",
        [
            "8 MiB with MADV_HUGEPAGE, written to; AnonHugePages in smaps",
            "memory without misses of the TLB",
            "ordinary pages",
        ],
        NO_NEEDS,
        memory::large_pages,
    ),
    row(
        "memory",
        "hugetlb",
        [
            "a page of the kernel's reserve, written to",
            "large pages that are certain",
            "transparent large pages",
        ],
        LARGE_NEEDS,
        memory::reserved_pages,
    ),
    row(
        "memory",
        "locked-memory",
        ["getrlimit(RLIMIT_MEMLOCK)", "buffers that stay where they are", "ordinary memory"],
        NO_NEEDS,
        files::locked_limit,
    ),
    row(
        "network",
        "open-files",
        ["getrlimit(RLIMIT_NOFILE)", "thousands of connections", "fewer connections"],
        NO_NEEDS,
        files::files_limit,
    ),
    row(
        "network",
        "congestion",
        [
            "/proc/sys/net/ipv4/tcp_congestion_control",
            "who decides how fast TCP sends, on the loopback device too",
            "none is needed",
        ],
        NO_NEEDS,
        network::congestion_control,
    ),
    row(
        "network",
        "ktls",
        ["TCP_ULP tls on a connection", "TLS inside the kernel", "TLS in the program"],
        &[(Errno::NOENT, "a kernel with CONFIG_TLS")],
        network::kernel_tls,
    ),
    row(
        "network",
        "af-alg",
        ["a socket of AF_ALG, bound to cbc(aes)", "the kernel's ciphers", "ciphers in the program"],
        &[(Errno::NOENT, "a kernel with AES for programs")],
        network::kernel_ciphers,
    ),
    row(
        "network",
        "zerocopy",
        [
            "4 KiB with MSG_ZEROCOPY over loopback, and the notification",
            "sends without a copy",
            "ordinary sends",
        ],
        NO_NEEDS,
        network::zerocopy,
    ),
    row(
        "network",
        "sendfile",
        ["4 KiB from memory's file into a socket", "files without a copy", "read and write"],
        NO_NEEDS,
        network::send_file,
    ),
    row(
        "network",
        "splice",
        [
            "4 KiB from memory's file into a pipe, and on into a socket",
            "files without a copy",
            "read and write",
        ],
        NO_NEEDS,
        network::splice_file,
    ),
    row(
        "network",
        "vmsplice",
        ["4 KiB of memory into a pipe", "memory without a copy", "write"],
        NO_NEEDS,
        network::splice_memory,
    ),
    row(
        "network",
        "sockmap",
        [
            "a map of one socket, and a program for messages",
            "from socket to socket past the network's layers",
            "AF_UNIX sockets",
        ],
        BPF_NEEDS,
        kernel::sockmap,
    ),
    row(
        "network",
        "mptcp",
        ["a socket of IPPROTO_MPTCP", "TCP over several paths", "TCP"],
        NO_NEEDS,
        || network::socket_of(Kind::Mptcp),
    ),
    row(
        "network",
        "vsock",
        ["a socket of AF_VSOCK", "between a guest and its host", "TCP"],
        NO_NEEDS,
        || network::socket_of(Kind::Vsock),
    ),
    row(
        "network",
        "xdp",
        ["a socket of AF_XDP", "packets past the kernel's stack", "packet sockets"],
        NO_NEEDS,
        || network::socket_of(Kind::Xdp),
    ),
    row(
        "network",
        "packet",
        ["a socket of AF_PACKET", "packets as they are", "counters of the device"],
        &[(Errno::PERM, "root, or CAP_NET_RAW")],
        || network::socket_of(Kind::Packet),
    ),
    feature("avx512f", "vectors of 512 bits", "vectors of 256 bits"),
    feature("avx512ifma", "RSA and elliptic curves, eight requests side by side", "one at a time"),
    feature("vaes", "AES on several blocks with one instruction", "one block at a time"),
    feature("vpclmulqdq", "GCM on several blocks with one instruction", "one block at a time"),
    program("perf", &["--version"], 0, ["recording of profiles", "left out"]),
    program("openssl", &["version"], 0, ["a second opinion, and its own timings", "left out"]),
    program("iperf3", &["--version"], 0, ["a second opinion on TCP", "left out"]),
    program("uperf", &["-V"], 0, ["a second opinion on TCP", "left out"]),
    program("fio", &["--version"], 0, ["a second opinion on disks", "left out"]),
    program("wrk", &["-v"], 1, ["load for web servers", "left out"]),
    program("ip", &["-V"], 0, ["networks of two hosts on one machine", "the loopback device"]),
    program("tc", &["-V"], 0, ["delays and limits on a wire", "a wire as it is"]),
];
