//! Starts this program again as a helper, in new namespaces.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use parking_lot::{Mutex, MutexGuard};
use rustix::pipe::{PipeFlags, pipe_with};

use super::check;
use super::descriptor::HELPER_CHANNEL;
use super::signal::AllBlocked;

/// At most one helper waits at its gate at a time. A second one would hold a copy of the first one's gate, and neither
/// would notice the end of this process.
static AT_THE_GATE: Mutex<()> = Mutex::new(());

/// Which new namespaces a helper is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// None.
    None,
    /// Those of a container, in the user namespace of this process.
    Container,
    /// A user namespace with all others in it.
    User,
}

impl Namespaces {
    fn flags(self) -> libc::c_int {
        let container = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        match self {
            Self::None => 0,
            Self::Container => container,
            Self::User => container | libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
        }
    }
}

/// A started helper.
#[derive(Debug)]
pub(crate) struct Helper {
    pub pid: i32,
    pub pidfd: OwnedFd,
}

/// What keeps a helper from running. It ends without having run when this is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    entrance: OwnedFd,
    _only: MutexGuard<'static, ()>,
}

impl Gate {
    /// Lets the helper run.
    pub fn open(self) -> io::Result<()> {
        rustix::io::write(&self.entrance, &[1])?;
        Ok(())
    }
}

/// Starts this program with `name` as its only argument, an empty environment and `channel` as [`HELPER_CHANNEL`]. It
/// waits until the gate is opened, as the user and group maps of a new user namespace must be written before it runs.
pub(crate) fn start_helper(name: &CStr, namespaces: Namespaces, channel: BorrowedFd<'_>) -> io::Result<(Helper, Gate)> {
    let only = AT_THE_GATE.lock();
    let (exit, entrance) = pipe_with(PipeFlags::CLOEXEC)?;
    let title = CString::new("skep")?;
    let argv = [title.as_ptr(), name.as_ptr(), ptr::null()];
    let envp = [ptr::null()];
    let mut pidfd: libc::c_int = -1;
    let mut arguments = clone_arguments(namespaces, &mut pidfd);
    let blocked = AllBlocked::new()?;
    // SAFETY: without CLONE_VM the child has a copy of the memory and a stack of its own, as after fork. The parent may
    // have threads, so the child calls only functions that are safe after fork in such a process: `run_child` neither
    // allocates nor locks, and never returns. Signals are blocked, so that no handler of the parent runs in it.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>()) };
    if pid == 0 {
        // SAFETY: this is the child; the pointers are into arrays above that end with null and live as long as it.
        unsafe { run_child(exit.as_raw_fd(), entrance.as_raw_fd(), channel.as_raw_fd(), argv.as_ptr(), envp.as_ptr()) }
    }
    let pid = check(pid);
    drop(blocked);
    let pid = i32::try_from(pid?).map_err(io::Error::other)?;
    // SAFETY: the kernel has stored a descriptor that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok((Helper { pid, pidfd }, Gate { entrance, _only: only }))
}

fn clone_arguments(namespaces: Namespaces, pidfd: &mut libc::c_int) -> libc::clone_args {
    // SAFETY: the structure consists of integers, for which zero is a value.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = u64::from((namespaces.flags() | libc::CLONE_PIDFD).cast_unsigned());
    arguments.pidfd = ptr::from_mut(pidfd) as u64;
    arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    arguments
}

/// The child until it is another program.
///
/// # Safety
///
/// Must be called in the child only, with arrays of C strings that end with null.
unsafe fn run_child(
    gate: RawFd,
    entrance: RawFd,
    channel: RawFd,
    argv: *const *const libc::c_char,
    envp: *const *const libc::c_char,
) -> ! {
    let mut opened = 0_u8;
    // SAFETY: all of these are plain system calls on descriptors that the child has copies of, and on memory that is
    // its own. Closing its copy of the entrance lets the read end when the parent is gone.
    unsafe {
        libc::close(entrance);
        if libc::read(gate, (&raw mut opened).cast(), 1) == 1 {
            let passed = if channel == HELPER_CHANNEL {
                libc::fcntl(channel, libc::F_SETFD, 0)
            } else {
                libc::dup2(channel, HELPER_CHANNEL)
            };
            if passed != -1 {
                libc::execve(c"/proc/self/exe".as_ptr(), argv, envp);
            }
        }
        libc::_exit(127)
    }
}
