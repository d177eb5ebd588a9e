//! One rule of a role: what it allows, and whether it covers another rule.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Attributes;
use crate::object;

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicyRule {
    pub verbs: Vec<String>,
    #[serde(rename = "apiGroups", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// All rules of a `Role` or `ClusterRole`.
    pub(super) fn of_role(role: &Value) -> Vec<Self> {
        object::list(role, "/rules").iter().map(|rule| Self::deserialize(rule).unwrap_or_default()).collect()
    }

    pub(super) fn allows(&self, request: &Attributes<'_>) -> bool {
        if !has(&self.verbs, "*") && !has(&self.verbs, request.verb) {
            return false;
        }
        if !request.path.is_empty() {
            return self.non_resource_urls.iter().any(|url| url_covers(url, request.path));
        }
        (has(&self.groups, "*") || has(&self.groups, request.group))
            && covers_resource(&self.resources, &request.combined_resource())
            && (self.resource_names.is_empty() || has(&self.resource_names, request.name))
    }

    /// The rule in its smallest parts: each with one verb and one resource (and name) or one URL. A part is always
    /// covered by a single rule or by none.
    pub(super) fn parts(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let names: Vec<Vec<String>> = if self.resource_names.is_empty() {
            vec![Vec::new()]
        } else {
            self.resource_names.iter().map(one).collect()
        };
        let mut parts = Vec::new();
        for verb in &self.verbs {
            for group in &self.groups {
                for resource in &self.resources {
                    parts.extend(names.iter().map(|name| Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        resource_names: name.clone(),
                        ..Self::default()
                    }));
                }
            }
            parts.extend(self.non_resource_urls.iter().map(|url| Self {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..Self::default()
            }));
        }
        parts
    }

    /// Whether this rule allows all that `part` (see [`Self::parts`]) allows.
    pub(super) fn covers(&self, part: &Self) -> bool {
        let all = |own: &[String], wanted: &[String]| has(own, "*") || wanted.iter().all(|text| has(own, text));
        let names = self.resource_names.is_empty()
            || !part.resource_names.is_empty()
                && part.resource_names.iter().all(|name| has(&self.resource_names, name));
        all(&self.verbs, &part.verbs)
            && all(&self.groups, &part.groups)
            && part.resources.iter().all(|resource| covers_resource(&self.resources, resource))
            && names
            && part.non_resource_urls.iter().all(|url| self.non_resource_urls.iter().any(|own| url_covers(own, url)))
    }
}

/// As Kubernetes shows a rule in the refusal of an escalation.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown: Vec<String> = fields
            .iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| format!("{name}:{}", quoted(values)))
            .collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

/// A list of texts as Go's `%q` prints it.
pub(super) fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|text| text == wanted)
}

/// `resource` may name a subresource (`pods/log`), which `*` and `*/log` cover too.
fn covers_resource(own: &[String], resource: &str) -> bool {
    let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
    own.iter().any(|own| {
        own == "*" || own == resource || subresource.is_some_and(|wanted| own.strip_prefix("*/") == Some(wanted))
    })
}

fn url_covers(own: &str, url: &str) -> bool {
    own == url || own.ends_with('*') && url.starts_with(own.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(rule: Value) -> PolicyRule {
        PolicyRule::deserialize(rule).unwrap()
    }

    #[test]
    fn a_star_before_a_subresource_covers_that_subresource_only() {
        let scale = rule(json!({"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["get"]}));
        let get = Attributes { verb: "get", group: "apps", resource: "deployments", ..Default::default() };
        assert!(scale.allows(&Attributes { subresource: "scale", ..get }));
        assert!(!scale.allows(&Attributes { subresource: "status", ..get }));
        assert!(!scale.allows(&get));
        assert!(!scale.allows(&Attributes { subresource: "scale", group: "", ..get }));
    }

    #[test]
    fn a_rule_with_names_allows_no_request_without_a_name() {
        let named = rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["*"], "resourceNames": ["a"]}));
        let get = Attributes { verb: "get", resource: "pods", ..Default::default() };
        assert!(named.allows(&Attributes { name: "a", ..get }));
        assert!(!named.allows(&Attributes { name: "b", ..get }));
        assert!(!named.allows(&get));
    }

    #[test]
    fn urls_match_by_their_start_where_they_end_in_a_star() {
        let urls = rule(json!({"nonResourceURLs": ["/apis/*", "/version"], "verbs": ["get"]}));
        let get = |path| Attributes { verb: "get", path, ..Default::default() };
        assert!(urls.allows(&get("/apis/apps")));
        assert!(urls.allows(&get("/version")));
        assert!(!urls.allows(&get("/version/")));
        assert!(!urls.allows(&get("/apis")));
    }

    #[test]
    fn a_rule_for_names_does_not_cover_one_for_all_names() {
        let all = rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}));
        let named = rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]}));
        assert!(all.covers(&named) && all.covers(&all) && named.covers(&named));
        assert!(!named.covers(&all));
    }

    #[test]
    fn rules_are_shown_as_in_the_refusals_of_kubernetes() {
        let shown = rule(json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]})).to_string();
        assert_eq!(shown, "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}");
    }
}
