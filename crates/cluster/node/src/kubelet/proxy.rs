//! Services: what a client sends to a Service's address goes to one of the pods behind it, in turn.
//!
//! A userspace proxy for TCP: a listener for each port of each Service that has an address. Services and their
//! EndpointSlices are watched; a port whose Service goes is closed, and connections that are open stay.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{FutureExt, StreamExt, future};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The label by which a slice names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Where a port of a Service leads, as it is now.
type Backends = watch::Sender<Arc<Vec<SocketAddr>>>;

/// Runs until it is dropped.
pub(super) async fn run(client: Client) {
    let (services, write_services) = reflector::store::<Service>();
    let (slices, write_slices) = reflector::store::<EndpointSlice>();
    let config = watcher::Config::default();
    let watched_services = watcher(Api::all(client.clone()), config.clone()).default_backoff().reflect(write_services);
    let watched_slices = watcher(Api::all(client), config).default_backoff().reflect(write_slices);
    let mut changes = futures::stream::select(watched_services.map(drop).boxed(), watched_slices.map(drop).boxed());
    let mut ports: HashMap<SocketAddr, (Backends, JoinSet<()>)> = HashMap::new();
    while changes.next().await.is_some() {
        // Until both are known a Service seems to have nobody behind it, the API server's own too.
        let known = future::join(services.wait_until_ready(), slices.wait_until_ready());
        if known.now_or_never().is_none() {
            continue;
        }
        let wanted = wanted(&services, &slices);
        ports.retain(|address, _| wanted.contains_key(address));
        for (address, backends) in wanted {
            if let Some((known, _)) = ports.get(&address) {
                known.send_replace(Arc::new(backends));
                continue;
            }
            match TcpListener::bind(address).await {
                Ok(listener) => {
                    let (sender, receiver) = watch::channel(Arc::new(backends));
                    let mut task = JoinSet::new();
                    task.spawn(serve(listener, receiver));
                    ports.insert(address, (sender, task));
                }
                // Tried again at the next change: a port below 1024 is root's.
                Err(error) => tracing::warn!(%address, %error, "failed to listen for a Service"),
            }
        }
    }
}

/// Every address that a Service has, and the ready pods behind it.
fn wanted(services: &Store<Service>, slices: &Store<EndpointSlice>) -> BTreeMap<SocketAddr, Vec<SocketAddr>> {
    let slices = slices.state();
    let mut wanted = BTreeMap::new();
    for service in services.state() {
        let Some(spec) = &service.spec else { continue };
        let Some(address) = spec.cluster_ip.as_deref().and_then(|text| text.parse::<IpAddr>().ok()) else { continue };
        let own = |slice: &&Arc<EndpointSlice>| {
            slice.namespace() == service.namespace() && slice.labels().get(SERVICE_NAME) == Some(&service.name_any())
        };
        for port in spec.ports.iter().flatten() {
            let Ok(number) = u16::try_from(port.port) else { continue };
            let address = SocketAddr::new(address, number);
            let backends = slices.iter().filter(own).flat_map(|slice| behind(slice, port.name.as_deref()));
            let backends: Vec<SocketAddr> = backends.collect();
            // The API server's own Service: it listens there itself.
            if !backends.contains(&address) {
                wanted.insert(address, backends);
            }
        }
    }
    wanted
}

/// The ready addresses of a slice at the port of this name.
fn behind(slice: &EndpointSlice, name: Option<&str>) -> Vec<SocketAddr> {
    let named = |own: Option<&str>| own.unwrap_or_default() == name.unwrap_or_default();
    let ports = slice.ports.iter().flatten().filter(|port| named(port.name.as_deref()));
    let numbers: Vec<u16> = ports.filter_map(|port| u16::try_from(port.port?).ok()).collect();
    let ready = slice
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true));
    let addresses = ready.flat_map(|endpoint| &endpoint.addresses).filter_map(|text| text.parse::<IpAddr>().ok());
    addresses.flat_map(|address| numbers.iter().map(move |number| SocketAddr::new(address, *number))).collect()
}

async fn serve(listener: TcpListener, backends: watch::Receiver<Arc<Vec<SocketAddr>>>) {
    let turn = AtomicUsize::new(0);
    while let Ok((mut client, _)) = listener.accept().await {
        let backends = backends.borrow().clone();
        if backends.is_empty() {
            // Nobody is behind it: the client is refused, as by a real proxy.
            continue;
        }
        let backend = backends[turn.fetch_add(1, Ordering::Relaxed) % backends.len()];
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(backend).await {
                // Either side may go whenever it likes.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ready_endpoints_of_the_named_port_are_behind_a_service() {
        let slice: EndpointSlice = serde_json::from_value(serde_json::json!({
            "addressType": "IPv4",
            "ports": [{"name": "web", "port": 8080}, {"name": "admin", "port": 9090}],
            "endpoints": [
                {"addresses": ["127.64.0.1"], "conditions": {"ready": true}},
                {"addresses": ["127.64.0.2"], "conditions": {"ready": false}},
                {"addresses": ["127.64.0.3"]},
            ],
        }))
        .unwrap();
        let wanted = ["127.64.0.1:8080", "127.64.0.3:8080"].map(|address| address.parse().unwrap());
        assert_eq!(behind(&slice, Some("web")), wanted);
        assert_eq!(behind(&slice, None), []);
    }
}
