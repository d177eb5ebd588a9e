//! A terminal for a command, as a person has one: all that the screen was sent.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use rustix::pty::OpenptFlags;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// More than any screen here shows.
const CAP: u64 = 1 << 20;

pub(super) struct Terminal {
    child: Child,
    screen: JoinHandle<Vec<u8>>,
}

impl Terminal {
    /// Starts a command whose three streams are a new terminal.
    pub(super) fn start(mut command: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&ours).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags).unwrap();
        tcsetwinsize(&ours, Winsize { ws_row: 33, ws_col: 111, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = command.spawn().unwrap();
        // The command holds copies of the terminal's other end: with them goes the last, and the reading ends.
        drop(command);
        let screen = tokio::task::spawn_blocking(move || {
            let mut shown = Vec::new();
            // A terminal whose other end is gone is read to its end by an error.
            let _ = File::from(ours).take(CAP).read_to_end(&mut shown);
            shown
        });
        Self { child, screen }
    }

    /// All that was shown until the command's end.
    pub(super) async fn read(mut self, deadline: Duration) -> String {
        tokio::time::timeout(deadline, self.child.wait()).await.expect("the command does not end").unwrap();
        String::from_utf8(self.screen.await.unwrap()).unwrap()
    }
}
