//! `boathook notifiers`, and the name by which kubectl calls the program.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::Cluster;
use super::fleet::{LOG, MAIN, pod};

#[tokio::test]
async fn what_pods_declare_is_listed_and_mistakes_are_shown() {
    let mut cluster = Cluster::new("notifiers");
    // Without the controller, whose webhook would not let such a declaration in.
    cluster.up_with(&["--no-controller"]);
    let client = cluster.client().await;
    pod(&client, "web-0", &[("main", MAIN), ("log", LOG)]).await;
    pod(&client, "odd", &[("main", "[{name: reload, handler: {}}]")]).await;
    let (code, out, err) = cluster.run("notifiers").await;
    assert_eq!(code, Some(0));
    let wanted = "\
POD     CONTAINER   NOTIFIER   HANDLER                              TIMEOUT   PROBE
odd     main        reload     <invalid>                            <none>    <none>
web-0   log         reload     true                                 1m40s     <none>
web-0   main        reload     echo reloaded                        1m40s     <none>
web-0   main        check      sh -c 'echo one; echo two; exit 3'   1m40s     <none>
web-0   main        doze       sleep 1                              1m40s     <none>
web-0   main        sleep      sleep 100                            3m20s     <none>
";
    assert_eq!(out, wanted);
    let wanted = "warning: pod `default/odd`: annotation `notifiers.boathook.dev/main`, entry 0 (`reload`), handler: \
                  write exactly one of exec and signal\n";
    assert_eq!(err, wanted);
    let (_, out, _) = cluster.run("notifiers web-0 -o json").await;
    let items: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(items["items"][1]["handler"]["exec"]["command"], json!(["echo", "reloaded"]));
    let (code, out, err) = cluster.run("notifiers -l app=sea -A").await;
    let wanted = "no pods with `app=sea` declare notifiers in any namespace\n";
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", wanted));
}

#[test]
fn kubectl_calls_it_by_another_name() {
    let cluster = Cluster::new("plugin");
    let link = cluster.dir.join("kubectl-boathook");
    symlink(env!("CARGO_BIN_EXE_boathook"), &link).unwrap();
    let help = |program| {
        let output = std::process::Command::new(program).args(["notify", "-h"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let called = help(link.as_os_str());
    assert!(called.contains("Usage: kubectl boathook notify [OPTIONS] POD NOTIFIER\n"), "{called}");
    assert_eq!(called.replace("kubectl boathook", "boathook"), help(env!("CARGO_BIN_EXE_boathook").as_ref()));
}
