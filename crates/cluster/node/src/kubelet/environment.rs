//! A container's environment: of the image, of services, of `envFrom` and `env`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, Pod, Secret, Service};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::expand::expand;
use super::fields::{field, resource_field};
use super::pod::PodExt;

/// In the words that a container's status has for it.
#[derive(Debug)]
pub(super) struct ConfigError(pub String);

impl From<kube::Error> for ConfigError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => ConfigError(status.message.clone()),
            other => ConfigError(other.to_string()),
        }
    }
}

type Result<T> = std::result::Result<T, ConfigError>;

/// What a container's variables may refer to.
pub(super) struct Sources<'a> {
    pub client: &'a Client,
    pub pod: &'a Pod,
    pub pod_ip: &'a str,
    pub host_ip: &'a str,
}

/// The variables in order; a later one of a name replaces an earlier one.
pub(super) struct Variables(Vec<(String, String)>);

impl Variables {
    pub(super) fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    pub(super) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }
}

/// The texts of a ConfigMap or Secret by key.
type Texts = BTreeMap<String, String>;

impl Sources<'_> {
    fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }

    /// `image` are the image's own variables, as `NAME=value`.
    pub(super) async fn variables(&self, container: &Container, image: &[String]) -> Result<Variables> {
        let mut variables = Variables(Vec::new());
        for (name, value) in image.iter().filter_map(|variable| variable.split_once('=')) {
            variables.set(name, value.to_owned());
        }
        for (name, value) in self.of_services().await? {
            variables.set(&name, value);
        }
        for source in container.env_from.iter().flatten() {
            let mut texts = Texts::new();
            if let Some(reference) = &source.config_map_ref {
                texts.extend(self.config_map(&reference.name, reference.optional).await?);
            }
            if let Some(reference) = &source.secret_ref {
                texts.extend(self.secret(&reference.name, reference.optional).await?);
            }
            let prefix = source.prefix.as_deref().unwrap_or_default();
            texts.into_iter().for_each(|(name, value)| variables.set(&format!("{prefix}{name}"), value));
        }
        for variable in container.env.iter().flatten() {
            let value = match &variable.value_from {
                None => {
                    let text = variable.value.as_deref().unwrap_or_default();
                    Some(expand(text, |name| variables.get(name)))
                }
                Some(source) => self.value_from(source, container).await?,
            };
            if let Some(value) = value {
                variables.set(&variable.name, value);
            }
        }
        Ok(variables)
    }

    /// Empty if it is optional and not there.
    async fn config_map(&self, name: &str, optional: Option<bool>) -> Result<Texts> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace());
        let data = api.get_opt(name).await?.map(|map| map.data.unwrap_or_default());
        there(data, optional, || format!("configmap \"{name}\" not found"))
    }

    /// Empty if it is optional and not there.
    async fn secret(&self, name: &str, optional: Option<bool>) -> Result<Texts> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.namespace());
        let data = api.get_opt(name).await?.map(|secret| {
            let data = secret.data.unwrap_or_default().into_iter();
            data.map(|(key, value)| (key, String::from_utf8_lossy(&value.0).into_owned())).collect()
        });
        there(data, optional, || format!("secret \"{name}\" not found"))
    }

    async fn value_from(&self, source: &EnvVarSource, container: &Container) -> Result<Option<String>> {
        if let Some(reference) = &source.field_ref {
            return match reference.field_path.as_str() {
                "status.podIP" | "status.podIPs" => Ok(Some(self.pod_ip.to_owned())),
                "status.hostIP" | "status.hostIPs" => Ok(Some(self.host_ip.to_owned())),
                path => field(self.pod, path).map(Some).map_err(ConfigError),
            };
        }
        if let Some(reference) = &source.resource_field_ref {
            let named = self.pod.all_containers().find(|other| Some(&other.name) == reference.container_name.as_ref());
            return Ok(Some(resource_field(named.unwrap_or(container), reference)));
        }
        let (mut texts, key, optional, of) = if let Some(reference) = &source.config_map_key_ref {
            let texts = self.config_map(&reference.name, reference.optional).await?;
            (texts, &reference.key, reference.optional, format!("ConfigMap {}/{}", self.namespace(), reference.name))
        } else if let Some(reference) = &source.secret_key_ref {
            let texts = self.secret(&reference.name, reference.optional).await?;
            (texts, &reference.key, reference.optional, format!("Secret {}/{}", self.namespace(), reference.name))
        } else {
            return Ok(None);
        };
        there(texts.remove(key).map(Some), optional, || format!("couldn't find key {key} in {of}"))
    }

    /// `NAME_SERVICE_HOST` and `..._PORT` of the namespace's services and of the API server's.
    async fn of_services(&self) -> Result<Texts> {
        let services = |namespace: &str| Api::<Service>::namespaced(self.client.clone(), namespace);
        let mut found: Vec<Service> = services("default").get_opt("kubernetes").await?.into_iter().collect();
        if self.pod.pod_spec().enable_service_links != Some(false) {
            found.extend(services(&self.namespace()).list(&ListParams::default()).await?);
        }
        let spelled = |name: &str| name.to_uppercase().replace('-', "_");
        let mut variables = Texts::new();
        for service in found {
            let name = spelled(&service.name_any());
            let spec = service.spec.unwrap_or_default();
            let address = spec.cluster_ip.filter(|address| address != "None" && !address.is_empty());
            let Some(address) = address else { continue };
            for (index, port) in spec.ports.iter().flatten().enumerate() {
                let (number, protocol) = (port.port, port.protocol.as_deref().unwrap_or("TCP"));
                let url = format!("{}://{address}:{number}", protocol.to_lowercase());
                if index == 0 {
                    variables.insert(format!("{name}_SERVICE_PORT"), number.to_string());
                    variables.insert(format!("{name}_PORT"), url.clone());
                }
                if let Some(port_name) = &port.name {
                    variables.insert(format!("{name}_SERVICE_PORT_{}", spelled(port_name)), number.to_string());
                }
                // As containers that were linked to each other once had them.
                let link = format!("{name}_PORT_{number}_{protocol}");
                variables.insert(format!("{link}_PROTO"), protocol.to_lowercase());
                variables.insert(format!("{link}_PORT"), number.to_string());
                variables.insert(format!("{link}_ADDR"), address.clone());
                variables.insert(link, url);
            }
            variables.insert(format!("{name}_SERVICE_HOST"), address);
        }
        Ok(variables)
    }
}

/// What was found; nothing is fine where it is optional.
fn there<T: Default>(found: Option<T>, optional: Option<bool>, missing: impl FnOnce() -> String) -> Result<T> {
    match found {
        None if optional != Some(true) => Err(ConfigError(missing())),
        found => Ok(found.unwrap_or_default()),
    }
}
