//! What handlers are for: each of the flow's examples, as an author declares it and a caller uses it.

use anyhow::Result;
use boathook_api::pod_notification::{Executor, State};
use boathook_tests::{
    Ctx,
    boathook::{
        notifications::{state, status},
        recording::recorder,
    },
};

pub(crate) async fn a_notifier_runs_where_it_is_declared_and_nowhere_else(ctx: Ctx, _: Executor) -> Result<()> {
    let pod = recorder(&ctx, "box").also("second").also("third");
    let pod =
        pod.notifier("main", "flush", "echo main >> log/lines").notifier("third", "flush", "echo third >> log/lines");
    ctx.run_pod(pod.build()).await?;
    let told = ctx.tell("box", "flush").await?;
    assert_eq!(state(&told), State::Succeeded, "{told:?}");
    let names: Vec<_> = status(&told).containers.into_iter().map(|container| container.name).collect();
    assert_eq!(names, ["main", "third"]);
    let mut lines = ctx.recorded("box").await?;
    lines.sort();
    assert_eq!(lines, ["main", "third"]);
    Ok(())
}
