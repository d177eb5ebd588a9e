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
    /// All claims with these labels, at once: app=db,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = selector::parse)]
    selector: Option<LabelSelector>,
    /// The ExecutionHookTemplate that freezes and thaws; several freeze in this order and thaw in reverse
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
            usage_error("--pvc takes one claim: to snapshot several at once, label them and use -l SELECTOR");
        }
        if self.pvc.is_empty() && self.selector.is_none() {
            usage_error("name the claim with --pvc CLAIM, or several with -l SELECTOR");
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
