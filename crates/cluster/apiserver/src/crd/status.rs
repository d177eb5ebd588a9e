//! The status of a CustomResourceDefinition: which names it got, whether it is served.

use serde_json::{Value, json};

use super::{Definition, Names};
use crate::object::text;

impl Definition {
    /// The status to write, as Kubernetes' own controllers leave it. `old` is the status before (`Null` if there is
    /// none), `others` the other definitions there are, `now` an RFC 3339 time.
    pub fn status(&self, old: &Value, others: &[&Definition], now: &str) -> Value {
        let mut accepted = old["acceptedNames"].clone();
        let conflict = self.accept_names(&mut accepted, others);
        let names_accepted = match &conflict {
            None => ("True", "NoConflicts", "no conflicts found".to_owned()),
            Some((reason, message)) => ("False", *reason, message.clone()),
        };
        // What was established once stays so.
        let was_established = condition(old, "Established").is_some_and(|was| was["status"] == "True");
        let established = if was_established || conflict.is_none() {
            ("True", "InitialNamesAccepted", "the initial names have been accepted".to_owned())
        } else {
            ("False", "NotAccepted", "not all names are accepted".to_owned())
        };
        let written = |kind: &str, (status, reason, message): (&str, &str, String)| {
            let since = condition(old, kind).filter(|was| was["status"] == status);
            let since = since.map_or(now, |was| text(was, "/lastTransitionTime"));
            json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
        };
        let mut stored: Vec<Value> = old["storedVersions"].as_array().cloned().unwrap_or_default();
        let storage = Value::from(self.storage().name.as_str());
        if !stored.contains(&storage) {
            stored.push(storage);
        }
        json!({
            "conditions": [written("NamesAccepted", names_accepted), written("Established", established)],
            "acceptedNames": accepted,
            "storedVersions": stored,
        })
    }

    /// Takes each name that no other definition of the group has. Of several conflicts the last tells, as in
    /// Kubernetes.
    fn accept_names(&self, accepted: &mut Value, others: &[&Definition]) -> Option<(&'static str, String)> {
        if !accepted.is_object() {
            *accepted = json!({"plural": "", "kind": ""});
        }
        let Names { plural, singular, kind, list_kind, short_names, categories } = &self.names;
        let others: Vec<&Names> = others
            .iter()
            .filter(|other| other.group == self.group && other.names.plural != *plural)
            .map(|other| &other.names)
            .collect();
        let is_resource = |name: &String| {
            let has =
                |other: &&Names| other.plural == *name || other.singular == *name || other.short_names.contains(name);
            others.iter().any(has)
        };
        let is_kind = |name: &String| others.iter().any(|other| other.kind == *name || other.list_kind == *name);
        let in_use = |name: &String| format!("\"{name}\" is already in use");

        let mut conflict = None;
        let mut accept = |field: &str, name: &String, taken: bool, reason: &'static str| {
            if taken && accepted[field] != name.as_str() {
                conflict = Some((reason, in_use(name)));
            } else {
                accepted[field] = name.as_str().into();
            }
        };
        accept("plural", plural, is_resource(plural), "PluralConflict");
        accept("singular", singular, is_resource(singular), "SingularConflict");
        accept("kind", kind, is_kind(kind), "KindConflict");
        accept("listKind", list_kind, is_kind(list_kind), "ListKindConflict");
        if let Some(short) = short_names.iter().find(|short| is_resource(short)) {
            conflict = conflict.or_else(|| Some(("ShortNamesConflict", in_use(short))));
        } else if !short_names.is_empty() {
            accepted["shortNames"] = json!(short_names);
        }
        if !categories.is_empty() {
            accepted["categories"] = json!(categories);
        }
        conflict
    }
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}
