//! Webhook configurations: their defaults, and what is refused before it could stop every write it is asked about.

use serde_json::{Value, json};

use super::fill::{each, fill};
use super::name::{self, SUBDOMAIN};
use crate::admission::conditions::expression_problem;
use crate::crd::check_label;
use crate::object;
use crate::selector::label_key_problems;
use crate::status::FieldError;

pub(crate) fn default(object: &mut Value) {
    let mutating = object::kind(object).starts_with("Mutating");
    for webhook in each(object, "/webhooks") {
        fill(webhook, "failurePolicy", json!("Fail"));
        fill(webhook, "matchPolicy", json!("Equivalent"));
        fill(webhook, "namespaceSelector", json!({}));
        fill(webhook, "objectSelector", json!({}));
        fill(webhook, "timeoutSeconds", json!(10));
        if mutating {
            fill(webhook, "reinvocationPolicy", json!("Never"));
        }
        for rule in each(webhook, "/rules") {
            fill(rule, "scope", json!("*"));
        }
        if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
            fill(service, "port", json!(443));
        }
    }
}

pub(crate) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let mut names: Vec<&str> = Vec::new();
    for (index, webhook) in object::list(object, "/webhooks").iter().enumerate() {
        let mut check = Check { at: format!("webhooks[{index}]"), of: webhook, errors };
        check.webhook();
        let name = object::text(webhook, "/name");
        if names.contains(&name) {
            errors.push(FieldError::duplicate(format!("webhooks[{index}].name"), &name.into()));
        }
        names.push(name);
    }
}

/// One object inside a configuration, and where it stands.
struct Check<'a> {
    at: String,
    of: &'a Value,
    errors: &'a mut Vec<FieldError>,
}

impl Check<'_> {
    fn below(&mut self, field: &str) -> Check<'_> {
        let of = self.of.pointer(&format!("/{}", field.replace('[', "/").replace(']', ""))).unwrap_or(&Value::Null);
        Check { at: format!("{}.{field}", self.at), of, errors: self.errors }
    }

    fn invalid(&mut self, value: &Value, why: &str) {
        self.errors.push(FieldError::invalid(self.at.clone(), value, why));
    }

    fn required(&mut self, why: &str) {
        self.errors.push(FieldError::required(self.at.clone(), why));
    }

    /// What is not there was defaulted, or is reported elsewhere.
    fn one_of(&mut self, supported: &[&str]) {
        if !self.of.is_null() && !supported.iter().any(|supported| self.of == supported) {
            self.errors.push(FieldError::not_supported(self.at.clone(), self.of, supported));
        }
    }

    fn webhook(&mut self) {
        self.below("name").name();
        for index in 0..object::list(self.of, "/rules").len() {
            self.below(&format!("rules[{index}]")).rule();
        }
        self.below("failurePolicy").one_of(&["Fail", "Ignore"]);
        self.below("matchPolicy").one_of(&["Equivalent", "Exact"]);
        self.below("reinvocationPolicy").one_of(&["IfNeeded", "Never"]);
        match object::text(self.of, "/sideEffects") {
            "" => self.below("sideEffects").required("must specify one of None, NoneOnDryRun"),
            _ => self.below("sideEffects").one_of(&["None", "NoneOnDryRun"]),
        }
        let timeout = &self.of["timeoutSeconds"];
        if timeout.as_i64().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
            self.below("timeoutSeconds").invalid(timeout, "the timeout value must be between 1 and 30 seconds");
        }
        self.below("namespaceSelector").selector();
        self.below("objectSelector").selector();
        self.below("clientConfig").client();
        self.below("admissionReviewVersions").versions();
        self.conditions();
    }

    fn name(&mut self) {
        let name = self.of.as_str().unwrap_or_default();
        if name.is_empty() {
            self.required("");
        } else if !name::is_subdomain(name) {
            self.invalid(self.of, SUBDOMAIN);
        } else if name.split('.').count() < 3 {
            self.invalid(self.of, "should be a domain with at least three segments separated by dots");
        }
    }

    fn rule(&mut self) {
        let lists = [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")];
        for (field, what) in lists {
            let mut list = self.below(field);
            let items = object::list(list.of, "");
            if items.is_empty() {
                list.required("");
            } else if items.len() > 1 && items.iter().any(|item| item == "*") {
                list.invalid(list.of, &format!("if '*' is present, must not specify other {what}"));
            }
        }
        for index in 0..object::list(self.of, "/operations").len() {
            self.below(&format!("operations[{index}]")).one_of(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]);
        }
        let mut resources = self.below("resources");
        let items: Vec<&str> = object::list(resources.of, "").iter().filter_map(Value::as_str).collect();
        let has = |wanted: &str| items.contains(&wanted);
        if items.is_empty() {
            resources.required("");
        } else if items.len() > 1 && has("*/*") {
            resources.invalid(resources.of, "if '*/*' is present, must not specify other resources");
        }
        if has("*") && items.iter().any(|item| *item != "*" && !item.contains('/')) {
            let why = "if '*' is present, must not specify other resources without subresources";
            resources.invalid(resources.of, why);
        }
        self.below("scope").one_of(&["*", "Cluster", "Namespaced"]);
    }

    fn selector(&mut self) {
        for (key, _) in object::fields(self.of, "/matchLabels") {
            for problem in label_key_problems(key) {
                self.below("matchLabels").invalid(&json!(key), &problem);
            }
        }
        for (index, expression) in object::list(self.of, "/matchExpressions").iter().enumerate() {
            let values = object::list(expression, "/values");
            let mut at = |field: &str| self.below(&format!("matchExpressions[{index}].{field}")).at;
            let (operator, place) = (object::text(expression, "/operator"), at("operator"));
            let place_of_values = at("values");
            match operator {
                "In" | "NotIn" if values.is_empty() => {
                    let why = "must be specified when `operator` is 'In' or 'NotIn'";
                    self.errors.push(FieldError::required(place_of_values, why));
                }
                "Exists" | "DoesNotExist" if !values.is_empty() => {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    self.errors.push(FieldError::forbidden(place_of_values, why));
                }
                "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
                other => {
                    self.errors.push(FieldError::invalid(place, &other.into(), "not a valid selector operator"));
                }
            }
        }
    }

    fn client(&mut self) {
        match (self.of.get("url"), self.of.get("service")) {
            (Some(_), None) => self.below("url").url(),
            (None, Some(service)) => {
                for field in ["name", "namespace"] {
                    if object::text(service, &format!("/{field}")).is_empty() {
                        self.below(&format!("service.{field}")).required("");
                    }
                }
                let (path, port) = (object::text(service, "/path"), &service["port"]);
                if !path.is_empty() && !path.starts_with('/') {
                    self.below("service.path").invalid(&path.into(), "must start with a '/'");
                }
                if port.as_i64().is_some_and(|port| !(1..=65535).contains(&port)) {
                    let why = "port is not valid: must be between 1 and 65535, inclusive";
                    self.below("service.port").invalid(port, why);
                }
            }
            _ => self.required("exactly one of url or service is required"),
        }
    }

    fn url(&mut self) {
        const FORM: &str = "; desired format: https://host[/path]";
        let url = self.of.as_str().unwrap_or_default();
        let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
        let (url, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let authority = rest.split('/').next().unwrap_or_default();
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        if scheme != "https" {
            self.invalid(&scheme.into(), &format!("'https' is the only allowed URL scheme{FORM}"));
        }
        if host.is_empty() {
            self.invalid(&host.into(), &format!("host must be specified{FORM}"));
        }
        let parts = [(user, "user information is"), (fragment, "fragments are"), (query, "query parameters are")];
        for (part, what) in parts.into_iter().filter(|(part, _)| !part.is_empty()) {
            self.invalid(&part.into(), &format!("{what} not permitted in the URL"));
        }
    }

    fn versions(&mut self) {
        let versions = object::texts(self.of, "");
        if versions.is_empty() {
            return self.required("must specify one of v1, v1beta1");
        }
        for (index, version) in versions.iter().enumerate() {
            let at = format!("{}[{index}]", self.at);
            match versions[..index].contains(version) {
                true => self.errors.push(FieldError::invalid(at, &version.as_str().into(), "duplicate version")),
                false => self.errors.extend(check_label(&at, version)),
            }
        }
        if !versions.iter().any(|version| matches!(version.as_str(), "v1" | "v1beta1")) {
            self.invalid(self.of, "must include at least one of v1, v1beta1");
        }
    }

    fn conditions(&mut self) {
        let mut names: Vec<&str> = Vec::new();
        for (index, condition) in object::list(self.of, "/matchConditions").iter().enumerate() {
            let (name, expression) = (object::text(condition, "/name"), object::text(condition, "/expression").trim());
            let mut here = self.below(&format!("matchConditions[{index}]"));
            match expression {
                "" => here.below("expression").required(""),
                expression => {
                    if let Some(why) = expression_problem(expression) {
                        here.below("expression").invalid(&expression.into(), &why);
                    }
                }
            }
            if name.is_empty() {
                here.below("name").required("");
            }
            for problem in label_key_problems(name).into_iter().filter(|_| !name.is_empty()) {
                here.below("name").invalid(&name.into(), &problem);
            }
            if !name.is_empty() && names.contains(&name) {
                self.errors
                    .push(FieldError::duplicate(format!("{}.matchConditions[{index}].name", self.at), &name.into()));
            }
            names.push(name);
        }
    }
}
