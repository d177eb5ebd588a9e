//! A pseudo-terminal: its one end is a process's streams, the other the node's.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

/// The node's end, to set its size.
pub struct Terminal(OwnedFd);

/// A new terminal: its size, its output, its input, and the end that the process gets. It is one of the container's
/// own if `within` names a process there: only then can programs find its name.
pub(super) fn open(within: Option<u32>) -> io::Result<(Terminal, Screen, pipe::Sender, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let theirs = within.and_then(|process| {
        let multiplexer = format!("/proc/{process}/root/dev/pts/ptmx");
        rustix::fs::open(multiplexer, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).ok()
    });
    let node = theirs.map_or_else(|| rustix::pty::openpt(flags), Ok)?;
    rustix::pty::grantpt(&node)?;
    rustix::pty::unlockpt(&node)?;
    let process = rustix::pty::ioctl_tiocgptpeer(&node, flags)?;
    rustix::io::ioctl_fionbio(&node, true)?;
    // Not pipes, but read and written in the same way.
    let screen = pipe::Receiver::from_owned_fd_unchecked(node.try_clone()?)?;
    let keyboard = pipe::Sender::from_owned_fd_unchecked(node.try_clone()?)?;
    Ok((Terminal(node), Screen(screen), keyboard, process))
}

impl Terminal {
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(&self.0, size)?)
    }
}

/// What the process writes.
pub(super) struct Screen(pipe::Receiver);

impl AsyncRead for Screen {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.0).poll_read(context, buffer) {
            // How a terminal says that no process holds its other end any more.
            Poll::Ready(Err(error)) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }
}
