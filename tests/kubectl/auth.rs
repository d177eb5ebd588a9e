//! `auth can-i` and `--as`.

use anyhow::Result;
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has},
    manifests::config_map,
};

pub(crate) async fn can_i_answers_for_oneself_and_for_others(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    assert_eq!(kubectl.ok("auth can-i '*' '*' -A").await?, "yes\n");
    let refused = kubectl.run("auth can-i list pods --as ishmael", None).await?;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), "no\n"), "{refused}");
    kubectl.ok("create role reader --verb=get,list --resource=pods --resource=pods/log").await?;
    kubectl.ok("create rolebinding reader --role=reader --user=ishmael").await?;
    kubectl
        .until("auth can-i list pods --as ishmael", "the binding is in force", |outcome| outcome.stdout == "yes\n")
        .await?;
    for (question, answer) in [
        ("get pods/log", "yes\n"),
        ("get pods --subresource=log", "yes\n"),
        ("get pod/box", "yes\n"),
        ("delete pods", "no\n"),
        ("list pods -n default", "no\n"),
        ("list pods -A", "no\n"),
        ("get /version", "yes\n"),
        ("get /secret-path", "no\n"),
    ] {
        let asked = kubectl.run(&format!("auth can-i {question} --as ishmael"), None).await?;
        assert_eq!(asked.stdout, answer, "{asked}");
    }
    let list = kubectl.ok("auth can-i --list --as ishmael").await?;
    has(
        &list,
        &[
            "Resources ",
            "Non-Resource URLs",
            "Resource Names",
            "Verbs\n",
            "pods/log ",
            "[get list]",
            "selfsubjectaccessreviews.authorization.k8s.io",
        ],
    )?;
    let who = kubectl.ok("auth whoami --as ishmael --as-group sailors").await?;
    has(&who, &["ATTRIBUTE   VALUE\n", "Username    ishmael\n", "sailors"])?;
    // A word that is no kind is asked all the same, with a warning.
    let odd = kubectl.run("auth can-i get krakens", None).await?;
    has(&odd.stderr, &["Warning: the server doesn't have a resource type 'krakens'"])?;
    assert_eq!(odd.success()?, "yes\n");
    Ok(())
}

pub(crate) async fn acting_as_another_has_his_rights(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let namespace = kubectl.namespace().to_owned();
    kubectl.apply(&config_map("map", &[("a", "1")])).await?;
    assert_eq!(
        kubectl.fails("get configmaps --as ishmael").await?,
        format!(
            "Error from server (Forbidden): configmaps is forbidden: User \"ishmael\" cannot list resource \"configmaps\" \
             in API group \"\" in the namespace \"{namespace}\"\n"
        )
    );
    kubectl.ok("create role keeper --verb=get,patch --resource=configmaps").await?;
    kubectl.ok("create rolebinding keeper --role=keeper --group=keepers").await?;
    kubectl
        .until("get configmap map -o name --as ishmael --as-group keepers", "the binding is in force", |outcome| {
            outcome.code == Some(0)
        })
        .await?;
    kubectl.ok("label configmap map by=ishmael --as ishmael --as-group keepers").await?;
    assert_eq!(kubectl.read("configmap/map", "{.metadata.labels.by}").await?, "ishmael");
    let refused = kubectl.fails("delete configmap map --as ishmael --as-group keepers").await?;
    has(
        &refused,
        &["Error from server (Forbidden): configmaps \"map\" is forbidden: User \"ishmael\" cannot delete resource"],
    )?;
    // Whoever may not impersonate is told so.
    let account = format!("system:serviceaccount:{namespace}:default");
    let token = kubectl.ok("create token default").await?;
    let server = ctx.config().cluster_url;
    // No kubeconfig: a certificate in it would be who asks.
    let access =
        format!("--kubeconfig=/dev/null --insecure-skip-tls-verify --server={server} --token={}", token.trim());
    has(&kubectl.ok(&format!("auth whoami {access}")).await?, &[&account])?;
    let refused = kubectl.fails(&format!("get configmaps --as ishmael {access}")).await?;
    has(
        &refused,
        &[&format!("users \"ishmael\" is forbidden: User \"{account}\" cannot impersonate resource \"users\"")],
    )
}
