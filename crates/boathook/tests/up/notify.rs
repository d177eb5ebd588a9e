//! `boathook notify` as people and scripts run it.

use std::process::Stdio;

use boathook_api::PodNotification;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::fleet::{fleet, said};
use super::person::bind;
use super::terminal::Terminal;
use super::{DEADLINE, looking};

/// Times differ from run to run, and the widths of columns with them.
fn without_times(text: &str) -> Vec<String> {
    let is_time = |word: &&str| word.trim_matches(['(', ')']).ends_with('s') && word.contains(|c: char| c.is_numeric());
    let row = |line: &str| {
        let words: Vec<_> = line.split_whitespace().map(|word| if is_time(&word) { "TIME" } else { word }).collect();
        words.join(" ")
    };
    text.lines().map(row).collect()
}

#[tokio::test]
async fn each_container_is_a_line_and_a_failure_says_why() {
    let (cluster, client) = fleet("lines").await;
    let (code, out, err) = cluster.run("notify web-0 reload").await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let wanted = ["POD CONTAINER RESULT EXIT TIME", "web-0 log ok 0 TIME", "web-0 main ok 0 TIME", "1 pod: 1 ok TIME"];
    assert_eq!(without_times(&out), wanted);

    let (code, out, err) = cluster.run("notify -l app=web check --parallelism 1").await;
    assert_eq!(code, Some(1), "{out}");
    assert_eq!(err, "not notified: 1 pod declares no notifier `check` (plain)\n");
    let failed =
        ["HandlerFailed: `sh -c echo one; echo two; exit 3` ended with exit code 3: one | two", "| one", "| two"];
    let mut wanted = vec!["POD CONTAINER RESULT EXIT TIME", "web-0 main FAILED 3 TIME"];
    wanted.extend(failed);
    wanted.push("web-1 main FAILED 3 TIME");
    wanted.extend(failed);
    wanted.push("2 pods: 2 failed TIME");
    assert_eq!(without_times(&out), wanted);

    let (code, out, _) = cluster.run("notify --node boathook -A reload -o wide").await;
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("NAMESPACE   POD     CONTAINER   RESULT    EXIT   TIME     NODE       POD"), "{out}");
    assert!(out.contains("boathook   web-1-reload-"), "{out}");

    let made = Api::<PodNotification>::default_namespaced(client).list(&ListParams::default()).await.unwrap();
    assert_eq!(made.items.len(), 5);
    for object in made {
        assert!(object.spec.pod_uid.is_some() && object.spec.ttl_seconds_after_finished.is_some());
        assert!(object.labels().contains_key("boathook.dev/notify"));
    }
}

#[tokio::test]
async fn programs_get_the_objects_and_no_more_pods_are_told_at_once_than_was_said() {
    let (cluster, _) = fleet("objects").await;
    let (code, out, err) = cluster.run("notify -l app=web doze --parallelism 1 -o json").await;
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("2 pods: 2 ok"), "{err}");
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&list["kind"], &list["items"][1]["spec"]["podName"]), (&json!("List"), &json!("web-1")));
    let time = |place: usize, which: &str| list["items"][place]["status"]["containers"][0][which].as_str().unwrap();
    assert!(time(0, "completeTime") <= time(1, "startTime"), "{out}");

    let (_, out, _) = cluster.run("notify web-0 reload -o yaml").await;
    assert!(out.starts_with("apiVersion: boathook.dev/v1alpha1\nkind: PodNotification\n"), "{out}");
    assert!(out.contains("  state: Succeeded\n") && !out.contains("managedFields"), "{out}");

    let (code, out, err) = cluster.run("notify pod/web-0 reload --wait=false").await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("podnotification.boathook.dev/web-0-reload-") && out.ends_with(" created\n"), "{out}");
}

#[tokio::test]
async fn who_cannot_be_told_is_said() {
    let (cluster, client) = fleet("untold").await;
    for (line, code, wanted) in [
        (
            "notify web-0 relaod",
            1,
            "error: pod `web-0` declares no notifier `relaod`; it declares `reload` (log), `reload` (main), `check` (main), `doze` (main), `sleep` (main)\n",
        ),
        ("notify plain reload", 1, "error: pod `plain` declares no notifier `reload`; it declares no notifiers\n"),
        ("notify nobody reload", 1, "error: there is no pod `nobody` in namespace `default`\n"),
        ("notify nobody reload -n sea", 1, "error: there is no pod `nobody` in namespace `sea`\n"),
        (
            "notify -l app=web relaod",
            1,
            "not notified: 3 pods declare no notifier `relaod` (plain, web-0, web-1)\nerror: no pod was notified\n",
        ),
        ("notify -l app=sea reload", 1, "error: there are no pods with `app=sea` in namespace `default`\n"),
    ] {
        assert_eq!(cluster.run(line).await, (Some(code), String::new(), wanted.to_owned()), "{line}");
    }
    for wrong in [
        "notify reload",
        "notify web-0 reload -l app=web",
        "notify web-0 reload -A",
        "notify web-0 reload --timeout 5",
        "notify -l app=web reload --parallelism 0",
        "notify -l app=web reload --parallelism 1 --wait=false",
        "notify deployment/web reload",
        "notify web-0 reload -o xml",
    ] {
        let (code, out, err) = cluster.run(wrong).await;
        assert_eq!((code, out.as_str()), (Some(2), ""), "{wrong}");
        assert!(err.starts_with("error: "), "{wrong}: {err}");
    }

    let pods: Api<Pod> = Api::default_namespaced(client);
    let unschedulable = json!({"metadata": {"name": "late", "labels": {"app": "late"}}, "spec":
        {"nodeSelector": {"no": "such"}, "containers": [{"name": "main", "image": "host"}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(unschedulable).unwrap()).await.unwrap();
    let (code, _, err) = cluster.run("notify late reload").await;
    assert_eq!((code, err.as_str()), (Some(1), "error: pod `late` is not running: it is Pending\n"));
    let (code, _, err) = cluster.run("notify -l app=late reload").await;
    assert_eq!(
        (code, err.as_str()),
        (Some(1), "not notified: 1 pod is not running (late)\nerror: no pod was notified\n")
    );
}

#[tokio::test]
async fn whoever_stops_waiting_is_told_what_goes_on() {
    let (cluster, client) = fleet("waiting").await;
    let (code, out, err) = cluster.run("notify web-0 sleep --timeout 10s").await;
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    // What it says of the pod depends on what it has seen by then.
    assert!(
        err.starts_with("error: not all pods have ended within 10s:\n  web-0: ")
            && err.contains("\nthe started ones continue: "),
        "{err}"
    );

    let mut command = cluster.boathook("notify -l app=web sleep --parallelism 1");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let made: Api<PodNotification> = Api::default_namespaced(client);
    // The first is that of the time that was over.
    let claimed =
        async || made.list(&ListParams::default()).await.unwrap().iter().filter(|one| is_claimed(one)).count() >= 2;
    looking::until("it runs", claimed).await;
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().unwrap())).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let (code, out, err) =
        said(tokio::time::timeout(DEADLINE, child.wait_with_output()).await.expect("it does not end").unwrap());
    assert_eq!((code, out.as_str()), (Some(130), ""), "{err}");
    for wanted in [
        "interrupted; still running:\n  web-0: ",
        "\n  1 more pod not notified, and will not be\n",
        "kubectl get podnotifications -l boathook.dev/notify=",
    ] {
        assert!(err.contains(wanted), "{err}");
    }
}

fn is_claimed(object: &PodNotification) -> bool {
    object.status.as_ref().is_some_and(|status| status.claim.is_some())
}

#[tokio::test]
async fn a_missing_right_is_named_and_nobody_is_told() {
    let (cluster, client) = fleet("rights").await;
    let file = cluster.person(&client, "jane").await;
    let roles: Api<Role> = Api::default_namespaced(client.clone());
    let line = format!("notify -l app=web reload --kubeconfig {}", file.display());
    let ours =
        |verbs: &[&str]| json!({"apiGroups": ["boathook.dev"], "resources": ["podnotifications"], "verbs": verbs});
    // Whoever may create but not watch is told so before anybody is told anything.
    for (place, (missing, granted)) in [
        ("list pods", json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]})),
        ("list podnotifications.boathook.dev", ours(&["create"])),
        ("list podnotifications.boathook.dev", ours(&["list", "watch"])),
    ]
    .into_iter()
    .enumerate()
    {
        let (code, out, err) = cluster.run(&line).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        let wanted = format!("error: the right to {missing} in namespace `default` is missing (ClusterRole ");
        assert!(err.contains(&wanted), "{err}");
        let name = format!("grant-{place}");
        let role = json!({"metadata": {"name": name}, "rules": [granted]});
        roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
        bind(&client, "jane", ("Role", &name)).await;
    }
    let made: Api<PodNotification> = Api::default_namespaced(client);
    assert!(made.list(&ListParams::default()).await.unwrap().items.is_empty(), "somebody was told");
    let waiting = cluster.run(&line).await;
    assert_eq!(waiting.0, Some(0), "{waiting:?}");
}

#[tokio::test]
async fn a_terminal_has_progress_and_colours_unless_they_are_not_wanted() {
    let (cluster, _) = fleet("terminal").await;
    let shown = Terminal::start(cluster.boathook("notify web-0 doze")).read(DEADLINE).await;
    // On a busy machine the first progress line is painted seconds after the start.
    let since = shown.split("\r\x1b[K0 of 1, waiting for web-0 (").nth(1).and_then(|rest| rest.split_once("s)"));
    assert!(since.is_some_and(|(seconds, _)| seconds.parse::<u32>().is_ok()), "{shown:?}");
    assert!(shown.contains("\x1b[32mok\x1b[0m") && shown.ends_with("s)\r\n"), "{shown:?}");
    let mut plain = cluster.boathook("notify web-0 check");
    plain.env("NO_COLOR", "1");
    let shown = Terminal::start(plain).read(DEADLINE).await;
    assert!(shown.contains("FAILED") && !shown.contains("\x1b[3"), "{shown:?}");
}
