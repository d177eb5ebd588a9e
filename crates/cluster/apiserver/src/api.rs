//! The API server itself: what it knows, and the way of a request through it: who, what, may they, then the verb.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::accept::asked_form;
use crate::access::{Attributes, RBAC_GROUP, Rules, Tokens, User, bootstrap, impersonation};
use crate::admission::{Resolve, Webhooks};
use crate::answer::{self, Body};
use crate::channels;
use crate::definitions::DEFINITIONS;
use crate::describe::Descriptions;
use crate::handlers::{Call, FieldValidation, options};
use crate::random;
use crate::request::{self, Query, Target};
use crate::resource::{Kinds, Resource};
use crate::sessions::Sessions;
use crate::status::{Result, Status};
use crate::store::{CommitError, Expect, Key, Prefix, Store, Stored, View, Write};
use crate::table::Include;

/// The kinds that webhooks are configured by.
const WEBHOOKS: [&str; 2] = [
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
];

/// How long a request may take, as Kubernetes limits it. (A watch is no such request.)
const REQUEST_TIME: Duration = Duration::from_secs(60);

pub struct Api {
    pub store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) tokens: Tokens,
    /// What RBAC objects allow, made anew when one of them changes.
    rules: RwLock<Arc<Rules>>,
    /// Those who are asked about writes, likewise.
    webhooks: RwLock<Arc<Webhooks>>,
    resolve: Resolve,
    /// Where the search for a free service address goes on. Never back: two services made at once get two.
    next_address: AtomicU16,
    /// Set once there is a node.
    sessions: OnceLock<Arc<dyn Sessions>>,
    descriptions: Descriptions,
}

/// A request as it came, body and all.
pub struct Request {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What the connection becomes if the answer switches protocols.
    pub upgrade: Option<OnUpgrade>,
}

impl Request {
    fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Api {
    /// A server over `store`, with what must always be there. `tokens` says who is who.
    pub async fn new(store: Store, tokens: Tokens) -> std::result::Result<Arc<Self>, CommitError> {
        let services = store.clone();
        let resolve: Resolve = Arc::new(move |namespace: &str, name: &str, port: u16| {
            let service = services.view().get(&Key::new("services", namespace, name))?;
            let address = crate::object::text(&service.object, "/spec/clusterIP").to_owned();
            (!address.is_empty()).then(|| format!("{address}:{port}"))
        });
        let api = Self {
            store,
            kinds: Kinds::builtin(),
            tokens,
            rules: RwLock::default(),
            webhooks: RwLock::default(),
            resolve,
            // Anywhere: two clusters on one machine then seldom meet.
            next_address: AtomicU16::new(u16::from_ne_bytes(random::bytes())),
            sessions: OnceLock::new(),
            descriptions: Descriptions::default(),
        };
        api.seed().await?;
        api.read_rules();
        api.read_webhooks();
        api.read_definitions();
        Ok(Arc::new(api))
    }

    /// Namespaces and roles that every cluster has. What is there already stays as it is.
    async fn seed(&self) -> std::result::Result<(), CommitError> {
        let namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];
        let namespace = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        for mut object in namespaces.into_iter().map(namespace).chain(bootstrap::objects()) {
            let (version, kind) = (crate::object::api_version(&object), crate::object::kind(&object));
            let Some(resource) = self.kinds.of_kind(version, kind) else { continue };
            let (uid, now) = (random::uid(), self.time_after(0));
            let metadata = crate::object::metadata_mut(&mut object);
            metadata.insert("uid".to_owned(), uid.into());
            metadata.insert("creationTimestamp".to_owned(), now.into());
            (resource.behaviour.default)(&mut object);
            (resource.behaviour.begin)(&mut object);
            let key = Key::new(resource.stored_as(), "", crate::object::name(&object));
            match self.store.commit(Write { key, expect: Expect::Absent, put: Some(object) }).await {
                Ok(_) | Err(CommitError::Exists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Answers any request; a refusal is an answer too.
    pub async fn handle(self: &Arc<Self>, request: Request) -> Response<Body> {
        match self.respond(request).await {
            Ok(response) => response,
            Err(status) => answer::refusal(&status),
        }
    }

    async fn respond(self: &Arc<Self>, request: Request) -> Result<Response<Body>> {
        if matches!(request.path.as_str(), "/healthz" | "/livez" | "/readyz") {
            return Ok(answer::text(StatusCode::OK, "ok"));
        }
        let user = self.user(&request)?;
        let query = Query::parse(&request.query);
        let Some(target) = request::target(request.method.as_str(), &request.path, &query)? else {
            let verb = request.method.as_str().to_lowercase();
            let wanted = Attributes { verb: &verb, path: &request.path, ..Attributes::default() };
            self.rules().check(&user, &wanted)?;
            let accept = request.header(header::ACCEPT);
            return self.descriptions.answer(&self.kinds, &request.method, &request.path, accept);
        };
        let Some(resource) = self.kinds.find(&target.group, &target.version, &target.resource) else {
            let groups = self.kinds.all();
            let here = |kind: &&Arc<Resource>| kind.group == target.group && kind.version == target.version;
            // A group that is not there, or only by definitions, has no server to say so.
            return match groups.iter().filter(here).any(|kind| !kind.served.custom) {
                true => Err(Status::no_such_path()),
                false => Ok(answer::no_page()),
            };
        };
        self.rules().check(&user, &attributes(&target, &resource))?;
        let call = self.call(request, user, target, query, resource)?;
        let warnings = Arc::clone(&call.warnings);
        let mut response = call.answer().await?;
        for warning in warnings.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // 299: "miscellaneous, persistent", as Kubernetes marks all of its warnings.
            if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", json!(warning))) {
                response.headers_mut().append(header::WARNING, value);
            }
        }
        Ok(response)
    }

    /// Who sent the request, and whom they act as.
    fn user(&self, request: &Request) -> Result<User> {
        let presented = request.header(header::AUTHORIZATION);
        let user = match presented.strip_prefix("Bearer ") {
            None => User::anonymous(),
            Some(token) => {
                let view = self.store.view();
                let lookup =
                    |resource: &str, namespace: &str, name: &str| self.looked_up(&view, resource, namespace, name);
                let now = self.now().as_second();
                self.tokens.authenticate(token, now, &lookup).map_err(|_| Status::unauthorized())?
            }
        };
        impersonation::acting_user(&self.rules(), user, &request.headers)
    }

    /// What tokens are bound to, as it is stored.
    pub(crate) fn looked_up(&self, view: &View, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        view.get(&Key::new(resource, namespace, name)).map(|stored| Value::clone(&stored.object))
    }

    /// From now on pods run: this is the way into them.
    pub fn set_sessions(&self, sessions: Arc<dyn Sessions>) {
        // Whoever was first stays: there is one node.
        let _ = self.sessions.set(sessions);
    }

    pub(crate) fn sessions(&self) -> Result<Arc<dyn Sessions>> {
        self.sessions.get().cloned().ok_or_else(|| Status::internal("no node is there yet to reach containers by"))
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes to the store; what was made from the objects that changed is made anew before anybody is answered.
    pub(crate) async fn commit(&self, write: Write) -> std::result::Result<Stored, CommitError> {
        let (key, resource) = (write.key.clone(), write.key.resource.clone());
        let stored = self.store.commit(write).await?;
        if resource.ends_with(RBAC_GROUP) {
            self.read_rules();
        } else if WEBHOOKS.contains(&&*resource) {
            self.read_webhooks();
        } else if *resource == *DEFINITIONS {
            self.definition_changed(&key).await?;
        }
        Ok(stored)
    }

    fn read_rules(&self) {
        // Under the lock, so that of two changes at once the later one is what counts.
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let view = self.store.view();
        let kinds = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
        let prefixes = kinds.map(|kind| Prefix::everywhere(format!("{kind}.{RBAC_GROUP}")));
        let objects = prefixes.iter().flat_map(|prefix| view.list(prefix, None, None));
        *rules = Arc::new(Rules::build(objects.map(|(_, stored)| &*stored.object)));
    }

    pub(crate) fn webhooks(&self) -> Arc<Webhooks> {
        self.webhooks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn read_webhooks(&self) {
        let mut webhooks = self.webhooks.write().unwrap_or_else(PoisonError::into_inner);
        let view = self.store.view();
        let prefixes = WEBHOOKS.map(Prefix::everywhere);
        let objects = prefixes.iter().flat_map(|prefix| view.list(prefix, None, None));
        *webhooks = Arc::new(Webhooks::build(objects.map(|(_, stored)| &*stored.object), &self.resolve));
    }

    fn call(
        self: &Arc<Self>,
        mut request: Request,
        user: User,
        target: Target,
        query: Query,
        resource: Arc<Resource>,
    ) -> Result<Call> {
        let content_type = request.header(header::CONTENT_TYPE).to_owned();
        options::check(&target, &query, &content_type)?;
        let validation = match query.get("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        };
        let manager = match query.get("fieldManager") {
            // Whoever does not say is known by the program's name.
            "" => request.header(header::USER_AGENT).split('/').next().unwrap_or_default().to_owned(),
            named => named.to_owned(),
        };
        let upgrade = request.upgrade.take().zip(channels::key(&request.headers));
        Ok(Call {
            form: asked_form(request.header(header::ACCEPT))
                .ok_or_else(|| Status::not_acceptable("application/json"))?,
            include: Include::parse(query.get("includeObject"))?,
            content_type,
            api: Arc::clone(self),
            resource,
            target,
            dry_run: query.get("dryRun") == "All",
            query,
            user,
            body: request.body,
            manager: if manager.is_empty() { "unknown".to_owned() } else { manager },
            validation,
            client_pins: false,
            applies: false,
            deadline: tokio::time::Instant::now() + REQUEST_TIME,
            now: self.time_after(0),
            upgrade,
            protocols: channels::offered(&request.headers),
            warnings: Arc::default(),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// A time from now, as objects carry it: whole seconds.
    pub(crate) fn time_after(&self, seconds: i64) -> String {
        let time = self.now().saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// A service address of 127.96.0.0/16 that no service has.
    pub(crate) fn free_address(&self) -> Result<String> {
        let view = self.store.view();
        let services = Prefix::everywhere("services");
        let taken: BTreeSet<&str> = view
            .list(&services, None, None)
            .map(|(_, service)| crate::object::text(&service.object, "/spec/clusterIP"))
            .collect();
        for _ in 1..u16::MAX {
            let [third, fourth] = self.next_address.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            let address = format!("127.96.{third}.{fourth}");
            // Not the network's own and not its broadcast address.
            if !matches!((third, fourth), (0, 0) | (255, 255)) && !taken.contains(address.as_str()) {
                return Ok(address);
            }
        }
        Err(Status::internal("failed to allocate a serviceIP: range is full"))
    }
}

fn attributes<'a>(target: &'a Target, resource: &Resource) -> Attributes<'a> {
    Attributes {
        verb: target.verb.name(),
        group: &target.group,
        version: &target.version,
        resource: &target.resource,
        subresource: &target.subresource,
        name: &target.name,
        // A namespace is named by its path, but lives in none.
        namespace: if resource.namespaced { &target.namespace } else { "" },
        path: "",
    }
}
