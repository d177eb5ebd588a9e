//! A note of every exec under way, in a folder: whoever comes after a crash ends what the dead one had started.
//!
//! A command is in nobody's hands when its agent dies, and goes on: what it does after its undo would stay. What was
//! left running on purpose, by a command that ended by itself, has no note any more and is let be. A note need not
//! outlast the machine, so it is not forced to the disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use boathook_process::{Identity, LeftBehind, private};
use futures::future::join_all;

use super::{gate, hold};

/// The notes of one agent.
#[derive(Clone, Debug)]
pub struct Notes {
    dir: Arc<PathBuf>,
    /// Which boot this is: a process of another one has ended.
    boot: Arc<str>,
}

/// One exec's. It stays when this is dropped: then nobody knows whether the exec has ended.
#[derive(Debug)]
pub(super) struct Note {
    path: PathBuf,
}

impl Notes {
    /// The notes of this folder, which is made if it is not there. It is nobody else's.
    pub fn open(dir: &Path, boot: &str) -> io::Result<Self> {
        private::directory(dir)?;
        Ok(Self { dir: Arc::new(dir.to_owned()), boot: boot.into() })
    }

    /// Ends all that an earlier process began here and did not see the end of.
    pub async fn end_left_behind(&self) -> io::Result<()> {
        let paths: Vec<_> =
            fs::read_dir(self.dir.as_path())?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        join_all(paths.into_iter().map(|path| self.end(path))).await;
        Ok(())
    }

    async fn end(&self, path: PathBuf) {
        match self.left_behind(&path) {
            Some(left) => {
                let pid = left.first.pid;
                if let Err(error) = left.end().await {
                    // It is tried again by the next.
                    tracing::error!(pid, %error, "failed to end a command of an earlier agent: it may still run");
                    return;
                }
                tracing::warn!(pid, "ended a command of an earlier agent");
            }
            None => tracing::debug!(path = %path.display(), "removed the outdated record of an exec"),
        }
        Note { path }.close();
    }

    /// `None`: it was half written, before the command could begin, or is of another boot.
    fn left_behind(&self, path: &Path) -> Option<LeftBehind> {
        let id = path.file_name()?.to_str()?;
        let text = fs::read_to_string(path).ok()?;
        let mut words = text.strip_suffix('\n')?.split(' ');
        let (boot, pid, started) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let first = Identity { pid, started };
        (boot == &*self.boot).then(|| LeftBehind { first, mark: gate::mark(id), cgroup: hold::cgroup_name(id) })
    }

    /// Before the command begins. Without a note it runs all the same: an undo must, on a full disk too.
    pub(super) fn write(&self, id: &str, first: Identity) -> Note {
        let path = self.dir.join(id);
        let Identity { pid, started } = first;
        if let Err(error) = private::write(&path, format!("{} {pid} {started}\n", self.boot).as_bytes()) {
            tracing::warn!(path = %path.display(), %error, "failed to record an exec: it would keep running after a \
                                                            crash of the agent");
        }
        Note { path }
    }
}

impl Note {
    /// It has ended, or is let be.
    pub(super) fn close(self) {
        match fs::remove_file(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(path = %self.path.display(), %error, "failed to remove the record of an exec"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use boathook_process::Process;

    use super::*;

    /// Killed with the test, however that ends.
    struct Sleeper(Child);

    impl Sleeper {
        fn new() -> Self {
            Self(Command::new("sleep").arg("1000").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
        }

        fn identity(&self) -> Identity {
            Process::of(i32::try_from(self.0.id()).unwrap()).unwrap().identity
        }

        fn runs(&mut self) -> bool {
            self.0.try_wait().unwrap().is_none()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }

    #[tokio::test]
    async fn what_was_under_way_is_ended_and_what_was_let_be_is_not() {
        let dir = std::env::temp_dir().join(format!("boathook-notes-{}", std::process::id()));
        let (mut under_way, mut let_be, mut of_another_boot) = (Sleeper::new(), Sleeper::new(), Sleeper::new());
        Notes::open(&dir, "earlier").unwrap().write("c", of_another_boot.identity());
        let notes = Notes::open(&dir, "now").unwrap();
        notes.write("a", under_way.identity());
        notes.write("b", let_be.identity()).close();
        fs::write(dir.join("d"), "now 1").unwrap();
        notes.end_left_behind().await.unwrap();
        assert!(!under_way.runs() && let_be.runs() && of_another_boot.runs());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir_all(dir).unwrap();
    }
}
