//! `exec`.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has},
    manifests::{BUSYBOX, IDLE, pod},
    terminal::Terminal,
};

async fn running_box(kubectl: &Kubectl) -> Result<()> {
    kubectl.apply(&pod("box", IDLE)).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await.map(drop)
}

pub(crate) async fn the_exit_code_is_kubectls_own(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    running_box(&kubectl).await?;
    for code in [0, 1, 7, 255] {
        let outcome = kubectl.run(&format!("exec box -- sh -c 'echo out; echo err >&2; exit {code}'"), None).await?;
        assert_eq!(outcome.stdout, "out\n", "{outcome}");
        let end = if code == 0 { String::new() } else { format!("command terminated with exit code {code}\n") };
        assert_eq!(outcome.stderr, format!("err\n{end}"), "{outcome}");
        assert_eq!(outcome.code, Some(code), "{outcome}");
    }
    Ok(())
}

pub(crate) async fn stdin_is_passed_on(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    running_box(&kubectl).await?;
    let sent: String = (0..40_000).map(|number| format!("{number}\n")).collect();
    let echoed = kubectl.run("exec -i box -- sh -c 'cat; echo end'", Some(sent.as_bytes())).await?.success()?;
    ensure!(echoed == format!("{sent}end\n"), "{} bytes were sent, {} others came back", sent.len(), echoed.len());
    // Without -i there is nothing to read.
    assert_eq!(kubectl.run("exec box -- cat", Some(b"unread")).await?.success()?, "");
    Ok(())
}

pub(crate) async fn a_terminal_is_a_terminal_on_both_sides(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    running_box(&kubectl).await?;
    let mut terminal = Terminal::start(kubectl.command("exec -it box -- sh")?)?;
    terminal.shows("# ").await?;
    terminal.keys("tty -s && echo it is a ter''minal\n")?;
    terminal.shows("it is a terminal\r\n").await?;
    // The size of kubectl's own terminal, which is told a moment after the start.
    terminal.keys("until [ \"$(stty size)\" = '33 111' ]; do sleep 1; done; echo the si''ze\n")?;
    terminal.shows("the size\r\n").await?;
    // Control-C ends what runs in the container, not kubectl.
    terminal.keys("echo be''gun; sleep 3600\n")?;
    terminal.shows("begun\r\n").await?;
    terminal.keys("\u{3}")?;
    terminal.shows("# ").await?;
    terminal.keys("exit 5\n")?;
    terminal.shows("command terminated with exit code 5").await?;
    assert_eq!(terminal.exit_code().await?, 5);
    Ok(())
}

pub(crate) async fn what_cannot_be_executed_is_said(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let side =
        format!("  - name: side\n    image: {BUSYBOX}\n    imagePullPolicy: Never\n    command: [sh, -c, {IDLE:?}]\n");
    kubectl.apply(&(pod("box", IDLE) + &side)).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    let missing = kubectl.run("exec box -- no-such-program", None).await?;
    ensure!(missing.code.is_some_and(|code| code != 0) && missing.stderr.contains("no-such-program"), "{missing}");
    has(
        &kubectl.fails("exec box -c nobody -- true").await?,
        &["Error from server (BadRequest): container nobody is not valid for pod box"],
    )?;
    has(&kubectl.fails("exec none -- true").await?, &["Error from server (NotFound): pods \"none\" not found"])?;
    let chosen = kubectl.run("exec box -- true", None).await?;
    assert_eq!(chosen.stderr, "Defaulted container \"main\" out of: main, side\n");
    kubectl.ok("exec box -c side -- true").await?;

    kubectl.apply(&pod("over", "exit 0").replace("spec:\n", "spec:\n  restartPolicy: Never\n")).await?;
    kubectl.ok("wait --for=jsonpath={.status.phase}=Succeeded pod/over").await?;
    has(
        &kubectl.fails("exec over -- true").await?,
        &["cannot exec into a container in a completed pod; current phase is Succeeded"],
    )
}
