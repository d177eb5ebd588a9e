//! Somebody who follows a page: with a home of their own, a terminal, and `boathook` and kubectl on the PATH.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::TOP;

/// Far more than any command here takes, on a machine that compiles on all cores meanwhile.
const DEADLINE: Duration = Duration::from_secs(600);

/// What `boathook up` says when it serves.
const READY: &str = "ready: export KUBECONFIG=";

pub(super) struct Person {
    home: PathBuf,
    kubeconfig: Option<String>,
    /// Killed with this.
    cluster: Option<Child>,
}

impl Person {
    pub(super) fn new(page: &str) -> Self {
        let name = page.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
        let home = std::env::temp_dir().join(format!("boathook-docs-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(home.join(".local/bin")).unwrap();
        symlink(fs::canonicalize(TOP).unwrap().join("deploy"), home.join("deploy")).unwrap();
        Self { home, kubeconfig: None, cluster: None }
    }

    pub(super) fn write(&self, file: &str, text: &str) {
        fs::write(self.home.join(file), text).unwrap();
    }

    /// Types a command: whether it succeeded, and what the screen shows.
    pub(super) async fn types(&mut self, line: &str) -> (bool, String) {
        match line.starts_with("boathook up") {
            true => (true, self.starts(line).await),
            false => self.runs(line).await,
        }
    }

    async fn runs(&self, line: &str) -> (bool, String) {
        let running = self.shell(&format!("exec 2>&1\n{line}")).output();
        let ended = timeout(DEADLINE, running).await.unwrap_or_else(|_| panic!("`{line}` does not end")).unwrap();
        (ended.status.success(), String::from_utf8(ended.stdout).unwrap())
    }

    /// A cluster goes on in a terminal of its own; what it says when it is ready is done here.
    async fn starts(&mut self, line: &str) -> String {
        let mut command = self.shell(&format!("exec {line}"));
        let log = fs::File::options().create(true).append(true).open(self.log()).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut screen = BufReader::new(child.stdout.take().unwrap());
        self.cluster = Some(child);
        let mut said = String::new();
        timeout(DEADLINE, screen.read_line(&mut said)).await.expect("the cluster does not start").unwrap();
        let kubeconfig = said.trim().strip_prefix(READY).unwrap_or_else(|| panic!("it said {said:?}"));
        self.kubeconfig = Some(kubeconfig.to_owned());
        said
    }

    /// What the cluster wrote on stderr. Several pages are followed at once: it is shown with the failure of its page.
    fn log(&self) -> PathBuf {
        self.home.join("up.log")
    }

    fn shell(&self, script: &str) -> Command {
        let (home, path) = (self.home.display(), std::env::var("PATH").unwrap());
        // Where it was built: this home is in `/tmp`, of which every container has one of its own, and pods run it too.
        let boathook = Path::new(env!("CARGO_BIN_EXE_boathook")).parent().unwrap().display();
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).current_dir(&self.home).stdin(Stdio::null()).kill_on_drop(true);
        command.env("HOME", &self.home).env("PATH", format!("{boathook}:{home}/.local/bin:{path}"));
        command.env_remove("XDG_DATA_HOME").env_remove("KUBECONFIG");
        command.envs(self.kubeconfig.iter().map(|file| ("KUBECONFIG", file)));
        command
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // The cluster first: it is killed, and takes its pods along.
        drop(self.cluster.take());
        if std::thread::panicking() {
            eprintln!("--- stderr of `boathook up`\n{}", fs::read_to_string(self.log()).unwrap_or_default());
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}
