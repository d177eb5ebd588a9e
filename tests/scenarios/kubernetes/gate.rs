//! The gate's conditions, as the API server decides them, say the same as the gate's rule: to be asked is to be held.
//!
//! The conditions are those that are installed, on a webhook of the scenario that answers yes; what it is asked about is
//! compared with the rule, over every combination that matters (in a sample, over some of them).

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use boathook_api::words::{GATE, LIFECYCLE};
use boathook_decide::deployment_lifecycle::gate::{Request, Update, Verdict, judge};
use boathook_install::webhooks::{REPLICA_SETS, mutating};
use boathook_tests::{
    Ctx, DEADLINE,
    measure::Measure,
    poll::Look,
    random::Random,
    webhook::{Ask, WebhookServer},
};
use k8s_openapi::{
    api::{admissionregistration::v1::MutatingWebhookConfiguration, apps::v1::ReplicaSet},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::admission::AdmissionResponse,
};
use serde_json::{Value, json};

const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const REVISION: &str = "deployment.kubernetes.io/revision";

/// One ReplicaSet before and after a write.
#[derive(Clone, Copy, Debug)]
struct Case {
    managed: bool,
    owner: Owner,
    gate: &'static str,
    replicas: (i32, i32),
    desired: (&'static str, &'static str),
    revision: (&'static str, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Deployment,
    /// It owns it, and does not control it.
    NoController,
    AnotherKind,
    None,
}

const USUAL: Case = Case {
    managed: true,
    owner: Owner::Deployment,
    gate: "",
    replicas: (0, 2),
    desired: ("3", "3"),
    revision: ("2", "2"),
};

fn cases() -> impl Iterator<Item = Case> {
    let gates = ["", "open.2", "done.2", "open.1", "draining.2.abc", "nonsense"];
    let replicas = [(2, 2), (0, 2), (2, 5), (5, 3), (5, 4), (2, 0)];
    let desired = [("3", "3"), ("3", "5"), ("", "3")];
    let ordinary = gates.into_iter().flat_map(move |gate| {
        replicas.into_iter().flat_map(move |replicas| {
            let managed = desired.into_iter().map(move |desired| Case { gate, replicas, desired, ..USUAL });
            let unmanaged = gate.is_empty().then_some(Case { managed: false, gate, replicas, ..USUAL });
            managed.chain(unmanaged)
        })
    });
    let owners = [Owner::NoController, Owner::AnotherKind, Owner::None].map(|owner| Case { owner, ..USUAL });
    // It is the revision after the write that counts: an undo gives a ReplicaSet another one.
    let revisions = [("", ""), ("1", "2"), ("2", "1"), ("2", "")]
        .into_iter()
        .flat_map(|revision| ["", "open.2", "done.2"].map(|gate| Case { gate, revision, ..USUAL }));
    ordinary.chain(owners).chain(revisions)
}

impl Case {
    /// Whether the rule does not let it through without a further look.
    fn is_held(self) -> bool {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let update = Update {
            old: self.replicas.0,
            new: self.replicas.1,
            old_desired: text(self.desired.0),
            new_desired: text(self.desired.1),
            revision: text(self.revision.1),
            mark: self.gate.parse().ok(),
        };
        self.is_concerned() && judge(&Request::Update(update)) != Verdict::Pass
    }

    /// The same of one that is made so.
    fn is_held_when_made(self) -> bool {
        self.is_concerned() && judge(&Request::Create { replicas: self.replicas.1 }) != Verdict::Pass
    }

    fn is_concerned(self) -> bool {
        self.managed && self.owner == Owner::Deployment
    }

    /// Of a merge: what is null is taken away.
    fn annotations(self, desired: &str, revision: &str) -> Value {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        json!({LIFECYCLE: self.managed.then_some("managed"), DESIRED: text(desired), REVISION: text(revision)})
    }
}

pub(crate) async fn the_gates_conditions_hold_what_its_rule_holds(ctx: Ctx) -> Result<()> {
    let server = WebhookServer::start(|_, ask| AdmissionResponse::from(ask)).await?;
    install(&ctx, &server).await?;
    let sets = ctx.api::<ReplicaSet>();
    in_force(&ctx, &server, &sets).await?;
    let all: Vec<_> = cases().collect();
    let chosen = Random::of_the_environment()?.some_up_to(all.len(), Measure::from_environment()?.combinations());
    for number in chosen {
        let case = all[number - 1];
        let name = format!("set-{number}");
        // Made without the annotation, so that it can be made with replicas at all.
        sets.create(&PostParams::default(), &replica_set(&name, Case { gate: "", ..case })).await?;
        if !case.gate.is_empty() {
            mark(&ctx, &name, case.gate).await?;
        }
        let annotations = case.annotations(case.desired.0, case.revision.0);
        patch(&sets, &name, json!({"metadata": {"annotations": annotations}})).await?;
        ensure!(asked(&server, &name) == 0, "asked about what moves nothing: {case:?}");
        let annotations = case.annotations(case.desired.1, case.revision.1);
        let written = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": case.replicas.1}});
        patch(&sets, &name, written).await?;
        let was_asked = asked_of(&server, &name, case);
        ensure!(was_asked == case.is_held(), "asked: {was_asked}, held by the rule: {}: {case:?}", case.is_held());
        sets.delete(&name, &DeleteParams::background()).await?;
        makes(&server, &sets, &format!("new-{number}"), case).await?;
    }
    Ok(())
}

/// Writes the mark, as Boathook's own user if Boathook is installed: its webhook takes back the marks of other users.
async fn mark(ctx: &Ctx, name: &str, gate: &str) -> Result<()> {
    ctx.poll_until(DEADLINE, &format!("ReplicaSet `{name}` has its mark"), async || {
        let sets: Api<ReplicaSet> = Api::namespaced(client_of_boathook(ctx).await?, ctx.namespace());
        let change = Patch::Merge(json!({"metadata": {"labels": {GATE: gate}}}));
        let marked = sets.patch(name, &PatchParams::default(), &change).await?;
        Ok(match marked.labels().get(GATE).is_some_and(|written| written == gate) {
            true => Look::Done(()),
            false => Look::NotYet("the mark is taken back".to_owned()),
        })
    })
    .await
}

/// A client of the user that the installed webhooks take for Boathook; with every right, if Boathook is not installed.
async fn client_of_boathook(ctx: &Ctx) -> Result<Client> {
    let installed = Api::<MutatingWebhookConfiguration>::all(ctx.client()).get_opt("boathook").await?;
    let conditions = installed.and_then(|installed| installed.webhooks).unwrap_or_default();
    let mut conditions = conditions.into_iter().flat_map(|webhook| webhook.match_conditions.unwrap_or_default());
    let own = conditions.find_map(|condition| {
        let name = condition.expression.strip_prefix("request.userInfo.username != '")?;
        Some(name.strip_suffix('\'')?.to_owned())
    });
    let mut config = ctx.config();
    if let Some(own) = own {
        config.auth_info.impersonate = Some(own);
        config.auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
    }
    Client::try_from(config).context("failed to make a client of Boathook's user")
}

/// One that is made as this case leaves it is asked about if the rule holds it.
async fn makes(server: &WebhookServer, sets: &Api<ReplicaSet>, name: &str, case: Case) -> Result<()> {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    sets.create(&dry, &made(name, case)?).await?;
    let (was_asked, is_held) = (asked(server, name) > 0, case.is_held_when_made());
    ensure!(was_asked == is_held, "made: asked: {was_asked}, held by the rule: {is_held}: {case:?}");
    Ok(())
}

/// As it is after the write.
fn made(name: &str, case: Case) -> Result<ReplicaSet> {
    let mut made = replica_set(name, case);
    let annotations: BTreeMap<String, Option<String>> =
        serde_json::from_value(case.annotations(case.desired.1, case.revision.1))?;
    made.metadata.annotations = Some(annotations.into_iter().filter_map(|(key, value)| Some((key, value?))).collect());
    made.spec.as_mut().context("it has a spec")?.replicas = Some(case.replicas.1);
    Ok(made)
}

async fn patch(sets: &Api<ReplicaSet>, name: &str, patch: Value) -> Result<()> {
    sets.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn asked(server: &WebhookServer, name: &str) -> usize {
    server.asked(REPLICA_SETS).iter().filter(|ask| ask.name == name).count()
}

/// Whether it was asked about the write of this case. The API server may begin an update with an older version of the object
/// from its cache, ask about that, and begin again when the version turns out to be old.
fn asked_of(server: &WebhookServer, name: &str, case: Case) -> bool {
    let is_whole = |ask: &Ask| {
        let written = ask.old_object.as_ref().map(ResourceExt::annotations);
        let has =
            |key: &str, value: &str| written.and_then(|written| written.get(key)).map_or("", String::as_str) == value;
        has(DESIRED, case.desired.0) && has(REVISION, case.revision.0)
    };
    server.asked(REPLICA_SETS).iter().any(|ask| ask.name == name && is_whole(ask))
}

/// The webhook about ReplicaSets as it is installed, for this namespace alone.
async fn install(ctx: &Ctx, server: &WebhookServer) -> Result<()> {
    let installed = mutating("boathook", |path| server.client_config(path));
    let mut webhooks = installed.webhooks.unwrap_or_default();
    webhooks.retain(|webhook| webhook.name.starts_with("replica-sets."));
    ensure!(webhooks.len() == 1, "there is one webhook about ReplicaSets");
    let own = [("kubernetes.io/metadata.name".to_owned(), ctx.namespace().to_owned())].into();
    webhooks[0].namespace_selector = Some(LabelSelector { match_labels: Some(own), ..LabelSelector::default() });
    // The longest that Kubernetes allows: the server of the scenario answers late on a busy machine.
    webhooks[0].timeout_seconds = Some(30);
    // They are asked in the order of their names: before Boathook's own, which may be there and moves nothing on.
    let metadata = ObjectMeta { name: Some(format!("a-{}", ctx.namespace())), ..ObjectMeta::default() };
    ctx.create_cluster_scoped(MutatingWebhookConfiguration { metadata, webhooks: Some(webhooks) }).await?;
    Ok(())
}

/// The Deployment that owns it is nobody's business: it is of a group that is not served. Its pods never run: no node is
/// called so.
fn replica_set(name: &str, case: Case) -> ReplicaSet {
    let mut labels = BTreeMap::from([("app".to_owned(), name.to_owned())]);
    if !case.gate.is_empty() {
        labels.insert(GATE.to_owned(), case.gate.to_owned());
    }
    let owner = |kind: &str, controls: bool| {
        vec![json!({"apiVersion": "test.boathook.dev/v1", "kind": kind, "name": "owner",
            "uid": "00000000-0000-0000-0000-000000000000", "controller": controls})]
    };
    let owners = match case.owner {
        Owner::Deployment => owner("Deployment", true),
        Owner::NoController => owner("Deployment", false),
        Owner::AnotherKind => owner("Rollout", true),
        Owner::None => vec![],
    };
    let set = json!({"metadata": {"name": name, "labels": labels, "ownerReferences": owners},
        "spec": {"replicas": case.replicas.0, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"nodeName": "none-such", "terminationGracePeriodSeconds": 0, "containers": [{"name": "a", "image": "none"}]}}}});
    serde_json::from_value(set).expect("it is a ReplicaSet")
}

/// Waits until a new managed one is asked about.
async fn in_force(ctx: &Ctx, server: &WebhookServer, sets: &Api<ReplicaSet>) -> Result<()> {
    ctx.poll_until(DEADLINE, "the webhook is in force", async || {
        let probe = made("probe", USUAL)?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        Ok(match sets.create(&dry, &probe).await {
            Ok(_) if asked(server, "probe") > 0 => Look::Done(()),
            Ok(_) => Look::NotYet("a managed ReplicaSet passed without a question".to_owned()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await
}
