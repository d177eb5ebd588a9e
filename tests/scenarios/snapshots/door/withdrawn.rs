//! Nobody waits any more, or the object never comes: what was frozen for it is thawed.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::Phase,
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{failed_for, of_data, status},
        conditions::is_true,
        recording::record,
    },
    poll::Look,
    snapshots::{VolumeSnapshot, is_ready, snapshot},
    storage::SilentStorage,
    webhook::{Ask, WebhookServer},
};
use k8s_openapi::{
    api::admissionregistration::v1::{RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
    core::admission::AdmissionResponse,
};

use super::{freezing_by, intent_of, labelled, quick, refused};

/// What the second webhook says to snapshots of this label.
const UNWANTED: &str = "unwanted";

pub(crate) async fn a_client_that_goes_away_has_everything_thawed(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let waits = format!("{}; until [ -e log/go ]; do sleep 0.1; done", record("freeze"));
    ctx.create_template("waits", freezing_by(&waits)).await?;
    let (api, marked) = (ctx.api::<VolumeSnapshot>(), labelled("nightly", "waits"));
    let client = tokio::spawn(async move { api.create(&PostParams::default(), &marked).await });
    ctx.records("box", "freeze").await?;
    let intent = intent_of(&ctx, "nightly").await?;
    client.abort();
    let is_withdrawn = |object: &ApplicationSnapshot| object.metadata.deletion_timestamp.is_some();
    ctx.watch_until(DEADLINE, &intent, "is withdrawn", is_withdrawn).await?;
    ctx.shell("box", "touch log/go").await?;
    ctx.gone::<ApplicationSnapshot>(&intent).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    assert_eq!(ctx.api::<VolumeSnapshot>().get_opt("nightly").await?.map(|one| one.name_any()), None);
    Ok(())
}

/// Somebody else refuses it after we have let it through, as a quota would.
pub(crate) async fn a_snapshot_that_never_appears_is_thawed_when_its_time_is_over(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    let _server = refuse_unwanted(&ctx).await?;
    let mut marked = labelled("nightly", "quick");
    marked.labels_mut().insert(UNWANTED.to_owned(), String::new());
    let told = refused(&ctx, &marked).await?;
    ensure!(told.message.contains("there are enough"), "{told:?}");
    let intent = intent_of(&ctx, "nightly").await?;
    let waiting = ctx.in_phase(&intent, Phase::Cutting).await?;
    ensure!(is_true(&status(&waiting).conditions, condition::FROZEN), "{waiting:?}");
    failed_for(&ctx.over(&intent).await?, reason::CUT_TIMED_OUT)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

/// It is somebody else's, so it stays; and says itself that nobody vouches for it.
pub(crate) async fn a_marked_snapshot_that_is_cut_too_late_is_marked_a_crash(ctx: Ctx, _: Executor) -> Result<()> {
    let (storage, intent) = frozen_and_not_cut(&ctx).await?;
    failed_for(&ctx.over(&intent).await?, reason::CUT_TIMED_OUT)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    is_marked_a_crash(&ctx).await?;
    storage.cuts("nightly").await?;
    ctx.watch_until(DEADLINE, "nightly", "is ready to use", is_ready).await?;
    // Whoever has done the next one has passed by this one.
    ctx.take("weekly", of_data([])).await?;
    is_marked_a_crash(&ctx).await?;
    failed_for(&ctx.api().get(&intent).await?, reason::CUT_TIMED_OUT)
}

pub(crate) async fn a_marked_snapshot_whose_cut_fails_is_marked_a_crash(ctx: Ctx, _: Executor) -> Result<()> {
    let (storage, intent) = frozen_and_not_cut(&ctx).await?;
    storage.fails("nightly", "the pool is full").await?;
    failed_for(&ctx.over(&intent).await?, reason::CUT_FAILED)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    is_marked_a_crash(&ctx).await
}

pub(crate) async fn a_marked_snapshot_deleted_before_its_cut_thaws(ctx: Ctx, _: Executor) -> Result<()> {
    let (storage, intent) = frozen_and_not_cut(&ctx).await?;
    storage.asked_for("nightly").await?;
    ctx.api::<VolumeSnapshot>().delete("nightly", &DeleteParams::default()).await?;
    failed_for(&ctx.over(&intent).await?, reason::CUT_FAILED)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

/// A marked snapshot `nightly` that was let through, and what stands for it; the cut is the scenario's to make.
async fn frozen_and_not_cut(ctx: &Ctx) -> Result<(SilentStorage, String)> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    let storage = ctx.silent_storage().await?;
    let mut marked = labelled("nightly", "quick");
    marked.spec.volume_snapshot_class_name = Some(storage.class.clone());
    ctx.create(&marked).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    Ok((storage, intent_of(ctx, "nightly").await?))
}

async fn is_marked_a_crash(ctx: &Ctx) -> Result<()> {
    assert_eq!(ctx.consistency_mark("nightly").await?.as_deref(), Some("Crash"));
    Ok(())
}

/// A webhook of the scenario's own, in force when this returns.
async fn refuse_unwanted(ctx: &Ctx) -> Result<WebhookServer> {
    let server = WebhookServer::start(|_, ask| answer(ask)).await?;
    let rule = RuleWithOperations {
        operations: Some(vec!["CREATE".to_owned()]),
        api_groups: Some(vec!["snapshot.storage.k8s.io".to_owned()]),
        api_versions: Some(vec!["*".to_owned()]),
        resources: Some(vec!["volumesnapshots".to_owned()]),
        scope: None,
    };
    let here = [("kubernetes.io/metadata.name".to_owned(), ctx.namespace().to_owned())].into();
    let webhook = ValidatingWebhook {
        name: "unwanted.test.boathook.dev".to_owned(),
        client_config: server.client_config("/review"),
        rules: Some(vec![rule]),
        namespace_selector: Some(LabelSelector { match_labels: Some(here), ..LabelSelector::default() }),
        admission_review_versions: vec!["v1".to_owned()],
        side_effects: "None".to_owned(),
        timeout_seconds: Some(30),
        ..ValidatingWebhook::default()
    };
    let metadata = ObjectMeta { name: Some(ctx.namespace().to_owned()), ..ObjectMeta::default() };
    ctx.create_cluster_scoped(ValidatingWebhookConfiguration { metadata, webhooks: Some(vec![webhook]) }).await?;
    let mut probe = snapshot("probe", "data");
    probe.labels_mut().insert(UNWANTED.to_owned(), String::new());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    ctx.poll_until(DEADLINE, "the scenario's webhook is in force", async || {
        Ok(match ctx.api().create(&dry, &probe).await {
            Ok(_) => Look::NotYet("a snapshot was let through".to_owned()),
            Err(kube::Error::Api(status)) if status.message.contains("there are enough") => Look::Done(()),
            Err(error) => return Err(error).context("failed to ask for a snapshot"),
        })
    })
    .await?;
    Ok(server)
}

fn answer(ask: &Ask) -> AdmissionResponse {
    let unwanted = ask.object.as_ref().is_some_and(|object| object.labels().contains_key(UNWANTED));
    match unwanted {
        true => AdmissionResponse::from(ask).deny("there are enough"),
        false => AdmissionResponse::from(ask),
    }
}
