//! `events`.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has, rows},
    manifests::{BUSYBOX, IDLE, deployment, pod},
};

pub(crate) async fn events_tell_what_happened(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&pod("box", IDLE)).await?;
    kubectl.apply(&deployment("web", 1)).await?;
    kubectl.apply(&pod("lost", IDLE).replace(BUSYBOX, "localhost/no-such:1")).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    kubectl.ok("rollout status deployment/web").await?;
    let told = ["Scheduled", "Pulled", "Created", "Started"].map(|reason| format!("Normal {reason} Pod/box "));
    let text = kubectl.shows("events --for pod/box", &told.each_ref().map(String::as_str)).await?;
    let lines = rows(&text);
    assert_eq!(lines[0], ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
    ensure!(!text.contains("web"), "another object's:\n{text}");

    let missing = ["Pod/lost", "localhost/no-such:1", "Error: ErrImageNeverPull"];
    let warned = kubectl.shows("events --types=Warning", &missing).await?;
    ensure!(!warned.contains("Normal"), "{warned}");
    kubectl
        .shows(
            "get events --sort-by=.metadata.creationTimestamp",
            &[
                "LAST SEEN   TYPE      REASON",
                "OBJECT",
                "pod/box",
                "deployment/web",
                "ScalingReplicaSet",
                "SuccessfulCreate",
            ],
        )
        .await?;
    let chosen =
        kubectl.ok("get events --field-selector involvedObject.name=web,reason=ScalingReplicaSet -o name").await?;
    ensure!(chosen.starts_with("event/web."), "{chosen}");
    has(&kubectl.ok("events -A --no-headers").await?, &[kubectl.namespace()])
}
