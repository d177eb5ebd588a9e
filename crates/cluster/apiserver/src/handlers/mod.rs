//! The verbs: a file each. A [`Call`] is one request to one resource, already authenticated and allowed.

mod create;
mod delete;
mod get;
mod list;
pub(crate) mod options;
mod patch;
mod review;
mod scale;
pub(crate) mod session;
mod subresource;
mod update;
mod watch;
pub(crate) mod write;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Response;
use hyper::upgrade::OnUpgrade;
use serde_json::Value;

use crate::accept::Form;
use crate::access::User;
use crate::answer::{self, Body};
use crate::api::Api;
use crate::metadata_only;
use crate::request::{Query, Target, Verb};
use crate::resource::Resource;
use crate::schema;
use crate::status::{Result, Status};
use crate::store::{Key, Prefix, Stored};
use crate::table::Include;

/// How unknown and doubled fields are treated: `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// One request, and everything that is needed to answer it.
pub struct Call {
    pub api: Arc<Api>,
    pub resource: Arc<Resource>,
    pub target: Target,
    pub query: Query,
    pub user: User,
    pub form: Form,
    /// How much of each object a table carries.
    pub include: Include,
    pub content_type: String,
    pub body: Bytes,
    /// Who owns what this request writes.
    pub manager: String,
    pub dry_run: bool,
    pub validation: FieldValidation,
    /// The client named the version that it changes.
    pub client_pins: bool,
    /// A server-side apply: it has kept account of who owns what by itself.
    pub applies: bool,
    /// When the client stops waiting.
    pub deadline: tokio::time::Instant,
    /// When the request came, as objects carry times.
    pub now: String,
    /// The connection, if it is to become a WebSocket, and the client's key for it.
    pub upgrade: Option<(OnUpgrade, String)>,
    /// The protocols that the client offers to speak over it.
    pub protocols: Vec<String>,
    /// Told beside the answer, in `Warning` headers.
    pub warnings: Arc<Mutex<Vec<String>>>,
}

impl Call {
    /// Answers the request.
    pub async fn answer(mut self) -> Result<Response<Body>> {
        if let Some(review) = self.resource.review {
            return self.review(review);
        }
        if let Some(warning) = self.resource.custom.as_ref().and_then(|version| version.deprecation.as_ref()) {
            self.warn(warning);
        }
        if self.is_of("endpoints") {
            self.warn("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
        }
        let verb = self.target.verb;
        let nowhere = self.resource.namespaced && self.target.namespace.is_empty();
        if nowhere && matches!(verb, Verb::Create | Verb::DeleteCollection) {
            return Err(Status::method_not_allowed());
        }
        match (self.target.subresource.as_str(), verb) {
            ("status", _) if !self.resource.has_status => Err(Status::no_such_path()),
            ("" | "status", Verb::Get) => self.get(),
            ("", Verb::List) => self.list(),
            ("", Verb::Watch) => self.watch().await,
            ("", Verb::Create) => self.create().await,
            ("" | "status", Verb::Update) => self.update().await,
            ("" | "status", Verb::Patch) => self.patch().await,
            ("", Verb::Delete) => self.delete().await,
            ("", Verb::DeleteCollection) => self.delete_collection().await,
            ("scale", _) if self.resource.scale.is_some() => self.scale().await,
            ("exec" | "attach", Verb::Get | Verb::Create) if self.is_of("pods") => self.open_session(),
            ("log", Verb::Get) if self.is_of("pods") => self.log(),
            ("binding", Verb::Create) if self.is_of("pods") => self.bind().await,
            ("eviction", Verb::Create) if self.is_of("pods") => self.evict().await,
            ("finalize", Verb::Update) if self.is_of("namespaces") => self.finalize().await,
            ("token", Verb::Create) if self.is_of("serviceaccounts") => self.token(),
            (_, _) => Err(Status::no_such_path()),
        }
    }

    /// Whether this is a core resource: the subresources of some are the server's own.
    fn is_of(&self, plural: &str) -> bool {
        self.resource.group.is_empty() && self.resource.plural == plural
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        let namespace = if self.resource.namespaced { self.target.namespace.as_str() } else { "" };
        Key::new(self.resource.stored_as(), namespace, name)
    }

    pub(crate) fn prefix(&self) -> Prefix {
        let resource = self.resource.stored_as();
        match self.resource.namespaced && !self.target.namespace.is_empty() {
            true => Prefix::in_namespace(resource, self.target.namespace.as_str()),
            false => Prefix::everywhere(resource),
        }
    }

    /// The stored object that the path names.
    pub(crate) fn stored(&self) -> Result<Stored> {
        let found = self.api.store.view().get(&self.key(&self.target.name));
        found.ok_or_else(|| Status::not_found(self.resource.group_resource(), &self.target.name))
    }

    pub(crate) fn warn(&self, text: impl Into<String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    /// Fields that the kind does not have, as the client wants them treated.
    pub(crate) fn unknown_fields(&self, paths: &[String]) -> Result<()> {
        let told: Vec<String> = paths.iter().map(|path| schema::unknown_field(path)).collect();
        match self.validation {
            _ if told.is_empty() => Ok(()),
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                told.into_iter().for_each(|text| self.warn(text));
                Ok(())
            }
            FieldValidation::Strict => {
                Err(schema::strict_decoding_error(&self.resource.kind, &self.resource.version, &told))
            }
        }
    }

    /// One object, in the form that was asked for.
    pub(crate) fn shown(&self, code: http::StatusCode, object: &Arc<Value>) -> Response<Body> {
        let body = match self.form {
            Form::Table => self.resource.printer.one(object, self.include, self.api.now()),
            Form::PartialObjectMetadata => metadata_only::partial(object),
            Form::Plain | Form::AggregatedDiscovery(_) => Value::clone(object),
        };
        answer::json(code, &body)
    }
}
