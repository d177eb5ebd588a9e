//! What the API server itself holds people to when they write notifications: the rules of the CRDs.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use boathook_api::{Notification, PodNotification};
use boathook_tests::Ctx;
use futures::future::try_join_all;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

const INSTALL_DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn the_kinds_are_installed_by_many_at_once_and_again(ctx: Ctx) -> Result<()> {
    let client = ctx.client();
    try_join_all((0..4).map(|_| boathook_install::apply(&client, ctx.namespace(), INSTALL_DEADLINE))).await?;
    let notifications: Api<Notification> = ctx.api();
    notifications.list(&Default::default()).await.context("a kind is not served that was waited for")?;
    Ok(())
}

pub(crate) async fn a_pod_notification_does_exactly_one_thing_and_so_does_its_undo(ctx: Ctx) -> Result<()> {
    let notifications = installed(&ctx).await?;
    let exec = json!({"exec": {"command": ["sync"]}});
    let held = json!({"exec": {"command": ["lock"], "hold": true}});
    for good in [
        json!({"podName": "db-0", "notifier": "reload"}),
        json!({"podName": "db-0", "notifier": "reload", "containers": ["main"]}),
        json!({"podName": "db-0", "action": exec, "containers": ["main"], "undo": {"notifier": "thaw"}}),
        json!({"podName": "db-0", "notifier": "freeze", "undo": {"action": {"signal": "SIGHUP"}, "afterSeconds": 3}}),
        json!({"podName": "db-0", "action": {"tcpSocket": {"port": 80}}, "notifier": null}),
        json!({"podName": "db-0", "action": held, "undo": {}}),
        json!({"podName": "db-0", "action": held, "undo": {"afterSeconds": 3}}),
        json!({"podName": "db-0", "action": held, "undo": {"notifier": "thaw"}}),
    ] {
        notifications.create("good", &good).await.with_context(|| format!("refused: {good}"))?;
    }
    for (bad, words) in [
        (json!({"podName": "db-0"}), "write exactly one of notifier and action"),
        (json!({"podName": "db-0", "notifier": "a", "action": exec}), "write exactly one of notifier and action"),
        (json!({"podName": "db-0", "action": {}}), "write exactly one of exec, signal, httpGet and tcpSocket"),
        (
            json!({"podName": "db-0", "action": {"exec": {"command": ["a"]}, "signal": "HUP"}}),
            "write exactly one of exec, signal, httpGet and tcpSocket",
        ),
        (json!({"podName": "db-0", "action": {"signal": "SIGFOO"}}), "Unsupported value"),
        (json!({"podName": "db-0", "action": {"exec": {"command": []}}}), "command"),
        (json!({"podName": "db-0", "notifier": "a", "undo": {}}), "write exactly one of notifier and action"),
        (json!({"podName": "db-0", "notifier": "a", "undo": {"action": {}}}), "write exactly one of exec"),
        (json!({"podName": "db-0", "action": exec, "undo": {}}), "only with exec.hold may it have neither"),
        (json!({"podName": "db-0", "action": held}), "write `undo: {}`"),
        (json!({"podName": "db-0", "action": exec, "undo": {"action": held}}), "an undo's session cannot be held"),
        (json!({"podName": "db-0", "notifier": "a", "startDeadlineSeconds": 0}), "startDeadlineSeconds"),
        (json!({"podName": "", "notifier": "a"}), "podName"),
        (json!({"notifier": "a"}), "podName"),
    ] {
        let message = notifications.refused("bad", &bad).await?;
        anyhow::ensure!(message.contains(words), "{bad} is refused in other words: {message}");
    }
    Ok(())
}

pub(crate) async fn a_pod_notification_changes_only_in_what_may_change(ctx: Ctx) -> Result<()> {
    let notifications = installed(&ctx).await?;
    let spec = json!({"podName": "db-0", "notifier": "freeze", "undo": {"notifier": "thaw", "afterSeconds": 3600}});
    notifications.create_for_good("kept", &spec).await?;
    for change in [
        json!({"podName": "db-1"}),
        json!({"notifier": "other"}),
        json!({"notifier": null, "action": {"exec": {"command": ["sync"]}}}),
        json!({"startDeadlineSeconds": 61}),
        json!({"retry": "UntilTimeout"}),
        json!({"undo": null}),
        json!({"undo": {"notifier": "other"}}),
        json!({"undo": {"notifier": null, "action": {"exec": {"command": ["sync"]}}}}),
        json!({"undo": {"afterSeconds": null}}),
    ] {
        let message = notifications.change_refused("kept", &change).await?;
        let words = "only undoRequested and ttlSecondsAfterFinished can be changed";
        anyhow::ensure!(message.contains(words), "{change} is refused in other words: {message}");
    }
    notifications.change("kept", &json!({"ttlSecondsAfterFinished": 3600})).await?;
    notifications.change("kept", &json!({"undoRequested": true})).await?;
    for taken_back in [json!({"undoRequested": false}), json!({"undoRequested": null})] {
        let message = notifications.change_refused("kept", &taken_back).await?;
        anyhow::ensure!(message.contains("undoRequested cannot be taken back"), "{taken_back}: {message}");
    }
    notifications.change("kept", &json!({"ttlSecondsAfterFinished": null})).await
}

pub(crate) async fn a_notification_never_changes(ctx: Ctx) -> Result<()> {
    installed(&ctx).await?;
    let notifications = Kind::of::<Notification>(&ctx);
    let spec = json!({"selector": {"matchLabels": {"app": "none"}}, "notifier": "reload", "parallelism": -1});
    notifications.create_for_good("kept", &spec).await?;
    for change in [
        json!({"notifier": "other"}),
        json!({"parallelism": 1}),
        json!({"policy": "PreExistingPods"}),
        json!({"selector": {"matchLabels": {"app": "other"}}}),
    ] {
        let message = notifications.change_refused("kept", &change).await?;
        anyhow::ensure!(message.contains("spec is immutable"), "{change} is refused in other words: {message}");
    }
    Ok(())
}

async fn installed(ctx: &Ctx) -> Result<Kind> {
    boathook_install::apply(&ctx.client(), boathook_install::NAMESPACE, INSTALL_DEADLINE).await?;
    Ok(Kind::of::<PodNotification>(ctx))
}

/// The objects of one kind, as people write them: right or wrong.
struct Kind {
    resource: ApiResource,
    api: Api<DynamicObject>,
}

impl Kind {
    fn of<K: kube::Resource<DynamicType = ()>>(ctx: &Ctx) -> Self {
        let resource = ApiResource::erase::<K>(&());
        Self { api: Api::namespaced_with(ctx.client(), ctx.namespace(), &resource), resource }
    }

    async fn post(&self, name: &str, spec: &Value, dry_run: bool) -> kube::Result<DynamicObject> {
        let object = DynamicObject::new(name, &self.resource).data(json!({"spec": spec}));
        self.api.create(&PostParams { dry_run, ..PostParams::default() }, &object).await
    }

    /// In a dry run.
    async fn create(&self, name: &str, spec: &Value) -> Result<()> {
        self.post(name, spec, true).await?;
        Ok(())
    }

    async fn create_for_good(&self, name: &str, spec: &Value) -> Result<()> {
        self.post(name, spec, false).await?;
        Ok(())
    }

    /// The API server's words.
    async fn refused(&self, name: &str, spec: &Value) -> Result<String> {
        invalid(self.post(name, spec, true).await).with_context(|| format!("{spec}"))
    }

    async fn patch(&self, name: &str, spec: &Value) -> kube::Result<DynamicObject> {
        self.api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await
    }

    async fn change(&self, name: &str, spec: &Value) -> Result<()> {
        self.patch(name, spec).await.with_context(|| format!("a change is refused that is allowed: {spec}"))?;
        Ok(())
    }

    async fn change_refused(&self, name: &str, spec: &Value) -> Result<String> {
        invalid(self.patch(name, spec).await).with_context(|| format!("{spec}"))
    }
}

fn invalid<T>(answer: kube::Result<T>) -> Result<String> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(status.message),
        Err(error) => Err(error).context("failed in another way than by being invalid"),
        Ok(_) => bail!("was taken, though it breaks a rule"),
    }
}
