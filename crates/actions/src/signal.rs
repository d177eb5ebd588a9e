//! Signals to a container's first process: from the node alone, and only if it handles them.

use boathook_api::{Signal, pod_notification::ErrorType};
use boathook_process::{Dispositions, Signal as Number};

use crate::{
    Failure,
    outcome::Attempt,
    place::cri::Runtime,
    until::{Stop, Until},
};

/// Through the API server there is no way to a process.
pub(crate) fn unsupported(signal: Signal) -> Attempt {
    let message = format!(
        "Boathook cannot send {signal} through the API server: run `boathook agent` on each node and the controller \
         with `--executor agent`"
    );
    Attempt::failed(ErrorType::Unsupported, message)
}

pub(crate) async fn send(runtime: &Runtime, container_id: &str, signal: Signal, until: &Until) -> Attempt {
    if !runtime.allows(signal) {
        let message =
            format!("the agent of this node may not send {signal}: start the agent with `--allow-signals {signal}`");
        return Attempt::failed(ErrorType::Unsupported, message);
    }
    match until.run(deliver(runtime, container_id, signal)).await {
        Ok(Ok(())) => Attempt::succeeded(),
        Ok(Err(failure)) => failure.into(),
        Err(Stop::TimeOver) => Attempt::timed_out(&format!("the delivery of {signal}"), until),
        Err(Stop::Cancelled) => Attempt::revoked(),
    }
}

async fn deliver(runtime: &Runtime, container_id: &str, signal: Signal) -> Result<(), Failure> {
    let first = runtime.first_process(container_id).await?;
    let gone = || {
        Failure::new(
            ErrorType::ContainerNotRunning,
            format!("container `{container_id}` ended before the signal was sent"),
        )
    };
    let number = Number::from_named_raw(signal.number())
        .ok_or_else(|| Failure::new(ErrorType::Unsupported, format!("this node does not support {signal}")))?;
    let dispositions = Dispositions::of(first.pid()).map_err(|_| gone())?;
    // These two cannot be handled; whoever allowed them knows.
    let needs_no_handler = number == Number::KILL || number == Number::STOP;
    if !needs_no_handler && !dispositions.handles(number) {
        let message = format!(
            "the container's first process does not handle {signal}, which would be lost or end the container: handle \
             the signal in that process"
        );
        return Err(Failure::new(ErrorType::SignalNotHandled, message));
    }
    match first.handle.send(number) {
        Ok(true) => Ok(()),
        Ok(false) => Err(gone()),
        Err(error) => {
            let message = format!("not allowed to send {signal}: the agent needs CAP_KILL ({error})");
            Err(Failure::new(ErrorType::Forbidden, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;
    use crate::{Cancel, Outcome, place::cri::Options};

    #[tokio::test]
    async fn guarded_signals_are_sent_only_where_they_are_allowed() {
        let until = Until::within(Duration::from_secs(60), Cancel::new());
        let term: Signal = "TERM".parse().unwrap();
        let runtime = |options| Runtime::new(Path::new("/nowhere/cri.sock"), options);
        let refused = send(&runtime(Options::default()), "1", term, &until).await;
        assert!(
            matches!(refused.outcome, Outcome::Failed(failure) if failure.message.contains("--allow-signals SIGTERM"))
        );
        // As far as asking a runtime that is not there.
        let allowed = send(&runtime(Options { allow_signals: [term].into(), notes: None }), "1", term, &until).await;
        assert!(matches!(allowed.outcome, Outcome::Failed(failure) if failure.kind == ErrorType::HandlerFailed));
    }
}
