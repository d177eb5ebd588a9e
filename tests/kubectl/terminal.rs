//! A terminal for kubectl, as a person has one: what is typed, and what the screen shows.

use std::{fs::File, io::Read, os::fd::OwnedFd};

use anyhow::{Context, Result, anyhow, ensure};
use boathook_tests::DEADLINE;
use rustix::{
    pty::OpenptFlags,
    termios::{Winsize, tcsetwinsize},
};
use tokio::{
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};

/// More than any screen here shows.
const CAP: usize = 1 << 20;

/// A size that no default is, to be found again in the container.
const SIZE: Winsize = Winsize { ws_row: 33, ws_col: 111, ws_xpixel: 0, ws_ypixel: 0 };

pub(crate) struct Terminal {
    ours: OwnedFd,
    child: Child,
    screen: mpsc::UnboundedReceiver<Vec<u8>>,
    seen: String,
    read: usize,
}

impl Terminal {
    /// Starts a command whose three streams are a new terminal.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = rustix::pty::openpt(flags).context("failed to open a terminal")?;
        rustix::pty::grantpt(&ours)?;
        rustix::pty::unlockpt(&ours)?;
        let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags)?;
        tcsetwinsize(&ours, SIZE)?;
        command.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs);
        let child = command.spawn().context("failed to start kubectl")?;
        // The command holds copies of the terminal's other end: with them goes the last, and the reading ends.
        drop(command);
        let (sender, screen) = mpsc::unbounded_channel();
        let mut reader = File::from(ours.try_clone()?);
        std::thread::spawn(move || {
            let mut total = 0;
            let mut buffer = [0; 4096];
            while let Ok(count) = reader.read(&mut buffer) {
                total += count;
                if count == 0 || total > CAP || sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { ours, child, screen, seen: String::new(), read: 0 })
    }

    /// Types this.
    pub(crate) fn keys(&self, text: &str) -> Result<()> {
        let written = rustix::io::write(&self.ours, text.as_bytes()).context("failed to type")?;
        ensure!(written == text.len(), "only {written} bytes of `{text}` were taken");
        Ok(())
    }

    /// Waits until the screen shows this, after what was waited for before.
    pub(crate) async fn shows(&mut self, text: &str) -> Result<()> {
        let shown = timeout(DEADLINE, async {
            loop {
                if let Some(at) = self.seen[self.read..].find(text) {
                    self.read += at + text.len();
                    return Ok(());
                }
                let more = self.screen.recv().await.context("the command ended")?;
                // Everything typed and printed here is ASCII, so no character is cut.
                self.seen += &String::from_utf8_lossy(&more);
            }
        });
        shown.await.context("the deadline passed").flatten().map_err(|error: anyhow::Error| {
            anyhow!("the screen does not show `{text}`: {error:#}; all it showed:\n{}", self.seen)
        })
    }

    /// Waits for the command's end: its exit code.
    pub(crate) async fn exit_code(mut self) -> Result<i32> {
        let status = timeout(DEADLINE, self.child.wait()).await.context("the command did not end")??;
        status.code().with_context(|| format!("the command was killed; the screen showed:\n{}", self.seen))
    }
}
