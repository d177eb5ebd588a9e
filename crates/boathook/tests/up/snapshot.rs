//! `boathook snapshot` as people and scripts run it.

use serde_json::Value;

use super::database::Database;

/// Whether these words come one after the other.
#[track_caller]
fn assert_in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        rest = rest.split_once(word).unwrap_or_else(|| panic!("`{word}` does not come then: {text}")).1;
    }
}

#[tokio::test]
async fn a_snapshot_is_told_step_by_step_and_listed() {
    let database = Database::start("snapshot").await;
    let (code, out, err) = database.run("snapshot create nightly --pvc data --template files --template more").await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let steps = [
        "applicationsnapshot.boathook.dev/nightly created\n",
        "freezing  hook 1 of 2 (files): db/main\n",
        "frozen    hook 1 of 2 (files) in ",
        "frozen    hook 2 of 2 (more) in ",
        "cutting   claim data\n",
        "cut       claim data: VolumeSnapshot nightly\n",
        "thawed    hook 2 of 2 (more)\n",
        "thawed    hook 1 of 2 (files)\n",
        "application-consistent",
    ];
    assert_in_order(&out, &steps);
    // What succeeded goes, a moment later.
    database.is_without_hooks().await;

    let (code, out, err) = database.run("snapshot create plain --pvc data -o json").await;
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("nothing is frozen without --template"), "{err}");
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&object["kind"], &object["status"]["consistency"]), (&"ApplicationSnapshot".into(), &"Crash".into()));

    let (code, out, _) = database.run("snapshot list").await;
    assert_eq!(code, Some(0));
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["NAME", "PHASE", "CONSISTENCY"], "{out}");
    assert_eq!(rows[1][..3], ["nightly", "Complete", "Application"], "{out}");
    assert_eq!(rows[2][..3], ["plain", "Complete", "Crash"], "{out}");
}

#[tokio::test]
async fn what_failed_and_what_is_missing_is_said() {
    let database = Database::start("failures").await;
    for (line, wanted) in [
        ("snapshot create a --pvc dta --template files", "there is no PersistentVolumeClaim `dta`"),
        ("snapshot create a --pvc data --template fils", "there is no ExecutionHookTemplate `fils`"),
    ] {
        let (code, out, err) = database.run(line).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(wanted) && err.contains("there are: `"), "{err}");
    }
    // Whoever may look at classes is told before anything is frozen.
    let line = "snapshot create a --pvc data --template files --snapshot-class fats";
    let (code, out, err) = database.cluster.run(line).await;
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("VolumeSnapshotClass `fats` not found; the cluster has `"), "{err}");
    for line in ["snapshot create a --template files", "snapshot create a --pvc data --pvc b", "snapshot create"] {
        assert_eq!(database.run(line).await.0, Some(2), "{line}");
    }
    let (code, out, _) = database.run("snapshot create broken --pvc data --template files --template broken").await;
    assert_eq!(code, Some(1), "{out}");
    assert_in_order(
        &out,
        &["frozen    hook 1 of 2 (files)", "FAILED    hook 2 of 2 (broken): ", "thawed    hook 1 of 2"],
    );
    assert!(!out.contains("cutting"), "{out}");

    let line = "snapshot create all-the-same --pvc data --template broken --on-hook-failure crash-consistent";
    let (code, out, _) = database.run(line).await;
    assert_eq!(code, Some(3), "{out}");
    assert!(out.contains("cut       claim data: VolumeSnapshot all-the-same"), "{out}");

    let (code, out, _) = database.run("snapshot create stuck --pvc data --template stuck").await;
    assert_eq!(code, Some(4), "{out}");
    assert!(out.contains("FAILED    thaw of hook 1 of 1 (stuck)"), "{out}");
}
