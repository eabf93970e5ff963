// SPDX-License-Identifier: Apache-2.0
//! The system calls that serving needs. Any other is refused with `EPERM` rather than by the end of the process: what the C
//! library asks for on another kernel it does without, and no client loses its keys to a call that was forgotten here. Who has
//! taken the process over gains nothing by asking again.

use libc::*;
use metaslot_wiring::config::Reach;
use metaslot_wiring::text::words;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// With any arguments: memory, files, what is said on sockets that are open, threads, signals of its own, time. Nothing starts a
/// program, looks into another process, mounts, or changes who this process is.
const ALLOWED: &[c_long] = &[
    // Memory.
    SYS_brk,
    SYS_madvise,
    SYS_mlock,
    SYS_mlock2,
    SYS_mremap,
    SYS_munlock,
    SYS_munmap,
    // Files. Landlock says which.
    SYS_access,
    SYS_chmod,
    SYS_chown,
    SYS_close,
    SYS_dup,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_fallocate,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_fcntl,
    SYS_fdatasync,
    SYS_flock,
    SYS_fstat,
    SYS_fstatfs,
    SYS_fsync,
    SYS_ftruncate,
    SYS_getcwd,
    SYS_getdents64,
    SYS_linkat,
    SYS_lseek,
    SYS_lstat,
    SYS_mkdir,
    SYS_mkdirat,
    SYS_newfstatat,
    SYS_open,
    SYS_openat,
    SYS_pread64,
    SYS_pwrite64,
    SYS_read,
    SYS_readlink,
    SYS_readlinkat,
    SYS_readv,
    SYS_rename,
    SYS_renameat,
    SYS_renameat2,
    SYS_rmdir,
    SYS_stat,
    SYS_statfs,
    SYS_statx,
    SYS_unlink,
    SYS_unlinkat,
    SYS_utimensat,
    SYS_write,
    SYS_writev,
    // Sockets.
    SYS_accept,
    SYS_accept4,
    SYS_connect,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_epoll_wait,
    SYS_getpeername,
    SYS_getsockname,
    SYS_getsockopt,
    SYS_poll,
    SYS_ppoll,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_sendto,
    SYS_setsockopt,
    SYS_shutdown,
    // Threads, and the end.
    SYS_clone,
    SYS_clone3,
    SYS_exit,
    SYS_exit_group,
    SYS_futex,
    SYS_membarrier,
    SYS_rseq,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_set_robust_list,
    // Signals.
    SYS_restart_syscall,
    SYS_rt_sigaction,
    SYS_rt_sigpending,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    // Who and when this is.
    SYS_clock_getres,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_getcpu,
    SYS_getegid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getpid,
    SYS_getrandom,
    SYS_getresgid,
    SYS_getresuid,
    SYS_gettid,
    SYS_gettimeofday,
    SYS_getuid,
    SYS_nanosleep,
    SYS_sysinfo,
    SYS_uname,
];

/// What the kernel needs to be asked to compute.
const KERNEL: &[c_long] = &[SYS_bind, SYS_pipe2, SYS_splice, SYS_vmsplice];

/// What connects to databases.
const DATABASES: &[c_long] = &[SYS_epoll_create1, SYS_eventfd2];

/// What keeps secrets in the kernel.
const KEYRING: &[c_long] = &[SYS_add_key, SYS_keyctl];

/// A condition: which argument, how much of it, and what it is.
type Condition = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

/// Only where an argument is so.
fn conditions(reach: &Reach) -> Vec<(c_long, Condition)> {
    let number = |number: c_int| u64::from(number.unsigned_abs());
    let no_code = (2, Dword, MaskedEq(number(PROT_EXEC)), 0);
    let local = (0, Dword, Eq, number(AF_UNIX));
    let kernel = reach.kernel.then(|| (SYS_socket, (0, Dword, Eq, number(AF_ALG))));
    let all = [
        (SYS_mmap, no_code.clone()),
        (SYS_mprotect, no_code),
        (SYS_socket, local.clone()),
        (SYS_socketpair, local),
        // Asked, not set.
        (SYS_prlimit64, (2, Qword, Eq, 0)),
        // Names of threads.
        (SYS_prctl, (0, Dword, Eq, number(PR_SET_NAME))),
        (SYS_ioctl, (1, Dword, Eq, FIONBIO)),
        // To itself: an abort.
        (SYS_tgkill, (0, Dword, Eq, u64::from(std::process::id()))),
    ];
    // Landlock says which ports.
    let internet = [AF_INET, AF_INET6].into_iter().filter(|_| !reach.ports.is_empty());
    let internet = internet.map(|family| (SYS_socket, (0, Dword, Eq, number(family))));
    all.into_iter().chain(kernel).chain(internet).collect()
}

/// Leaves this thread, and those that it starts, these.
pub(crate) fn limit(reach: &Reach) -> Result<(), String> {
    let program = program(reach).map_err(|error| words(&error))?;
    apply_filter(&program).map_err(|error| words(&error))
}

fn program(reach: &Reach) -> Result<BpfProgram, seccompiler::Error> {
    let more = [(reach.kernel, KERNEL), (reach.keyring, KEYRING), (reach.databases, DATABASES)];
    let more = more.into_iter().filter(|(wanted, _)| *wanted).flat_map(|(_, calls)| calls);
    let mut rules: BTreeMap<_, _> =
        ALLOWED.iter().chain(more).map(|call| (*call, vec![])).collect();
    for (call, (argument, length, operator, value)) in conditions(reach) {
        let condition = SeccompCondition::new(argument, length, operator, value)?;
        rules.entry(call).or_default().push(SeccompRule::new(vec![condition])?);
    }
    let refused = SeccompAction::Errno(EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?;
    Ok(filter.try_into()?)
}
