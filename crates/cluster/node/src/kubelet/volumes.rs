//! A pod's volumes as directories of this machine.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, HostPathVolumeSource, KeyToPath, PersistentVolume, PersistentVolumeClaim, Pod,
    Secret, ServiceAccountTokenProjection, Volume,
};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::fields::{field, resource_field};
use super::files::{self, Content, Files};
use super::pod::PodExt;

/// The driver of the cluster's own volumes: a volume's handle is its directory among the node's volumes.
pub const CSI_DRIVER: &str = "local.csi.boathook.dev";

/// Why a volume is not there yet.
#[derive(Debug)]
pub(super) struct MountError(pub String);

type Result<T> = std::result::Result<T, MountError>;

impl From<std::io::Error> for MountError {
    fn from(error: std::io::Error) -> Self {
        MountError(error.to_string())
    }
}

impl From<kube::Error> for MountError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => MountError(status.message.clone()),
            other => MountError(other.to_string()),
        }
    }
}

/// A volume's place, and whether it is read-only as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    pub path: PathBuf,
    pub read_only: bool,
}

/// Where volumes come from and go to.
pub(super) struct Volumes<'a> {
    pub client: &'a Client,
    pub pod: &'a Pod,
    pub pod_ip: &'a str,
    pub host_ip: &'a str,
    /// Of this pod.
    pub dir: &'a Path,
    /// Of all persistent volumes of the cluster's own driver.
    pub persistent: &'a Path,
}

impl Volumes<'_> {
    /// Makes every volume ready. An error names the volume, as the kubelet's event does.
    pub(super) async fn prepare(&self) -> Result<BTreeMap<String, Prepared>> {
        let mut prepared = BTreeMap::new();
        for volume in self.pod.pod_spec().volumes.iter().flatten() {
            let ready = self.one(volume).await.map_err(|error| {
                MountError(format!("MountVolume.SetUp failed for volume \"{}\" : {}", volume.name, error.0))
            })?;
            prepared.insert(volume.name.clone(), ready);
        }
        Ok(prepared)
    }

    /// Brings volumes made of files up to date.
    pub(super) async fn refresh(&self) -> Result<()> {
        for volume in self.pod.pod_spec().volumes.iter().flatten() {
            if let Some(files) = self.files(volume).await? {
                files::write(&self.dir.join(&volume.name), &files)?;
            }
        }
        Ok(())
    }

    async fn one(&self, volume: &Volume) -> Result<Prepared> {
        let own = self.dir.join(&volume.name);
        if let Some(files) = self.files(volume).await? {
            files::write(&own, &files)?;
            return Ok(Prepared { path: own, read_only: true });
        }
        if let Some(host) = &volume.host_path {
            return Ok(Prepared { path: host_path(host)?, read_only: false });
        }
        if let Some(claim) = &volume.persistent_volume_claim {
            let path = self.claimed(&claim.claim_name).await?;
            self.share_with_group(&path)?;
            return Ok(Prepared { path, read_only: claim.read_only == Some(true) });
        }
        if volume.ephemeral.is_some() {
            let path = self.claimed(&format!("{}-{}", self.pod.name_any(), volume.name)).await?;
            return Ok(Prepared { path, read_only: false });
        }
        if volume.empty_dir.is_some() {
            std::fs::create_dir_all(&own)?;
            std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777))?;
            self.share_with_group(&own)?;
            return Ok(Prepared { path: own, read_only: false });
        }
        Err(MountError("no volume plugin matched".to_owned()))
    }

    /// `fsGroup`: the group owns the volume, and what is made in it. Only root can give files away.
    fn share_with_group(&self, path: &Path) -> Result<()> {
        let context = self.pod.pod_spec().security_context.as_ref();
        let Some(group) = context.and_then(|context| context.fs_group) else { return Ok(()) };
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(path, None, u32::try_from(group).ok())?;
            let mode = std::fs::metadata(path)?.permissions().mode();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode | 0o2770))?;
        }
        Ok(())
    }

    async fn claimed(&self, claim: &str) -> Result<PathBuf> {
        let namespace = self.pod.namespace().unwrap_or_default();
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &namespace);
        let unbound = || MountError(format!("PVC {namespace}/{claim} is not bound"));
        let name = claims.get(claim).await?.spec.and_then(|spec| spec.volume_name).ok_or_else(unbound)?;
        let volume = Api::<PersistentVolume>::all(self.client.clone()).get(&name).await?;
        let spec = volume.spec.unwrap_or_default();
        if let Some(host) = &spec.host_path {
            return host_path(host);
        }
        if let Some(local) = &spec.local {
            return Ok(PathBuf::from(&local.path));
        }
        match &spec.csi {
            Some(csi) if csi.driver == CSI_DRIVER => Ok(self.persistent.join(&csi.volume_handle)),
            Some(csi) => {
                let driver = &csi.driver;
                Err(MountError(format!("driver name {driver} not found in the list of registered CSI drivers")))
            }
            None => Err(MountError(format!("persistent volume {name} is of a kind that this node cannot mount"))),
        }
    }

    /// The files of a volume that is made of files.
    async fn files(&self, volume: &Volume) -> Result<Option<Files>> {
        let mut files = Files::new();
        if let Some(source) = &volume.config_map {
            let optional = source.optional == Some(true);
            self.config_map(&source.name, optional, source.items.as_deref(), mode(source.default_mode), &mut files)
                .await?;
        } else if let Some(source) = &volume.secret {
            let name = source.secret_name.as_deref().unwrap_or_default();
            let optional = source.optional == Some(true);
            self.secret(name, optional, source.items.as_deref(), mode(source.default_mode), &mut files).await?;
        } else if let Some(source) = &volume.downward_api {
            self.downward(source.items.as_deref(), mode(source.default_mode), &mut files)?;
        } else if let Some(source) = &volume.projected {
            let mode = mode(source.default_mode);
            for source in source.sources.iter().flatten() {
                if let Some(map) = &source.config_map {
                    let optional = map.optional == Some(true);
                    self.config_map(&map.name, optional, map.items.as_deref(), mode, &mut files).await?;
                }
                if let Some(secret) = &source.secret {
                    let optional = secret.optional == Some(true);
                    self.secret(&secret.name, optional, secret.items.as_deref(), mode, &mut files).await?;
                }
                if let Some(downward) = &source.downward_api {
                    self.downward(downward.items.as_deref(), mode, &mut files)?;
                }
                if let Some(token) = &source.service_account_token {
                    let bytes = self.token(&volume.name, token).await?;
                    files.insert(token.path.clone(), Content { bytes, mode });
                }
            }
        } else {
            return Ok(None);
        }
        Ok(Some(files))
    }

    async fn config_map(
        &self,
        name: &str,
        optional: bool,
        items: Option<&[KeyToPath]>,
        mode: u32,
        files: &mut Files,
    ) -> Result<()> {
        let namespace = self.pod.namespace().unwrap_or_default();
        match Api::<ConfigMap>::namespaced(self.client.clone(), &namespace).get_opt(name).await? {
            Some(map) => {
                let text = map.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes()));
                let binary = map.binary_data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
                let what = || "configmap references non-existent config key".to_owned();
                keyed(text.chain(binary).collect(), items, optional, mode, files, what)
            }
            None if optional => Ok(()),
            None => Err(MountError(format!("configmap \"{name}\" not found"))),
        }
    }

    async fn secret(
        &self,
        name: &str,
        optional: bool,
        items: Option<&[KeyToPath]>,
        mode: u32,
        files: &mut Files,
    ) -> Result<()> {
        let namespace = self.pod.namespace().unwrap_or_default();
        match Api::<Secret>::namespaced(self.client.clone(), &namespace).get_opt(name).await? {
            Some(secret) => {
                let data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
                keyed(data, items, optional, mode, files, || "references non-existent secret key".to_owned())
            }
            None if optional => Ok(()),
            None => Err(MountError(format!("secret \"{name}\" not found"))),
        }
    }

    fn downward(&self, items: Option<&[DownwardAPIVolumeFile]>, mode: u32, files: &mut Files) -> Result<()> {
        for item in items.unwrap_or_default() {
            let text = if let Some(reference) = &item.field_ref {
                match reference.field_path.as_str() {
                    "status.podIP" => self.pod_ip.to_owned(),
                    "status.hostIP" => self.host_ip.to_owned(),
                    path => field(self.pod, path).map_err(MountError)?,
                }
            } else if let Some(reference) = &item.resource_field_ref {
                let name = reference.container_name.as_deref().unwrap_or_default();
                let container = self.pod.all_containers().find(|container| container.name == name);
                container.map(|container| resource_field(container, reference)).unwrap_or_default()
            } else {
                continue;
            };
            let mode = item.mode.map_or(mode, |mode| mode.unsigned_abs());
            files.insert(item.path.clone(), Content { bytes: text.into_bytes(), mode });
        }
        Ok(())
    }

    /// The token that is there, as long as it is young; else a new one.
    async fn token(&self, volume: &str, wanted: &ServiceAccountTokenProjection) -> Result<Vec<u8>> {
        let seconds = wanted.expiration_seconds.unwrap_or(3600);
        let current = self.dir.join(volume).join(&wanted.path);
        let age = std::fs::metadata(&current).and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        // A kubelet's rule: replaced at four fifths of its life, or after a day.
        if age.is_some_and(|age| age.as_secs() < (seconds.unsigned_abs() * 4 / 5).min(86_400)) {
            return Ok(std::fs::read(current)?);
        }
        let (namespace, name) = self.pod.namespaced_name();
        let account = self.pod.pod_spec().service_account_name.clone();
        let account = account.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned());
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "audiences": wanted.audience.iter().filter(|audience| !audience.is_empty()).collect::<Vec<_>>(),
                "expirationSeconds": seconds,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": self.pod.uid_text()},
            },
        });
        let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
            Api::namespaced(self.client.clone(), &namespace);
        let answer: TokenRequest = accounts
            .create_subresource("token", &account, &PostParams::default(), &request)
            .await
            .map_err(|error| MountError(format!("failed to fetch token: {}", MountError::from(error).0)))?;
        Ok(answer.status.map(|status| status.token).unwrap_or_default().into_bytes())
    }
}

fn mode(default: Option<i32>) -> u32 {
    default.map_or(0o644, i32::unsigned_abs)
}

fn keyed(
    mut data: BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    optional: bool,
    mode: u32,
    files: &mut Files,
    missing: impl Fn() -> String,
) -> Result<()> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        files.extend(data.into_iter().map(|(key, bytes)| (key, Content { bytes, mode })));
        return Ok(());
    };
    for item in items {
        let mode = item.mode.map_or(mode, i32::unsigned_abs);
        match data.remove(&item.key) {
            Some(bytes) => {
                files.insert(item.path.clone(), Content { bytes, mode });
            }
            None if optional => {}
            None => return Err(MountError(format!("{}: {}", missing(), item.key))),
        }
    }
    Ok(())
}

fn host_path(source: &HostPathVolumeSource) -> Result<PathBuf> {
    let path = PathBuf::from(&source.path);
    let refused = |what: &str| Err(MountError(format!("hostPath type check failed: {} is not {what}", source.path)));
    match source.type_.as_deref().unwrap_or_default() {
        "DirectoryOrCreate" => std::fs::create_dir_all(&path)?,
        "FileOrCreate" if !path.exists() => {
            std::fs::File::create(&path)?;
        }
        "Directory" if !path.is_dir() => return refused("a directory"),
        "File" | "FileOrCreate" if !path.is_file() => return refused("a file"),
        // Without a type a path that is not there becomes a directory, as container runtimes do.
        "" if !path.exists() => std::fs::create_dir_all(&path)?,
        _ => {}
    }
    Ok(path)
}
