//! What controllers are built from: kube's watcher, controller, finalizer and server-side apply, as they are used.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use boathook_tests::{Ctx, DEADLINE, relay::Relay, watch::Change};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        finalizer::{Event as Finalizing, finalizer},
        watcher,
    },
};
use serde_json::json;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, interval, timeout},
};

const FINALIZER: &str = "test.boathook.dev/mooring";

pub(crate) async fn a_controller_follows_its_objects_and_those_they_own(ctx: Ctx) -> Result<()> {
    let _running = controller(&ctx, "role=ship", |ship, maps| async move { tow(&ship, &maps).await });
    ctx.create(&map("ship", "ship", "red")).await?;
    let first = towed(&ctx, "red").await?;

    ctx.api::<ConfigMap>().patch("ship", &PatchParams::default(), &colour("blue")).await?;
    let changed = towed(&ctx, "blue").await?;
    assert_eq!(changed.uid(), first.uid(), "the owned object was changed, not made again");

    ctx.api::<ConfigMap>().delete("dinghy", &DeleteParams::default()).await?;
    let again = |dinghy: &ConfigMap| dinghy.uid() != first.uid();
    ctx.watch_until(DEADLINE, "dinghy", "is made again after its deletion", again).await?;

    let mut dinghies = ctx.watch::<ConfigMap>("role=dinghy").await?;
    ctx.api::<ConfigMap>().delete("ship", &DeleteParams::default()).await?;
    let gone = "what the deleted object owned is gone";
    dinghies.until(DEADLINE, gone, |seen| seen.now.is_empty()).await.map(drop)
}

pub(crate) async fn a_finalizer_holds_its_object_until_it_has_cleaned_up(ctx: Ctx) -> Result<()> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let _running = controller(&ctx, "role=ship", move |ship, maps| {
        let tell = tell.clone();
        async move {
            let said = finalizer(&maps, FINALIZER, ship, |event| async {
                tell.send(match event {
                    Finalizing::Apply(ship) => ("apply", ship.finalizers().to_vec(), false),
                    Finalizing::Cleanup(ship) => {
                        ("clean up", ship.finalizers().to_vec(), ship.metadata.deletion_timestamp.is_some())
                    }
                })
                .map_err(|_| kube::Error::LinesCodecMaxLineLengthExceeded)?;
                Ok::<_, kube::Error>(Action::await_change())
            });
            said.await.map_err(|error| kube::Error::Service(error.into()))
        }
    });
    ctx.create(&map("ship", "ship", "red")).await?;
    let finalizers = vec![FINALIZER.to_owned()];
    let next = timeout(DEADLINE, told.recv()).await.context("the object is never applied")?;
    assert_eq!(next, Some(("apply", finalizers.clone(), false)), "it is applied when its finalizer is there");

    let mut ships = ctx.watch::<ConfigMap>("role=ship").await?;
    ctx.api::<ConfigMap>().delete("ship", &DeleteParams::default()).await?;
    let seen = ships.until(DEADLINE, "the object is gone after its clean-up", |seen| seen.now.is_empty()).await?;
    let marked =
        |change: &Change<ConfigMap>| matches!(change, Change::Is(ship) if ship.metadata.deletion_timestamp.is_some());
    ensure!(seen.history()?.iter().any(marked), "the object went without waiting for its finalizer");
    while let Some(next) = timeout(DEADLINE, told.recv()).await.context("the object is never cleaned up")? {
        if next == ("clean up", finalizers.clone(), true) {
            return Ok(());
        }
        assert_eq!(next, ("apply", finalizers.clone(), false));
    }
    bail!("the controller has ended")
}

pub(crate) async fn a_watcher_lists_first_and_goes_on_through_watches_that_end(ctx: Ctx) -> Result<()> {
    ctx.create(&map("one", "buoy", "0")).await?;
    ctx.create(&map("two", "buoy", "0")).await?;
    // The server ends each watch after a second.
    let config = watcher::Config::default().labels("role=buoy").timeout(1);
    let mut events = Box::pin(watcher(ctx.api::<ConfigMap>(), config));
    assert_eq!(listed(&mut events).await?, ["one", "two"]);

    // More than two watches long, a change at every moment of them; each is seen once, and no second list.
    let mut pace = interval(Duration::from_millis(20));
    let begun = Instant::now();
    for number in 1.. {
        pace.tick().await;
        ctx.api::<ConfigMap>().patch("one", &PatchParams::default(), &colour(&number.to_string())).await?;
        assert_eq!(next(&mut events).await?, format!("one is {number}"));
        if begun.elapsed() > Duration::from_millis(2500) {
            break;
        }
    }
    ctx.api::<ConfigMap>().delete("two", &DeleteParams::default()).await?;
    assert_eq!(next(&mut events).await?, "two is gone");
    Ok(())
}

pub(crate) async fn a_watcher_goes_on_where_its_connection_was_cut(ctx: Ctx) -> Result<()> {
    let (relay, client) = Relay::to_api_server(ctx.config()).await?;
    let maps = Api::<ConfigMap>::namespaced(client, ctx.namespace());
    ctx.create(&map("one", "buoy", "0")).await?;
    // Errors are told, too: those of the cut are passed over.
    let config = watcher::Config::default().labels("role=buoy");
    let events = watcher(maps, config).default_backoff().filter(|event| std::future::ready(event.is_ok()));
    let mut events = Box::pin(events);
    assert_eq!(listed(&mut events).await?, ["one"]);
    for number in 1..=3 {
        ctx.api::<ConfigMap>().patch("one", &PatchParams::default(), &colour(&number.to_string())).await?;
        assert_eq!(next(&mut events).await?, format!("one is {number}"), "no change is lost, none comes twice");
        relay.interrupt().await;
    }
    Ok(())
}

pub(crate) async fn an_applied_field_has_one_owner_until_another_insists(ctx: Ctx) -> Result<()> {
    let maps = ctx.api::<ConfigMap>();
    let apply = async |manager: &PatchParams, data: serde_json::Value| {
        let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flag"}, "data": data});
        maps.patch("flag", manager, &Patch::Apply(applied)).await
    };
    let (captain, pirate) = (PatchParams::apply("captain"), PatchParams::apply("pirate"));
    let made = apply(&captain, json!({"colour": "white", "size": "large"})).await?;
    assert_eq!(owners(&made), ["captain Apply"]);

    match apply(&pirate, json!({"colour": "black"})).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
            assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"captain\": .data.colour");
            let causes = status.details.map(|details| details.causes).unwrap_or_default();
            assert_eq!(causes.len(), 1, "{causes:?}");
            assert_eq!((causes[0].reason.as_str(), causes[0].field.as_str()), ("FieldManagerConflict", ".data.colour"));
        }
        Err(error) => return Err(error).context("failed in another way than by a conflict"),
        Ok(_) => bail!("a field was taken from its owner without force"),
    }

    let forced = apply(&pirate.clone().force(), json!({"colour": "black"})).await?;
    assert_eq!(data(&forced), [("colour", "black"), ("size", "large")]);
    assert_eq!(owners(&forced), ["captain Apply", "pirate Apply"]);
    // What an owner no longer applies, and nobody else owns, goes.
    let left = apply(&captain, json!({})).await?;
    assert_eq!(data(&left), [("colour", "black")]);
    Ok(())
}

/// Keeps an object `dinghy` of the same colour, owned by the ship.
async fn tow(ship: &ConfigMap, maps: &Api<ConfigMap>) -> kube::Result<Action> {
    let mut dinghy = map("dinghy", "dinghy", "");
    dinghy.metadata.owner_references = ship.controller_owner_ref(&()).map(|owner| vec![owner]);
    dinghy.data = ship.data.clone();
    maps.patch("dinghy", &PatchParams::apply("tow"), &Patch::Apply(dinghy)).await?;
    Ok(Action::await_change())
}

async fn towed(ctx: &Ctx, colour: &str) -> Result<ConfigMap> {
    let what = format!("has the colour {colour}");
    ctx.watch_until(DEADLINE, "dinghy", &what, |dinghy| data(dinghy) == [("colour", colour)]).await
}

/// Runs a controller of the objects with these labels until the set is dropped.
fn controller<R, F>(ctx: &Ctx, labels: &str, reconcile: R) -> JoinSet<()>
where
    R: Fn(Arc<ConfigMap>, Api<ConfigMap>) -> F + Send + Sync + 'static,
    F: Future<Output = kube::Result<Action>> + Send + 'static,
{
    let maps = ctx.api::<ConfigMap>();
    let owned = watcher::Config::default().labels("role=dinghy");
    let running =
        Controller::new(maps.clone(), watcher::Config::default().labels(labels)).owns(maps.clone(), owned).run(
            move |object, _| reconcile(object, maps.clone()),
            |_, _, _| Action::requeue(Duration::from_millis(100)),
            Arc::new(()),
        );
    let mut tasks = JoinSet::new();
    tasks.spawn(running.for_each(|_| std::future::ready(())));
    tasks
}

fn map(name: &str, role: &str, colour: &str) -> ConfigMap {
    let labels = Some([("role".to_owned(), role.to_owned())].into());
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() };
    let data = Some(BTreeMap::from([("colour".to_owned(), colour.to_owned())]));
    ConfigMap { metadata, data, ..ConfigMap::default() }
}

fn colour(colour: &str) -> Patch<serde_json::Value> {
    Patch::Merge(json!({"data": {"colour": colour}}))
}

fn data(map: &ConfigMap) -> Vec<(&str, &str)> {
    map.data.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

fn owners(map: &ConfigMap) -> Vec<String> {
    let entry = |manager: Option<&str>, verb: Option<&str>| {
        format!("{} {}", manager.unwrap_or_default(), verb.unwrap_or_default())
    };
    map.managed_fields().iter().map(|owner| entry(owner.manager.as_deref(), owner.operation.as_deref())).collect()
}

/// The names of the first list, which must be whole before anything else comes.
async fn listed<S>(events: &mut S) -> Result<Vec<String>>
where
    S: Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin,
{
    let listing = async {
        ensure!(matches!(events.try_next().await?, Some(watcher::Event::Init)), "the watcher does not begin by a list");
        let mut names = Vec::new();
        loop {
            match events.try_next().await? {
                Some(watcher::Event::InitApply(map)) => names.push(map.name_any()),
                Some(watcher::Event::InitDone) => return Ok(names),
                other => bail!("within the list came {other:?}"),
            }
        }
    };
    timeout(DEADLINE, listing).await.context("the list does not end")?
}

/// The next change, in words.
async fn next<S>(events: &mut S) -> Result<String>
where
    S: Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin,
{
    match timeout(DEADLINE, events.try_next()).await.context("no change came")?? {
        Some(watcher::Event::Apply(map)) => Ok(format!("{} is {}", map.name_any(), data(&map)[0].1)),
        Some(watcher::Event::Delete(map)) => Ok(format!("{} is gone", map.name_any())),
        other => bail!("instead of a change came {other:?}"),
    }
}
