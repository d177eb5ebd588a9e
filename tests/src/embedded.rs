//! The embedded cluster in the scenarios' own process, on its socket, in a folder that goes with it.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result};
use boathook::embedded::{self, Options};
use kube::{Client, config::Kubeconfig};

use crate::images::archives;

/// Runs while it lives; [`Embedded::stop`] also removes its folder.
pub struct Embedded {
    cluster: embedded::Embedded,
    dir: PathBuf,
}

impl Embedded {
    /// Starts it with the images of this `lantern` and of the logbook beside it.
    pub async fn start(lantern: &Path) -> Result<Self> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        // A process id may come again after a run that was killed.
        let dir = std::env::temp_dir().join(format!("boathook-scenarios-{}-{number}", std::process::id()));
        if dir.exists() {
            std::fs::remove_dir_all(&dir).context("failed to remove what an earlier run left")?;
        }
        std::fs::create_dir_all(&dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
        for contents in archives(lantern)? {
            let archive = dir.join("image.tar");
            std::fs::write(&archive, contents).context("failed to write an image")?;
            embedded::load_images(Some(dir.clone()), &archive)?;
        }
        let options = Options { data_dir: Some(dir.clone()), ..Options::default() };
        let cluster = embedded::Embedded::start(options).await.context("failed to start the embedded cluster")?;
        Ok(Self { cluster, dir })
    }

    /// How it is reached over its socket, by the kubeconfig that it writes for people.
    pub fn kubeconfig(&self) -> Result<Kubeconfig> {
        Ok(Kubeconfig::read_from(self.cluster.kubeconfig())?)
    }

    /// A client that needs no socket.
    pub fn in_process(&self) -> Client {
        self.cluster.client()
    }

    pub async fn stop(self) -> Result<()> {
        self.cluster.stop().await;
        std::fs::remove_dir_all(&self.dir).with_context(|| format!("failed to remove `{}`", self.dir.display()))
    }
}
