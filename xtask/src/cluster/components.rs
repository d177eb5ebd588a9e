//! The programs of the cluster: how each is started, and how one sees that it is ready.
//!
//! The order is that of starting: each finds there what it needs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::certificates::NODE_NAME;
use super::images;
use super::network::{self, NODE, PODS, SERVICES};
use super::processes::PATH;
use super::site::Site;

pub(super) const CSI_DRIVER: &str = "hostpath.csi.k8s.io";
const CSI_SOCKET: &str = "kubelet/plugins/csi-hostpath/csi.sock";

/// Where the CSI driver finds a `tar` that cuts a volume which is being written.
pub(super) const CSI_TOOLS: &str = "csi-tools";

/// The controller manager limits itself to 20 requests a second by default, a CSI sidecar to 5: tests that run at once
/// would wait for that limit and not for the cluster.
const REQUEST_RATE: &str = "--kube-api-qps=200 --kube-api-burst=400";

/// A component's program, its arguments (none holds a space: the cluster's folder may not either), and its readiness.
struct Plan(PathBuf, String, Ready);

type Planned = (&'static str, fn(&Site) -> Plan);

/// Every component, in the order in which they are started.
const ALL: [Planned; 13] = [
    ("door", door),
    ("etcd", etcd),
    ("containerd", containerd),
    ("kube-apiserver", kube_apiserver),
    ("kube-controller-manager", kube_controller_manager),
    ("kube-scheduler", kube_scheduler),
    ("kubelet", kubelet),
    ("kube-proxy", kube_proxy),
    ("csi-hostpath", csi_hostpath),
    ("csi-registrar", csi_registrar),
    ("csi-provisioner", csi_provisioner),
    ("snapshot-controller", snapshot_controller),
    ("csi-snapshotter", csi_snapshotter),
];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// What is asked of a component until it answers.
pub(super) enum Ready {
    /// `GET` on a port of the cluster's loopback answers 200.
    Http(u16, &'static str),
    /// Something listens on a port of the cluster's loopback.
    Port(u16),
    /// Something listens on this socket of the cluster's folder.
    Socket(&'static str),
    /// containerd answers.
    Containerd,
    /// The API server says that it is ready.
    ApiServer,
    /// It runs: what it does is seen later, when its objects are there.
    Running,
}

pub(super) struct Component {
    pub(super) name: &'static str,
    pub(super) command: Vec<String>,
    pub(super) ready: Ready,
    /// Those that must be started anew with it.
    pub(super) dependents: &'static [&'static str],
}

pub(super) fn all(site: &Site) -> Vec<Component> {
    let component = |(name, plan): &Planned| {
        let Plan(program, arguments, ready) = plan(site);
        let mut command = Vec::new();
        // The door alone begins on the host's side.
        if *name != "door" {
            command.extend(["nsenter".to_owned(), format!("--net={}", site.layout.network().display())]);
        }
        command.push(program.display().to_string());
        command.extend(arguments.split_whitespace().map(str::to_owned));
        // The CSI sidecars end when they lose their driver, but notice only at the next call: a claim's.
        let dependents: &[&str] = if *name == "csi-hostpath" { &["csi-provisioner", "csi-snapshotter"] } else { &[] };
        Component { name, command, ready, dependents }
    };
    ALL.iter().map(component).collect()
}

fn door(site: &Site) -> Plan {
    let (dir, port) = (site.dir(), site.port);
    let arguments = format!("cluster door --port={port} --network={dir}/network --webhooks={dir}/webhooks.sock");
    Plan(site.own_program.clone(), arguments, Ready::Socket("webhooks.sock"))
}

fn etcd(site: &Site) -> Plan {
    // Nothing here outlives the machine: a flush per write would only be slow.
    let arguments = format!("--data-dir={}/etcd --unsafe-no-fsync --log-level=warn", site.dir());
    Plan(site.binaries.etcd(), arguments, Ready::Http(2379, "/health"))
}

fn containerd(site: &Site) -> Plan {
    let arguments = format!("--config={}/containerd.toml", site.dir());
    Plan("/usr/bin/containerd".into(), arguments, Ready::Containerd)
}

fn kube_apiserver(site: &Site) -> Plan {
    let (dir, port) = (site.dir(), site.port);
    let pki = format!("{dir}/pki");
    let arguments = format!(
        "--etcd-servers=http://127.0.0.1:2379 --bind-address=0.0.0.0 --secure-port={port} --advertise-address={NODE} \
         --service-cluster-ip-range={SERVICES} --allow-privileged --authorization-mode=Node,RBAC \
         --enable-admission-plugins=NodeRestriction --client-ca-file={pki}/ca.crt \
         --tls-cert-file={pki}/apiserver.crt --tls-private-key-file={pki}/apiserver.key --cert-dir={dir}/apiserver \
         --kubelet-certificate-authority={pki}/ca.crt --kubelet-preferred-address-types=InternalIP \
         --kubelet-client-certificate={pki}/apiserver-kubelet-client.crt \
         --kubelet-client-key={pki}/apiserver-kubelet-client.key --requestheader-client-ca-file={pki}/ca.crt \
         --requestheader-allowed-names=front-proxy-client --requestheader-username-headers=X-Remote-User \
         --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
         --proxy-client-cert-file={pki}/front-proxy-client.crt --proxy-client-key-file={pki}/front-proxy-client.key \
         --service-account-issuer=https://kubernetes.default.svc --service-account-key-file={pki}/sa.pub \
         --service-account-signing-key-file={pki}/sa.key --egress-selector-config-file={dir}/egress.yaml"
    );
    Plan(site.binaries.kubernetes("kube-apiserver"), arguments, Ready::ApiServer)
}

fn kube_controller_manager(site: &Site) -> Plan {
    let dir = site.dir();
    let arguments = format!(
        "{} --use-service-account-credentials --root-ca-file={dir}/pki/ca.crt \
         --service-account-private-key-file={dir}/pki/sa.key --cluster-signing-cert-file={dir}/pki/ca.crt \
         --cluster-signing-key-file={dir}/pki/ca.key --service-cluster-ip-range={SERVICES} \
         --flex-volume-plugin-dir={dir}/volume-plugins {REQUEST_RATE}",
        control_plane(&dir, "kube-controller-manager")
    );
    Plan(site.binaries.kubernetes("kube-controller-manager"), arguments, Ready::Port(10257))
}

fn kube_scheduler(site: &Site) -> Plan {
    let arguments = control_plane(&site.dir(), "kube-scheduler");
    Plan(site.binaries.kubernetes("kube-scheduler"), arguments, Ready::Port(10259))
}

/// What the controller manager and the scheduler have in common.
fn control_plane(dir: &str, name: &str) -> String {
    let kubeconfig = format!("{dir}/{name}.kubeconfig");
    format!(
        "--kubeconfig={kubeconfig} --authentication-kubeconfig={kubeconfig} --authorization-kubeconfig={kubeconfig} \
         --bind-address=127.0.0.1 --cert-dir={dir}/{name} --leader-elect=false"
    )
}

fn kubelet(site: &Site) -> Plan {
    let dir = site.dir();
    let arguments = format!(
        "--config={dir}/kubelet.yaml --kubeconfig={dir}/kubelet.kubeconfig --hostname-override={NODE_NAME} \
         --node-ip={NODE} --root-dir={dir}/kubelet --cert-dir={dir}/kubelet/pki"
    );
    Plan(site.binaries.kubernetes("kubelet"), arguments, Ready::Http(10248, "/healthz"))
}

fn kube_proxy(site: &Site) -> Plan {
    // Connection tracking stays as the kernel has it: its limits are the whole machine's.
    let arguments = format!(
        "--kubeconfig={}/kube-proxy.kubeconfig --hostname-override={NODE_NAME} --proxy-mode=iptables \
         --cluster-cidr={PODS} --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 \
         --conntrack-tcp-timeout-close-wait=0 --healthz-bind-address=127.0.0.1:10256 \
         --metrics-bind-address=127.0.0.1:10249",
        site.dir()
    );
    Plan(site.binaries.kubernetes("kube-proxy"), arguments, Ready::Http(10256, "/livez"))
}

fn csi_hostpath(site: &Site) -> Plan {
    let (dir, socket, driver) = (site.dir(), csi_socket(site), site.binaries.hostpath());
    let arguments = format!(
        "PATH={dir}/{CSI_TOOLS}:{PATH} {} --drivername={CSI_DRIVER} --endpoint=unix://{socket} --nodeid={NODE_NAME} \
         --statedir={dir}/csi-data",
        driver.display()
    );
    Plan("/usr/bin/env".into(), arguments, Ready::Socket(CSI_SOCKET))
}

fn csi_registrar(site: &Site) -> Plan {
    let registry = format!("{}/kubelet/plugins_registry", site.dir());
    let arguments = format!("--driver={CSI_DRIVER} --endpoint={} --registry={registry}", csi_socket(site));
    Plan(site.binaries.registrar(), arguments, Ready::Socket("kubelet/plugins_registry/hostpath.csi.k8s.io-reg.sock"))
}

fn csi_provisioner(site: &Site) -> Plan {
    let (socket, dir) = (csi_socket(site), site.dir());
    let arguments = format!(
        "--csi-address={socket} --kubeconfig={dir}/admin.kubeconfig --feature-gates=Topology=true {REQUEST_RATE}"
    );
    Plan(site.binaries.provisioner(), arguments, Ready::Running)
}

fn snapshot_controller(site: &Site) -> Plan {
    let arguments = format!("--kubeconfig={}/admin.kubeconfig {REQUEST_RATE}", site.dir());
    Plan(site.binaries.snapshotter("snapshot-controller"), arguments, Ready::Running)
}

fn csi_snapshotter(site: &Site) -> Plan {
    let (socket, dir) = (csi_socket(site), site.dir());
    let arguments = format!("--csi-address={socket} --kubeconfig={dir}/admin.kubeconfig {REQUEST_RATE}");
    Plan(site.binaries.snapshotter("csi-snapshotter"), arguments, Ready::Running)
}

fn csi_socket(site: &Site) -> String {
    format!("{}/{CSI_SOCKET}", site.dir())
}

impl Ready {
    pub(super) fn holds(&self, site: &Site) -> bool {
        match self {
            Self::Http(port, path) => inside(site, || answers(*port, path)),
            Self::Port(port) => inside(site, || connect(*port).is_ok()),
            Self::Socket(path) => UnixStream::connect(site.layout.path(path)).is_ok(),
            Self::Containerd => {
                images::ctr(&site.layout).arg("version").output().is_ok_and(|output| output.status.success())
            }
            Self::ApiServer => site.kubectl_agrees(&["get", "--raw=/readyz"]),
            Self::Running => true,
        }
    }
}

fn inside(site: &Site, holds: impl FnOnce() -> bool + Send) -> bool {
    network::inside(&site.layout.network(), holds).unwrap_or(false)
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    Ok(stream)
}

fn answers(port: u16, path: &str) -> bool {
    let status = || -> std::io::Result<[u8; 12]> {
        let mut stream = connect(port)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut line = [0; 12];
        stream.read_exact(&mut line)?;
        Ok(line)
    };
    status().is_ok_and(|line| line.ends_with(b" 200"))
}
