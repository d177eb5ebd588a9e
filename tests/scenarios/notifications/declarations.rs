//! What pods declare: mistakes are told to the author, and nothing is changed behind the author's back.

use anyhow::{Context, Result, ensure};
use boathook_api::{pod_notification::Executor, words::NOTIFIERS_PREFIX};
use boathook_tests::{
    Ctx,
    boathook::{
        notifications::succeeded,
        recording::{freezer, record, recorder},
    },
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

/// What is written, in which container's annotation, and what must be said of it: the entry, the field, the problem.
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("main", "{name: reload}", &["not a list"]),
    ("main", "[", &["not a list"]),
    ("nobody", "[{name: reload, handler: {signal: HUP}}]", &["no container of this name"]),
    ("main", "[{handler: {signal: HUP}}]", &["entry 0", "name: ", "missing"]),
    ("main", "[{name: -reload, handler: {signal: HUP}}]", &["entry 0 (`-reload`)", "name: "]),
    ("main", "[{name: k8s.io/reload, handler: {signal: HUP}}]", &["entry 0", "name: ", "reserved"]),
    (
        "main",
        "[{name: reload, handler: {signal: HUP}}, {name: reload, handler: {signal: USR1}}]",
        &["entry 1 (`reload`)", "name: ", "earlier"],
    ),
    ("main", "[{name: reload}]", &["entry 0 (`reload`)", "handler: ", "missing"]),
    ("main", "[{name: reload, handler: {}}]", &["entry 0", "handler: ", "exactly one"]),
    (
        "main",
        "[{name: reload, handler: {signal: HUP, exec: {command: [a]}}}]",
        &["entry 0", "handler: ", "exactly one"],
    ),
    ("main", "[{name: reload, handler: {httpGet: {port: 80}}}]", &["entry 0", "httpGet"]),
    ("main", "[{name: reload, handler: {exec: {command: []}}}]", &["entry 0", "handler.exec.command: "]),
    ("main", "[{name: reload, handler: {exec: {command: sync}}}]", &["entry 0 (`reload`)"]),
    ("main", "[{name: reload, handler: {signal: SIGFOO}}]", &["entry 0", "handler.signal: ", "SIGFOO"]),
    ("main", "[{name: reload, handler: {signal: 1}}]", &["entry 0", "handler.signal: ", "number"]),
    ("main", "[{name: reload, handler: {signal: HUP}, timeoutSeconds: 0}]", &["entry 0", "timeoutSeconds: "]),
    ("main", "[{name: reload, handler: {signal: HUP}, timeout: 3}]", &["entry 0", "`timeout`"]),
    ("main", "[{name: reload, handler: {signal: HUP}, probe: {}}]", &["entry 0", "probe: ", "exactly one"]),
    (
        "main",
        "[{name: reload, handler: {signal: HUP}, probe: {tcpSocket: {port: 80}, periodSeconds: 0}}]",
        &["entry 0", "probe: ", "periodSeconds"],
    ),
];

pub(crate) async fn each_mistake_is_told_with_its_container_entry_and_field(ctx: Ctx, _: Executor) -> Result<()> {
    for (number, (container, text, words)) in MISTAKES.iter().enumerate() {
        let key = format!("{NOTIFIERS_PREFIX}{container}");
        let pod = recorder(&ctx, &format!("mistake-{number}")).annotation(&key, text).build();
        let refused = ctx.create(&pod).await.err().with_context(|| format!("taken: {text}"))?;
        let message = format!("{refused:#}");
        ensure!(message.contains(&format!("annotation `{key}`")), "{text}: the container is not named: {message}");
        for word in *words {
            ensure!(message.contains(word), "{text}: not said: {word}: {message}");
        }
    }
    Ok(())
}

/// A dry run: the pod would be deleted at once, because its owner does not exist.
pub(crate) async fn broken_template_is_refused_and_its_pods_are_not(ctx: Ctx, _: Executor) -> Result<()> {
    let broken = "[{name: reload, handler: {signal: 1}}]";
    let key = format!("{NOTIFIERS_PREFIX}main");
    let mut pod = recorder(&ctx, "broken").annotation(&key, broken).build();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let template = json!({"metadata": {"labels": {"app": "broken"}, "annotations": {&key: broken}}, "spec": pod.spec});
    let deployment = json!({"metadata": {"name": "broken"}, "spec": {"template": template,
        "selector": {"matchLabels": {"app": "broken"}}}});
    let refused = ctx.api::<Deployment>().create(&dry_run, &serde_json::from_value(deployment)?).await;
    let refused = refused.err().context("the template was accepted")?.to_string();
    ensure!(refused.contains("template: annotation") && refused.contains("handler.signal"), "{refused}");
    let controller = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "broken", "uid": "1-2-3",
        "controller": true}]);
    pod.metadata.owner_references = serde_json::from_value(controller)?;
    ctx.api::<Pod>().create(&dry_run, &pod).await.context("a controller cannot create the pod")?;
    Ok(())
}

pub(crate) async fn a_declaration_is_what_it_was_when_the_pod_was_created(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let (of_main, of_other) = (format!("{NOTIFIERS_PREFIX}main"), format!("{NOTIFIERS_PREFIX}other"));
    let annotate = async |key: &str, value: Option<&str>| {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        ctx.api::<Pod>().patch("box", &PatchParams::default(), &patch).await
    };
    let evil = "[{name: freeze, handler: {exec: {command: [sh, -c, 'echo evil >> log/lines']}}}]";
    // Not even by who may do everything.
    for (key, value) in [(&of_main, Some(evil)), (&of_main, None), (&of_other, Some(evil))] {
        let refused =
            annotate(key, value).await.err().with_context(|| format!("{key} could be changed to {value:?}"))?;
        ensure!(refused.to_string().contains("notifiers"), "{refused}");
    }
    annotate("example.com/other", Some("anything")).await.context("another annotation cannot be changed")?;
    succeeded(&ctx.tell("box", "freeze").await?)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    Ok(())
}

pub(crate) async fn yaml_and_json_declare_alike(ctx: Ctx, _: Executor) -> Result<()> {
    let key = format!("{NOTIFIERS_PREFIX}main");
    let yaml = "- name: example.com/reload\n  handler:\n    exec:\n      command: [sh, -c, 'echo yaml >> log/lines']\n  \
                timeoutSeconds: 60\n";
    ctx.run_pod(recorder(&ctx, "yaml").annotation(&key, yaml).build()).await?;
    ctx.run_pod(recorder(&ctx, "json").notifier("main", "example.com/reload", &record("json")).build()).await?;
    for pod in ["yaml", "json"] {
        let spec = json!({"podName": pod, "notifier": "example.com/reload"});
        succeeded(&ctx.notify("reload", spec).await?)?;
        assert_eq!(ctx.recorded(pod).await?, [pod]);
    }
    Ok(())
}
