//! `logs`.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, Outcome, has},
    manifests::{BUSYBOX, IDLE, deployment, pod},
};

/// Waits until the log is this: a container is ready before its command has printed anything.
async fn says(kubectl: &Kubectl, line: &str, log: &str) -> Result<Outcome> {
    kubectl.until(line, &format!("`kubectl {line}` prints {log:?}"), |outcome| outcome.stdout == log).await
}

pub(crate) async fn a_log_is_followed_to_its_end(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let script = "echo begun; while [ ! -e /go ]; do sleep 1; done; echo gone; exit 0";
    kubectl.apply(&pod("box", script).replace("spec:\n", "spec:\n  restartPolicy: Never\n")).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    let mut follow = kubectl.start("logs -f box")?;
    follow.line("the first line", |line| line == "begun").await?;
    kubectl.ok("exec box -- touch /go").await?;
    assert_eq!(follow.end().await?, "begun\ngone\n");

    assert_eq!(kubectl.ok("logs box").await?, "begun\ngone\n");
    assert_eq!(kubectl.ok("logs box --tail=1").await?, "gone\n");
    assert_eq!(kubectl.ok("logs box --limit-bytes=3").await?, "beg");
    assert_eq!(kubectl.ok("logs box --since=1h").await?, "begun\ngone\n");
    let stamped = kubectl.ok("logs box --timestamps").await?;
    ensure!(stamped.lines().all(|line| line.split_once('Z').is_some_and(|(time, _)| time.contains('T'))), "{stamped}");
    assert_eq!(kubectl.ok("logs -l app=box --prefix").await?, "[pod/box/main] begun\n[pod/box/main] gone\n");
    assert_eq!(
        kubectl.fails("logs none").await?,
        "error: error from server (NotFound): pods \"none\" not found in namespace \"NAMESPACE\"\n"
            .replace("NAMESPACE", kubectl.namespace())
    );
    kubectl.apply(&deployment("web", 1).replace("trap", "echo web; trap")).await?;
    kubectl.ok("rollout status deployment/web").await?;
    says(&kubectl, "logs deployment/web", "web\n").await.map(drop)
}

pub(crate) async fn a_container_is_chosen(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let second = format!(
        "  - name: side\n    image: {BUSYBOX}\n    imagePullPolicy: Never\n    command: [sh, -c, {:?}]\n",
        format!("echo from side; {IDLE}")
    );
    let first = format!(
        "  initContainers:\n  - name: init\n    image: {BUSYBOX}\n    imagePullPolicy: Never\n    command: [echo, from init]\n"
    );
    kubectl.apply(&(pod("box", &format!("echo from main; {IDLE}")) + &second + &first)).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    says(&kubectl, "logs box -c side", "from side\n").await?;
    assert_eq!(kubectl.ok("logs box -c init").await?, "from init\n");
    let chosen = says(&kubectl, "logs box", "from main\n").await?;
    assert_eq!(chosen.stderr, "Defaulted container \"main\" out of: main, side, init (init)\n");
    chosen.success()?;
    // In any order.
    let all = kubectl.ok("logs box --all-containers").await?;
    assert_eq!(all.lines().collect::<BTreeSet<_>>(), ["from init", "from main", "from side"].into());
    has(&kubectl.fails("logs box -c nobody").await?, &["error: container nobody is not valid for pod box"])
}

pub(crate) async fn the_log_before_the_restart_is_kept(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    // Its volume outlives the container: the first time it fails, the second it stays.
    let script =
        format!("if [ -e /kept/once ]; then echo second; {IDLE}; else echo first; touch /kept/once; exit 1; fi");
    let manifest =
        pod("box", &script).replace("    command:", "    volumeMounts: [{name: kept, mountPath: /kept}]\n    command:");
    kubectl.apply(&(manifest + "  volumes:\n  - {name: kept, emptyDir: {}}\n")).await?;
    kubectl.ok("wait --for=jsonpath={.status.containerStatuses[0].restartCount}=1 pod/box").await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    assert_eq!(kubectl.ok("logs box -p").await?, "first\n");
    says(&kubectl, "logs box", "second\n").await?;
    has(&kubectl.ok("get pod box").await?, &["1/1     Running   1 ("])?;
    has(
        &kubectl.ok("describe pod box").await?,
        &[
            "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    1\n",
            "    Restart Count:  1\n",
        ],
    )?;
    kubectl.apply(&pod("calm", IDLE)).await?;
    kubectl.ok("wait --for=condition=Ready pod/calm").await?;
    has(&kubectl.fails("logs calm -p").await?, &["previous terminated container \"main\" in pod \"calm\" not found"])
}
