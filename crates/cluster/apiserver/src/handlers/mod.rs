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
use crate::status::{FieldError, Result, Status};
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
    /// What the body says twice.
    pub repeated: Vec<String>,
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
        if !self.target.subresource.is_empty() && self.subresource_verbs().is_none() {
            return Err(match self.resource.is_custom() {
                true => Status::not_found(self.resource.group_resource(), &self.target.name),
                false => Status::no_such_path(),
            });
        }
        match (self.target.subresource.as_str(), verb) {
            ("" | "status", Verb::Get) => self.get(),
            ("", Verb::List) => self.list(),
            ("", Verb::Watch) => self.watch().await,
            ("", Verb::Create) if self.target.name.is_empty() => self.create().await,
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
            (_, _) => Err(self.method_not_allowed()),
        }
    }

    fn subresource_verbs(&self) -> Option<&[&'static str]> {
        let subresources = &self.resource.served.subresources;
        let found = subresources.iter().find(|subresource| subresource.name == self.target.subresource);
        found.map(|subresource| subresource.verbs.as_slice())
    }

    fn method_not_allowed(&self) -> Status {
        let of = self.resource.group_resource();
        let why = format!("{} is not supported on resources of kind \"{of}\"", self.target.verb.name());
        match self.resource.is_custom() {
            true => Status::method_not_supported(of, &why),
            false => Status::method_not_allowed(),
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
        let found = self.current(&self.key(&self.target.name));
        found.ok_or_else(|| Status::not_found(self.resource.group_resource(), &self.target.name))
    }

    /// What is stored under a key, as the resource's version has it.
    pub(crate) fn current(&self, key: &Key) -> Option<Stored> {
        self.api.store.view().get(key).map(|stored| self.presented(&stored))
    }

    pub(crate) fn presented(&self, stored: &Stored) -> Stored {
        Stored { revision: stored.revision, object: self.resource.shown_shared(&stored.object) }
    }

    pub(crate) fn warn(&self, text: impl Into<String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    /// Fields that the kind does not have, and those that were said twice, as the client wants them treated.
    pub(crate) fn unknown_fields(&self, object: &Value, paths: &[String]) -> Result<()> {
        let repeated = self.repeated.iter().map(|path| format!("duplicate field \"{path}\""));
        let told: Vec<String> = repeated.chain(paths.iter().map(|path| schema::unknown_field(path))).collect();
        match self.validation {
            _ if told.is_empty() => Ok(()),
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                told.into_iter().for_each(|text| self.warn(text));
                Ok(())
            }
            FieldValidation::Strict => {
                let refusal = schema::strict_decoding_error(&self.resource.kind, &self.resource.version, &told);
                Err(self.undecodable(object, refusal))
            }
        }
    }

    /// The refusal of what is no object of the kind. Of what came of a patch Kubernetes says it in another way.
    pub(crate) fn undecodable(&self, object: &Value, refusal: Status) -> Status {
        match self.target.verb {
            Verb::Patch => {
                let shown = Value::String(object.to_string());
                Status::invalid("", "", "", &[FieldError::invalid("patch", &shown, &refusal.message)])
            }
            _ => refusal,
        }
    }

    /// One object, in the form that was asked for.
    pub(crate) fn shown(&self, code: http::StatusCode, object: &Arc<Value>) -> Response<Body> {
        match self.form {
            Form::Table => answer::json(code, &self.resource.printer.one(object, self.include, self.api.now())),
            Form::PartialObjectMetadata => answer::json(code, &metadata_only::partial(object)),
            Form::Plain | Form::AggregatedDiscovery(_) => answer::json(code, object),
        }
    }
}
