//! Field selectors: `metadata.name=x,status.phase!=Running`, and which fields of a kind may be selected by.

use serde_json::Value;

use crate::object;
use crate::status::{Result, Status};

/// Which objects are meant, by the values of a few fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    field: String,
    equal: bool,
    value: String,
}

/// The fields of one kind that a selector may name.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectableFields {
    /// A built-in kind with a list of its own, parted by spaces.
    Listed(&'static str),
    /// Any other built-in kind: name and namespace, whatever its scope.
    Metadata,
    /// A custom kind: its name, its namespace if it has one, and its `selectableFields` (as `spec.color`).
    Custom { namespaced: bool, fields: Vec<String> },
}

const POD: &str = "metadata.name metadata.namespace spec.nodeName spec.restartPolicy spec.schedulerName \
    spec.serviceAccountName spec.hostNetwork spec.host status.phase status.podIP status.podIPs status.nominatedNodeName";

const EVENT: &str = "metadata.name metadata.namespace involvedObject.kind involvedObject.namespace involvedObject.name \
    involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason \
    reportingComponent source type";

const EVENTS_GROUP_EVENT: &str = "metadata.name metadata.namespace regarding.kind regarding.namespace regarding.name \
    regarding.uid regarding.apiVersion regarding.resourceVersion regarding.fieldPath reason reportingController type";

impl SelectableFields {
    pub fn of_builtin(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Pod") => Self::Listed(POD),
            ("", "Event") => Self::Listed(EVENT),
            ("events.k8s.io", "Event") => Self::Listed(EVENTS_GROUP_EVENT),
            ("", "Node") => Self::Listed("metadata.name spec.unschedulable"),
            ("", "Namespace") => Self::Listed("metadata.name status.phase"),
            ("", "Secret") => Self::Listed("metadata.name metadata.namespace type"),
            ("", "Service") => Self::Listed("metadata.name metadata.namespace spec.clusterIP spec.type"),
            _ => Self::Metadata,
        }
    }

    fn check(&self, field: &str) -> Result<()> {
        let not_supported = || Status::bad_request(format!("field label not supported: {field}"));
        match self {
            Self::Listed(fields) if fields.split(' ').any(|listed| listed == field) => Ok(()),
            Self::Listed(_) => Err(not_supported()),
            Self::Metadata if matches!(field, "metadata.name" | "metadata.namespace") => Ok(()),
            Self::Metadata => Err(Status::bad_request(format!(
                "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ))),
            Self::Custom { namespaced, fields } => match field {
                "metadata.name" => Ok(()),
                "metadata.namespace" if *namespaced => Ok(()),
                other if fields.iter().any(|field| field == other) => Ok(()),
                _ => Err(not_supported()),
            },
        }
    }
}

impl FieldSelector {
    pub fn parse(text: &str, selectable: &SelectableFields) -> Result<Self> {
        let mut parts = split_unescaped(text);
        // Kubernetes sorts them first, which decides which of two mistakes it reports.
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, equal, value)) = split_term(part) else {
                let message = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(Status::bad_request(message));
            };
            terms.push(Term { field: field.to_owned(), equal, value: unescape(value)? });
        }
        for term in &terms {
            selectable.check(&term.field)?;
        }
        Ok(Self { terms })
    }

    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| (field_value(object, &term.field) == term.value) == term.equal)
    }
}

/// A field's value as selectors see it: text, with Kubernetes' default for a field that is absent.
fn field_value(object: &Value, field: &str) -> String {
    let at = |path: &str| match object.pointer(&format!("/{}", path.replace('.', "/"))) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let first = |value: String, other: &str| if value.is_empty() { at(other) } else { value };
    match field {
        "spec.hostNetwork" | "spec.unschedulable" => object
            .pointer(&format!("/{}", field.replace('.', "/")))
            .and_then(Value::as_bool)
            .unwrap_or(false)
            .to_string(),
        "spec.host" => at("spec.nodeName"),
        // It may be named, but no pod has a value for it.
        "status.podIPs" => String::new(),
        // An event reads alike in both of its groups.
        "reportingComponent" | "reportingController" => first(at("reportingComponent"), "reportingController"),
        "source" if object::kind(object) == "Event" => {
            let component = first(at("source.component"), "deprecatedSource.component");
            if component.is_empty() { field_value(object, "reportingComponent") } else { component }
        }
        _ => match field.split_once('.') {
            Some(("involvedObject", rest)) => first(at(field), &format!("regarding.{rest}")),
            Some(("regarding", rest)) => first(at(field), &format!("involvedObject.{rest}")),
            _ => at(field),
        },
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|character| {
        let separates = !escaped && character == ',';
        escaped = !escaped && character == '\\';
        separates
    })
    .collect()
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=')?;
    let (before, after) = (&term[..at], &term[at + 1..]);
    if let Some(field) = before.strip_suffix('!') {
        return Some((field, false, after));
    }
    Some((before, true, after.strip_prefix('=').unwrap_or(after)))
}

fn unescape(value: &str) -> Result<String> {
    let invalid =
        |sequence: String| Status::bad_request(format!("invalid field selector: invalid escape sequence: {sequence}"));
    let mut unescaped = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => unescaped.push(escaped),
                Some(other) => return Err(invalid(format!("\\{other}"))),
                None => return Err(invalid("\\".to_owned())),
            },
            ',' | '=' => {
                let code = u32::from(character);
                let message = format!("invalid field selector: unescaped character in value: {code}");
                return Err(Status::bad_request(message));
            }
            other => unescaped.push(other),
        }
    }
    Ok(unescaped)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pods(text: &str) -> Result<FieldSelector> {
        FieldSelector::parse(text, &SelectableFields::of_builtin("", "Pod"))
    }

    #[test]
    fn every_term_must_hold() {
        let pod = json!({"metadata": {"name": "web"}, "status": {"phase": "Running"}});
        assert!(pods("metadata.name=web,status.phase!=Failed").expect("valid").matches(&pod));
        assert!(!pods("metadata.name==web,status.phase=Failed").expect("valid").matches(&pod));
        assert!(pods("spec.nodeName=,spec.hostNetwork=false").expect("valid").matches(&pod));
    }

    #[test]
    fn commas_and_equals_signs_can_be_escaped() {
        let selector = pods(r"metadata.name=a\,b\=c\\").expect("valid");
        assert!(selector.matches(&json!({"metadata": {"name": r"a,b=c\"}})));
    }

    /// Each pair was observed on Kubernetes 1.35.
    #[test]
    fn what_cannot_be_read_is_refused_in_kubernetes_words() {
        for (text, wanted) in [
            ("spec.foo=x", "field label not supported: spec.foo"),
            ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
            (r"metadata.name=a\x", r"invalid field selector: invalid escape sequence: \x"),
            ("=b", "field label not supported: "),
            ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
            ("metadata.name!=a,b", "invalid selector: 'metadata.name!=a,b'; can't understand 'b'"),
            ("metadata.name>a", "invalid selector: 'metadata.name>a'; can't understand 'metadata.name>a'"),
        ] {
            assert_eq!(pods(text).expect_err(text).message, wanted, "{text}");
        }
    }

    #[test]
    fn a_kind_without_fields_of_its_own_says_which_it_has() {
        let fields = SelectableFields::of_builtin("apps", "ReplicaSet");
        let error = FieldSelector::parse("status.replicas=0", &fields).expect_err("not selectable");
        let wanted =
            "\"status.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
        assert_eq!(error.message, wanted);
    }

    #[test]
    fn a_custom_kind_is_selected_by_the_fields_it_names() {
        let fields = SelectableFields::Custom { namespaced: false, fields: vec!["spec.ready".to_owned()] };
        let selector = FieldSelector::parse("spec.ready=true", &fields).expect("named");
        assert!(selector.matches(&json!({"spec": {"ready": true}})));
        let error = FieldSelector::parse("metadata.namespace=x", &fields).expect_err("it has no namespace");
        assert_eq!(error.message, "field label not supported: metadata.namespace");
    }

    #[test]
    fn an_event_is_selected_alike_in_both_groups() {
        let core = json!({"kind": "Event", "involvedObject": {"name": "web"}, "source": {"component": "kubelet"}});
        let newer = json!({"kind": "Event", "regarding": {"name": "web"}, "reportingController": "kubelet"});
        let text = "involvedObject.name=web,source=kubelet";
        let selector = FieldSelector::parse(text, &SelectableFields::of_builtin("", "Event")).expect("valid");
        assert!(selector.matches(&core) && selector.matches(&newer));
    }
}
