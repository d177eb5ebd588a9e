//! What a process says: kept in a file, and its last lines in memory, to be waited for and to be shown.

use std::{
    collections::VecDeque,
    fs::File,
    io::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::watch,
};

/// How many lines a failure shows of each process.
const SHOWN: usize = 40;

/// The log of one process; cheap to copy.
#[derive(Clone)]
pub struct Log {
    path: PathBuf,
    kept: Arc<Mutex<Kept>>,
    /// How many lines there were so far.
    count: watch::Sender<usize>,
}

struct Kept {
    file: File,
    last: VecDeque<String>,
}

impl Log {
    pub(super) fn new(path: PathBuf) -> Result<Self> {
        let file = File::create(&path).with_context(|| format!("failed to make `{}`", path.display()))?;
        let kept = Arc::new(Mutex::new(Kept { file, last: VecDeque::new() }));
        Ok(Self { path, kept, count: watch::Sender::new(0) })
    }

    /// Takes what comes out of a process, to its end.
    pub(super) async fn keep(self, from: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            self.add(line);
        }
    }

    /// Waits until one of the last lines begins with this, and returns its rest.
    pub(super) async fn says(&self, wanted: &str) -> String {
        let mut count = self.count.subscribe();
        loop {
            let rest = self.lock().last.iter().find_map(|line| Some(line.strip_prefix(wanted)?.to_owned()));
            match rest {
                Some(rest) => return rest,
                // It changes while this log lives, which sends.
                None => _ = count.changed().await,
            }
        }
    }

    /// Whether a line so far begins with this.
    pub fn has_said(&self, wanted: &str) -> Result<bool> {
        let path = &self.path;
        let text = std::fs::read_to_string(path).with_context(|| format!("failed to read `{}`", path.display()))?;
        Ok(text.lines().any(|line| line.starts_with(wanted)))
    }

    /// The last lines, under a title.
    pub fn tail(&self) -> String {
        let lines: Vec<_> = self.lock().last.iter().cloned().collect();
        let lines = if lines.is_empty() { "(nothing)".to_owned() } else { lines.join("\n") };
        format!("--- `{}` ends with\n{lines}\n", self.path.display())
    }

    fn add(&self, line: String) {
        let mut kept = self.lock();
        // A log that cannot be written is no reason to fail; the lines in memory are there still.
        let _ = writeln!(kept.file, "{line}");
        if kept.last.len() == SHOWN {
            kept.last.pop_front();
        }
        kept.last.push_back(line);
        drop(kept);
        self.count.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        // It is whole between two lines.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_is_waited_for_and_the_last_ones_are_shown() {
        let path = std::env::temp_dir().join(format!("boathook-log-{}", std::process::id()));
        let log = Log::new(path.clone()).unwrap();
        let (waiting, waited) = (log.clone(), log.clone());
        let said = tokio::spawn(async move { waiting.says("lead").await });
        let text: String = (0..SHOWN).map(|number| format!("line {number}\n")).collect();
        waited.keep(format!("{text}leading\n").as_bytes()).await;
        assert_eq!(said.await.unwrap(), "ing");
        let tail = log.tail();
        assert!(log.has_said("line 0").unwrap() && !log.has_said("0").unwrap());
        assert!(tail.ends_with("\nleading\n") && !tail.contains("line 0\n"), "{tail}");
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("line 0\n"));
        std::fs::remove_file(path).unwrap();
    }
}
