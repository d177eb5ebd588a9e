//! `create` and `replace`.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has},
    manifests::{BUSYBOX, IDLE, config_map, pod},
};

pub(crate) async fn objects_are_created_from_files_and_by_generators(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl
        .file("both.yaml", &format!("{}---\n{}", config_map("one", &[("a", "1")]), config_map("two", &[("b", "2")])))?;
    assert_eq!(kubectl.ok("create -f both.yaml").await?, "configmap/one created\nconfigmap/two created\n");
    assert_eq!(kubectl.read("configmap/two", "{.data.b}").await?, "2");

    kubectl.file("note.txt", "call me")?;
    assert_eq!(
        kubectl.ok("create configmap files --from-file=note.txt --from-literal=k=v").await?,
        "configmap/files created\n"
    );
    assert_eq!(kubectl.read("configmap/files", "{.data}").await?, r#"{"k":"v","note.txt":"call me"}"#);
    kubectl.ok("create secret generic key --from-literal=password=whale").await?;
    assert_eq!(kubectl.read("secret/key", "{.type} {.data.password}").await?, "Opaque d2hhbGU=");
    assert_eq!(kubectl.ok("create serviceaccount sailor").await?, "serviceaccount/sailor created\n");
    let token = kubectl.ok("create token sailor").await?;
    assert_eq!(token.trim().split('.').count(), 3, "no token: {token}");
    kubectl.ok("create role reader --verb=get,list --resource=pods,deployments.apps").await?;
    assert_eq!(kubectl.read("role/reader", "{.rules[*].resources}").await?, r#"["pods"] ["deployments"]"#);
    kubectl
        .ok(&format!("create rolebinding reader --role=reader --serviceaccount={}:sailor", kubectl.namespace()))
        .await?;
    assert_eq!(kubectl.read("rolebinding/reader", "{.subjects[0].name}").await?, "sailor");
    assert_eq!(kubectl.ok("create service clusterip web --tcp=80:8080").await?, "service/web created\n");
    assert_eq!(kubectl.read("service/web", "{.spec.ports[0].targetPort}").await?, "8080");

    let created = kubectl
        .ok(&format!("create deployment web --image={BUSYBOX} --replicas=2 -- sh -c '{}'", IDLE.replace('\'', "\"")))
        .await?;
    assert_eq!(created, "deployment.apps/web created\n");
    kubectl.ok("rollout status deployment/web").await?;
    assert_eq!(kubectl.read("deployment/web", "{.status.readyReplicas}").await?, "2");
    kubectl.ok("expose deployment web --name=door --port=80").await?;
    assert_eq!(kubectl.read("service/door", "{.spec.selector}").await?, r#"{"app":"web"}"#);
    let ran =
        kubectl.ok(&format!("run once --image={BUSYBOX} --restart=Never --image-pull-policy=Never -- true")).await?;
    assert_eq!(ran, "pod/once created\n");
    kubectl.ok("wait --for=jsonpath={.status.phase}=Succeeded pod/once").await.map(drop)
}

pub(crate) async fn what_exists_is_not_created_again(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.file("map.yaml", &config_map("map", &[("a", "1")]))?;
    kubectl.ok("create -f map.yaml").await?;
    assert_eq!(
        kubectl.fails("create -f map.yaml").await?,
        "Error from server (AlreadyExists): error when creating \"map.yaml\": configmaps \"map\" already exists\n"
    );
    assert_eq!(
        kubectl.fails("create configmap map").await?,
        "error: failed to create configmap: configmaps \"map\" already exists\n"
    );
    kubectl.file("bad.yaml", &config_map("Not_A_Name", &[]))?;
    has(
        &kubectl.fails("create -f bad.yaml").await?,
        &["The ConfigMap \"Not_A_Name\" is invalid: metadata.name: Invalid value"],
    )?;
    kubectl
        .file("elsewhere.yaml", &config_map("map", &[]).replace("metadata:", "metadata:\n  namespace: elsewhere"))?;
    has(
        &kubectl.fails("create -f elsewhere.yaml").await?,
        &["the namespace from the provided object \"elsewhere\" does not match the namespace"],
    )?;
    kubectl.file("none.yaml", "apiVersion: sea.example.com/v1\nkind: Kraken\nmetadata: {name: it}\n")?;
    has(
        &kubectl.fails("create -f none.yaml").await?,
        &["no matches for kind \"Kraken\" in version \"sea.example.com/v1\""],
    )
}

pub(crate) async fn replace_takes_the_whole_object(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("a", "1"), ("b", "2")])).await?;
    kubectl.file("map.yaml", &config_map("map", &[("b", "3")]))?;
    assert_eq!(kubectl.ok("replace -f map.yaml").await?, "configmap/map replaced\n");
    assert_eq!(kubectl.read("configmap/map", "{.data}").await?, r#"{"b":"3"}"#);
    kubectl.file("none.yaml", &config_map("none", &[]))?;
    has(
        &kubectl.fails("replace -f none.yaml").await?,
        &["Error from server (NotFound)", "configmaps \"none\" not found"],
    )?;

    // A pod's command cannot change; `--force` makes another pod.
    kubectl.apply(&pod("box", IDLE)).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    let before = kubectl.read("pod/box", "{.metadata.uid}").await?;
    kubectl.file("box.yaml", &pod("box", &format!("true; {IDLE}")))?;
    let refused = kubectl.fails("replace -f box.yaml").await?;
    has(&refused, &["The Pod \"box\" is invalid: spec: Forbidden: pod updates may not change fields other than"])?;
    assert_eq!(
        kubectl.ok("replace --force -f box.yaml").await?,
        "pod \"box\" deleted from NAMESPACE namespace\npod/box replaced\n".replace("NAMESPACE", kubectl.namespace())
    );
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    ensure!(kubectl.read("pod/box", "{.metadata.uid}").await? != before, "it is the same pod");
    Ok(())
}

pub(crate) async fn replace_refuses_what_has_changed_meanwhile(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("a", "1")])).await?;
    let old = kubectl.ok("get configmap map -o yaml").await?;
    kubectl.ok("label configmap map changed=yes").await?;
    kubectl.file("old.yaml", &old)?;
    assert_eq!(
        kubectl.fails("replace -f old.yaml").await?,
        "Error from server (Conflict): error when replacing \"old.yaml\": Operation cannot be fulfilled on configmaps \
         \"map\": the object has been modified; please apply your changes to the latest version and try again\n"
    );
    assert_eq!(kubectl.read("configmap/map", "{.metadata.labels.changed}").await?, "yes");
    Ok(())
}
