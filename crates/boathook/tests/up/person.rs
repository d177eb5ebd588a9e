//! People other than the administrator, each with a kubeconfig of their own and no right that was not granted.

use std::fs;
use std::path::PathBuf;

use boathook_install::roles;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use super::Cluster;

impl Cluster {
    /// Somebody without any right.
    pub(super) async fn person(&self, client: &Client, name: &str) -> PathBuf {
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
        let asked: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
        let token = accounts.create_token_request(name, &PostParams::default(), &asked).await.unwrap();
        let admins = fs::read_to_string(self.kubeconfig()).unwrap();
        let line = admins.lines().find(|line| line.trim_start().starts_with("token: ")).unwrap();
        let theirs = admins.replace(line, &format!("    token: {}", token.status.unwrap().token));
        let file = self.dir.join(name);
        fs::write(&file, theirs).unwrap();
        file
    }
}

/// Lets somebody take snapshots in the default namespace, with exactly the shipped role.
pub(super) async fn may_take_snapshots(client: &Client, name: &str) {
    let role = roles::cluster_role(roles::SNAPSHOTTER, roles::snapshotter());
    let cluster_roles: Api<ClusterRole> = Api::all(client.clone());
    cluster_roles.create(&PostParams::default(), &role).await.unwrap();
    bind(client, name, ("ClusterRole", roles::SNAPSHOTTER)).await;
}

/// Grants a role in the default namespace.
pub(super) async fn bind(client: &Client, name: &str, (kind, role): (&str, &str)) {
    let binding = json!({"metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]});
    let bindings: Api<RoleBinding> = Api::default_namespaced(client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
}
