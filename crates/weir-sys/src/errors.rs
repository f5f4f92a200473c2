//! Names of the errors that system calls return. Numbers differ by architecture; those of the current one come from
//! the `libc` crate.

/// A list of numbers and names, from the names of constants.
macro_rules! named {
    ($($name:ident)*) => {
        &[$((libc::$name, stringify!($name))),*]
    };
}

/// One name for each number.
const NAMES: &[(libc::c_int, &str)] = named! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST
    EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM
    ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENOMSG EIDRM ENOSTR ENODATA ETIME ENOSR ENOLINK
    EPROTO EMULTIHOP EBADMSG EOVERFLOW EILSEQ EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT
    EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN
    ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT
    ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED ENOKEY
    EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON
};

/// Kernel-internal errors of an interrupted call that will be restarted (`include/linux/errno.h`). They are the same
/// on all architectures.
const RESTARTED: &[(libc::c_int, &str)] =
    &[(512, "ERESTARTSYS"), (513, "ERESTARTNOINTR"), (514, "ERESTARTNOHAND"), (516, "ERESTART_RESTARTBLOCK")];

/// The name of an error; `None` if it is newer than this list.
pub fn name(number: u32) -> Option<&'static str> {
    let mut all = NAMES.iter().chain(RESTARTED);
    all.find(|(known, _)| u32::try_from(*known) == Ok(number)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_names_and_no_number_has_two() {
        assert_eq!((name(2), name(11), name(512)), (Some("ENOENT"), Some("EAGAIN"), Some("ERESTARTSYS")));
        assert_eq!((name(0), name(u32::MAX)), (None, None));
        let mut numbers: Vec<_> = NAMES.iter().chain(RESTARTED).map(|(number, _)| number).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }
}
