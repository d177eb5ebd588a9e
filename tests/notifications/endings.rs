//! How handlers end that do not end well: on time, and with nothing left behind where that can be had.

use anyhow::{Result, ensure};
use boathook_api::pod_notification::{ErrorType, Executor};
use boathook_tests::{
    Ctx,
    boathook::{notifications::error_of, recording::recorder},
};
use serde_json::json;

pub(crate) async fn a_missing_program_is_a_failure_with_the_runtimes_words(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let spec = json!({"podName": "box", "action": {"exec": {"command": ["no-such-program"]}}});
    let (kind, message) = error_of(&ctx.notify("missing", spec).await?)?;
    assert_eq!(kind, ErrorType::HandlerFailed, "{message}");
    ensure!(message.contains("container `main`") && message.contains("no-such-program"), "{message}");
    Ok(())
}
