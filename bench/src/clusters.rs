//! The clusters on which Boathook's own work is measured: `boathook up`, and the one of a kubeconfig.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{folder::Folder, programs::Programs, system::up};

/// The kubeconfig of a cluster that is to be measured too.
const REAL_CLUSTER: &str = "BOATHOOK_BENCH_KUBECONFIG";

/// One of them, while it is up.
pub(crate) struct Cluster {
    /// Which it is, for the head of a table.
    pub(crate) title: String,
    pub(crate) kubeconfig: PathBuf,
    /// In which `sleep` and `true` are found.
    pub(crate) image: &'static str,
    /// Not `boathook up`: a small node takes less.
    pub(crate) is_real: bool,
}

/// How `boathook up` is started.
pub(crate) struct Embedded {
    title: &'static str,
    flags: &'static [&'static str],
}

/// For what is run in containers.
pub(crate) const EITHER_EXECUTOR: &[Embedded] = &[
    Embedded { title: "embedded cluster, executor api", flags: &[] },
    Embedded { title: "embedded cluster, executor agent", flags: &["--agent"] },
];
/// For what no executor has a part in.
pub(crate) const NO_EXECUTOR: &[Embedded] = &[Embedded { title: "embedded cluster", flags: &[] }];

/// Measures on one after the other, and returns all that was found.
pub(crate) async fn on_each(
    embedded: &[Embedded],
    programs: &Programs,
    folder: &Folder,
    measure: impl AsyncFn(Cluster) -> Result<String>,
) -> Result<String> {
    let mut text = String::new();
    for (number, Embedded { title, flags }) in embedded.iter().enumerate() {
        let dir = folder.path().join(number.to_string());
        std::fs::create_dir(&dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
        let (_running, kubeconfig, _) = up(programs, &dir, flags).await?;
        let (title, kubeconfig) = ((*title).to_owned(), Path::new(&kubeconfig).to_owned());
        let cluster = Cluster { title, kubeconfig, image: "host", is_real: false };
        text.push_str(&measure(cluster).await?);
    }
    if let Some(kubeconfig) = std::env::var_os(REAL_CLUSTER) {
        text.push_str(&measure(real(kubeconfig)).await?);
    }
    Ok(text)
}

fn real(kubeconfig: OsString) -> Cluster {
    Cluster {
        title: "the cluster of the kubeconfig, with the controller that runs on it".to_owned(),
        kubeconfig: kubeconfig.into(),
        image: "localhost/busybox:1",
        is_real: true,
    }
}
