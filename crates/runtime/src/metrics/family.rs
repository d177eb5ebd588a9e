//! One metric with its labels, and how it is written.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// From the fastest exec there is to the longest that people wait for; in seconds.
const BUCKETS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Counter,
    Gauge,
    Histogram,
}

pub(super) struct Family {
    name: &'static str,
    form: Form,
    labels: &'static [&'static str],
    help: &'static str,
    /// By the values of the labels, in their order.
    series: Mutex<BTreeMap<Vec<String>, Series>>,
}

#[derive(Default)]
struct Series {
    /// A histogram's sum.
    value: f64,
    /// A histogram's observations, by the first bucket that holds them; the last is for those beyond all.
    buckets: [u64; BUCKETS.len() + 1],
}

impl Family {
    pub(super) fn new(name: &'static str, form: Form, labels: &'static [&'static str], help: &'static str) -> Self {
        let family = Self { name, form, labels, help, series: Mutex::default() };
        if labels.is_empty() {
            // Known from the start, so that a zero is told from an absence.
            family.add(&[], 0.0);
        }
        family
    }

    pub(super) fn add(&self, labels: &[&str], by: f64) {
        self.change(labels, |series| series.value += by);
    }

    pub(super) fn set(&self, labels: &[&str], to: f64) {
        self.change(labels, |series| series.value = to);
    }

    pub(super) fn observe(&self, labels: &[&str], took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        self.change(labels, |series| {
            series.value += seconds;
            series.buckets[bucket] += 1;
        });
    }

    fn change(&self, labels: &[&str], change: impl FnOnce(&mut Series)) {
        debug_assert_eq!(labels.len(), self.labels.len(), "{}", self.name);
        let key = labels.iter().map(|value| (*value).to_owned()).collect();
        change(self.series.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    }

    pub(super) fn render(&self, text: &mut String) {
        let kind = match self.form {
            Form::Counter => "counter",
            Form::Gauge => "gauge",
            Form::Histogram => "histogram",
        };
        let name = self.name;
        line(text, format_args!("# HELP {name} {}\n# TYPE {name} {kind}", self.help));
        for (values, series) in self.series.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let labels = |extra: Option<(&str, &str)>| self.labels_of(values, extra);
            match self.form {
                Form::Counter | Form::Gauge => line(text, format_args!("{name}{} {}", labels(None), series.value)),
                Form::Histogram => {
                    let mut so_far = 0;
                    let bounds = BUCKETS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
                    for (bound, count) in bounds.zip(series.buckets) {
                        so_far += count;
                        line(text, format_args!("{name}_bucket{} {so_far}", labels(Some(("le", &bound)))));
                    }
                    line(text, format_args!("{name}_sum{} {}", labels(None), series.value));
                    line(text, format_args!("{name}_count{} {so_far}", labels(None)));
                }
            }
        }
    }

    fn labels_of(&self, values: &[String], extra: Option<(&str, &str)>) -> String {
        let own = self.labels.iter().copied().zip(values.iter().map(String::as_str));
        let all: Vec<_> = own.chain(extra).map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("a string takes all that is written");
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
