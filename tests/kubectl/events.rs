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
    let started = kubectl
        .until("events --for pod/box", "its start is told", |outcome| outcome.stdout.contains("Started"))
        .await?;
    let text = started.success()?;
    let lines = rows(&text);
    assert_eq!(lines[0], ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
    let reasons: Vec<_> = lines[1..].iter().map(|row| (row[1], row[2], row[3])).collect();
    for reason in ["Scheduled", "Pulled", "Created", "Started"] {
        ensure!(reasons.contains(&("Normal", reason, "Pod/box")), "`{reason}` is not told:\n{text}");
    }
    ensure!(!text.contains("web"), "another object's:\n{text}");

    let warned = kubectl
        .until("events --types=Warning", "the missing image is told", |outcome| outcome.stdout.contains("no-such"))
        .await?;
    let warned = warned.success()?;
    ensure!(!warned.contains("Normal"), "{warned}");
    has(&warned, &["Failed", "Pod/lost", "Error: ErrImageNeverPull"])?;
    let all = kubectl.ok("get events --sort-by=.metadata.creationTimestamp").await?;
    has(
        &all,
        &[
            "LAST SEEN   TYPE      REASON",
            "OBJECT",
            "pod/box",
            "deployment/web",
            "ScalingReplicaSet",
            "SuccessfulCreate",
        ],
    )?;
    let chosen =
        kubectl.ok("get events --field-selector involvedObject.name=web,reason=ScalingReplicaSet -o name").await?;
    ensure!(chosen.starts_with("event/web."), "{chosen}");
    has(&kubectl.ok("events -A --no-headers").await?, &[kubectl.namespace()])
}
