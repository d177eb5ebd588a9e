//! Notifiers, as a pod's author declares them: the annotation `notifiers.boathook.dev/<container>`, a YAML or JSON list.
//!
//! A declaration is taken as a whole or not at all. A [`Mistake`] names the container, the entry and the field, and
//! says what to write.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Action, ExecAction, HttpGetAction, TcpSocketAction,
    action::{Deed, Output, ValidAction},
    names,
    words::{NOTIFIERS_PREFIX, RESERVED_NOTIFIER_PREFIX},
};

/// The default of a notifier's `timeoutSeconds`.
pub const DEFAULT_TIMEOUT_SECONDS: i32 = 1;

/// A declaration is at most as long as all of a pod's annotations may be.
const LONGEST: usize = 256 << 10;

/// What the pod's author declared for each container, by container and then by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declarations(BTreeMap<String, Vec<Notifier>>);

/// One notifier of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifier {
    pub name: String,
    pub action: ValidAction,
    pub probe: Option<Probe>,
}

/// What must hold after the handler before it counts as done. Core's fields; the period's default is 1 second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Probe {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HttpGetAction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TcpSocketAction>,
    #[serde(default)]
    pub initial_delay_seconds: i32,
    #[serde(default = "one")]
    pub period_seconds: i32,
    #[serde(default = "one")]
    pub timeout_seconds: i32,
    #[serde(default = "one")]
    pub success_threshold: i32,
    /// Read and held to its range, as core does; here a probe is asked until the notifier's own time is over.
    #[serde(default = "three")]
    pub failure_threshold: i32,
}

fn one() -> i32 {
    1
}

fn three() -> i32 {
    3
}

impl Probe {
    /// What one try does.
    pub fn action(&self) -> Result<ValidAction, String> {
        let Self { exec, http_get, tcp_socket, timeout_seconds, .. } = self;
        let (exec, http_get, tcp_socket) = (exec.clone(), http_get.clone(), tcp_socket.clone());
        let action =
            Action { exec, signal: None, http_get, tcp_socket, timeout_seconds: *timeout_seconds, output: None };
        action.validate().map_err(|wrong| wrong.replace("exec, signal, httpGet", "exec, httpGet"))
    }

    pub fn initial_delay(&self) -> Duration {
        Duration::from_secs(self.initial_delay_seconds.max(0).unsigned_abs().into())
    }

    pub fn period(&self) -> Duration {
        Duration::from_secs(self.period_seconds.max(1).unsigned_abs().into())
    }
}

/// What is wrong with a declaration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The container that the annotation names.
    pub container: String,
    /// The entry: its place in the list, from 0, and its name if it has one.
    pub entry: Option<(usize, Option<String>)>,
    /// The field in the entry, or nothing if it is about the whole of it.
    pub field: Option<&'static str>,
    pub problem: String,
}

impl std::error::Error for Mistake {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "annotation `{NOTIFIERS_PREFIX}{}`", self.container)?;
        if let Some((place, name)) = &self.entry {
            write!(f, ", entry {place}")?;
            if let Some(name) = name {
                write!(f, " (`{name}`)")?;
            }
        }
        if let Some(field) = self.field {
            write!(f, ", {field}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// An entry as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    // Not read further at once: so that a mistake is told with the field that it is in.
    name: Option<Value>,
    handler: Option<Value>,
    timeout_seconds: Option<Value>,
    probe: Option<Value>,
    output: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Handler {
    exec: Option<ExecAction>,
    /// Not yet a signal: so that a wrong one is told as such, at its place.
    signal: Option<Value>,
}

impl Declarations {
    /// Whether any of these annotations declares notifiers.
    pub fn any_in(annotations: &BTreeMap<String, String>) -> bool {
        of_annotations(annotations).next().is_some()
    }

    /// Reads a pod's annotations. `containers` are the names of those that may declare: ordinary ones and native
    /// sidecars.
    pub fn parse(annotations: &BTreeMap<String, String>, containers: &[String]) -> Result<Self, Mistake> {
        let mut declared = BTreeMap::new();
        for (container, text) in of_annotations(annotations) {
            if !containers.iter().any(|known| known == container) {
                let known = containers.join("`, `");
                let problem = format!(
                    "the pod has no container of this name that can declare notifiers: only ordinary containers and \
                     sidecars can (`{known}`)"
                );
                return Err(Mistake { container: container.to_owned(), entry: None, field: None, problem });
            }
            declared.insert(container.to_owned(), parse_list(container, text)?);
        }
        Ok(Self(declared))
    }

    /// The containers that declare this notifier, with their own declarations of it.
    pub fn of(&self, notifier: &str) -> impl Iterator<Item = (&str, &Notifier)> {
        self.0.iter().filter_map(move |(container, notifiers)| {
            let found = notifiers.iter().find(|candidate| candidate.name == notifier)?;
            Some((container.as_str(), found))
        })
    }

    /// Everything that is declared, by container.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Notifier)> {
        self.0.iter().flat_map(|(container, notifiers)| notifiers.iter().map(move |one| (container.as_str(), one)))
    }
}

/// The declarations among a pod's annotations, as they are written: by container.
pub fn of_annotations(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    annotations.iter().filter_map(|(key, text)| Some((key.strip_prefix(NOTIFIERS_PREFIX)?, text.as_str())))
}

fn parse_list(container: &str, text: &str) -> Result<Vec<Notifier>, Mistake> {
    let whole = |problem: String| Mistake { container: container.to_owned(), entry: None, field: None, problem };
    if text.len() > LONGEST {
        return Err(whole(format!("longer than {LONGEST} bytes")));
    }
    let values: Vec<Value> = serde_saphyr::from_str(text)
        .map_err(|error| whole(format!("not a list in YAML or JSON: {}", first_line(&error.to_string()))))?;
    let mut notifiers: Vec<Notifier> = Vec::new();
    for (place, value) in values.into_iter().enumerate() {
        let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
        let mistake = |field, problem: String| Mistake {
            container: container.to_owned(),
            entry: Some((place, name.clone())),
            field,
            problem,
        };
        let notifier = parse_entry(value).map_err(|(field, problem)| mistake(field, problem))?;
        if notifiers.iter().any(|earlier| earlier.name == notifier.name) {
            return Err(mistake(
                Some("name"),
                "an earlier entry of this container has the same name: choose another name".to_owned(),
            ));
        }
        notifiers.push(notifier);
    }
    Ok(notifiers)
}

type Wrong = (Option<&'static str>, String);

fn parse_entry(value: Value) -> Result<Notifier, Wrong> {
    let entry: Entry = serde_json::from_value(value).map_err(|error| (None, error.to_string()))?;
    let Entry { name, handler, timeout_seconds, probe, output } = entry;
    let name: String = read("name", name)?.ok_or((Some("name"), "missing: give the notifier a name".to_owned()))?;
    validate_name(&name).map_err(|problem| (Some("name"), problem))?;
    let handler = read("handler", handler)?.ok_or((Some("handler"), "missing: write exec or signal".to_owned()))?;
    let deed = parse_handler(handler)?;
    let timeout =
        parse_timeout(read("timeoutSeconds", timeout_seconds)?).map_err(|problem| (Some("timeoutSeconds"), problem))?;
    let probe: Option<Probe> = read("probe", probe)?;
    if let Some(probe) = &probe {
        validate_probe(probe).map_err(|problem| (Some("probe"), problem))?;
    }
    let output: Option<Output> = read("output", output)?;
    Ok(Notifier { name, action: ValidAction { deed, timeout, output: output.unwrap_or_default() }, probe })
}

/// A field, if it is there.
fn read<T: DeserializeOwned>(field: &'static str, value: Option<Value>) -> Result<Option<T>, Wrong> {
    value.map(serde_json::from_value).transpose().map_err(|error| (Some(field), error.to_string()))
}

fn parse_handler(handler: Handler) -> Result<Deed, Wrong> {
    let Handler { exec, signal } = handler;
    match (exec, signal) {
        (Some(exec), None) => match exec.command.first() {
            Some(_) if exec.hold => Err((
                Some("handler.exec.hold"),
                "a notifier cannot hold its session: write the command as the `action` of a PodNotification".to_owned(),
            )),
            Some(program) if !program.is_empty() => {
                names::words("command", &exec.command).map_err(|wrong| (Some("handler.exec"), wrong))?;
                Ok(Deed::Exec(exec))
            }
            _ => Err((Some("handler.exec.command"), "names no program".to_owned())),
        },
        (None, Some(signal)) => {
            let name = signal.as_str().map_or_else(|| signal.to_string(), str::to_owned);
            let signal = name.parse().map_err(|wrong| (Some("handler.signal"), format!("{wrong}")))?;
            Ok(Deed::Signal(signal))
        }
        (None, None) | (Some(_), Some(_)) => Err((Some("handler"), "write exactly one of exec and signal".to_owned())),
    }
}

fn parse_timeout(given: Option<i64>) -> Result<Duration, String> {
    let seconds = given.unwrap_or(DEFAULT_TIMEOUT_SECONDS.into());
    if seconds < 1 {
        return Err(format!("{seconds} is less than 1"));
    }
    let seconds = i32::try_from(seconds).map_err(|_| format!("{seconds} is too long"))?;
    Ok(Duration::from_secs(seconds.unsigned_abs().into()))
}

fn validate_probe(probe: &Probe) -> Result<(), String> {
    if probe.action()?.holds() {
        return Err("exec.hold: a probe cannot hold its session: remove hold".to_owned());
    }
    let at_least = [
        ("initialDelaySeconds", probe.initial_delay_seconds, 0),
        ("periodSeconds", probe.period_seconds, 1),
        ("successThreshold", probe.success_threshold, 1),
        ("failureThreshold", probe.failure_threshold, 1),
    ];
    match at_least.into_iter().find(|(_, given, least)| given < least) {
        Some((field, given, least)) => Err(format!("{field}: {given} is less than {least}")),
        None => Ok(()),
    }
}

/// Names are label keys: an optional DNS prefix and a slash, then up to 63 characters.
fn validate_name(name: &str) -> Result<(), String> {
    if name.starts_with(RESERVED_NOTIFIER_PREFIX) {
        return Err(format!("the prefix `{RESERVED_NOTIFIER_PREFIX}` is reserved: use one of your own, or none"));
    }
    let (prefix, bare) = match name.split_once('/') {
        Some((prefix, bare)) => (Some(prefix), bare),
        None => (None, name),
    };
    let alphanumeric_at_ends = |text: &str| {
        let ends = [text.chars().next(), text.chars().next_back()];
        ends.iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
    };
    let bare_is_good = bare.len() <= 63
        && alphanumeric_at_ends(bare)
        && bare.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.'));
    let label_is_good = |label: &str| {
        alphanumeric_at_ends(label)
            && label.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-')
    };
    let prefix_is_good = prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(label_is_good));
    if bare_is_good && prefix_is_good {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a valid label key: write up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at \
         both ends, and optionally a DNS name and `/` before them"
    ))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Declarations, Mistake> {
        let annotations = [(format!("{NOTIFIERS_PREFIX}main"), text.to_owned())].into();
        Declarations::parse(&annotations, &["main".to_owned(), "sidecar".to_owned()])
    }

    #[test]
    fn yaml_and_json_declare_alike() {
        let yaml = parse("- name: reload\n  handler: {signal: HUP}\n  timeoutSeconds: 5\n").unwrap();
        let json = parse(r#"[{"name": "reload", "handler": {"signal": "SIGHUP"}, "timeoutSeconds": 5}]"#).unwrap();
        assert_eq!(yaml, json);
        let (container, notifier) = yaml.of("reload").next().unwrap();
        assert_eq!((container, notifier.action.timeout), ("main", Duration::from_secs(5)));
        assert_eq!(yaml.of("rotate").count(), 0);
    }

    #[test]
    fn what_is_left_out_has_cores_defaults_and_a_second() {
        let text = "[{name: a, handler: {exec: {command: [sync]}}, probe: {tcpSocket: {port: 80}}}]";
        let declared = parse(text).unwrap();
        let (_, notifier) = declared.iter().next().unwrap();
        assert_eq!((notifier.action.timeout, notifier.action.output), (Duration::from_secs(1), Output::Tail));
        let probe = notifier.probe.as_ref().unwrap();
        assert_eq!((probe.period_seconds, probe.success_threshold, probe.timeout_seconds), (1, 1, 1));
    }

    #[test]
    fn output_is_opted_out_of_by_notifier() {
        let declared = parse("- {name: a, handler: {exec: {command: [dump]}}, output: None}").unwrap();
        assert_eq!(declared.iter().next().unwrap().1.action.output, Output::None);
    }

    #[test]
    fn names_are_label_keys() {
        for good in ["a", "example.com/a", "Flush-Disk_2.x", &"a".repeat(63)] {
            assert_eq!(validate_name(good), Ok(()), "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "-a", "a b", "Example.com/a", "k8s.io/a", "é", &"a".repeat(64)] {
            assert!(validate_name(bad).is_err(), "{bad}");
        }
    }

    /// Each kind of mistake is told at its place.
    #[test]
    fn a_mistake_is_told_with_container_entry_and_field() {
        let handler = "handler: {exec: {command: [a]}}";
        for (text, place, words) in [
            ("{", "`notifiers.boathook.dev/main`: ", "not a list"),
            ("name: a", "`notifiers.boathook.dev/main`: ", "not a list"),
            ("- handler: {signal: HUP}", "entry 0, name: ", "missing"),
            ("- {name: a b, handler: {signal: HUP}}", "entry 0 (`a b`), name: ", "label key"),
            ("- {name: k8s.io/a, handler: {signal: HUP}}", "name: ", "reserved"),
            (&format!("- {{name: a, {handler}}}\n- {{name: a, {handler}}}"), "entry 1 (`a`), name: ", "same name"),
            ("- {name: a}", "entry 0 (`a`), handler: ", "missing"),
            ("- {name: a, handler: {}}", "handler: ", "exactly one"),
            ("- {name: a, handler: {signal: HUP, exec: {command: [a]}}}", "handler: ", "exactly one"),
            ("- {name: a, handler: {exec: {command: []}}}", "handler.exec.command: ", "no program"),
            (r#"- {name: a, handler: {exec: {command: [a, "\0"]}}}"#, "handler.exec: command[1]: ", "NUL"),
            ("- {name: a, handler: {exec: {command: [a], hold: true}}}", "handler.exec.hold: ", "PodNotification"),
            ("- {name: a, handler: {signal: 1}}", "handler.signal: ", "number"),
            ("- {name: a, handler: {signal: SIGFOO}}", "handler.signal: ", "not a Linux signal"),
            ("- {name: a, handler: {httpGet: {port: 1}}}", "entry 0 (`a`), handler: ", "httpGet"),
            ("- {name: a, handler: {exec: {command: sync}}}", "entry 0 (`a`), handler: ", "sequence"),
            ("- {name: [a], handler: {signal: HUP}}", "entry 0, name: ", "string"),
            (&format!("- {{name: a, {handler}, timeoutSeconds: 0}}"), "timeoutSeconds: ", "less than 1"),
            (&format!("- {{name: a, {handler}, timeoutSeconds: 9999999999}}"), "timeoutSeconds: ", "too long"),
            (&format!("- {{name: a, {handler}, output: Head}}"), "entry 0 (`a`), output: ", "`None` or `Tail`"),
            (&format!("- {{name: a, {handler}, timeout: 1}}"), "entry 0 (`a`): ", "`timeout`"),
            (&format!("- {{name: a, {handler}, probe: {{}}}}"), "probe: ", "exactly one of exec, httpGet"),
            (
                &format!("- {{name: a, {handler}, probe: {{exec: {{command: [a], hold: true}}}}}}"),
                "probe: ",
                "cannot hold",
            ),
            (
                &format!("- {{name: a, {handler}, probe: {{tcpSocket: {{port: 1}}, periodSeconds: 0}}}}"),
                "probe: ",
                "period",
            ),
        ] {
            let told = parse(text).unwrap_err().to_string();
            assert!(told.contains(place) && told.contains(words), "{text}: {told}");
        }
        let annotations = [(format!("{NOTIFIERS_PREFIX}other"), "[]".to_owned())].into();
        let told = Declarations::parse(&annotations, &["main".to_owned()]).unwrap_err().to_string();
        assert!(told.contains("`notifiers.boathook.dev/other`") && told.contains("`main`"), "{told}");
    }
}
