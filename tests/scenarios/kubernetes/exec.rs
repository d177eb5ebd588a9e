//! Commands in a running pod: how they end, what they read and print, and what is known when the stream is lost.

use std::{fmt::Write as _, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use boathook_tests::{
    Ctx, DEADLINE,
    exec::exec,
    pods::{is_ready, pod},
    relay::Relay,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::AttachParams};
use tokio::{io::AsyncReadExt, time::timeout};

/// An idle pod named `box`, running.
async fn running_box(ctx: &Ctx) -> Result<()> {
    ctx.create(&pod("box", ctx.images().shell).idle().build()).await?;
    ctx.watch_until(DEADLINE, "box", "is ready", is_ready).await.map(drop)
}

pub(crate) async fn an_exit_code_comes_back_as_it_was(ctx: Ctx) -> Result<()> {
    running_box(&ctx).await?;
    for code in [0, 1, 7, 255] {
        let outcome = exec(["sh", "-c", &format!("echo out; echo err >&2; exit {code}")]).in_pod(&ctx, "box").await?;
        assert_eq!(outcome.exit_code()?, code, "{outcome}");
        assert_eq!(outcome.stdout, b"out\n", "{outcome}");
        assert_eq!(outcome.stderr, b"err\n", "{outcome}");
    }
    Ok(())
}

pub(crate) async fn a_missing_program_is_a_failure_and_not_an_exit_code(ctx: Ctx) -> Result<()> {
    running_box(&ctx).await?;
    let outcome = exec(["no-such-program"]).in_pod(&ctx, "box").await?;
    let refusal = outcome.refusal()?;
    ensure!(refusal.contains("no-such-program"), "the refusal does not name the program: {outcome}");
    ensure!(outcome.exit_code().is_err(), "a program that never ran has an exit code: {outcome}");
    Ok(())
}

pub(crate) async fn stdin_reaches_the_command_and_its_end_does_too(ctx: Ctx) -> Result<()> {
    running_box(&ctx).await?;
    // More than fits into any one message or pipe on the way. `cat` ends only at the end of its input, and what it
    // then has to say must still come back.
    let sent = numbered_lines(300_000);
    let echoed = exec(["cat"]).stdin(&sent).cap(sent.len()).in_pod(&ctx, "box").await?;
    assert_eq!(echoed.exit_code()?, 0);
    ensure!(echoed.stdout == sent, "{} bytes were sent, {} others came back", sent.len(), echoed.stdout.len());

    let empty = exec(["wc", "-c"]).stdin(b"").in_pod(&ctx, "box").await?.success()?;
    assert_eq!(empty.trim(), "0");
    Ok(())
}

pub(crate) async fn twenty_megabytes_of_output_arrive_whole(ctx: Ctx) -> Result<()> {
    const SIZE: usize = 20_000_000;
    running_box(&ctx).await?;
    // Every line is different: a piece that is lost, doubled or moved shows.
    let script = format!("seq 3000000 | head -c {SIZE}");
    let outcome = exec(["sh", "-c", &script]).cap(2 * SIZE).in_pod(&ctx, "box").await?;
    let wanted = numbered_lines(SIZE);
    assert_eq!(outcome.stdout.len(), SIZE);
    if outcome.stdout != wanted {
        let first = outcome.stdout.iter().zip(&wanted).position(|(came, wanted)| came != wanted);
        bail!("what came differs from what was printed, first at byte {first:?}");
    }
    assert_eq!(outcome.exit_code()?, 0);
    Ok(())
}

pub(crate) async fn a_stream_cut_in_the_middle_has_no_status(ctx: Ctx) -> Result<()> {
    running_box(&ctx).await?;
    let (relay, client) = Relay::to_api_server(ctx.config()).await?;
    let pods = Api::<Pod>::namespaced(client, ctx.namespace());
    // It waits for a line that never comes, so nothing but the cut can end this stream.
    let command = ["sh", "-c", "echo begun; read line; exit 0"];
    let parameters = AttachParams::default().stdin(true);
    let mut process = timeout(DEADLINE, pods.exec("box", command, &parameters)).await??;
    let status = process.take_status().context("no status to take")?;
    let mut stdout = process.stdout().context("no stdout")?;
    let mut begun = [0; 6];
    timeout(DEADLINE, stdout.read_exact(&mut begun)).await.context("the command did not begin")??;
    assert_eq!(&begun, b"begun\n");

    relay.cut().await;

    // Far less than kube's own ping: the end of the connection is what is noticed.
    let status = timeout(Duration::from_secs(30), status).await.context("the cut was not noticed")?;
    ensure!(status.is_none(), "a cut stream has a status: {status:?}");
    Ok(())
}

/// `1\n2\n3\n...`, this many bytes.
fn numbered_lines(size: usize) -> Vec<u8> {
    let mut text = String::with_capacity(size + 16);
    for number in 1_u32.. {
        if text.len() >= size {
            break;
        }
        let _ = writeln!(text, "{number}");
    }
    text.truncate(size);
    text.into_bytes()
}
