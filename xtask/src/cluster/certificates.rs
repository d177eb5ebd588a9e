//! One certificate authority for the whole cluster, the certificates it signs, and the kubeconfigs made of them.

use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use super::layout::Layout;
use super::{files, network};

/// The node's name: the kubelet's certificate must carry it.
pub(super) const NODE_NAME: &str = "node1";
/// The node's user: `system:node:` and its name.
const NODE_USER: &str = "system:node:node1";

/// Who gets a certificate: file name, common name, organisation, names it serves under.
const LEAVES: [(&str, &str, &str, &[&str]); 9] = [
    (
        "apiserver",
        "kube-apiserver",
        "",
        &[
            "127.0.0.1",
            network::NODE,
            network::API_SERVICE,
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ],
    ),
    ("kubelet-server", NODE_USER, "system:nodes", &[network::NODE, "127.0.0.1", NODE_NAME]),
    ("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters", &[]),
    ("front-proxy-client", "front-proxy-client", "", &[]),
    ("admin", "admin", "system:masters", &[]),
    ("kube-controller-manager", "system:kube-controller-manager", "", &[]),
    ("kube-scheduler", "system:kube-scheduler", "", &[]),
    ("kubelet", NODE_USER, "system:nodes", &[]),
    ("kube-proxy", "system:kube-proxy", "", &[]),
];

/// The programs that talk to the API server, each with a kubeconfig of its own.
const CLIENTS: [&str; 5] = ["admin", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"];

/// Makes everything that is missing. The port is the API server's, the same inside the cluster's network and on the
/// host's loopback, so one kubeconfig serves both.
pub(super) fn make(layout: &Layout, port: u16) -> Result<()> {
    let pki = layout.path("pki");
    // The last file written: if it is there, all are.
    if !pki.join("sa.key").exists() {
        files::folder(&pki)?;
        sign_all(&pki).context("failed to make the certificates")?;
    }
    for client in CLIENTS {
        files::write(&layout.path(&format!("{client}.kubeconfig")), kubeconfig(&pki, client, port))?;
    }
    Ok(())
}

fn sign_all(pki: &Path) -> Result<()> {
    let mut params = CertificateParams::new([])?;
    params.distinguished_name.push(DnType::CommonName, "boathook-cluster");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    files::write(&pki.join("ca.crt"), params.self_signed(&key)?.pem())?;
    write_key(&pki.join("ca.key"), &key)?;
    let authority = Issuer::new(params, key);

    for (file, name, organisation, served) in LEAVES {
        let mut params = CertificateParams::new(served.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        params.distinguished_name.push(DnType::CommonName, name);
        if !organisation.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, organisation);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        files::write(&pki.join(format!("{file}.crt")), params.signed_by(&key, &authority)?.pem())?;
        write_key(&pki.join(format!("{file}.key")), &key)?;
    }
    let accounts = KeyPair::generate()?;
    files::write(&pki.join("sa.pub"), accounts.public_key_pem())?;
    write_key(&pki.join("sa.key"), &accounts)
}

fn write_key(path: &Path, key: &KeyPair) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    files::write(path, key.serialize_pem())?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .with_context(|| format!("failed to keep `{}` private", path.display()))
}

fn kubeconfig(pki: &Path, client: &str, port: u16) -> String {
    let pki = pki.display();
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: boathook
  cluster:
    server: https://127.0.0.1:{port}
    certificate-authority: {pki}/ca.crt
users:
- name: {client}
  user:
    client-certificate: {pki}/{client}.crt
    client-key: {pki}/{client}.key
contexts:
- name: boathook
  context: {{cluster: boathook, user: {client}}}
current-context: boathook
"
    )
}
