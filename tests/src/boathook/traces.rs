//! Traces: lines that handlers and undos append to `log/lines` of their own pod: the token of the action, the UID of the pod and
//! the time. These lines show what ran; the status of the objects is checked against them.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use boathook_api::pod_notification::Executor;

use crate::{Ctx, pods::PodBuilder};

/// Holds the UID of the pod in each of its containers.
const POD_UID: &str = "POD_UID";

/// The pod, with the environment that the lines of its actions need.
pub fn traced(pod: PodBuilder) -> PodBuilder {
    pod.env_from_field(POD_UID, "metadata.uid")
}

/// A shell command: the handler of this token ran.
pub fn done(token: &str) -> String {
    line(Deed::Done, token)
}

/// A shell command: the undo of this token ran.
pub fn undone(token: &str) -> String {
    line(Deed::Undone, token)
}

fn line(deed: Deed, token: &str) -> String {
    format!("read now rest < /proc/uptime; echo {} {token} ${POD_UID} $now >> log/lines", deed.word())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Done,
    Undone,
}

impl Deed {
    fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Undone => "undone",
        }
    }
}

#[derive(Clone, Debug)]
struct Trace {
    deed: Deed,
    pod_uid: String,
    /// Since the machine booted.
    at: Duration,
}

/// The lines of several pods, by token. Lines of one pod are in their order.
#[derive(Debug, Default)]
pub struct Traces(BTreeMap<String, Vec<Trace>>);

impl Ctx {
    /// Everything that actions in these pods have recorded.
    pub async fn traces(&self, pods: &[&str]) -> Result<Traces> {
        let mut lines = Vec::new();
        for pod in pods {
            lines.extend(self.recorded(pod).await?);
        }
        Traces::read(&lines)
    }
}

impl Traces {
    fn read(lines: &[String]) -> Result<Self> {
        let mut traces = Self::default();
        for line in lines {
            let (token, trace) = read_line(line).with_context(|| format!("`{line}` is not a trace"))?;
            traces.0.entry(token.to_owned()).or_default().push(trace);
        }
        Ok(traces)
    }

    pub fn ran(&self, token: &str) -> bool {
        self.runs(token) > 0
    }

    /// How often the handler of this token ran, in all pods together.
    pub fn runs(&self, token: &str) -> usize {
        self.of(token).iter().filter(|trace| trace.deed == Deed::Done).count()
    }

    /// How many tokens have a handler that ran.
    pub fn count(&self) -> usize {
        self.0.keys().filter(|token| self.ran(token)).count()
    }

    /// In each pod where the handler ran, the undo ran after it. The executor `agent` ends a handler before its undo, so
    /// there no handler runs after an undo; through the API server nothing can be ended, and the undo runs once more.
    pub fn is_taken_back(&self, token: &str, executor: Executor) -> Result<()> {
        let mut pods: BTreeMap<&str, Vec<&Trace>> = BTreeMap::new();
        for trace in self.of(token) {
            pods.entry(&trace.pod_uid).or_default().push(trace);
        }
        for (pod, traces) in pods {
            let Some(last) = traces.iter().rposition(|trace| trace.deed == Deed::Done) else { continue };
            let is_undone = traces[last..].iter().any(|trace| trace.deed == Deed::Undone);
            ensure!(is_undone, "`{token}` ran in pod {pod} and was not undone after: {traces:?}");
            let runs_again = traces[..last].iter().any(|trace| trace.deed == Deed::Undone);
            ensure!(
                !(runs_again && executor == Executor::Agent),
                "`{token}` ran in pod {pod} after its undo: {traces:?}"
            );
        }
        Ok(())
    }

    /// No handler of this token ran later than this.
    pub fn did_not_run_after(&self, token: &str, since_boot: Duration) -> Result<()> {
        let late = self.of(token).iter().find(|trace| trace.deed == Deed::Done && trace.at > since_boot);
        ensure!(late.is_none(), "`{token}` ran after it had ended at {since_boot:?}: {late:?}");
        Ok(())
    }

    fn of(&self, token: &str) -> &[Trace] {
        self.0.get(token).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The clock of the traces.
pub fn since_boot() -> Result<Duration> {
    let uptime = std::fs::read_to_string("/proc/uptime").context("failed to read the time since the boot")?;
    seconds(uptime.split_whitespace().next().unwrap_or_default())
}

fn seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().with_context(|| format!("`{text}` is not a number of seconds"))?;
    Ok(Duration::try_from_secs_f64(seconds)?)
}

fn read_line(line: &str) -> Result<(&str, Trace)> {
    let words: Vec<_> = line.split(' ').collect();
    let [deed, token, pod_uid, at] = words[..] else { bail!("it has {} words", words.len()) };
    let deed = [Deed::Done, Deed::Undone].into_iter().find(|known| known.word() == deed).context("unknown deed")?;
    ensure!(!pod_uid.is_empty(), "it names no pod");
    Ok((token, Trace { deed, pod_uid: pod_uid.to_owned(), at: seconds(at)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(lines: &[&str]) -> Traces {
        let lines: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
        Traces::read(&lines).unwrap()
    }

    #[test]
    fn handler_is_taken_back_in_its_own_pod() {
        let (api, agent) = (Executor::Api, Executor::Agent);
        for executor in [api, agent] {
            assert!(traces(&["done a p 1.5", "undone a p 2"]).is_taken_back("a", executor).is_ok());
            let never_ran = traces(&["undone a p 1", "undone b p 2"]);
            assert!(never_ran.is_taken_back("a", executor).is_ok());
            for wrong in [
                &["done a p 1"][..],
                &["done a p 1", "undone a q 2"],
                &["done a p 1", "undone b p 2"],
                &["done a p 1", "undone a p 2", "done a p 3"],
            ] {
                assert!(traces(wrong).is_taken_back("a", executor).is_err(), "{wrong:?}");
            }
        }
        let beside_its_undo = traces(&["undone a p 1", "done a p 2", "undone a p 3"]);
        assert!(beside_its_undo.is_taken_back("a", api).is_ok());
        assert!(beside_its_undo.is_taken_back("a", agent).is_err());
    }

    #[test]
    fn runs_are_counted_over_all_pods() {
        let traces = traces(&["done a p 1", "done a q 1", "undone a p 2", "done b p 3"]);
        assert_eq!((traces.runs("a"), traces.runs("c"), traces.count()), (2, 0, 2));
        assert!(traces.did_not_run_after("a", Duration::from_secs(1)).is_ok());
        assert!(traces.did_not_run_after("b", Duration::from_secs(2)).is_err());
    }

    #[test]
    fn incomplete_line_is_an_error() {
        for line in ["done a p", "done a  1", "did a p 1", "done a p x"] {
            assert!(Traces::read(&[line.to_owned()]).is_err(), "{line}");
        }
    }
}
