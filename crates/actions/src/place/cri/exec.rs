//! Exec through CRI: at the end of its time, or when it is cancelled, everything that it started is ended.
//!
//! The runtime's own time limits are never used: they end the first process alone, and wait for whoever inherited its
//! outputs.

use std::path::Path;

use boathook_api::pod_notification::ErrorType;
use boathook_process::{has_program, numbers};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use super::{
    Runtime,
    gate::{Gate, SHELL, explain},
    hold::{Hold, Place, Search},
    stream::{Event, NotOpened, Stream},
};
use crate::{
    Failure, Outcome,
    exec::{Verdict, refused, shown},
    outcome::Attempt,
    tail::Tail,
    until::{Stop, Until},
};

/// A command that is running.
pub(crate) struct Running {
    pub(super) stream: Stream,
    pub(super) hold: Hold,
    pub(super) place: Place,
    pub(super) gated: bool,
    output: Tail,
}

/// What comes of the way to the gate.
enum AtGate {
    Held(Hold),
    /// The shell itself was refused or ended: the gate was never reached.
    Ended(Option<Status>),
}

/// Why a command was not begun behind a gate.
enum NotGated {
    /// The image has no shell that could be run, after all. Nothing was run.
    NoShell(Place),
    Attempt(Attempt),
}

impl From<Attempt> for NotGated {
    fn from(attempt: Attempt) -> Self {
        Self::Attempt(attempt)
    }
}

impl Runtime {
    pub(in crate::place) async fn exec(&self, container_id: &str, command: &[String], until: &Until) -> Attempt {
        match self.begin(container_id, command, false, until).await {
            Ok(running) => running.finish(command, until).await,
            Err(attempt) => attempt,
        }
    }

    /// Begins a command, with input or without. The error is how that ended.
    pub(in crate::place) async fn begin(
        &self,
        container_id: &str,
        command: &[String],
        input: bool,
        until: &Until,
    ) -> Result<Running, Attempt> {
        let first = match until.run(self.first_process(container_id)).await {
            Ok(first) => first?,
            Err(stop) => return Err(not_begun(stop, command, until)),
        };
        let notes = self.options.notes.clone();
        let place = Place { container_id: container_id.to_owned(), pid: first.pid(), notes };
        if !has_program(place.pid, Path::new(SHELL)) {
            return self.begin_without_gate(place, command, input, until).await;
        }
        match self.begin_behind_gate(place, command, input, until).await {
            Ok(running) => Ok(running),
            Err(NotGated::NoShell(place)) => self.begin_without_gate(place, command, input, until).await,
            Err(NotGated::Attempt(attempt)) => Err(attempt),
        }
    }

    async fn begin_behind_gate(
        &self,
        place: Place,
        command: &[String],
        input: bool,
        until: &Until,
    ) -> Result<Running, NotGated> {
        let gate = Gate::new();
        // What cannot be listed now cannot be later: then it is said why.
        let before = numbers().unwrap_or_default();
        let opening = Stream::open(self, &place.container_id, gate.before(command, input), true);
        let mut stream = match until.run(opening).await {
            Ok(Ok(stream)) => stream,
            // The gate is closed, and its input has ended.
            Ok(Err(NotOpened::Refused(words) | NotOpened::Lost(words))) => return Err(refused(command, &words).into()),
            Err(stop) => return Err(not_begun(stop, command, until).into()),
        };
        let mut output = Tail::default();
        let held = async {
            tokio::select! {
                held = Hold::at_gate(&place, &gate, before) => held.map(AtGate::Held),
                status = read(&mut stream, &mut output) => Ok(AtGate::Ended(status)),
            }
        };
        let hold = match until.run(held).await {
            Ok(Ok(AtGate::Held(hold))) => hold,
            Ok(Ok(AtGate::Ended(Some(status)))) => {
                let ended = ended_at_gate(Verdict::of(&status), command);
                return Err(ended.map_or(NotGated::NoShell(place), NotGated::Attempt));
            }
            Ok(Ok(AtGate::Ended(None))) => return Err(refused(command, "the stream was lost before it began").into()),
            Ok(Err(error)) => {
                return Err(refused(command, &format!("the agent failed to track its process: {error}")).into());
            }
            Err(stop) => return Err(not_begun(stop, command, until).into()),
        };
        // If this fails, the stream ends without a status; if it is late, everything is.
        until.run(stream.write_stdin(&gate.line())).await.ok();
        Ok(Running { stream, hold, place, gated: true, output })
    }

    async fn begin_without_gate(
        &self,
        place: Place,
        command: &[String],
        input: bool,
        until: &Until,
    ) -> Result<Running, Attempt> {
        let search = Search::new(&place, command)
            .map_err(|error| refused(command, &format!("the agent does not see the container's processes: {error}")))?;
        let hold = Hold::Sought(search);
        match until.run(Stream::open(self, &place.container_id, command.to_owned(), input)).await {
            Ok(Ok(stream)) => Ok(Running { stream, hold, place, gated: false, output: Tail::default() }),
            Ok(Err(NotOpened::Refused(words))) => Err(refused(command, &words)),
            Ok(Err(NotOpened::Lost(words))) => {
                let why = format!("the stream of {} was lost when it began: {words}", shown(command));
                Err(ended_by_us(Attempt::unknown(why), hold.end(&place).await))
            }
            Err(stop) => Err(ended_by_us(stopped(stop, command, until), hold.end(&place).await)),
        }
    }
}

impl Running {
    async fn finish(mut self, command: &[String], until: &Until) -> Attempt {
        let ended = tokio::select! {
            biased;
            status = read(&mut self.stream, &mut self.output) => Ok(status),
            stop = until.over() => Err(stop),
            () = self.hold.watch(&self.place) => unreachable!("a watch never ends"),
        };
        let output = std::mem::take(&mut self.output).into_text();
        let attempt = match ended {
            Ok(Some(status)) => self.ended(Verdict::of(&status), command),
            Ok(None) => {
                self.end(Attempt::unknown(format!("the stream of {} ended without a status", shown(command)))).await
            }
            Err(stop) => self.end(stopped(stop, command, until)).await,
        };
        Attempt { output, ..attempt }
    }

    /// It ended by itself. Whoever is left without its outputs was meant to stay.
    pub(in crate::place) fn ended(self, verdict: Verdict, command: &[String]) -> Attempt {
        self.hold.release();
        let attempt = verdict.into_attempt(command);
        if self.gated { explained(attempt, command) } else { attempt }
    }

    /// Ends everything that it started, and adds to the attempt whether that could be done.
    pub(in crate::place) async fn end(self, attempt: Attempt) -> Attempt {
        ended_by_us(attempt, self.hold.end(&self.place).await)
    }
}

/// Reads until the status is there, or it is certain that none comes. What was read is in `output` also when this is
/// dropped.
async fn read(stream: &mut Stream, output: &mut Tail) -> Option<Status> {
    loop {
        match stream.next().await {
            Event::Stdout(bytes) | Event::Stderr(bytes) => output.push(&bytes),
            Event::Ended(status) => return Some(*status),
            Event::Lost => return None,
        }
    }
}

/// The shell ended before its gate was opened. `None`: there is no shell, after all.
fn ended_at_gate(verdict: Verdict, command: &[String]) -> Option<Attempt> {
    match verdict {
        Verdict::Refused(_) => None,
        // However well it ended, it never became the command.
        Verdict::Exit(0) => {
            Some(refused(command, &format!("{SHELL} of the image ended with exit code 0 before it ran the command")))
        }
        Verdict::Exit(_) => Some(verdict.into_attempt(command)),
    }
}

fn not_begun(stop: Stop, command: &[String], until: &Until) -> Attempt {
    match stop {
        Stop::TimeOver => {
            Attempt::timed_out(&format!("the start of {} (the command was not run)", shown(command)), until)
        }
        Stop::Cancelled => Attempt::revoked(),
    }
}

fn stopped(stop: Stop, command: &[String], until: &Until) -> Attempt {
    match stop {
        Stop::TimeOver => Attempt::timed_out(&shown(command), until),
        Stop::Cancelled => Attempt::unknown(format!("{} was cancelled while it ran", shown(command))),
    }
}

/// With what is known after everything was ended, or was not.
fn ended_by_us(attempt: Attempt, ended: Result<(), String>) -> Attempt {
    let added = match &ended {
        Ok(()) => "the agent ended all processes of the command".to_owned(),
        Err(remaining) => format!("ProcessMayRemain: {remaining}"),
    };
    let with = |failure: Failure| Failure { message: format!("{}; {added}", failure.message), ..failure };
    let outcome = match attempt.outcome {
        Outcome::Succeeded => Outcome::Succeeded,
        Outcome::Failed(failure) => Outcome::Failed(with(failure)),
        Outcome::Unknown(failure) => Outcome::Unknown(with(failure)),
    };
    Attempt { outcome, process_may_remain: ended.is_err(), ..attempt }
}

/// A program that is missing is told by the gate's exit code.
fn explained(attempt: Attempt, command: &[String]) -> Attempt {
    let program = command.first().map_or("", String::as_str);
    match attempt.exit_code.and_then(|code| explain(code, program)) {
        Some(words) => {
            let message = format!("{} ended with {words}", shown(command));
            Attempt { outcome: Outcome::Failed(Failure::new(ErrorType::HandlerFailed, message)), ..attempt }
        }
        None => attempt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ended_does_not_remain_and_what_was_not_may() {
        let timeout = || Attempt::failed(ErrorType::HandlerTimeout, "late");
        let ended = ended_by_us(timeout(), Ok(()));
        assert!(!ended.process_may_remain);
        let not_ended = ended_by_us(timeout(), Err("process 7 did not end".to_owned()));
        assert!(not_ended.process_may_remain);
        let Outcome::Failed(failure) = not_ended.outcome else { panic!("it succeeded") };
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (ErrorType::HandlerTimeout, "late; ProcessMayRemain: process 7 did not end",)
        );
    }

    #[test]
    fn a_shell_that_ended_before_its_gate_was_opened_is_no_success() {
        let command = ["thaw".to_owned()];
        for code in [0, 137] {
            let attempt = ended_at_gate(Verdict::Exit(code), &command).unwrap();
            assert!(matches!(attempt.outcome, Outcome::Failed(_)), "{attempt:?}");
            assert!(!attempt.process_may_remain);
        }
        assert!(ended_at_gate(Verdict::Refused("no such file".to_owned()), &command).is_none());
    }

    #[test]
    fn a_missing_program_is_named() {
        let command = ["no-such-program".to_owned()];
        let attempt = explained(Verdict::Exit(127).into_attempt(&command), &command);
        let Outcome::Failed(failure) = attempt.outcome else { panic!("it succeeded") };
        assert!(failure.message.contains("program `no-such-program` was not found"), "{}", failure.message);
        assert_eq!(attempt.exit_code, Some(127));
    }
}
