//! What every namespace has: the ServiceAccount `default`, and the ConfigMap `kube-root-ca.crt`.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::cache::Cache;
use crate::error::{Result, made_is_fine};
use crate::key::Key;
use crate::queue::{self, Queue};

pub(crate) const ACCOUNT: &str = "default";
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";

const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
     internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.",
);

pub(crate) struct Controller {
    client: Client,
    root_ca: String,
    namespaces: Arc<Cache<Namespace>>,
    /// Only those named [`ACCOUNT`].
    accounts: Arc<Cache<ServiceAccount>>,
    /// Only those named [`ROOT_CA`].
    bundles: Arc<Cache<ConfigMap>>,
    queue: Arc<Queue>,
}

impl Controller {
    pub(crate) fn new(
        client: Client,
        root_ca: String,
        namespaces: Arc<Cache<Namespace>>,
        accounts: Arc<Cache<ServiceAccount>>,
        bundles: Arc<Cache<ConfigMap>>,
    ) -> Arc<Self> {
        let controller = Arc::new(Self { client, root_ca, namespaces, accounts, bundles, queue: Arc::default() });
        controller.namespaces.observe(&controller, |controller, _, after| {
            if let Some(namespace) = after {
                controller.queue.add(Key::of(&**namespace));
            }
        });
        controller.accounts.observe(&controller, |controller, before, after| {
            controller.wake(before.or(after).and_then(|account| account.metadata.namespace.as_deref()));
        });
        controller.bundles.observe(&controller, |controller, before, after| {
            controller.wake(before.or(after).and_then(|bundle| bundle.metadata.namespace.as_deref()));
        });
        controller
    }

    fn wake(&self, namespace: Option<&str>) {
        self.queue.add(Key::cluster(namespace.unwrap_or_default()));
    }

    pub(crate) async fn run(self: Arc<Self>) {
        self.namespaces.synced().await;
        self.accounts.synced().await;
        self.bundles.synced().await;
        queue::work("namespace furniture", self.queue.clone(), None, |key| self.look(key)).await;
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        let Some(namespace) = self.namespaces.get(&key) else { return Ok(None) };
        if namespace.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        if self.accounts.get(&Key::new(&key.name, ACCOUNT)).is_none() {
            let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &key.name);
            let account = ServiceAccount { metadata: named(ACCOUNT), ..ServiceAccount::default() };
            made_is_fine(api.create(&PostParams::default(), &account).await)?;
        }
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &key.name);
        let data = Some([("ca.crt".to_owned(), self.root_ca.clone())].into());
        match self.bundles.get(&Key::new(&key.name, ROOT_CA)) {
            Some(bundle) if bundle.data == data => {}
            Some(bundle) => {
                let bundle = ConfigMap { data, ..(*bundle).clone() };
                made_is_fine(api.replace(ROOT_CA, &PostParams::default(), &bundle).await)?;
            }
            None => {
                let mut metadata = named(ROOT_CA);
                metadata.annotations = Some([(DESCRIPTION.0.to_owned(), DESCRIPTION.1.to_owned())].into());
                let bundle = ConfigMap { metadata, data, ..ConfigMap::default() };
                made_is_fine(api.create(&PostParams::default(), &bundle).await)?;
            }
        }
        Ok(None)
    }
}
