//! What is cut and what is frozen: flags that `snapshot create` and `drill` share.

use boathook_api::{
    application_snapshot::{ExecutionHookInfo, SnapshotSource},
    execution_hook::ContainerSelector,
};
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{selector, usage_error};

#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// The claim (PersistentVolumeClaim)
    #[arg(long, value_name = "CLAIM", conflicts_with = "selector")]
    pvc: Vec<String>,
    /// The claims with these labels, all at once: app=db,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = selector::parse)]
    selector: Option<LabelSelector>,
    /// An ExecutionHookTemplate that says how to freeze and thaw. Several: frozen in this order, thawed in reverse
    #[arg(long, value_name = "NAME")]
    template: Vec<String>,
    /// Freeze the pods with these labels [default: those that mount the claims]
    #[arg(long, value_name = "SELECTOR", value_parser = selector::parse, requires = "template")]
    pod_selector: Option<LabelSelector>,
    /// Freeze this container of those pods [default: all of them]
    #[arg(long, value_name = "NAME", requires = "pod_selector")]
    container: Option<String>,
}

impl Target {
    pub(crate) fn source(&self) -> SnapshotSource {
        if self.pvc.len() > 1 {
            usage_error("--pvc names one claim: to cut several at once, label them and select them by -l");
        }
        if self.pvc.is_empty() && self.selector.is_none() {
            usage_error("say which claim: --pvc CLAIM, or -l SELECTOR for several");
        }
        SnapshotSource {
            persistent_volume_claim_name: self.pvc.first().cloned(),
            selector: self.selector.clone(),
            ..SnapshotSource::default()
        }
    }

    pub(crate) fn infos(&self) -> Vec<ExecutionHookInfo> {
        let info = |template: &String| ExecutionHookInfo {
            execution_hook_template_name: template.clone(),
            pod_selector: self.pod_selector.clone(),
            container_selector: self
                .container
                .clone()
                .map(|container_name| ContainerSelector { container_name, ..ContainerSelector::default() }),
            pod_container_names_list: None,
        };
        self.template.iter().map(info).collect()
    }
}
