//! A held session: a command that has said that it is ready, and whose streams stay open until it is released.
//!
//! Whatever it prints is read all the time, so that it is never held up and its end is seen at once. It ends by itself,
//! which is a loss; or because it was asked to; or, if nobody keeps it any more, with its streams.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use boathook_api::{
    action::Output,
    outcome::{Ended, Failure, Outcome},
    pod_notification::ErrorType,
    words::session::{READY, RELEASE},
};
use jiff::Timestamp;
use tokio::sync::{oneshot, watch};

use crate::{
    Cancel,
    exec::shown,
    outcome::Attempt,
    place::held::{Event, Streams},
    ready::Awaited,
    tail::Tail,
    until::{Stop, Until},
};

/// What is held, and where.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) command: Vec<String>,
    pub(crate) container_id: String,
}

/// A session that was ready. Dropped, it is let go: its streams are closed, and what can be ended is.
pub struct Session {
    ask: Mutex<Option<oneshot::Sender<Duration>>>,
    end: watch::Receiver<Option<SessionEnd>>,
    /// What may be shown of what it prints after it was asked to release.
    output: Output,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// Before it was asked to: how, for a person.
    Lost(String),
    /// It was asked to release.
    Asked {
        /// A failure where it said that it failed, or nobody knows whether it has ended.
        ended: Ended,
        /// What is wrong with how it ended, for a person: nothing but exit code 0 is right.
        complaint: Option<String>,
    },
}

impl Session {
    /// Waits until the command is ready, and keeps it from then on. The error is how the attempt ended without that.
    pub(crate) async fn begin(mut streams: Streams, exec: Held, until: &Until) -> Result<Self, Attempt> {
        let (mut output, mut ready) = (Tail::default(), Awaited::new(READY));
        let command = shown(&exec.command);
        let attempt = loop {
            match until.run(streams.next()).await {
                Ok(Event::Stdout(bytes)) => {
                    output.push(&bytes);
                    if ready.is_in(&bytes) {
                        return Ok(Self::kept(streams, exec));
                    }
                }
                Ok(Event::Stderr(bytes)) => output.push(&bytes),
                Ok(Event::Ended(verdict)) => break not_ready(streams.ended(verdict, &exec.command)),
                Ok(Event::Lost) => {
                    let lost = format!("the stream of {command} was lost before it printed {READY}");
                    break streams.end(Attempt::unknown(lost)).await;
                }
                Err(Stop::TimeOver) => {
                    let late = format!("{command} did not print the line {READY} within {:?}", until.limit());
                    break streams.end(Attempt::failed(ErrorType::HandlerTimeout, late)).await;
                }
                Err(Stop::Cancelled) => {
                    let cancelled = format!("{command} was cancelled before it printed {READY}");
                    break streams.end(Attempt::unknown(cancelled)).await;
                }
            }
        };
        Err(Attempt { output: output.into_text(), ..attempt })
    }

    fn kept(streams: Streams, exec: Held) -> Self {
        let (ask, asked) = oneshot::channel();
        let (end, ended) = watch::channel(None);
        tokio::spawn(async move {
            if let Some(how) = keep(streams, exec, asked).await {
                end.send_replace(Some(how));
            }
        });
        Self { ask: Mutex::new(Some(ask)), end: ended, output: Output::default() }
    }

    /// The same, of which this may be shown.
    pub(crate) fn showing(self, output: Output) -> Self {
        Self { output, ..self }
    }

    /// How it ended, if it has.
    pub fn end(&self) -> Option<SessionEnd> {
        let end = self.end.borrow().clone();
        // Whoever kept it goes without a word only if it broke down.
        end.or_else(|| self.end.has_changed().is_err().then(broken)).map(|end| end.showing(self.output))
    }

    /// Waits until it has ended, without keeping it from that.
    pub fn ended(&self) -> impl Future<Output = SessionEnd> + Send + use<> {
        let (mut end, output) = (self.end.clone(), self.output);
        async move {
            let ended = end.wait_for(Option::is_some).await.map(|end| end.clone());
            ended.ok().flatten().unwrap_or_else(broken).showing(output)
        }
    }

    /// Asks it to release and to end within this time, and waits for that. It is asked once; it may have ended already.
    pub async fn release(&self, within: Duration) -> SessionEnd {
        let ask = self.ask.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ask) = ask {
            // Nobody hears it any more: it has ended.
            let _ = ask.send(within);
        }
        self.ended().await
    }
}

impl SessionEnd {
    fn showing(self, output: Output) -> Self {
        match self {
            Self::Asked { ended, complaint } => {
                Self::Asked { ended: Ended { output: output.shown(ended.output), ..ended }, complaint }
            }
            Self::Lost(how) => Self::Lost(how),
        }
    }
}

fn broken() -> SessionEnd {
    SessionEnd::Lost("the executor panicked".to_owned())
}

/// A command that ended before it was ready has failed, however well it ended.
fn not_ready(attempt: Attempt) -> Attempt {
    let message = format!("{} before it printed the line {READY}", words(&attempt));
    let kind = attempt.outcome.failure().map_or(ErrorType::HandlerFailed, |failure| failure.kind);
    Attempt { outcome: Outcome::Failed(Failure::new(kind, message)), ..attempt }
}

/// Keeps it to its end. Nothing if nobody wants to know of that any more.
async fn keep(mut streams: Streams, exec: Held, mut asked: oneshot::Receiver<Duration>) -> Option<SessionEnd> {
    let within = loop {
        tokio::select! {
            biased;
            event = streams.next() => match event {
                Event::Stdout(_) | Event::Stderr(_) => {}
                Event::Ended(verdict) => {
                    return Some(SessionEnd::Lost(words(&streams.ended(verdict, &exec.command))));
                }
                Event::Lost => {
                    let lost = format!("the stream of {} was lost", shown(&exec.command));
                    return Some(SessionEnd::Lost(words(&streams.end(Attempt::unknown(lost)).await)));
                }
            },
            within = &mut asked => match within {
                Ok(within) => break within,
                Err(_) => {
                    streams.end(Attempt::succeeded()).await;
                    return None;
                }
            },
        }
    };
    let started = Timestamp::now();
    let attempt = release(streams, &exec.command, within).await;
    let complaint = (attempt.exit_code != Some(0)).then(|| words(&attempt));
    let Attempt { outcome, exit_code, output, container_id: _, process_may_remain } = attempt;
    // What is known to have ended holds nothing any more; but who says that it failed is believed.
    let outcome = if exit_code.is_none() && !process_may_remain { Outcome::Succeeded } else { outcome };
    let (container_id, completed) = (Some(exec.container_id), Timestamp::now());
    let ended = Ended { outcome, exit_code, output, container_id, attempts: 1, started, completed, process_may_remain };
    Some(SessionEnd::Asked { ended, complaint })
}

async fn release(mut streams: Streams, command: &[String], within: Duration) -> Attempt {
    let until = Until::within(within, Cancel::new());
    let mut output = Tail::default();
    // If this fails the stream ends without a status, and if it is late everything is.
    until.run(streams.write_last(&format!("{RELEASE}\n"))).await.ok();
    let attempt = loop {
        match until.run(streams.next()).await {
            Ok(Event::Stdout(bytes) | Event::Stderr(bytes)) => output.push(&bytes),
            Ok(Event::Ended(verdict)) => break streams.ended(verdict, command),
            Ok(Event::Lost) => {
                let lost = format!("the stream of {} ended without a status after {RELEASE}", shown(command));
                break streams.end(Attempt::unknown(lost)).await;
            }
            Err(Stop::TimeOver | Stop::Cancelled) => {
                let late = format!("{} did not end within {within:?} after {RELEASE}", shown(command));
                break streams.end(Attempt::failed(ErrorType::HandlerTimeout, late)).await;
            }
        }
    };
    Attempt { output: output.into_text(), ..attempt }
}

/// How it ended, for a person.
fn words(attempt: &Attempt) -> String {
    match attempt.outcome.failure() {
        Some(failure) => failure.message.clone(),
        None => "the command ended with exit code 0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::place::held::tests::Command;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(20);

    fn lock() -> Held {
        Held { command: vec!["lock".to_owned()], container_id: "containerd://1".to_owned() }
    }

    async fn begin(streams: Streams, limit: Duration) -> Result<Session, Attempt> {
        Session::begin(streams, lock(), &Until::within(limit, Cancel::new())).await
    }

    /// A command that is ready, and its session.
    async fn ready() -> (Command, Session) {
        let (mut command, streams) = Command::new();
        command.stdout.write_all(b"locking\r\nREADY\r\n").await.unwrap();
        (command, begin(streams, LONG).await.ok().unwrap())
    }

    #[tokio::test]
    async fn a_session_is_open_from_its_ready_until_it_is_released() {
        let (mut command, session) = ready().await;
        assert_eq!(session.end(), None);
        let releasing = session.release(LONG);
        let ending = async {
            let mut told = String::new();
            command.stdin.read_to_string(&mut told).await.unwrap();
            command.stdout.write_all(b"unlocked\n").await.unwrap();
            command.exits(0);
            told
        };
        let (end, told) = tokio::join!(releasing, ending);
        assert_eq!(told, "RELEASE\n");
        let SessionEnd::Asked { ended, complaint: None } = &end else { panic!("{end:?}") };
        assert_eq!(
            (&ended.outcome, ended.exit_code, ended.output.as_str()),
            (&Outcome::Succeeded, Some(0), "unlocked\n")
        );
        assert_eq!(ended.container_id.as_deref(), Some("containerd://1"));
        assert_eq!(session.end(), Some(end));
    }

    #[tokio::test]
    async fn output_of_a_release_is_hidden_if_asked() {
        for (output, shown) in [(Output::Tail, "secret\n"), (Output::None, "")] {
            let (mut command, session) = ready().await;
            let session = session.showing(output);
            let ending = async {
                command.stdin.read_to_string(&mut String::new()).await.unwrap();
                command.stdout.write_all(b"secret\n").await.unwrap();
                command.exits(0);
            };
            let (end, ()) = tokio::join!(session.release(LONG), ending);
            for end in [Some(end), session.end()] {
                let Some(SessionEnd::Asked { ended, complaint: None }) = end else { panic!("{end:?}") };
                assert_eq!(ended.output, shown);
            }
        }
    }

    #[tokio::test]
    async fn a_command_that_ends_before_it_is_ready_has_failed_however_it_ended() {
        for code in [0, 3] {
            let (mut command, streams) = Command::new();
            command.stderr.write_all(b"READY\n").await.unwrap();
            command.exits(code);
            let attempt = begin(streams, LONG).await.err().unwrap();
            assert_eq!((attempt.exit_code, attempt.output.as_str()), (Some(code), "READY\n"));
            let Outcome::Failed(failure) = attempt.outcome else { panic!("{:?}", attempt.outcome) };
            assert_eq!(failure.kind, ErrorType::HandlerFailed);
            assert!(failure.message.ends_with("before it printed the line READY"), "{}", failure.message);
        }
    }

    #[tokio::test]
    async fn a_command_that_is_not_ready_in_time_is_left() {
        let (command, streams) = Command::new();
        let attempt = begin(streams, SHORT).await.err().unwrap();
        assert!(attempt.process_may_remain);
        assert!(matches!(attempt.outcome, Outcome::Failed(failure) if failure.kind == ErrorType::HandlerTimeout));
        command.left().await;
    }

    #[tokio::test]
    async fn a_session_that_ends_by_itself_is_lost_and_a_later_release_finds_it_so() {
        let (command, session) = ready().await;
        command.exits(3);
        let end = session.ended().await;
        assert_eq!(end, SessionEnd::Lost("`lock` ended with exit code 3".to_owned()));
        assert_eq!(session.release(LONG).await, end);
        let (command, session) = ready().await;
        drop(command);
        let SessionEnd::Lost(how) = session.ended().await else { panic!("it was not lost") };
        assert!(how.starts_with("the stream of `lock` was lost"), "{how}");
    }

    #[tokio::test]
    async fn a_release_that_fails_or_hangs_is_told() {
        let (mut command, session) = ready().await;
        let ending = async {
            let mut told = String::new();
            command.stdin.read_to_string(&mut told).await.unwrap();
            command.exits(5);
        };
        let (end, ()) = tokio::join!(session.release(LONG), ending);
        let SessionEnd::Asked { ended, complaint: Some(complaint) } = end else { panic!("{end:?}") };
        assert!(matches!(ended.outcome, Outcome::Failed(_)) && complaint.contains("exit code 5"), "{complaint}");
        let (_command, session) = ready().await;
        let end = session.release(SHORT).await;
        let SessionEnd::Asked { ended, complaint: Some(complaint) } = end else { panic!("{end:?}") };
        assert!(ended.process_may_remain && ended.outcome != Outcome::Succeeded);
        assert!(complaint.contains("RELEASE") && complaint.contains("ProcessMayRemain"), "{complaint}");
    }

    #[tokio::test]
    async fn a_session_that_nobody_keeps_is_let_go() {
        let (command, session) = ready().await;
        drop(session);
        command.left().await;
    }

    #[tokio::test]
    async fn however_much_it_prints_a_held_command_is_not_held_up() {
        let (mut command, session) = ready().await;
        command.stdout.write_all(&vec![b'a'; 1 << 20]).await.unwrap();
        assert_eq!(session.end(), None);
    }
}
