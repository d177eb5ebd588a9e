//! What is only tried: `--dry-run=server`, `diff`, and the strict check of fields.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    boats::Boats,
    kubectl::{Kubectl, has},
    manifests::{config_map, deployment},
};

pub(crate) async fn a_dry_run_on_the_server_changes_nothing(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.file("web.yaml", &deployment("web", 1))?;
    assert_eq!(
        kubectl.ok("apply --dry-run=server -f web.yaml").await?,
        "deployment.apps/web created (server dry run)\n"
    );
    assert_eq!(
        kubectl.ok("create --dry-run=server -f web.yaml").await?,
        "deployment.apps/web created (server dry run)\n"
    );
    has(&kubectl.fails("get deployment web").await?, &["NotFound"])?;
    // The server's defaults are in what it would have been.
    let would =
        kubectl.ok("create --dry-run=server -f web.yaml -o 'jsonpath={.spec.strategy.type} {.metadata.uid}'").await?;
    ensure!(would.starts_with("RollingUpdate ") && would.len() > 40, "{would}");

    kubectl.ok("apply -f web.yaml").await?;
    for (line, said) in [
        ("label deployment web a=b --dry-run=server", "deployment.apps/web labeled (server dry run)\n"),
        ("scale deployment web --replicas=5 --dry-run=server", "deployment.apps/web scaled (server dry run)\n"),
        (
            "patch deployment web --dry-run=server -p '{\"spec\":{\"replicas\":7}}'",
            // kubectl itself says no more here.
            "deployment.apps/web patched\n",
        ),
        (
            "set image deployment/web main=other --dry-run=server",
            "deployment.apps/web image updated (server dry run)\n",
        ),
        (
            "apply --server-side --force-conflicts --dry-run=server -f web.yaml",
            "deployment.apps/web serverside-applied (server dry run)\n",
        ),
    ] {
        assert_eq!(kubectl.ok(line).await?, said);
    }
    let deleted = kubectl.ok("delete deployment web --dry-run=server").await?;
    assert_eq!(
        deleted,
        format!("deployment.apps \"web\" deleted from {} namespace (server dry run)\n", kubectl.namespace())
    );
    let left = kubectl
        .read(
            "deployment/web",
            "{.spec.replicas} {.metadata.labels} {.metadata.generation} {.metadata.deletionTimestamp}",
        )
        .await?;
    assert_eq!(left, r#"1 {"app":"web"} 1 "#);
    // What would be refused is refused.
    has(
        &kubectl.fails("patch deployment web --dry-run=server -p '{\"spec\":{\"replicas\":-1}}'").await?,
        &["spec.replicas: Invalid value: -1"],
    )
}

pub(crate) async fn a_diff_shows_what_an_apply_would_change(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.file("map.yaml", &config_map("map", &[("course", "north"), ("ship", "pequod")]))?;
    let new = kubectl.run("diff -f map.yaml", None).await?;
    has(&new.stdout, &["+  course: north\n", "+kind: ConfigMap\n"])?;
    assert_eq!(new.code, Some(1), "{new}");
    kubectl.ok("apply -f map.yaml").await?;
    assert_eq!(kubectl.ok("diff -f map.yaml").await?, "", "nothing differs");
    kubectl.file("map.yaml", &config_map("map", &[("course", "south")]))?;
    let changed = kubectl.run("diff -f map.yaml", None).await?;
    has(&changed.stdout, &["-  course: north\n", "+  course: south\n", "-  ship: pequod\n"])?;
    assert_eq!(changed.code, Some(1), "{changed}");
    let forced = kubectl.run("diff --server-side --force-conflicts -f map.yaml", None).await?;
    has(&forced.stdout, &["+  course: south\n"])?;
    assert_eq!(kubectl.read("configmap/map", "{.data}").await?, r#"{"course":"north","ship":"pequod"}"#);

    kubectl.file("web.yaml", &deployment("web", 1))?;
    kubectl.ok("apply -f web.yaml").await?;
    assert_eq!(kubectl.ok("diff -f web.yaml").await?, "", "defaults are no difference");
    Ok(())
}

pub(crate) async fn an_unknown_field_is_refused(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let wrong = deployment("web", 0)
        .replace("  replicas:", "  sails: 3\n  replicas:")
        .replace("      - name: main", "      - name: main\n        imagge: x");
    kubectl.file("web.yaml", &wrong)?;
    for verb in ["apply", "create"] {
        let refused = kubectl.fails(&format!("{verb} -f web.yaml")).await?;
        has(
            &refused,
            &[
                "Error from server (BadRequest): ",
                "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \"spec.sails\", unknown field \"spec.template.spec.containers[0].imagge\"\n",
            ],
        )?;
    }
    let refused = kubectl.fails("apply --server-side -f web.yaml").await?;
    has(&refused, &[".spec.sails: field not declared in schema"])?;
    has(&kubectl.fails("get deployment web").await?, &["NotFound"])?;
    let warned = kubectl.run("create --validate=warn -f web.yaml", None).await?;
    has(&warned.stderr, &["Warning: unknown field \"spec.sails\"\n"])?;
    warned.success()?;
    assert_eq!(kubectl.read("deployment/web", "{.spec.sails}").await?, "");
    kubectl.ok("delete deployment web").await?;
    let ignored = kubectl.run("create --validate=ignore -f web.yaml", None).await?;
    assert_eq!(ignored.stderr, "");
    ignored.success()?;

    // A wrong type.
    kubectl.file("type.yaml", &deployment("typed", 0).replace("replicas: 0", "replicas: many"))?;
    has(
        &kubectl.fails("create -f type.yaml").await?,
        &["Error from server (BadRequest)", "spec.replicas of type int32"],
    )?;

    let boats = Boats::define(&ctx, &kubectl).await?;
    kubectl.file("gig.yaml", &boats.boat("gig", 4).replace("oars: 4", "oars: 4, sails: 2"))?;
    has(
        &kubectl.fails("create -f gig.yaml").await?,
        &["Error from server (BadRequest)", "strict decoding error: unknown field \"spec.sails\"\n"],
    )?;
    kubectl.file("gig.yaml", &boats.boat("gig", 0))?;
    has(
        &kubectl.fails("create -f gig.yaml").await?,
        &[
            "The Boat \"gig\" is invalid: spec.oars: Invalid value: 0: spec.oars in body should be greater than or equal to 1",
        ],
    )
}
