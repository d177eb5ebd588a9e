//! `POST serviceaccounts/NAME/token`: a token of an account, on request.

use serde_json::{Value, json};

use super::token::{Claims, ISSUER, Lookup, Tokens};
use crate::object;
use crate::status::{FieldError, GroupResource, Result, Status};

const GROUP: &str = "authentication.k8s.io";
/// Where a request names no lifetime, in seconds.
const DEFAULT_LIFETIME: i64 = 3600;
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

impl Tokens {
    /// The answer to a `TokenRequest` for this account. `now` is in seconds since the epoch.
    pub fn request(
        &self,
        namespace: &str,
        name: &str,
        mut request: Value,
        now: i64,
        lookup: Lookup<'_>,
    ) -> Result<Value> {
        for (field, own) in [("name", name), ("namespace", namespace)] {
            let sent = object::text(&request["metadata"], &format!("/{field}"));
            if !sent.is_empty() && sent != own {
                let detail = format!("must match the service account {field} if specified");
                let error = FieldError::invalid(format!("metadata.{field}"), &json!(sent), &detail);
                return Err(Status::invalid(GROUP, "TokenRequest", name, &[error]));
            }
        }
        let account = find(lookup, "serviceaccounts", namespace, name)?;
        let spec = &request["spec"];
        let mut audiences = object::texts(spec, "/audiences");
        if audiences.is_empty() {
            audiences.push(ISSUER.to_owned());
        }
        let lifetime = lifetime(spec)?;
        let bound = bound(spec, namespace, name, lookup)?;
        let claims = Claims { namespace, account: &account, audiences: &audiences, issued: now, lifetime, bound };
        let token = self.mint(&claims);

        request["kind"] = json!("TokenRequest");
        request["apiVersion"] = json!("authentication.k8s.io/v1");
        request["metadata"] = json!({
            "name": name,
            "namespace": namespace,
            "uid": object::uid(&account),
            "creationTimestamp": time(now),
        });
        let bound_to = request["spec"]["boundObjectRef"].take();
        request["spec"] = json!({"audiences": audiences, "expirationSeconds": lifetime, "boundObjectRef": bound_to});
        request["status"] = json!({"token": token, "expirationTimestamp": time(now + lifetime)});
        Ok(request)
    }
}

fn lifetime(spec: &Value) -> Result<i64> {
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT_LIFETIME);
    let refuse = |detail| {
        let error = FieldError::invalid("spec.expirationSeconds", &json!(seconds), detail);
        Err(Status::invalid(GROUP, "TokenRequest", "", &[error]))
    };
    match seconds {
        ..SHORTEST => refuse("may not specify a duration less than 10 minutes"),
        SHORTEST..=LONGEST => Ok(seconds),
        _ => refuse("may not specify a duration larger than 2^32 seconds"),
    }
}

/// The pod that the token dies with, and its node, as claims. Kubernetes binds to secrets and nodes too.
fn bound(spec: &Value, namespace: &str, account: &str, lookup: Lookup<'_>) -> Result<Vec<(&'static str, Value)>> {
    let reference = &spec["boundObjectRef"];
    if reference.is_null() {
        return Ok(Vec::new());
    }
    let (api_version, kind, name) =
        (object::api_version(reference), object::kind(reference), object::text(reference, "/name"));
    if (api_version, kind) != ("v1", "Pod") {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
        return Err(Status::bad_request(message));
    }
    let pod = find(lookup, "pods", namespace, name)?;
    if object::text(&pod, "/spec/serviceAccountName") != account {
        let message = format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        );
        return Err(Status::bad_request(message));
    }
    let sent = object::text(reference, "/uid");
    if !sent.is_empty() && sent != object::uid(&pod) {
        let why = format!(
            "the UID in the bound object reference ({sent}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(GroupResource { group: "", resource: kind }, name, &why));
    }
    let node = match object::text(&pod, "/spec/nodeName") {
        "" => None,
        // A node that is not there any more is still named.
        node => Some(lookup("nodes", "", node).unwrap_or_else(|| json!({"metadata": {"name": node}}))),
    };
    Ok([("pod", pod)].into_iter().chain(node.map(|node| ("node", node))).collect())
}

fn find(lookup: Lookup<'_>, resource: &str, namespace: &str, name: &str) -> Result<Value> {
    lookup(resource, namespace, name).ok_or_else(|| Status::not_found(GroupResource { group: "", resource }, name))
}

/// A time as objects hold it.
pub(super) fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_794_779_629;

    fn stored(resource: &str, namespace: &str, name: &str) -> Option<Value> {
        match (resource, namespace, name) {
            ("serviceaccounts", "shop", "bot") => {
                Some(json!({"metadata": {"name": "bot", "namespace": "shop", "uid": "u1"}}))
            }
            ("pods", "shop", "web") => Some(json!({
                "metadata": {"name": "web", "namespace": "shop", "uid": "p1"},
                "spec": {"serviceAccountName": "bot", "nodeName": "here"},
            })),
            ("pods", "shop", "other") => Some(json!({
                "metadata": {"name": "other", "namespace": "shop", "uid": "p2"},
                "spec": {"serviceAccountName": "default"},
            })),
            _ => None,
        }
    }

    fn ask(name: &str, spec: Value) -> Result<Value> {
        Tokens::new(&[7; 32], []).request("shop", name, json!({"spec": spec}), NOW, &stored)
    }

    fn refusal(name: &str, spec: Value) -> String {
        ask(name, spec).unwrap_err().message
    }

    #[test]
    fn a_request_without_wishes_gets_an_hour_for_this_server() {
        let answer = ask("bot", json!({})).unwrap();
        let wanted = json!({"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": null});
        assert_eq!(answer["spec"], wanted);
        assert_eq!(answer["metadata"]["creationTimestamp"], "2026-11-15T21:53:49Z");
        assert_eq!(answer["status"]["expirationTimestamp"], "2026-11-15T22:53:49Z");
        let token = object::text(&answer, "/status/token");
        let user = Tokens::new(&[7; 32], []).authenticate(token, NOW, &stored).unwrap();
        assert_eq!(user.name, "system:serviceaccount:shop:bot");
    }

    #[test]
    fn a_token_of_a_pod_names_the_pod_and_its_node() {
        let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "p1"}});
        let answer = ask("bot", bound).unwrap();
        let token = object::text(&answer, "/status/token");
        let user = Tokens::new(&[7; 32], []).authenticate(token, NOW, &stored).unwrap();
        assert_eq!(user.extra["authentication.kubernetes.io/pod-name"], ["web"]);
        assert_eq!(user.extra["authentication.kubernetes.io/node-name"], ["here"]);
    }

    #[test]
    fn refusals_say_what_kubernetes_says() {
        let pod = |name| json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name}});
        assert_eq!(refusal("nope", json!({})), "serviceaccounts \"nope\" not found");
        assert_eq!(refusal("bot", pod("nope")), "pods \"nope\" not found");
        assert_eq!(
            refusal("bot", pod("other")),
            "cannot bind token for serviceaccount \"bot\" to pod running with different serviceaccount name."
        );
        assert_eq!(
            refusal("bot", json!({"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}})),
            "cannot bind token to object of type /v1, Kind=ConfigMap"
        );
        assert_eq!(
            refusal("bot", json!({"expirationSeconds": 10})),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 10: \
             may not specify a duration less than 10 minutes"
        );
        assert_eq!(
            refusal("bot", json!({"expirationSeconds": (1i64 << 32) + 1})),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: \
             Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"
        );
        let wrong_uid = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "p0"}});
        assert!(refusal("bot", wrong_uid).ends_with("might have been deleted and then recreated"));
    }
}
