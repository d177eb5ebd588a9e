//! `boathook timeline` as people and programs run it.

use serde_json::Value;

use super::database::Database;

#[tokio::test]
async fn a_timeline_is_drawn_and_told_to_programs() {
    let database = Database::start("timeline").await;
    let (code, out, _) = database.run("snapshot create nightly --pvc data --template files").await;
    assert_eq!(code, Some(0), "{out}");
    let (code, out, err) = database.run("timeline nightly").await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("ApplicationSnapshot nightly: Complete, application-consistent, from "), "{out}");
    assert!(out.contains("\nfiles\n  db/main ") && out.contains("\nfrozen for "), "{out}");
    // The drawing; the headline has a time in full, and may be longer.
    assert!(out.lines().skip(1).all(|line| line.chars().count() <= 80), "{out}");

    let (code, out, _) = database.run("timeline snapshot/nightly -o json").await;
    assert_eq!(code, Some(0));
    let timeline: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&timeline["kind"], &timeline["name"]), (&"ApplicationSnapshot".into(), &"nightly".into()));
    let container = &timeline["containers"][0];
    assert_eq!((&container["pod"], &container["freeze"]["succeeded"]), (&"db".into(), &true.into()), "{out}");
    let moment = |value: &Value| value.as_f64().unwrap();
    let cut = moment(&timeline["cuts"][0]["seenSeconds"]);
    assert!(moment(&container["freeze"]["endSeconds"]) <= cut, "{out}");
    assert!(cut <= moment(&container["thaw"]["startSeconds"]), "{out}");

    let (code, _, err) = database.run("timeline nobody").await;
    assert_eq!(code, Some(1));
    assert!(err.contains("there is no ApplicationSnapshot `nobody`"), "{err}");
}
