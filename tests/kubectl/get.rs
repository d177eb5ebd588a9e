//! `get`: tables, objects, selectors, watches.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    boats::Boats,
    kubectl::{Kubectl, has, rows},
    manifests::{IDLE, config_map, deployment, pod},
};

pub(crate) async fn pods_are_shown_as_a_table(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&pod("box", IDLE)).await?;
    kubectl.apply(&pod("done", "exit 0").replace("spec:\n", "spec:\n  restartPolicy: Never\n")).await?;
    kubectl.apply(&pod("failed", "exit 3").replace("spec:\n", "spec:\n  restartPolicy: Never\n")).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    kubectl.ok("wait --for=jsonpath={.status.phase}=Succeeded pod/done").await?;
    kubectl.ok("wait --for=jsonpath={.status.phase}=Failed pod/failed").await?;

    let table = kubectl.ok("get pods").await?;
    let lines = rows(&table);
    assert_eq!(lines[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(lines[1][..4], ["box", "1/1", "Running", "0"]);
    assert_eq!(lines[2][..4], ["done", "0/1", "Completed", "0"]);
    assert_eq!(lines[3][..4], ["failed", "0/1", "Error", "0"]);
    assert_eq!(lines.len(), 4);

    let wide = kubectl.ok("get pod box -o wide --show-labels").await?;
    let lines = rows(&wide);
    assert_eq!(lines[0].join(" "), "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES LABELS");
    let (ip, node) = (lines[1][5], lines[1][6]);
    assert_eq!(kubectl.read("pod/box", "{.status.podIP} {.spec.nodeName}").await?, format!("{ip} {node}"));
    assert_eq!(lines[1][7..], ["<none>", "<none>", "app=box"]);

    let columns = kubectl.ok("get pods -L app --no-headers --sort-by=.metadata.name").await?;
    ensure!(rows(&columns).iter().all(|row| row[0] == row[5]), "no column of the label:\n{columns}");
    let custom = kubectl.ok("get pods -o custom-columns=POD:.metadata.name,PHASE:.status.phase").await?;
    assert_eq!(rows(&custom), [["POD", "PHASE"], ["box", "Running"], ["done", "Succeeded"], ["failed", "Failed"]]);
    assert_eq!(kubectl.ok("get pods -o name").await?, "pod/box\npod/done\npod/failed\n");

    // Several kinds at once, each with its own table.
    kubectl.apply(&deployment("web", 1)).await?;
    kubectl.ok("rollout status deployment/web").await?;
    let all = kubectl.ok("get all").await?;
    has(&all, &["pod/box", "deployment.apps/web   1/1     1            1", "replicaset.apps/web-"])?;
    has(&all, &["NAME                  READY   UP-TO-DATE   AVAILABLE   AGE\n"])
}

pub(crate) async fn yaml_json_and_jsonpath_show_the_object(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("a", "1"), ("b", "two words")])).await?;
    let yaml = kubectl.ok("get configmap map -o yaml").await?;
    has(
        &yaml,
        &[
            "apiVersion: v1\ndata:\n  a: \"1\"\n  b: two words\nkind: ConfigMap\nmetadata:\n",
            "  name: map\n",
            "  uid: ",
        ],
    )?;
    ensure!(!yaml.contains("managedFields"), "kubectl hides these:\n{yaml}");
    has(
        &kubectl.ok("get configmap map -o yaml --show-managed-fields").await?,
        &["manager: kubectl-client-side-apply", "f:data:"],
    )?;
    let json: serde_json::Value = serde_json::from_str(&kubectl.ok("get configmap map -o json").await?)?;
    assert_eq!(json["data"]["b"], "two words");
    let list: serde_json::Value = serde_json::from_str(&kubectl.ok("get configmaps,secrets -o json").await?)?;
    assert_eq!(list["kind"], "List");
    let names = kubectl.ok("get configmaps -o 'jsonpath={range .items[*]}{.metadata.name}={.data.a};{end}'").await?;
    ensure!(names.contains("map=1;"), "{names}");
    assert_eq!(kubectl.ok("get configmap map -o 'go-template={{len .data}}'").await?, "2");
    Ok(())
}

pub(crate) async fn selectors_choose_by_label_and_field(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&pod("one", IDLE)).await?;
    kubectl.apply(&pod("two", IDLE).replace("{app: two}", "{app: two, tier: back}")).await?;
    kubectl.apply(&pod("over", "exit 0").replace("spec:\n", "spec:\n  restartPolicy: Never\n")).await?;
    kubectl.ok("wait --for=condition=Ready pod/one pod/two").await?;
    kubectl.ok("wait --for=jsonpath={.status.phase}=Succeeded pod/over").await?;
    for (selector, wanted) in [
        ("-l app=one", "pod/one\n"),
        ("-l app!=one", "pod/over\npod/two\n"),
        ("-l 'app in (one, two)'", "pod/one\npod/two\n"),
        ("-l 'app notin (one)'", "pod/over\npod/two\n"),
        ("-l tier", "pod/two\n"),
        ("-l '!tier'", "pod/one\npod/over\n"),
        ("-l app=two,tier=back", "pod/two\n"),
        ("--field-selector metadata.name=one", "pod/one\n"),
        ("--field-selector status.phase=Running", "pod/one\npod/two\n"),
        ("--field-selector status.phase!=Running", "pod/over\n"),
        ("-l tier --field-selector status.phase=Running,metadata.name!=one", "pod/two\n"),
        ("--field-selector spec.nodeName=nowhere", ""),
    ] {
        assert_eq!(kubectl.ok(&format!("get pods {selector} -o name")).await?, wanted, "{selector}");
    }
    let unknown = kubectl.fails("get pods --field-selector spec.colour=red").await?;
    has(&unknown, &["Error from server (BadRequest)", "field label not supported: spec.colour"])?;
    let bad = kubectl.fails("get pods -l 'a=b=c'").await?;
    has(&bad, &["found '=', expected: ',' or 'end of string'"])
}

pub(crate) async fn every_namespace_is_listed_with_its_column(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("here", &[])).await?;
    let table = kubectl.ok("get configmaps -A").await?;
    let lines = rows(&table);
    assert_eq!(lines[0], ["NAMESPACE", "NAME", "DATA", "AGE"]);
    ensure!(lines.iter().any(|row| row[..3] == [kubectl.namespace(), "here", "0"]), "{table}");
    ensure!(lines.iter().any(|row| row[0] == "default"), "only one namespace:\n{table}");
    let events = kubectl.ok("get pods -A -o wide").await?;
    ensure!(events.is_empty() || rows(&events)[0][0] == "NAMESPACE", "{events}");
    Ok(())
}

pub(crate) async fn a_watch_shows_each_change_as_it_comes(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("a", "1")])).await?;
    let mut watch = kubectl.start("get configmap map -w")?;
    watch.line("the table's head", |line| rows(line)[0] == ["NAME", "DATA", "AGE"]).await?;
    watch.line("the object as it is", |line| line.starts_with("map    1 ")).await?;
    kubectl.apply(&config_map("map", &[("a", "1"), ("b", "2")])).await?;
    watch.line("the change", |line| line.starts_with("map    2 ")).await?;

    // What leaves the selection is gone from the watch.
    kubectl.ok("label configmap map app=log").await?;
    let mut events = kubectl.start("get configmaps -w --output-watch-events -l app=log")?;
    events.line("the table's head", |line| rows(line)[0] == ["EVENT", "NAME", "DATA", "AGE"]).await?;
    events.line("an added object", |line| rows(line)[0][..3] == ["ADDED", "map", "2"]).await?;
    kubectl.ok("annotate configmap map note=1").await?;
    events.line("a changed object", |line| rows(line)[0][..2] == ["MODIFIED", "map"]).await?;
    kubectl.ok("label configmap map app-").await?;
    events.line("a deleted object", |line| rows(line)[0][..2] == ["DELETED", "map"]).await.map(drop)
}

pub(crate) async fn custom_objects_have_the_columns_of_their_definition(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let boats = Boats::define(&ctx, &kubectl).await?;
    let short = &boats.short;
    kubectl.apply(&boats.boat("gig", 4)).await?;
    kubectl.apply(&boats.boat("yawl", 2).replace("oars: 2", "oars: 2, captain: ahab")).await?;
    let table = kubectl.ok(&format!("get {short}")).await?;
    assert_eq!(rows(&table), [["NAME", "OARS"], ["gig", "4"], ["yawl", "2"]]);
    let wide = kubectl.ok(&format!("get {short} -o wide --sort-by=.spec.oars")).await?;
    assert_eq!(rows(&wide), [["NAME", "OARS", "CAPTAIN"], ["yawl", "2", "ahab"], ["gig", "4", "nobody"]]);
    let chosen = kubectl.ok(&format!("get boats.{} --field-selector spec.captain=ahab -o name", boats.group)).await?;
    assert_eq!(chosen, format!("boat.{}/yawl\n", boats.group));
    // Their category is a name for them too.
    assert_eq!(rows(&kubectl.ok(&format!("get {short}-fleet")).await?), rows(&table));
    Ok(())
}

pub(crate) async fn what_is_not_there_is_said_as_kubernetes_says_it(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let none = kubectl.run("get pods", None).await?;
    assert_eq!(none.stderr, format!("No resources found in {} namespace.\n", kubectl.namespace()));
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert_eq!(kubectl.fails("get pod box").await?, "Error from server (NotFound): pods \"box\" not found\n");
    assert_eq!(
        kubectl.fails("get deploy web").await?,
        "Error from server (NotFound): deployments.apps \"web\" not found\n"
    );
    assert_eq!(
        kubectl.fails("get namespace no-such").await?,
        "Error from server (NotFound): namespaces \"no-such\" not found\n"
    );
    assert_eq!(kubectl.fails("get krakens").await?, "error: the server doesn't have a resource type \"krakens\"\n");
    assert_eq!(kubectl.ok("get pod box --ignore-not-found").await?, "");
    has(
        &kubectl.fails("get --raw /apis/sea.example.com/v1").await?,
        &["Error from server (NotFound): the server could not find the requested resource"],
    )?;
    assert_eq!(kubectl.ok("get --raw /readyz").await?, "ok");
    Ok(())
}

pub(crate) async fn a_long_list_comes_in_chunks(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let maps: Vec<_> = (0..12).map(|number| config_map(&format!("map-{number:02}"), &[])).collect();
    kubectl.apply(&maps.join("---\n")).await?;
    let chunked = kubectl.ok("get configmaps --chunk-size=5").await?;
    assert_eq!(rows(&chunked).iter().filter(|row| row[0].starts_with("map-")).count(), 12, "{chunked}");
    assert_eq!(rows(&chunked).iter().filter(|row| row[0] == "NAME").count(), 1, "{chunked}");
    Ok(())
}
