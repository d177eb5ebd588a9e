//! The API server itself: what it knows, and the way of a request through it: who, what, may they, then the verb.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use std::time::Duration;

use bytes::Bytes;
use futures::future::try_join_all;
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
use crate::handlers::{Call, options};
use crate::random;
use crate::request::{self, Query, Target, Verb};
use crate::resource::{Kinds, Resource};
use crate::sessions::Sessions;
use crate::status::{Result, Status};
use crate::store::{CommitError, Expect, Key, Prefix, Store, Stored, Write};
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
        api.show_gathered_rules().await?;
        api.read_webhooks();
        api.read_definitions();
        Ok(Arc::new(api))
    }

    /// Namespaces and roles that every cluster has. What is there already stays as it is. All at once: they share the
    /// fsyncs that a fresh cluster would otherwise wait for one after the other.
    async fn seed(&self) -> std::result::Result<(), CommitError> {
        let namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];
        let namespace = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let objects = namespaces.into_iter().map(namespace).chain(bootstrap::objects());
        try_join_all(objects.map(|object| self.seed_one(object))).await?;
        Ok(())
    }

    async fn seed_one(&self, mut object: Value) -> std::result::Result<(), CommitError> {
        let (version, kind) = (crate::object::api_version(&object), crate::object::kind(&object));
        let Some(resource) = self.kinds.of_kind(version, kind) else { return Ok(()) };
        let (uid, now) = (random::uid(), self.time_after(0));
        let metadata = crate::object::metadata_mut(&mut object);
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), now.into());
        (resource.behaviour.default)(&mut object);
        (resource.behaviour.begin)(&mut object);
        let key = Key::new(resource.stored_as(), "", crate::object::name(&object));
        match self.store.commit(Write { key, expect: Expect::Absent, put: Some(object) }).await {
            Ok(_) | Err(CommitError::Exists(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Answers any request; a refusal is an answer too.
    pub async fn handle(self: &Arc<Self>, request: Request) -> Response<Body> {
        match self.respond(request).await {
            Ok(response) => response,
            Err(status) => answer::refusal(&status),
        }
    }

    async fn respond(self: &Arc<Self>, request: Request) -> Result<Response<Body>> {
        let user = self.user(&request)?;
        let query = Query::parse(&request.query);
        let Some(target) = request::target(request.method.as_str(), &request.path, &query)? else {
            let verb = request.method.as_str().to_lowercase();
            let wanted = Attributes { verb: &verb, path: &request.path, ..Attributes::default() };
            self.rules().check(&user, &wanted)?;
            if matches!(request.path.as_str(), "/healthz" | "/livez" | "/readyz") {
                return Ok(answer::text(StatusCode::OK, "ok"));
            }
            let accept = request.header(header::ACCEPT);
            return self.descriptions.answer(&self.kinds, &request.method, &request.path, accept);
        };
        let name = if target.name.is_empty() { one_name(query.get("fieldSelector")) } else { target.name.as_str() };
        self.rules().check(&user, &Attributes { name, ..target.attributes() })?;
        let resource = self.kinds.find(&target.group, &target.version, &target.resource);
        let resource = resource.ok_or_else(|| self.kinds.no_such_path(&target.group))?;
        check_place(&target, &resource)?;
        let call = self.call(request, user, target, query, resource)?;
        let warnings = Arc::clone(&call.warnings);
        let mut response = call.answer().await.unwrap_or_else(|status| answer::refusal(&status));
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
        let user = match presented.trim().split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("Bearer") => {
                let now = self.now().as_second();
                self.tokens.authenticate(token.trim(), now, &self.lookup()).map_err(|_| Status::unauthorized())?
            }
            _ => User::anonymous(),
        };
        impersonation::acting_user(&self.rules(), user, &request.headers)
    }

    /// What tokens are bound to, as it is stored.
    pub(crate) fn lookup(&self) -> impl Fn(&str, &str, &str) -> Option<Value> {
        let view = self.store.view();
        move |resource, namespace, name| {
            view.get(&Key::new(resource, namespace, name)).map(|stored| Value::clone(&stored.object))
        }
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
        let (key, resource, removes) = (write.key.clone(), write.key.resource.clone(), write.put.is_none());
        let stored = self.store.commit(write).await?;
        if resource.ends_with(RBAC_GROUP) {
            self.read_rules();
            self.show_gathered_rules().await?;
        } else if WEBHOOKS.contains(&&*resource) {
            self.read_webhooks();
        } else if *resource == *DEFINITIONS {
            self.definition_changed(&key).await?;
        } else if removes {
            self.object_gone(&key).await?;
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

    /// What an aggregated role gathers is shown in it, as Kubernetes' own controller writes it.
    async fn show_gathered_rules(&self) -> std::result::Result<(), CommitError> {
        let (rules, view) = (self.rules(), self.store.view());
        for (key, stored) in view.list(&Prefix::everywhere(format!("clusterroles.{RBAC_GROUP}")), None, None) {
            let aggregates = stored.object.get("aggregationRule").is_some();
            let gathered = rules.shown_rules(&key.name).filter(|_| aggregates);
            if let Some(gathered) = gathered.filter(|gathered| stored.object.get("rules") != Some(gathered)) {
                let mut role = Value::clone(&stored.object);
                role["rules"] = gathered;
                self.commit_quietly(key, stored, Some(role)).await?;
            }
        }
        Ok(())
    }

    /// A write of the server's own. Whoever changed the object meanwhile comes by here too, so nothing is lost.
    pub(crate) async fn commit_quietly(
        &self,
        key: &Key,
        seen: &Stored,
        put: Option<Value>,
    ) -> std::result::Result<(), CommitError> {
        match self.store.commit(Write { key: key.clone(), expect: Expect::Revision(seen.revision), put }).await {
            Ok(_) | Err(CommitError::Changed { .. } | CommitError::Exists(_)) => Ok(()),
            Err(error) => Err(error),
        }
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
        let applies = request.header(header::CONTENT_TYPE).starts_with("application/apply-patch");
        let (dry_run, validation) = options::of_write(target.verb, applies, &query)?;
        options::of_list(target.verb, &query)?;
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
            content_type: request.header(header::CONTENT_TYPE).to_owned(),
            api: Arc::clone(self),
            resource,
            target,
            dry_run,
            query,
            user,
            body: request.body,
            manager: if manager.is_empty() { "unknown".to_owned() } else { manager },
            validation,
            repeated: Vec::new(),
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

/// Whether this can be done there at all: a kind is served in namespaces or outside of them, and by its own verbs.
fn check_place(target: &Target, resource: &Resource) -> Result<()> {
    let inside = !target.namespace.is_empty() && target.resource != "namespaces";
    let outside = resource.namespaced && target.namespace.is_empty();
    if resource.is_custom() {
        let misplaced = inside != resource.namespaced && !matches!(target.verb, Verb::List | Verb::Watch);
        return if misplaced || (inside && !resource.namespaced) { Err(Status::no_such_page()) } else { Ok(()) };
    }
    let no_status = target.subresource == "status" && !resource.has_status;
    let no_name = (outside || resource.review.is_some()) && !target.name.is_empty();
    if (inside && !resource.namespaced) || no_name || no_status {
        return Err(Status::no_such_path());
    }
    let needs_namespace = matches!(target.verb, Verb::Create | Verb::DeleteCollection);
    let served = !target.subresource.is_empty() || resource.served.verbs.contains(&target.verb.name());
    if !served || (outside && needs_namespace) {
        return Err(Status::method_not_allowed());
    }
    Ok(())
}

/// The one name that a field selector leaves: who may only read that one may list it too.
fn one_name(selector: &str) -> &str {
    let mut names = selector.split(',').filter_map(|part| part.strip_prefix("metadata.name="));
    names.next().unwrap_or_default().trim_start_matches('=')
}
