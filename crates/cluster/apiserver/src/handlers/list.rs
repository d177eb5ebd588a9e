//! `list`: the objects of a resource, all at one version of the store, page by page if asked.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::Call;
use crate::accept::Form;
use crate::answer::{self, Body};
use crate::metadata_only;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::{Result, Status};
use crate::store::{Key, View};

/// What a list or a watch shows of what it covers.
pub(super) struct Selector {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selector {
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}

impl Call {
    pub(super) fn list(&self) -> Result<Response<Body>> {
        let selector = self.selector()?;
        self.query.number::<i64>("timeoutSeconds")?;
        let limit = self.query.number::<i64>("limit")?.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.filter(|limit| *limit > 0);
        let token = self.query.get("continue");
        let (view, after) = match token {
            "" => (self.view_for_list(limit.is_some())?, None),
            token => {
                let (revision, after) = self.decode_token(token)?;
                let expired = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.";
                let view = self.api.store.view_at(revision).ok_or_else(|| Status::expired(expired))?;
                (view, Some(after))
            }
        };
        let (items, remaining) = self.page(&view, &selector, after, limit);
        if remaining > 0 {
            // The next page is of the same objects, whatever happens meanwhile.
            self.api.store.keep(&view);
        }
        let metadata = self.list_metadata(&view, &items, remaining);
        let items: Vec<Arc<Value>> = items.into_iter().map(|(_, object)| object).collect();
        Ok(answer::json(StatusCode::OK, &self.shown_list(&items, metadata)))
    }

    /// The view that the client asks for: the newest always satisfies "not older than"; an exact one must be kept.
    /// What is to be paged and says nothing else means exactly.
    fn view_for_list(&self, paged: bool) -> Result<View> {
        let view = self.api.store.view();
        let wanted = self.query.version();
        let wanted = wanted.map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
        let Some(wanted) = wanted else { return Ok(view) };
        match self.query.get("resourceVersionMatch") {
            "" if paged && wanted == 0 => Ok(view),
            matching if matching == "Exact" || (paged && matching.is_empty()) => {
                let expired =
                    || Status::expired(format!("The resourceVersion for the provided list is too old: {wanted}"));
                self.api.store.view_at(wanted).ok_or_else(expired)
            }
            _ if wanted > view.revision() => {
                let message = format!("Too large resource version: {wanted}, current: {}", view.revision());
                Err(Status::timeout(message))
            }
            _ => Ok(view),
        }
    }

    /// The version in the query; what it is not, in Kubernetes' words.
    pub(super) fn wanted_version(&self) -> std::result::Result<Option<u64>, String> {
        match self.query.get("resourceVersion") {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
            }),
        }
    }

    /// A page of objects with their keys, and how many are left, selected or not.
    fn page(
        &self,
        view: &View,
        selector: &Selector,
        after: Option<Key>,
        limit: Option<usize>,
    ) -> (Vec<(Key, Arc<Value>)>, usize) {
        let prefix = self.prefix();
        let mut left = view.list(&prefix, after.as_ref(), None);
        let shown = left.by_ref().map(|(key, stored)| (key, self.resource.shown_shared(&stored.object)));
        let selected = shown.filter(|(_, object)| selector.matches(object));
        let items = selected.take(limit.unwrap_or(usize::MAX)).map(|(key, object)| (key.clone(), object)).collect();
        (items, left.count())
    }

    fn list_metadata(&self, view: &View, items: &[(Key, Arc<Value>)], remaining: usize) -> Value {
        let mut metadata = json!({"resourceVersion": view.revision().to_string()});
        if self.resource.served.custom {
            metadata["continue"] = "".into();
        }
        if let (true, Some((last, _))) = (remaining > 0, items.last()) {
            let token = json!([view.revision(), &*last.namespace, &*last.name]).to_string();
            metadata["continue"] = URL_SAFE_NO_PAD.encode(token).into();
            // How many of them are selected is not known.
            if self.query.get("labelSelector").is_empty() && self.query.get("fieldSelector").is_empty() {
                metadata["remainingItemCount"] = remaining.into();
            }
        }
        metadata
    }

    /// At which version of the store the next page is, and after which object.
    fn decode_token(&self, token: &str) -> Result<(u64, Key)> {
        let refused = || {
            Status::bad_request("invalid continue token: continue key is not valid: it was not given by this server")
        };
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| refused())?;
        let (revision, namespace, name): (u64, String, String) =
            serde_json::from_slice(&bytes).map_err(|_| refused())?;
        Ok((revision, Key::new(self.resource.stored_as(), namespace, name)))
    }

    pub(super) fn shown_list(&self, items: &[Arc<Value>], metadata: Value) -> Value {
        match self.form {
            Form::Plain | Form::AggregatedDiscovery(_) => answer::list(&self.resource, metadata, items),
            Form::PartialObjectMetadata => metadata_only::partial_list(items.iter().map(|item| &**item), metadata),
            Form::Table => {
                let objects = items.iter().map(|item| &**item);
                self.resource.printer.list(objects, metadata, self.include, self.api.now())
            }
        }
    }

    /// Both selectors of the query.
    pub(super) fn selector(&self) -> Result<Selector> {
        Ok(Selector {
            labels: self.query.get("labelSelector").parse()?,
            fields: FieldSelector::parse(self.query.get("fieldSelector"), &self.resource.selectable)?,
        })
    }
}
