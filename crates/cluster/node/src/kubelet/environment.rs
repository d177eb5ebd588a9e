//! A container's environment: of the image, of services, of `envFrom` and `env`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, Pod, Secret, Service};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::expand::expand;
use super::fields::{field, resource_field};

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

impl Sources<'_> {
    fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }

    /// `image` are the image's own variables, as `NAME=value`.
    pub(super) async fn variables(&self, container: &Container, image: &[String]) -> Result<Variables, ConfigError> {
        let mut variables = Variables(Vec::new());
        for (name, value) in image.iter().filter_map(|variable| variable.split_once('=')) {
            variables.set(name, value.to_owned());
        }
        for (name, value) in self.of_services().await? {
            variables.set(&name, value);
        }
        for (name, value) in self.of_maps(container).await? {
            variables.set(&name, value);
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

    async fn of_maps(&self, container: &Container) -> Result<Vec<(String, String)>, ConfigError> {
        let mut found = Vec::new();
        for source in container.env_from.iter().flatten() {
            let prefix = source.prefix.as_deref().unwrap_or_default();
            let mut add = |name: &str, value: String| found.push((format!("{prefix}{name}"), value));
            if let Some(reference) = &source.config_map_ref {
                let map = self.config_map(&reference.name, reference.optional == Some(true)).await?;
                map.into_iter()
                    .flat_map(|map| map.data.unwrap_or_default())
                    .for_each(|(name, value)| add(&name, value));
            }
            if let Some(reference) = &source.secret_ref {
                let secret = self.secret(&reference.name, reference.optional == Some(true)).await?;
                for (name, value) in secret.into_iter().flat_map(|secret| secret.data.unwrap_or_default()) {
                    add(&name, String::from_utf8_lossy(&value.0).into_owned());
                }
            }
        }
        Ok(found)
    }

    async fn config_map(&self, name: &str, optional: bool) -> Result<Option<ConfigMap>, ConfigError> {
        let found = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace()).get_opt(name).await?;
        if found.is_none() && !optional {
            return Err(ConfigError(format!("configmap \"{name}\" not found")));
        }
        Ok(found)
    }

    async fn secret(&self, name: &str, optional: bool) -> Result<Option<Secret>, ConfigError> {
        let found = Api::<Secret>::namespaced(self.client.clone(), &self.namespace()).get_opt(name).await?;
        if found.is_none() && !optional {
            return Err(ConfigError(format!("secret \"{name}\" not found")));
        }
        Ok(found)
    }

    async fn value_from(&self, source: &EnvVarSource, container: &Container) -> Result<Option<String>, ConfigError> {
        if let Some(reference) = &source.field_ref {
            return match reference.field_path.as_str() {
                "status.podIP" | "status.podIPs" => Ok(Some(self.pod_ip.to_owned())),
                "status.hostIP" | "status.hostIPs" => Ok(Some(self.host_ip.to_owned())),
                path => field(self.pod, path).map(Some).map_err(ConfigError),
            };
        }
        if let Some(reference) = &source.resource_field_ref {
            let named = reference
                .container_name
                .as_deref()
                .and_then(|name| self.pod.spec.as_ref()?.containers.iter().find(|container| container.name == name));
            return Ok(Some(resource_field(named.unwrap_or(container), reference)));
        }
        if let Some(reference) = &source.config_map_key_ref {
            let optional = reference.optional == Some(true);
            let map = self.config_map(&reference.name, optional).await?;
            let value = map.and_then(|map| map.data?.remove(&reference.key));
            return match value {
                None if !optional => Err(ConfigError(format!(
                    "couldn't find key {} in ConfigMap {}/{}",
                    reference.key,
                    self.namespace(),
                    reference.name
                ))),
                value => Ok(value),
            };
        }
        if let Some(reference) = &source.secret_key_ref {
            let optional = reference.optional == Some(true);
            let secret = self.secret(&reference.name, optional).await?;
            let value = secret.and_then(|secret| secret.data?.remove(&reference.key));
            return match value {
                None if !optional => Err(ConfigError(format!(
                    "couldn't find key {} in Secret {}/{}",
                    reference.key,
                    self.namespace(),
                    reference.name
                ))),
                value => Ok(value.map(|value| String::from_utf8_lossy(&value.0).into_owned())),
            };
        }
        Ok(None)
    }

    /// `NAME_SERVICE_HOST` and `..._PORT` of the namespace's services and of the API server's.
    async fn of_services(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        let services = |namespace: &str| Api::<Service>::namespaced(self.client.clone(), namespace);
        let mut found: Vec<Service> = services("default").get_opt("kubernetes").await?.into_iter().collect();
        if self.pod.spec.as_ref().and_then(|spec| spec.enable_service_links) != Some(false) {
            found.extend(services(&self.namespace()).list(&ListParams::default()).await?);
        }
        let mut variables = BTreeMap::new();
        for service in found {
            let name = service.name_any().to_uppercase().replace('-', "_");
            let Some(spec) = service.spec else { continue };
            let Some(address) = spec.cluster_ip.filter(|address| address != "None" && !address.is_empty()) else {
                continue;
            };
            variables.insert(format!("{name}_SERVICE_HOST"), address);
            for (index, port) in spec.ports.iter().flatten().enumerate() {
                if index == 0 {
                    variables.insert(format!("{name}_SERVICE_PORT"), port.port.to_string());
                }
                if let Some(port_name) = &port.name {
                    let port_name = port_name.to_uppercase().replace('-', "_");
                    variables.insert(format!("{name}_SERVICE_PORT_{port_name}"), port.port.to_string());
                }
            }
        }
        Ok(variables)
    }
}
