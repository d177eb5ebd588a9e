//! `boathook plan` as people run it: nothing is done.

use boathook_api::ApplicationSnapshot;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use super::database::Database;

const SNAPSHOT: &str = "
apiVersion: boathook.dev/v1alpha1
kind: ApplicationSnapshot
metadata: {name: nightly}
spec:
  source: {persistentVolumeClaimName: data}
  executionHookInfos: [{executionHookTemplateName: files}, {executionHookTemplateName: more}]
";

const MARKED: &str = "
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: marked, labels: {boathook.dev/execution-hook-template: files}}
spec: {source: {persistentVolumeClaimName: data}}
";

const TEMPLATE: &str = "
apiVersion: boathook.dev/v1alpha1
kind: ExecutionHookTemplate
metadata: {name: new}
spec: {preAction: {exec: {command: [quiesce]}}}
---
apiVersion: boathook.dev/v1alpha1
kind: ExecutionHook
metadata: {name: freeze}
spec: {executionHookTemplateName: new, podSelector: {matchLabels: {app: db}}}
";

#[tokio::test]
async fn what_would_happen_is_said_and_nothing_does() {
    let database = Database::start("plan").await;
    let (code, out, err) = database.run(&format!("plan -f {}", database.file(SNAPSHOT))).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let wanted = "\
ApplicationSnapshot nightly in namespace default:
  STEP   DO       HOOK    WHERE        HOW
  1      freeze   files   db/main      sh -c 'touch data/frozen' (at most 1m40s)
  2      freeze   more    db/main      sh -c 'touch data/frozen-too' (at most 1m40s)
  3      cut      -       claim data   VolumeSnapshot nightly (at most 1m)
  4      thaw     more    db/main      sh -c 'rm -f data/frozen-too' (at most 1m40s)
  5      thaw     files   db/main      sh -c 'rm -f data/frozen' (at most 1m40s)
  expires: files 16m40s after its first PreAction
  expires: more 16m40s after its first PreAction
  you may: create applicationsnapshots, create executionhooks
  note: without the right to list volumeattachments this plan cannot see whether volumes are attached to a node: \
it counts only the pods that mount them
would work
";
    assert_eq!(out, wanted);

    // The administrator may write templates, and commands.
    let line = format!("plan -o json -f {}", database.file(TEMPLATE));
    let (code, out, err) = database.cluster.run(&line).await;
    assert_eq!(code, Some(0), "{err}");
    let plans: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(plans[0]["kind"], "ExecutionHookTemplate");
    assert_eq!(plans[1]["hooks"][0]["containers"][0]["preAction"]["what"], "quiesce");
    assert!(plans[1]["risks"][0].as_str().unwrap().contains("no postAction"), "{out}");

    assert!(database.hooks().await.is_empty(), "something was frozen");
    let snapshots: Api<ApplicationSnapshot> = Api::default_namespaced(database.client.clone());
    assert!(snapshots.list(&ListParams::default()).await.unwrap().items.is_empty(), "something was created");
}

#[tokio::test]
async fn why_it_would_fail_is_said() {
    let database = Database::start("plan-fails").await;
    database.frozen("there", "more").await;
    let elsewhere = TEMPLATE.replace("app: db", "app: sea");
    let there = elsewhere.replace("name: freeze", "name: there");
    for (documents, reasons) in [
        (
            SNAPSHOT.replace("claimName: data", "claimName: dta").replace("ClaimName: data", "ClaimName: dta"),
            vec!["claim `dta` not found"],
        ),
        (SNAPSHOT.replace("Name: more", "Name: mre"), vec!["ExecutionHookTemplate `mre` not found"]),
        (SNAPSHOT.replace("  source", "  cutTimeoutSeconds: 0\n  source"), vec!["cutTimeoutSeconds"]),
        (
            SNAPSHOT.replace("Name: more", "Name: more, podSelector: {matchLabels: {app: sea}}"),
            vec!["hook 2 of 2 (`more`): podSelector matches no pod"],
        ),
        // A request has half a minute, and `files` may take longer.
        (MARKED.to_owned(), vec!["you may not create volumesnapshots", "the PreActions of `files` may take 100 s"]),
        (
            elsewhere,
            vec!["you may not create executionhooktemplates", "you may not create pods/exec", "matches no pod"],
        ),
        (there.replace("preAction", "postAction: {exec: {command: [a]}}, preAction"), vec!["already exists"]),
    ] {
        let (code, out, err) = database.run(&format!("plan -f {}", database.file(&documents))).await;
        assert_eq!((code, err.as_str()), (Some(1), ""), "{documents}\n{out}");
        for reason in reasons {
            assert!(out.lines().any(|line| line.starts_with("  FAILS: ") && line.contains(reason)), "{reason}: {out}");
        }
        assert!(out.ends_with("would FAIL\n"), "{out}");
    }
    for (documents, wanted) in [
        ("kind: Pod", "lacks apiVersion or kind"),
        ("{apiVersion: v1, kind: Pod}", "unsupported kind `Pod` of `v1`"),
        (&SNAPSHOT.replace("source", "sauce"), "`nightly`"),
    ] {
        let (code, out, err) = database.run(&format!("plan -f {}", database.file(documents))).await;
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.contains(wanted), "{err}");
    }
}
