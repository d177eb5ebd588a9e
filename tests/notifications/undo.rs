//! What takes a handler back: it runs at least once, whenever it is owed, whoever is away meanwhile.

use anyhow::Result;
use boathook_api::{
    PodNotification,
    pod_notification::{Executor, State},
    words::reason,
};
use boathook_tests::{
    Ctx,
    boathook::{
        notifications::state,
        recording::{freezer, recorder},
    },
};
use kube::api::{Patch, PatchParams};
use serde_json::json;

pub(crate) async fn an_undo_runs_when_it_is_asked_for(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let spec = json!({"podName": "box", "notifier": "freeze", "undo": {"notifier": "thaw"}});
    let name = ctx.begin("freeze", spec).await?;
    let frozen = ctx.ended(&name).await?;
    assert_eq!(state(&frozen), State::Succeeded, "{frozen:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);

    let asked = json!({"spec": {"undoRequested": true}});
    ctx.api::<PodNotification>().patch(&name, &PatchParams::default(), &Patch::Merge(asked)).await?;
    let undone = ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    assert_eq!(state(&undone), State::Succeeded);
    Ok(())
}
