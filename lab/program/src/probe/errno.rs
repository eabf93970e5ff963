// SPDX-License-Identifier: Apache-2.0
//! Table of the kernel's errors: their names, what they mean here, and what is usually needed.

use rustix::io::Errno;

const ERRORS: &[(Errno, &str, &str, &str)] = &[
    (Errno::PERM, "EPERM", "not permitted", "root, or the capability for it"),
    (Errno::ACCESS, "EACCES", "access denied", "root, or write access"),
    (Errno::NOENT, "ENOENT", "the kernel does not have it", "a kernel with it"),
    (Errno::NODEV, "ENODEV", "no such device", "a machine with it"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP", "not supported", "a kernel with it"),
    (
        Errno::NOSYS,
        "ENOSYS",
        "no such system call",
        "a kernel with it, and no filter that hides it",
    ),
    (Errno::INVAL, "EINVAL", "the kernel does not know it", "a kernel with it"),
    (Errno::AFNOSUPPORT, "EAFNOSUPPORT", "no such family of sockets", "a kernel with it"),
    (Errno::PROTONOSUPPORT, "EPROTONOSUPPORT", "no such protocol", "a kernel with it"),
    (Errno::SOCKTNOSUPPORT, "ESOCKTNOSUPPORT", "no such kind of socket", "a kernel with it"),
    (Errno::NOPROTOOPT, "ENOPROTOOPT", "no such option", "a kernel with it"),
    (Errno::NOMEM, "ENOMEM", "no memory for it", "more memory, or a higher limit"),
    (Errno::NOSPC, "ENOSPC", "a limit is reached", "a higher limit"),
    (Errno::MFILE, "EMFILE", "too many open files", "a higher limit of open files"),
    (Errno::USERS, "EUSERS", "a limit is reached", "a higher limit"),
    (Errno::BUSY, "EBUSY", "another process uses it", "another try when it is free"),
    (Errno::AGAIN, "EAGAIN", "no answer in time", "another try on an idle machine"),
    (Errno::ROFS, "EROFS", "mounted read-only", "the file system mounted for writing"),
];

/// Name, meaning, and what is usually needed.
pub(crate) fn explain(error: Errno) -> (String, String, &'static str) {
    match ERRORS.iter().find(|(number, ..)| *number == error) {
        Some((_, name, meaning, needs)) => ((*name).to_owned(), (*meaning).to_owned(), *needs),
        None => {
            let number = error.raw_os_error();
            (format!("error {number}"), error.to_string(), "what the error names")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_row_is_explained_too() {
        assert_eq!(explain(Errno::PERM).0, "EPERM");
        assert!(explain(Errno::XDEV).0.starts_with("error 18"));
    }
}
