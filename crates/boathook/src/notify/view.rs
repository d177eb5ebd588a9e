//! What a person sees while pods are told: a row for each container as it ends, and how many are still to come.

use std::{io, time::Duration};

use boathook_api::PodNotification;
use kube::ResourceExt;

use super::{
    report::{self, Verdict},
    round::{Ended, Round},
};
use crate::{
    output::{
        Screen,
        duration::shown,
        plain::{count, names},
        table::{Columns, NOTHING},
    },
    pods::{FoundPod, Scope},
};

/// The column of the table that is coloured.
const RESULT: &str = "RESULT";

/// What is shown of each container besides the usual.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra {
    pub(super) namespace: bool,
    pub(super) wide: bool,
}

pub(super) struct View {
    pub(super) screen: Screen,
    extra: Extra,
    header: Vec<String>,
    columns: Columns,
    tally: Tally,
}

/// How many pods it went how with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    pub(super) nothing_to_do: usize,
}

/// One row, by its columns.
struct Cells<'a> {
    namespace: &'a str,
    pod: &'a str,
    container: &'a str,
    result: &'a str,
    exit: &'a str,
    time: &'a str,
    node: &'a str,
    notification: &'a str,
}

impl Extra {
    fn row(self, cells: &Cells<'_>) -> Vec<String> {
        let Cells { namespace, pod, container, result, exit, time, node, notification } = *cells;
        let before = self.namespace.then_some(namespace);
        let after = self.wide.then_some([node, notification]).into_iter().flatten();
        let usual = [pod, container, result, exit, time];
        before.into_iter().chain(usual).chain(after).map(str::to_owned).collect()
    }
}

impl View {
    /// The columns are as wide as these pods need, so that rows can come one by one.
    pub(super) fn new(screen: Screen, extra: Extra, pods: &[FoundPod], notifier: &str) -> Self {
        let header = extra.row(&Cells {
            namespace: "NAMESPACE",
            pod: "POD",
            container: "CONTAINER",
            result: RESULT,
            exit: "EXIT",
            time: "TIME",
            node: "NODE",
            notification: "PODNOTIFICATION",
        });
        let widest = pods.iter().flat_map(|pod| {
            let containers = pod.declaring(notifier).into_iter().chain([NOTHING]);
            containers.map(|container| {
                extra.row(&Cells {
                    namespace: &pod.namespace,
                    pod: &pod.name,
                    container,
                    result: "UNKNOWN",
                    exit: "255",
                    time: "59m59s",
                    node: pod.node.as_deref().unwrap_or(NOTHING),
                    notification: NOTHING,
                })
            })
        });
        let rows: Vec<_> = widest.chain([header.clone()]).collect();
        let columns = Columns::fitting(rows.iter().map(Vec::as_slice));
        Self { screen, extra, header, columns, tally: Tally::default() }
    }

    /// Shows how it went with one pod, and counts it.
    pub(super) fn show(&mut self, ended: &Ended) -> io::Result<()> {
        if self.tally == Tally::default() {
            let header = self.columns.line(&self.header, |_, cell| cell.to_owned());
            self.screen.line(&header)?;
        }
        let (verdict, lines) = report::report(ended);
        let object = ended.object();
        let node = object.status.as_ref().and_then(|status| status.node_name.clone());
        for line in lines {
            let row = self.extra.row(&Cells {
                namespace: &object.namespace().unwrap_or_default(),
                pod: &object.spec.pod_name,
                container: &line.container,
                result: line.result,
                exit: &line.exit,
                time: &line.time,
                node: node.as_deref().unwrap_or(NOTHING),
                notification: &object.name_any(),
            });
            let is_result = |place: usize| self.header.get(place).is_some_and(|title| title == RESULT);
            let painted = self.columns.line(&row, |place, cell| match is_result(place) {
                true => self.screen.painted(line.colour, cell),
                false => cell.to_owned(),
            });
            self.screen.line(&painted)?;
            for detail in &line.details {
                self.screen.line(&format!("  {detail}"))?;
            }
        }
        self.tally.add(verdict);
        Ok(())
    }

    /// Paints how far it has come.
    pub(super) fn progress(&mut self, round: &Round, since: Duration) {
        let pods = names(round.under_way().map(|object| object.spec.pod_name.as_str()));
        let text = format!("{} of {}, waiting for {pods} ({}s)", round.ended(), round.total(), since.as_secs());
        self.screen.progress(&text);
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Succeeded => self.succeeded += 1,
            Verdict::Failed => self.failed += 1,
            Verdict::NothingToDo => self.nothing_to_do += 1,
        }
    }

    /// At least one pod was notified, and none failed.
    pub(super) fn is_success(self) -> bool {
        self.failed == 0 && self.succeeded > 0
    }

    /// The line at the end.
    pub(super) fn summary(self, took: Duration) -> String {
        let Self { succeeded, failed, nothing_to_do } = self;
        let parts = [(succeeded, "ok"), (failed, "failed"), (nothing_to_do, "with nothing to do")];
        let parts: Vec<_> =
            parts.iter().filter(|(number, _)| *number > 0).map(|(number, how)| format!("{number} {how}")).collect();
        let total = count(succeeded + failed + nothing_to_do, "pod");
        format!("{total}: {} ({})", parts.join(", "), shown(took))
    }
}

/// What is still under way, when nobody waits for it any more: one line for each pod, and how to look at them.
pub(super) fn left_over(round: &Round, selector: &str, scope: &Scope) -> Vec<String> {
    let mut lines: Vec<_> =
        round.under_way().map(|object| format!("  {}: {}", object.spec.pod_name, stage(object))).collect();
    if round.waiting() > 0 {
        lines.push(format!("  {} not notified, and will not be", count(round.waiting(), "more pod")));
    }
    let place = match scope {
        Scope::AllNamespaces => "-A".to_owned(),
        Scope::Namespace(namespace) => format!("-n {namespace}"),
    };
    lines.push(format!("the started ones continue: kubectl get podnotifications -l {selector} {place}"));
    lines
}

fn stage(object: &PodNotification) -> &'static str {
    match &object.status {
        None => "no controller has accepted it yet",
        Some(status) if status.claim.is_none() => "accepted, waiting for its executor",
        Some(_) => "running",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_what_there_was() {
        let took = Duration::from_millis(1_240);
        assert_eq!(Tally { succeeded: 1, ..Tally::default() }.summary(took), "1 pod: 1 ok (1.2s)");
        let mixed = Tally { succeeded: 2, failed: 1, nothing_to_do: 1 };
        assert_eq!(mixed.summary(took), "4 pods: 2 ok, 1 failed, 1 with nothing to do (1.2s)");
    }
}
