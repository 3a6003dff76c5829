//! The signal mask and the dispositions of this process.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr;

use super::check;

fn all() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call initialises the whole set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Blocks all signals of this thread for as long as it lives.
pub(super) struct AllBlocked {
    before: libc::sigset_t,
}

impl AllBlocked {
    pub fn new() -> io::Result<Self> {
        let set = all();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are of this function, and `before` is initialised when the call succeeds.
        unsafe {
            match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, before.as_mut_ptr()) {
                0 => Ok(Self { before: before.assume_init() }),
                errno => Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }
}

impl Drop for AllBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is one that the kernel gave. With a valid set the call cannot fail.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
        }
    }
}

/// The signals of a process, as things to read rather than interruptions.
#[derive(Debug)]
pub(crate) struct Arrivals {
    descriptor: OwnedFd,
}

impl Arrivals {
    /// Blocks all signals for good; they are read from here instead.
    pub fn new() -> io::Result<Self> {
        let set = all();
        // SAFETY: the set is initialised, and the kernel returns a descriptor that nobody else owns.
        unsafe {
            check(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut()))?;
            let number = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            Ok(Self { descriptor: OwnedFd::from_raw_fd(number) })
        }
    }

    /// The next signal, if one has arrived.
    pub fn next(&self) -> io::Result<Option<i32>> {
        let mut record = [0_u8; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.descriptor, &mut record) {
            // The record begins with the number of the signal.
            Ok(_) => Ok(Some(i32::from_ne_bytes([record[0], record[1], record[2], record[3]]))),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Gives every signal its default effect and blocks none, as a new program expects.
pub(crate) fn reset_all() -> io::Result<()> {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the default disposition runs no code of this process. Numbers that cannot be set are refused, which
        // is as good.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    let mut none = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set that the second one reads.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        check(libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut())).map(drop)
    }
}
