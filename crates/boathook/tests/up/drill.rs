//! `boathook drill` as people run it: frozen, thawed, and nothing left.

use std::process::Stdio;

use boathook_api::ExecutionHook;
use kube::Api;
use kube::api::ListParams;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::database::Database;
use super::fleet::said;
use super::{DEADLINE, looking};

#[tokio::test]
async fn a_drill_freezes_and_thaws_and_leaves_nothing() {
    let database = Database::start("drill").await;
    let (code, out, err) = database.run("drill --pvc data --template files --template more").await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    for wanted in [
        "frozen    hook 1 of 2 (files) in ",
        "frozen    hook 2 of 2 (more) in ",
        "thawed    hook 2 of 2 (more)\n",
        "thawed    hook 1 of 2 (files)\n",
        "\n  db/main ",
        "\nfrozen for ",
        "\nfrozen and thawed; nothing was cut, and its hooks are deleted\n",
    ] {
        assert!(out.contains(wanted), "`{wanted}` is missing: {out}");
    }
    assert!(database.hooks().await.is_empty());

    let (code, out, _) = database.run("drill --pvc data --template files -o json").await;
    assert_eq!(code, Some(0));
    let drill: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&drill["outcome"], &drill["containers"][0]["pod"]), (&"Thawed".into(), &"db".into()));
    assert_eq!(drill["stillFrozen"], false, "{out}");

    let (code, out, _) = database.run("drill --pvc data --template files --template broken").await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("\nNOT frozen, and everything is thawed again: PreActionFailed: "), "{out}");
    assert!(database.hooks().await.is_empty());

    for (line, code, words) in [
        ("drill --pvc data --template fils", 1, "there is no ExecutionHookTemplate `fils`"),
        ("drill --pvc data", 2, "--template"),
        ("drill", 2, "--pvc"),
    ] {
        let (ended, out, err) = database.run(line).await;
        assert_eq!((ended, out.as_str()), (Some(code), ""), "{line}: {err}");
        assert!(err.contains(words), "{line}: {err}");
    }
}

#[tokio::test]
async fn an_interrupted_drill_thaws_all_the_same() {
    let database = Database::start("interrupted-drill").await;
    let mut command = database.janes("drill --pvc data --template files --template slow");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let hooks: Api<ExecutionHook> = Api::default_namespaced(database.client.clone());
    let second = async || hooks.list(&ListParams::default()).await.unwrap().items.len() >= 2;
    looking::until("the second hook is there", second).await;
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().unwrap())).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ended = tokio::time::timeout(DEADLINE, child.wait_with_output()).await.expect("it does not end").unwrap();
    let (code, out, err) = said(ended);
    assert_eq!(code, Some(130), "{out}{err}");
    assert!(out.contains("thawed    hook 1 of 2 (files)") && out.contains("interrupted, and everything is"), "{out}");
    // They are deleted, and go when the controller lets go of them.
    database.is_without_hooks().await;
}

#[tokio::test]
async fn a_drill_that_cannot_thaw_says_so_and_the_thaw_goes_on() {
    let database = Database::start("stuck-drill").await;
    let (code, out, _) = database.run("drill --pvc data --template stuck").await;
    assert_eq!(code, Some(4), "{out}");
    assert!(out.contains("\nthaw NOT confirmed of drill-"), "{out}");
    let hooks = database.hooks().await;
    assert_eq!(hooks.len(), 1, "it stays until it is thawed");
    let (code, _, _) = database.run(&format!("thaw {} --force --yes", hooks[0])).await;
    assert_eq!(code, Some(0));
}
