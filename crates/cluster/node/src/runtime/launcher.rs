//! The node's side of `container-init`: one helper process, which forks a keeper for each container and each exec.
//!
//! The helper is small and has one thread, so its forks are cheap. A fork of the node itself would cost time in
//! proportion to the node's memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::MemfdFlags;
use tokio::io::{AsyncBufReadExt, BufReader, Interest, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use super::container::StartError;
use super::container_init;
use super::handover::Handover;
use super::plan::{Answer, Plan};

/// How long the helper may take to fork a keeper, and the keeper to start a command, on a busy machine. Every start and
/// exec waits for its turn, so a helper that does not answer is replaced.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Launcher {
    helper: Mutex<Option<Helper>>,
}

/// A started process.
pub(super) struct Launched {
    pub(super) pid: u32,
    pub(super) keeper: u32,
    /// Shutting down its write side ends the process. The keeper then sends the exit code, as `i32`.
    pub(super) life: UnixStream,
}

impl Launcher {
    pub(super) async fn launch(&self, plan: &Plan, stdio: [OwnedFd; 3]) -> Result<Launched, StartError> {
        let (answers, to_answer) = io::pipe()?;
        let (life, keepers) = UnixStream::pair()?;
        let (plan, life_of_keeper) = (in_memory(plan)?, keepers.into_std()?.into());
        let handover = Handover { plan, answers: to_answer.into(), life: life_of_keeper, stdio };
        let mut answers = BufReader::new(pipe::Receiver::from_owned_fd(answers.into())?).lines();
        let keeper = self.hand_over(handover, &mut answers).await?;
        // Dropping `life` ends a process that hangs before its command runs, in a mount for example.
        match tokio::time::timeout(HELPER_TIMEOUT, started(&mut answers)).await {
            Ok(pid) => Ok(Launched { pid: pid?, keeper, life }),
            Err(_) => Err(StartError(format!("the command did not start within {HELPER_TIMEOUT:?}"))),
        }
    }

    /// Returns the keeper's pid. The lock is held until the keeper answers: the kernel limits how many descriptors a
    /// user has in sockets.
    async fn hand_over(&self, handover: Handover, answers: &mut Answers) -> Result<u32, StartError> {
        let mut helper = self.helper.lock().await;
        let answer = async {
            if send(&handover, Helper::running(&mut helper)?).await.is_err() {
                // The helper was ending. Nothing arrived, so a new one can be asked.
                Helper::kill(&mut helper);
                send(&handover, Helper::running(&mut helper)?).await?;
            }
            drop(handover);
            next(answers).await
        };
        let Ok(answer) = tokio::time::timeout(HELPER_TIMEOUT, answer).await else {
            Helper::kill(&mut helper);
            return Err(StartError(format!("container-init did not answer within {HELPER_TIMEOUT:?}")));
        };
        match answer? {
            Some(Answer::Keeper(pid)) => Ok(pid),
            Some(Answer::Error(error)) => Err(StartError(error)),
            Some(Answer::Pid(_)) | None => Err(no_answer()),
        }
    }
}

/// The process, once its command runs. An error may come after the pid: two processes answer. The end of the answers means
/// that the command runs.
async fn started(answers: &mut Answers) -> Result<u32, StartError> {
    let mut started = None;
    while let Some(answer) = next(answers).await? {
        match answer {
            Answer::Pid(pid) => started = Some(pid),
            Answer::Error(error) => return Err(StartError(error)),
            Answer::Keeper(_) => return Err(no_answer()),
        }
    }
    started.ok_or_else(no_answer)
}

async fn send(handover: &Handover, socket: &UnixStream) -> io::Result<()> {
    socket.async_io(Interest::WRITABLE, || handover.send(socket)).await
}

struct Helper {
    process: Child,
    /// The helper ends when this closes.
    socket: UnixStream,
}

impl Helper {
    /// The socket of the helper, which is started if there is none or if it has ended.
    fn running(helper: &mut Option<Helper>) -> io::Result<&UnixStream> {
        let ended = match helper {
            Some(helper) => helper.process.try_wait()?.is_some(),
            None => true,
        };
        let running = helper.take().filter(|_| !ended).map_or_else(Helper::start, Ok)?;
        Ok(&helper.insert(running).socket)
    }

    /// The next launch starts another one. The kernel ends a killed helper even if it is stopped; its keepers go on.
    fn kill(helper: &mut Option<Helper>) {
        if let Some(mut helper) = helper.take() {
            // It may have ended already.
            let _ = helper.process.start_kill();
        }
    }

    /// Without `pre_exec` this does not fork the node, but lets the system spawn the process.
    fn start() -> io::Result<Helper> {
        let (socket, of_helper) = StdUnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let process = Command::new("/proc/self/exe")
            .arg(container_init::SUBCOMMAND)
            .stdin(Stdio::from(OwnedFd::from(of_helper)))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Helper { process, socket: UnixStream::from_std(socket)? })
    }
}

type Answers = Lines<BufReader<pipe::Receiver>>;

async fn next(answers: &mut Answers) -> io::Result<Option<Answer>> {
    let line = answers.next_line().await?;
    Ok(line.map(|line| serde_json::from_str(&line)).transpose()?)
}

fn no_answer() -> StartError {
    StartError("container-init ended without an answer".to_owned())
}

fn in_memory(plan: &Plan) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("plan", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(plan)?)?;
    Ok(file.into())
}
