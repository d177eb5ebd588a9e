//! The subresources that only some kinds have: a pod's binding and eviction, a namespace's finalizers, an account's
//! tokens.

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::Call;
use super::write::Part;
use crate::admission::Operation;
use crate::answer::{self, Body};
use crate::body;
use crate::object;
use crate::status::{Result, Status};

impl Call {
    /// `pods/NAME/binding`: the pod is given to a node, once, and takes over the annotations of the Binding.
    pub(super) async fn bind(&self) -> Result<Response<Body>> {
        let binding = body::object(&self.content_type, &self.body)?;
        let node = object::text(&binding, "/target/name");
        if node.is_empty() {
            return Err(Status::bad_request("Binding \"\" is invalid: target.name: Required value"));
        }
        self.admit(Operation::Create, Some(&binding), None).await?;
        let bound = |pod: &Value| {
            let current = object::text(pod, "/spec/nodeName");
            if !current.is_empty() {
                let why = format!("pod {} is already assigned to node \"{current}\"", object::name(pod));
                return Err(Status::conflict(self.resource.group_resource(), object::name(pod), &why));
            }
            let mut pod = pod.clone();
            pod["spec"]["nodeName"] = node.into();
            if let Some(annotations) = binding.pointer("/metadata/annotations").and_then(Value::as_object) {
                object::map_mut(&mut pod["metadata"]["annotations"]).extend(annotations.clone());
            }
            let scheduled = json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": self.now,
            });
            let conditions = object::map_mut(&mut pod["status"]).entry("conditions").or_insert(json!([]));
            if let Some(conditions) = conditions.as_array_mut() {
                conditions.retain(|condition| condition["type"] != "PodScheduled");
                conditions.push(scheduled);
            }
            Ok(pod)
        };
        self.store_change(Part::All, bound).await?;
        Ok(created())
    }

    /// `pods/NAME/eviction`: a deletion that may be refused. Nothing here refuses one: there are no budgets.
    pub(super) async fn evict(&mut self) -> Result<Response<Body>> {
        let eviction = body::object(&self.content_type, &self.body)?;
        let options = eviction.get("deleteOptions").cloned().unwrap_or(json!({}));
        self.content_type = "application/json".to_owned();
        self.body = options.to_string().into();
        self.delete().await?;
        Ok(created())
    }

    /// `namespaces/NAME/finalize`: who held the namespace lets it go.
    pub(super) async fn finalize(&self) -> Result<Response<Body>> {
        let sent = body::object(&self.content_type, &self.body)?;
        let finalizers = sent.pointer("/spec/finalizers").cloned().unwrap_or(json!([]));
        let released = |namespace: &Value| {
            let mut namespace = namespace.clone();
            namespace["spec"]["finalizers"] = finalizers.clone();
            Ok(namespace)
        };
        let stored = self.store_change(Part::All, released).await?;
        Ok(self.shown(StatusCode::OK, &stored.object))
    }

    /// `serviceaccounts/NAME/token`: a token of the account.
    pub(super) fn token(&self) -> Result<Response<Body>> {
        let request = body::object(&self.content_type, &self.body)?;
        let now = self.api.now().as_second();
        let (namespace, name) = (&self.target.namespace, &self.target.name);
        let answered = self.api.tokens.request(namespace, name, request, now, &self.api.lookup())?;
        Ok(answer::json(StatusCode::CREATED, &answered))
    }
}

fn created() -> Response<Body> {
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    answer::json(StatusCode::CREATED, &body)
}
