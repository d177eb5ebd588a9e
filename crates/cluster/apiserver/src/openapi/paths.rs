//! The paths of a document: which operations a resource has, on which kind, with which parameters.
//!
//! kubectl finds a resource's kind by them, and reads from the PATCH operation that the server validates fields
//! (`fieldValidation`) and whether it knows strategic merge for the kind.

use serde_json::{Map, Value, json};

use crate::discovery::Served;

// Parameters of a query, parted by spaces.
const WRITE: &str = "dryRun fieldManager fieldValidation";
const PATCH: &str = "dryRun fieldManager fieldValidation force";
const DELETE: &str = "dryRun gracePeriodSeconds orphanDependents propagationPolicy";
const LIST: &str = "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion \
    resourceVersionMatch sendInitialEvents timeoutSeconds watch";

/// All paths of a resource; `component` is the name of its schema.
pub(super) fn of(served: &Served, component: &str) -> Map<String, Value> {
    let root = match served.group.as_str() {
        "" => format!("/api/{}", served.version),
        group => format!("/apis/{group}/{}", served.version),
    };
    let (plural, scope) = (&served.plural, if served.namespaced { "/namespaces/{namespace}" } else { "" });
    let own = json!({"group": served.group, "version": served.version, "kind": served.kind});
    let own = Kind { kind: &own, component: Some(component), strategic: !served.custom };
    let mut paths = Map::new();
    let collection = own.operations(&served.verbs, &["list", "create", "deletecollection"]);
    add(&mut paths, format!("{root}{scope}/{plural}"), collection);
    if served.namespaced {
        add(&mut paths, format!("{root}/{plural}"), own.operations(&served.verbs, &["list"]));
    }
    let item = own.operations(&served.verbs, &["get", "update", "patch", "delete"]);
    add(&mut paths, format!("{root}{scope}/{plural}/{{name}}"), item);
    for subresource in &served.subresources {
        let (group, version) =
            subresource.foreign.as_ref().map_or((&served.group, &served.version), |(group, version)| (group, version));
        let kind = json!({"group": group, "version": version, "kind": subresource.kind});
        let component = (subresource.kind == served.kind && subresource.foreign.is_none()).then_some(component);
        let kind = Kind { kind: &kind, component, strategic: !served.custom };
        let operations = kind.operations(&subresource.verbs, &["get", "create", "update", "patch", "delete"]);
        add(&mut paths, format!("{root}{scope}/{plural}/{{name}}/{}", subresource.name), operations);
    }
    paths
}

fn add(paths: &mut Map<String, Value>, path: String, mut operations: Map<String, Value>) {
    if operations.is_empty() {
        return;
    }
    let in_path = ["namespace", "name"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
    let parameters: Vec<Value> = in_path
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if !parameters.is_empty() {
        operations.insert("parameters".to_owned(), parameters.into());
    }
    paths.insert(path, operations.into());
}

/// What an operation is on.
struct Kind<'a> {
    kind: &'a Value,
    /// Its schema, if this document has it.
    component: Option<&'a str>,
    strategic: bool,
}

impl Kind<'_> {
    /// The operations for those of the verbs that are served, by HTTP method.
    fn operations(&self, served: &[&str], verbs: &[&str]) -> Map<String, Value> {
        let verbs = verbs.iter().filter(|verb| served.contains(verb));
        verbs.map(|verb| self.operation(verb)).map(|(method, operation)| (method.to_owned(), operation)).collect()
    }

    fn operation(&self, verb: &str) -> (&'static str, Value) {
        let (method, action, parameters, body) = match verb {
            "list" => ("get", "list", LIST, None),
            "create" => ("post", "post", WRITE, Some(self.written())),
            "deletecollection" => ("delete", "deletecollection", LIST, None),
            "update" => ("put", "put", WRITE, Some(self.written())),
            "patch" => ("patch", "patch", PATCH, Some(self.patched())),
            "delete" => ("delete", "delete", DELETE, None),
            _ => ("get", "get", "", None),
        };
        let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": parameter_type(name)}});
        let answer = match verb {
            "list" => json!({"type": "object", "properties": {"items": {"type": "array", "items": self.schema()}}}),
            _ => self.schema(),
        };
        let mut operation = json!({
            "parameters": parameters.split_terminator(' ').map(parameter).collect::<Vec<_>>(),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.kind,
        });
        if let Some(content) = body {
            operation["requestBody"] = json!({"content": content, "required": true});
        }
        (method, operation)
    }

    fn schema(&self) -> Value {
        match self.component {
            Some(component) => json!({"$ref": format!("#/components/schemas/{component}")}),
            None => json!({"type": "object"}),
        }
    }

    fn written(&self) -> Value {
        json!({"application/json": {"schema": self.schema()}})
    }

    fn patched(&self) -> Value {
        let types = ["apply-patch+yaml", "json-patch+json", "merge-patch+json"];
        let strategic = self.strategic.then_some("strategic-merge-patch+json");
        let content = types.into_iter().chain(strategic).map(|kind| (format!("application/{kind}"), json!({})));
        Value::Object(content.collect())
    }
}

fn parameter_type(name: &str) -> &'static str {
    match name {
        "allowWatchBookmarks" | "force" | "orphanDependents" | "sendInitialEvents" | "watch" => "boolean",
        "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::examples;

    #[test]
    fn a_resource_has_the_paths_that_kubernetes_gives_it() {
        let paths = of(&examples::deployments(), "D");
        let paths: Vec<&String> = paths.keys().collect();
        let wanted = [
            "/apis/apps/v1/deployments",
            "/apis/apps/v1/namespaces/{namespace}/deployments",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status",
        ];
        assert_eq!(paths, wanted);
    }

    #[test]
    fn kubectl_reads_from_a_patch_that_fields_are_validated_by_the_server() {
        let paths = of(&examples::deployments(), "D");
        let patch = &paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        let kind = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
        assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
        let parameters = patch["parameters"].as_array().expect("a list");
        assert!(parameters.iter().any(|it| it["name"] == "fieldValidation" && it["in"] == "query"));
        let content = &patch["requestBody"]["content"];
        assert!(content.get("application/strategic-merge-patch+json").is_some());
    }

    #[test]
    fn a_custom_kind_has_no_strategic_merge() {
        let paths = of(&examples::widgets("v1"), "W");
        let item = &paths["/apis/printing.example.com/v1/namespaces/{namespace}/widgets/{name}"];
        let types: Vec<&String> = item["patch"]["requestBody"]["content"].as_object().expect("a map").keys().collect();
        let wanted = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
        assert_eq!(types, wanted);
    }

    #[test]
    fn an_operation_that_is_not_served_is_not_there() {
        let reviews = Served {
            verbs: vec!["create"],
            namespaced: false,
            ..examples::served("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews")
        };
        let paths = of(&reviews, "R");
        let paths: Vec<(&String, Vec<&String>)> =
            paths.iter().map(|(path, item)| (path, item.as_object().expect("a map").keys().collect())).collect();
        assert_eq!(paths.len(), 1);
        assert_eq!(paths[0].1, ["post"]);
    }
}
