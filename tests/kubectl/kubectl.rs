//! Running the real kubectl as a person does: in a folder of its own, a command as it is typed.
//!
//! Every command has a deadline, and what it prints a cap. One that ends otherwise than expected is shown whole:
//! the command, its exit code, both outputs.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, anyhow, ensure};
use boathook_tests::{Ctx, DEADLINE, poll::Look};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};

use crate::running::Running;

/// More than any command here prints.
pub(crate) const CAP: u64 = 8 << 20;

/// The file in a scenario's folder that `kubectl edit` runs.
pub(crate) const EDITOR: &str = "editor";

/// A scenario's kubectl: it works in the scenario's namespace, and in a folder that goes with it. The folder is its
/// home too, so that nothing is left in or read from a person's.
pub(crate) struct Kubectl {
    ctx: Ctx,
    folder: PathBuf,
}

/// How a command ended, and what it printed.
pub(crate) struct Outcome {
    command: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Kubectl {
    pub(crate) fn new(ctx: &Ctx) -> Result<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(ctx.namespace());
        std::fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        Ok(Self { ctx: ctx.clone(), folder })
    }

    /// The scenario's namespace.
    pub(crate) fn namespace(&self) -> &str {
        self.ctx.namespace()
    }

    /// The path of a file in the folder where commands run.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file there, for `-f NAME`.
    pub(crate) fn file(&self, name: &str, contents: &str) -> Result<()> {
        std::fs::write(self.path(name), contents).with_context(|| format!("failed to write `{name}`"))
    }

    /// What the command prints; it must end with 0.
    pub(crate) async fn ok(&self, line: &str) -> Result<String> {
        self.run(line, None).await?.success()
    }

    /// What the command says on stderr; it must end with 1.
    pub(crate) async fn fails(&self, line: &str) -> Result<String> {
        self.run(line, None).await?.failure(1)
    }

    /// `kubectl apply -f -` of this text.
    pub(crate) async fn apply(&self, manifest: &str) -> Result<String> {
        self.run("apply -f -", Some(manifest.as_bytes())).await?.success()
    }

    /// A field of an object, as jsonpath: `read("deployment/web", "{.spec.replicas}")`.
    pub(crate) async fn read(&self, object: &str, path: &str) -> Result<String> {
        self.ok(&format!("get {object} -o 'jsonpath={path}'")).await
    }

    /// Runs the command again and again until its output is as wanted; for what no `kubectl wait` can say.
    pub(crate) async fn until(&self, line: &str, what: &str, met: impl Fn(&Outcome) -> bool) -> Result<Outcome> {
        let look = async || {
            let outcome = self.run(line, None).await?;
            Ok(if met(&outcome) { Look::Done(outcome) } else { Look::NotYet(outcome.to_string()) })
        };
        self.ctx.poll_until(DEADLINE, what, look).await
    }

    /// Runs the command again and again until its output has all of these parts: of what several programs write, the
    /// last is written at no certain time.
    pub(crate) async fn shows(&self, line: &str, parts: &[&str]) -> Result<String> {
        let look = async || {
            let outcome = self.run(line, None).await?;
            Ok(match has(&outcome.stdout, parts) {
                Ok(()) => Look::Done(outcome.stdout),
                Err(missing) => Look::NotYet(format!("{missing}\n--- stderr\n{}", outcome.stderr)),
            })
        };
        self.ctx.poll_until(DEADLINE, &format!("`kubectl {line}` shows all that it should"), look).await
    }

    /// Runs a command to its end, whatever that is.
    pub(crate) async fn run(&self, line: &str, stdin: Option<&[u8]>) -> Result<Outcome> {
        timeout(DEADLINE, self.finish(line, stdin))
            .await
            .with_context(|| format!("`kubectl {line}` did not end within {DEADLINE:?}"))?
            .with_context(|| format!("failed to run `kubectl {line}`"))
    }

    async fn finish(&self, line: &str, stdin: Option<&[u8]>) -> Result<Outcome> {
        let mut command = self.command(line)?;
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let keyboard = child.stdin.take();
        let feed = async {
            if let Some(mut keyboard) = keyboard {
                // A command may end without reading it all.
                let _ = keyboard.write_all(stdin.unwrap_or_default()).await;
            }
            Ok(())
        };
        let (stdout, stderr) = (child.stdout.take().context("no stdout")?, child.stderr.take().context("no stderr")?);
        let (stdout, stderr, ()) = tokio::try_join!(read(stdout), read(stderr), feed)?;
        let status = child.wait().await?;
        Ok(Outcome { command: line.to_owned(), code: status.code(), stdout, stderr })
    }

    /// Starts a command that goes on until it is told to end, such as `get -w`.
    pub(crate) fn start(&self, line: &str) -> Result<Running> {
        Running::start(self.command(line)?, line)
    }

    /// The command of a line: words that spaces part, single quotes hold together.
    pub(crate) fn command(&self, line: &str) -> Result<Command> {
        let mut command = Command::new("kubectl");
        command.args(["--namespace", self.namespace()]).args(words(line)?);
        if line.starts_with("wait ") && !line.contains("--timeout") {
            // kubectl's default of 30 s is too short on a busy machine.
            command.arg(format!("--timeout={}s", DEADLINE.as_secs()));
        }
        command.current_dir(&self.folder).env("HOME", &self.folder).kill_on_drop(true);
        command.env("EDITOR", self.path(EDITOR)).env_remove("KUBE_EDITOR");
        Ok(command)
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        // A scenario that failed has said why already.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Outcome {
    pub(crate) fn success(self) -> Result<String> {
        ensure!(self.code == Some(0), "a command failed\n{self}");
        Ok(self.stdout)
    }

    pub(crate) fn failure(self, code: i32) -> Result<String> {
        ensure!(self.code == Some(code), "a command did not end with {code}\n{self}");
        Ok(self.stderr)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, code, stdout, stderr } = self;
        write!(f, "$ kubectl {command}\n[exit code {code:?}]\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

async fn read(from: impl AsyncRead + Unpin) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(CAP + 1).read_to_end(&mut bytes).await?;
    ensure!(bytes.len() as u64 <= CAP, "it printed more than {CAP} bytes");
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn words(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    ensure!(!quoted, "a quote is not closed in: {line}");
    words.extend(word);
    Ok(words)
}

/// A table's lines as words. `kubectl get` aligns columns by spaces.
pub(crate) fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

/// Fails unless the text has every one of these parts. How many spaces align a column is not looked at: that is
/// kubectl's own doing.
pub(crate) fn has(text: &str, parts: &[&str]) -> Result<()> {
    let squeezed = squeeze(text);
    match parts.iter().find(|part| !squeezed.contains(&squeeze(part))) {
        None => Ok(()),
        Some(missing) => Err(anyhow!("`{missing}` is not in:\n{text}")),
    }
}

fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    for character in text.chars() {
        if character != ' ' || !squeezed.ends_with(' ') {
            squeezed.push(character);
        }
    }
    squeezed
}
