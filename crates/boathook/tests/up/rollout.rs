//! `boathook rollout` as people run it, on rollouts that go well and that do not.

use std::fs;
use std::path::PathBuf;

use boathook_api::DeploymentLifecycle;
use boathook_api::deployment_lifecycle::DeploymentLifecycleStatus;
use boathook_api::words::LIFECYCLE;
use boathook_install::roles;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::person::bind;
use super::{Cluster, DEADLINE};

/// A Deployment whose versions are told by a variable, and hooks that do what it says.
struct Shop {
    cluster: Cluster,
    client: Client,
    jane: PathBuf,
}

fn deployment(version: &str) -> Value {
    let container = json!({"name": "main", "image": "host", "command": ["sleep", "86427"],
        "env": [{"name": "VERSION", "value": version}]});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": {
        "replicas": 2, "strategy": {"type": "Recreate"}, "progressDeadlineSeconds": 300,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {"metadata": {"labels": {"app": "shop"}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}},
    }})
}

fn hook(policy: &str, line: &str) -> Value {
    json!({"failurePolicy": policy, "execNewPod": {"containerName": "main", "command": ["sh", "-c", line]}})
}

fn lifecycle() -> Value {
    json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "DeploymentLifecycle", "metadata": {"name": "shop"}, "spec": {
        "pre": hook("Abort", "echo tests of $VERSION; [ $VERSION != bad ]"),
        "mid": hook("Abort", "[ $VERSION != stuck ]"),
        "post": hook("Ignore", "[ $VERSION != mute ]"),
    }})
}

impl Shop {
    /// Version `one` runs, and is looked after.
    async fn open(name: &str) -> Self {
        let mut cluster = Cluster::new(name);
        cluster.up();
        let client = cluster.client().await;
        let jane = cluster.person(&client, "jane").await;
        let role = roles::cluster_role(roles::DEPLOYER, roles::deployer());
        let roles: Api<ClusterRole> = Api::all(client.clone());
        roles.create(&PostParams::default(), &role).await.unwrap();
        bind(&client, "jane", ("ClusterRole", boathook_install::roles::DEPLOYER)).await;
        let shop = Self { cluster, client, jane };
        shop.applies::<Deployment>(deployment("one")).await;
        shop
    }

    async fn with_hooks(name: &str) -> Self {
        Self::with(name, lifecycle()).await
    }

    async fn with(name: &str, lifecycle: Value) -> Self {
        let shop = Self::open(name).await;
        shop.applies::<DeploymentLifecycle>(lifecycle).await;
        shop.is_looked_after().await;
        shop
    }

    async fn is_looked_after(&self) {
        let is_complete = |status: &DeploymentLifecycleStatus| {
            status.conditions.iter().any(|known| known.type_ == "Complete" && known.status == "True")
        };
        self.waits_for("it is looked after", is_complete).await;
    }

    async fn waits_for(&self, what: &str, comes: impl Fn(&DeploymentLifecycleStatus) -> bool) {
        let lifecycles: Api<DeploymentLifecycle> = Api::default_namespaced(self.client.clone());
        let comes =
            |object: Option<&DeploymentLifecycle>| object.and_then(|object| object.status.as_ref()).is_some_and(&comes);
        let waiting = await_condition(lifecycles, "shop", comes);
        tokio::time::timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("never: {what}")).unwrap();
    }

    async fn applies<K>(&self, object: Value)
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        api.patch("shop", &PatchParams::apply("test").force(), &Patch::Apply(object)).await.unwrap();
    }

    /// As Jane, who has no more than the role for people who roll out.
    async fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let mut command = self.cluster.boathook(line);
        command.arg("--kubeconfig").arg(&self.jane);
        super::fleet::said(tokio::time::timeout(DEADLINE, command.output()).await.expect("it does not end").unwrap())
    }

    /// A file with these documents.
    fn file(&self, documents: &[Value]) -> String {
        let file = self.cluster.dir.join("file.yaml");
        let text: Vec<_> = documents.iter().map(Value::to_string).collect();
        fs::write(&file, text.join("\n---\n")).unwrap();
        file.to_str().unwrap().to_owned()
    }

    async fn pods(&self, labels: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        pods.list(&ListParams::default().labels(labels)).await.unwrap().items
    }

    /// Those that have not ended: one that has may be deleted a moment later.
    async fn live_pods(&self, labels: &str) -> usize {
        let ended = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            matches!(phase, Some("Succeeded" | "Failed"))
        };
        self.pods(labels).await.iter().filter(|pod| !ended(pod)).count()
    }
}

#[track_caller]
fn assert_in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        rest = rest.split_once(word).unwrap_or_else(|| panic!("`{word}` does not come then: {text}")).1;
    }
}

#[tokio::test]
async fn a_rollout_is_followed_through_its_stages_and_listed() {
    let shop = Shop::with_hooks("rollout").await;
    shop.applies::<Deployment>(deployment("mute")).await;
    // At once: that the version before is complete is not taken for the end of this one.
    let (code, out, err) = shop.run("rollout status shop").await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let steps = [
        "held      ",
        "pre       sh -c 'echo tests of $VERSION; [ $VERSION != bad ]' (pod shop-pre-",
        "pre       ok in ",
        "draining  the old version ends",
        "drained   no version runs\n",
        "mid       ok in ",
        "rolling   the new version is let in\n",
        "post      FAILED after ",
        ", and the rollout continues: ",
        "deployment.apps/shop: revision 2 is rolled out, but post failed and was ignored\n",
    ];
    assert_in_order(&out, &steps);

    // Again, when it is over: the same steps, of which nobody saw the time.
    let (code, out, _) = shop.run("rollout status deployment/shop").await;
    assert_eq!(code, Some(0), "{out}");
    assert_in_order(&out, &steps);
    assert!(out.starts_with("       -  held      "), "{out}");
    let (code, out, _) = shop.run("rollout status shop --no-wait").await;
    assert_eq!(code, Some(0), "{out}");
    assert_in_order(&out, &["STAGE   RESULT ", "\npre     ok ", "\nmid     ok ", "\npost    ignored "]);
    let (code, out, _) = shop.run("rollout status shop -o json").await;
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &object["status"]["rollout"]["phase"]), (Some(0), &json!("Complete")));

    let (code, out, _) = shop.run("rollout history shop").await;
    assert_eq!(code, Some(0));
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["REVISION", "OUTCOME", "STARTED", "TOOK", "PRE", "MID", "POST"]);
    assert_eq!((&rows[1][..2], &rows[1][3..]), (&["1", "Complete"][..], &["-", "-", "-", "-"][..]), "{out}");
    assert_eq!((&rows[2][..2], &rows[2][4..]), (&["2", "Complete"][..], &["ok", "ok", "ignored"][..]), "{out}");
}

#[tokio::test]
async fn an_abort_is_said_with_why_and_helped_along() {
    let shop = Shop::with_hooks("aborted").await;
    shop.applies::<Deployment>(deployment("bad")).await;
    let (code, out, err) = shop.run("rollout status shop").await;
    assert_eq!((code, err.as_str()), (Some(1), ""), "{out}");
    let words = [
        "pre       FAILED after ",
        "| tests of bad\n",
        "deployment.apps/shop: FAILED: pre failed",
        "the old version serves, as before",
        "kubectl rollout undo deployment/shop --to-revision=1 -n default\n",
        "boathook rollout retry shop --stage pre -n default\n",
    ];
    assert_in_order(&out, &words);
    assert_eq!(shop.live_pods("app=shop").await, 2, "the old version is gone");

    let (code, _, err) = shop.run("rollout skip shop --stage mid").await;
    assert_eq!(code, Some(1));
    assert!(
        err.contains("mid of Deployment `shop` is neither running nor failed: the rollout has not reached it"),
        "{err}"
    );
    let (code, out, err) = shop.run("rollout retry shop --stage pre").await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("deploymentlifecycle.boathook.dev/shop: retry of pre requested\n"), "{out}");
    // That it failed before is no news.
    let (code, out, _) = shop.run("rollout status shop").await;
    assert_eq!(code, Some(1), "{out}");
    assert_in_order(&out, &["retried by system:serviceaccount:default:jane)", "pre       FAILED after "]);

    let (code, out, _) = shop.run("rollout skip deploy/shop --stage pre").await;
    assert_eq!(code, Some(0), "{out}");
    let (code, out, _) = shop.run("rollout status shop").await;
    assert_eq!(code, Some(0), "{out}");
    assert_in_order(&out, &["pre       skipped by system:serviceaccount:default:jane\n", "mid       ok in "]);

    shop.applies::<Deployment>(deployment("stuck")).await;
    let (code, out, _) = shop.run("rollout status shop").await;
    assert_eq!(code, Some(1), "{out}");
    assert_in_order(
        &out,
        &["mid       FAILED after ", "NOTHING RUNS: ", "kubectl rollout undo deployment/shop -n default\n"],
    );
    assert_eq!(shop.live_pods("app=shop").await, 0, "something runs");
}

#[tokio::test]
async fn a_rehearsal_says_what_would_be_held_and_does_nothing() {
    let shop = Shop::open("rehearsal").await;
    let both = shop.file(&[deployment("two"), lifecycle()]);
    let (code, out, err) = shop.cluster.run(&format!("rollout rehearse -f {both}")).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let words = [
        "Deployment shop in namespace default (Recreate, 2 pods): a new version would be rolled out, and NOT held\n",
        "1      pre     the new version is held, the old one serves   sh -c 'echo tests",
        "(Abort, at most 5m)\n",
        "2      -       the old version ends\n",
        "3      mid     no version runs, the new one is held ",
        "4      -       the new version is let in: 2 pods\n",
        "5      post    the new version serves everywhere ",
        "pod of pre: container main of image host, env VERSION",
        "you may: create deploymentlifecycles, create pods, patch deployments\n",
        "risk: mid stops everything",
        "risk: nothing holds this rollout",
        "would work, with 2 risks\n",
    ];
    assert_in_order(&out, &words);
    let lifecycles: Api<DeploymentLifecycle> = Api::default_namespaced(shop.client.clone());
    assert!(lifecycles.get_opt("shop").await.unwrap().is_none(), "something was created");

    // Jane may neither run pods nor change Deployments.
    let (code, out, _) = shop.run(&format!("rollout rehearse -f {both}")).await;
    assert_eq!(code, Some(1), "{out}");
    for right in ["create pods", "patch deployments"] {
        assert!(out.contains(&format!("FAILS: you may not {right} in namespace `default`\n")), "{out}");
    }

    let mut wrong = lifecycle();
    wrong["spec"]["pre"]["execNewPod"]["containerName"] = json!("mian");
    wrong["spec"]["mid"]["execNewPod"]["volumes"] = json!(["data"]);
    let (code, out, _) = shop.cluster.run(&format!("rollout rehearse -f {}", shop.file(&[wrong]))).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("no rollout, the template is as it was"), "{out}");
    assert!(
        out.contains("FAILS: pre: the template of Deployment `shop` has no container `mian`; it has: `main`"),
        "{out}"
    );
    assert!(out.contains("mid names volumes data, which the template lacks"), "{out}");

    let mut nobody = deployment("two");
    nobody["spec"]["template"]["spec"]["serviceAccountName"] = json!("nobody");
    let (code, out, _) = shop.cluster.run(&format!("rollout rehearse -f {}", shop.file(&[nobody, lifecycle()]))).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("FAILS: the pod of pre would be refused: ") && out.contains("\"nobody\" not found"), "{out}");
    assert!(shop.pods("boathook.dev/hook-of").await.is_empty(), "a pod was made");

    // Looked at before it is applied: it could not be.
    let mut words = deployment("two");
    words["spec"] = json!("hello");
    let (code, _, err) = shop.cluster.run(&format!("rollout rehearse -f {}", shop.file(&[words]))).await;
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("file.yaml`: Deployment `shop`: spec is not a map"), "{err}");

    shop.applies::<DeploymentLifecycle>(lifecycle()).await;
    shop.is_looked_after().await;
    let line = format!("rollout rehearse -o json -f {}", shop.file(&[deployment("two")]));
    let (code, out, err) = shop.cluster.run(&line).await;
    assert_eq!(code, Some(0), "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found[0]["rollout"], "Held", "{out}");
    let container = &found[0]["stages"][0]["pod"]["spec"]["containers"][0];
    assert_eq!(container["env"][0], json!({"name": "VERSION", "value": "two"}), "{out}");
    let deployments: Api<Deployment> = Api::default_namespaced(shop.client.clone());
    let stored = serde_json::to_value(deployments.get("shop").await.unwrap()).unwrap();
    assert_eq!(stored["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"], "one", "something was changed");
}

#[tokio::test]
async fn unfit_lifecycle_is_refused_and_holds_once_adopted() {
    let shop = Shop::open("refused").await;
    let deployments: Api<Deployment> = Api::default_namespaced(shop.client.clone());
    let changes = async |strategy: Value| {
        let change = Patch::Merge(json!({"spec": {"strategy": strategy}}));
        deployments.patch("shop", &PatchParams::default(), &change).await.unwrap();
    };
    changes(json!({"type": "RollingUpdate"})).await;
    let lifecycles: Api<DeploymentLifecycle> = Api::default_namespaced(shop.client.clone());
    let applied = lifecycles.patch("shop", &PatchParams::apply("test").force(), &Patch::Apply(lifecycle())).await;
    let refusal = applied.unwrap_err().to_string();
    assert!(refusal.contains("Deployment `shop`: mid needs the strategy `Recreate`"), "{refusal}");

    changes(json!({"type": "Recreate", "rollingUpdate": null})).await;
    shop.applies::<DeploymentLifecycle>(lifecycle()).await;
    shop.is_looked_after().await;
    changes(json!({"type": "RollingUpdate"})).await;
    let is_unfit = |status: &DeploymentLifecycleStatus| {
        status.conditions.iter().any(|known| known.type_ == "Accepted" && known.reason == "Strategy")
    };
    shop.waits_for("it no longer fits", is_unfit).await;
    // The mistake is fixed in the same write.
    let line = format!("rollout rehearse -f {}", shop.file(&[deployment("two")]));
    let (code, out, _) = shop.cluster.run(&line).await;
    assert_eq!(code, Some(0), "{out}");
    assert_in_order(
        &out,
        &["a new version would be rolled out, and held at its stages\n", "would work, with 1 risk\n"],
    );
}

#[tokio::test]
async fn a_mid_that_cannot_run_is_told_while_the_old_version_serves() {
    let mut wrong = lifecycle();
    wrong["spec"]["mid"]["execNewPod"]["containerName"] = json!("mian");
    let shop = Shop::with("early", wrong).await;
    shop.applies::<Deployment>(deployment("two")).await;
    let serves = "\n  the old version serves, as before; the new one is held\n";
    // When it has failed; when that is over; and when a retry has failed, which names a pod.
    for again in [false, false, true] {
        if again {
            let (code, out, _) = shop.run("rollout retry shop --stage mid").await;
            assert_eq!(code, Some(0), "{out}");
        }
        let (code, out, err) = shop.run("rollout status shop").await;
        assert_eq!((code, err.as_str()), (Some(1), ""), "{out}");
        assert_in_order(&out, &["mid       FAILED after ", "deployment.apps/shop: FAILED: mid failed", serves]);
        for word in ["draining", "drained", "rolling"] {
            assert!(!out.contains(word), "{out}");
        }
        assert_eq!(shop.live_pods("app=shop").await, 2, "the old version is gone");
    }

    let (code, out, _) = shop.run("rollout skip shop --stage mid").await;
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("\n  pre runs first, then the rollout goes on as if mid had passed\n"), "{out}");
    let (code, out, _) = shop.run("rollout status shop").await;
    assert_eq!(code, Some(0), "{out}");
    for words in
        [["pre       ok in ", "draining ", "rolling "], ["mid       skipped by ", "rolling ", "post      ok in "]]
    {
        assert_in_order(&out, &words);
    }
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let shop = Shop::open("nothing").await;
    for line in ["rollout status shop", "rollout history shop", "rollout retry shop --stage pre"] {
        let (code, out, err) = shop.run(line).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{line}");
        assert!(err.contains("`shop` has no hooks") && err.contains("no Deployment there has hooks"), "{err}");
    }
    shop.applies::<DeploymentLifecycle>(lifecycle()).await;
    let (code, _, err) = shop.run("rollout status shp").await;
    assert_eq!(code, Some(1));
    assert!(
        err.contains("there is no Deployment `shp` in namespace `default`; DeploymentLifecycles there: `shop`"),
        "{err}"
    );
    for line in ["rollout status statefulset/shop", "rollout retry shop", "rollout skip shop --stage last"] {
        assert_eq!(shop.run(line).await.0, Some(2), "{line}");
    }
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}});
    let (code, _, err) = shop.run(&format!("rollout rehearse -f {}", shop.file(&[service]))).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("contains neither a Deployment (apps/v1) nor a DeploymentLifecycle"), "{err}");
}

/// Not even whoever started the cluster: Boathook runs in one process with it, but as somebody else.
#[tokio::test]
async fn a_new_version_that_drops_the_annotation_is_held_all_the_same() {
    let shop = Shop::with_hooks("dropped").await;
    let is_held = |one: Option<&Deployment>| one.is_some_and(|one| one.annotations().contains_key(LIFECYCLE));
    let deployments: Api<Deployment> = Api::default_namespaced(shop.client.clone());
    let adopted = await_condition(deployments.clone(), "shop", is_held);
    tokio::time::timeout(DEADLINE, adopted).await.expect("it is never adopted").unwrap();
    let mut bad = deployment("bad");
    bad["metadata"]["annotations"] = json!({LIFECYCLE: null});
    let written = deployments.patch("shop", &PatchParams::default(), &Patch::Merge(bad)).await.unwrap();
    assert!(is_held(Some(&written)), "{:?}", written.metadata.annotations);
    let (code, out, err) = shop.run("rollout status shop").await;
    assert_eq!(code, Some(1), "its pre vetoes it: {out}{err}");
}
