//! Images that are not a small Linux: one with a single program.

use anyhow::{Result, ensure};
use boathook_tests::{
    Ctx, DEADLINE,
    exec::exec,
    images::LANTERN,
    pods::{is_ready, pod},
};

pub(crate) async fn an_image_without_a_shell_runs_and_is_executed_in(ctx: Ctx) -> Result<()> {
    ctx.create(&pod("lantern", ctx.images().lantern).build()).await?;
    ctx.watch_until(DEADLINE, "lantern", "is ready", is_ready).await?;
    ctx.follow_log_until(DEADLINE, "lantern", "lit").await?;

    let outcome = exec([LANTERN, "exit", "3"]).in_pod(&ctx, "lantern").await?;
    assert_eq!(outcome.exit_code()?, 3, "{outcome}");

    let shell = exec(["sh", "-c", "exit 0"]).in_pod(&ctx, "lantern").await?;
    ensure!(shell.refusal()?.contains("\"sh\""), "the refusal does not name what is missing: {shell}");
    Ok(())
}
