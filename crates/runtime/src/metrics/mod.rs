//! What Boathook counts, in Prometheus' text format. Labels are few-valued words, never names of objects.

mod family;

use std::{sync::Arc, time::Duration};

use boathook_decide::{Gravity, Leadership, Report};

use tokio::sync::watch;

use crate::ErrorClass;
use family::{Family, Form};

/// All figures of one process.
pub struct Metrics {
    reports: Family,
    handlers: Family,
    runs: Family,
    undos_owed: Family,
    leader: Family,
    reviews: Family,
    failures: Family,
    events_lost: Family,
    /// Handlers and undos of any purpose.
    in_flight: watch::Sender<usize>,
}

impl Default for Metrics {
    fn default() -> Self {
        let family = |name, form, labels, help| Family::new(name, form, labels, help);
        Self {
            reports: family(
                "boathook_reports_total",
                Form::Counter,
                &["kind", "action", "reason", "gravity"],
                "Events that were reported for objects.",
            ),
            handlers: family(
                "boathook_handler_duration_seconds",
                Form::Histogram,
                &["purpose", "outcome"],
                "Duration of handlers and undos.",
            ),
            runs: family(
                "boathook_runs_in_flight",
                Form::Gauge,
                &["purpose"],
                "Handlers and undos that run now in this process.",
            ),
            undos_owed: family(
                "boathook_undos_owed",
                Form::Gauge,
                &[],
                "Undos that are recorded and not finished: armed, running or to be repeated.",
            ),
            leader: family("boathook_leader", Form::Gauge, &[], "1 if this process is the leader, 0 if not."),
            reviews: family(
                "boathook_webhook_review_duration_seconds",
                Form::Histogram,
                &["webhook", "verdict"],
                "Duration of admission reviews.",
            ),
            failures: family(
                "boathook_reconcile_failures_total",
                Form::Counter,
                &["kind", "class"],
                "Failed reconciliations, which are retried, by class of error.",
            ),
            events_lost: family(
                "boathook_events_lost_total",
                Form::Counter,
                &[],
                "Events that could not be written. The status of the object has the same information.",
            ),
            in_flight: watch::Sender::new(0),
        }
    }
}

impl Metrics {
    pub(crate) fn report(&self, kind: &str, report: &Report) {
        let gravity = match report.gravity {
            Gravity::Normal => "normal",
            Gravity::Warning => "warning",
        };
        self.reports.add(&[kind, report.action, &report.reason, gravity], 1.0);
    }

    /// A handler or undo has begun; it counts as under way until the answer is dropped.
    pub fn run_begun(self: &Arc<Self>, purpose: Purpose) -> RunInFlight {
        self.runs.add(&[purpose.as_str()], 1.0);
        self.in_flight.send_modify(|count| *count += 1);
        RunInFlight { metrics: Arc::clone(self), purpose }
    }

    /// Waits until no handler or undo runs in this process.
    pub(crate) async fn nothing_in_flight(&self) {
        // It never ends while this is here.
        let _ = self.in_flight.subscribe().wait_for(|count| *count == 0).await;
    }

    /// A handler or undo has ended.
    pub fn run_ended(&self, purpose: Purpose, outcome: &str, took: Duration) {
        self.handlers.observe(&[purpose.as_str(), outcome], took);
    }

    pub fn set_undos_owed(&self, owed: usize) {
        self.undos_owed.set(&[], owed as f64);
    }

    pub fn set_leadership(&self, leadership: Option<Leadership>) {
        self.leader.set(&[], if leadership == Some(Leadership::Leader) { 1.0 } else { 0.0 });
    }

    pub(crate) fn review(&self, webhook: &str, verdict: &str, took: Duration) {
        self.reviews.observe(&[webhook, verdict], took);
    }

    pub(crate) fn failure(&self, kind: &str, class: ErrorClass) {
        self.failures.add(&[kind, class.as_str()], 1.0);
    }

    pub(crate) fn event_lost(&self) {
        self.events_lost.add(&[], 1.0);
    }

    /// The text that Prometheus reads.
    pub fn render(&self) -> String {
        let Self { reports, handlers, runs, undos_owed, leader, reviews, failures, events_lost, in_flight: _ } = self;
        let all = [reports, handlers, runs, undos_owed, leader, reviews, failures, events_lost];
        let mut text = String::new();
        all.iter().for_each(|family| family.render(&mut text));
        text
    }
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Handler,
    Undo,
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Self::Handler => "handler",
            Self::Undo => "undo",
        }
    }
}

/// A run that counts as under way.
pub struct RunInFlight {
    metrics: Arc<Metrics>,
    purpose: Purpose,
}

impl Drop for RunInFlight {
    fn drop(&mut self) {
        self.metrics.runs.add(&[self.purpose.as_str()], -1.0);
        self.metrics.in_flight.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use boathook_decide::About;

    use super::*;

    #[test]
    fn what_happened_is_counted_and_read_as_prometheus_does() {
        let metrics = Arc::new(Metrics::default());
        let report = Report {
            about: About::Object,
            gravity: Gravity::Warning,
            reason: "HandlerFailed".to_owned(),
            action: "Run",
            note: "of no interest here".to_owned(),
        };
        metrics.report("PodNotification", &report);
        metrics.report("PodNotification", &report);
        let run = metrics.run_begun(Purpose::Undo);
        metrics.run_ended(Purpose::Handler, "Succeeded", Duration::from_millis(30));
        metrics.set_leadership(Some(Leadership::Leader));
        let text = metrics.render();
        for line in [
            "# TYPE boathook_reports_total counter",
            r#"boathook_reports_total{kind="PodNotification",action="Run",reason="HandlerFailed",gravity="warning"} 2"#,
            r#"boathook_runs_in_flight{purpose="undo"} 1"#,
            r#"boathook_handler_duration_seconds_bucket{purpose="handler",outcome="Succeeded",le="0.025"} 0"#,
            r#"boathook_handler_duration_seconds_bucket{purpose="handler",outcome="Succeeded",le="0.05"} 1"#,
            r#"boathook_handler_duration_seconds_bucket{purpose="handler",outcome="Succeeded",le="+Inf"} 1"#,
            r#"boathook_handler_duration_seconds_sum{purpose="handler",outcome="Succeeded"} 0.03"#,
            r#"boathook_handler_duration_seconds_count{purpose="handler",outcome="Succeeded"} 1"#,
            "boathook_leader 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
        drop(run);
        assert!(metrics.render().contains(r#"boathook_runs_in_flight{purpose="undo"} 0"#));
    }
}
