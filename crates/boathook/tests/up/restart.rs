//! A cluster that is killed while an application is frozen, and started again: the pod's process ends with it, what the hook
//! froze is on the volume, and the thaw runs in the new instance of the container.

use boathook_api::{ExecutionHook, ExecutionHookTemplate};
use kube::{Api, api::ListParams};
use rustix::process::Signal;

use super::database::{Database, create, template};
use super::{Cluster, looking};

/// Kills the cluster when `frozen` says so, and expects the thaw after the next start.
async fn is_thawed_after_a_kill(name: &str, options: &[&str], freeze: &str, condition: &str) {
    let mut database = Database::start_with(name, options).await;
    // The thaw fails unless the freeze is or was there: so a thaw that succeeds took it back.
    let mut brief = template("brief", freeze, "[ -e data/thawed ] || mv data/frozen data/thawed; rm -f data/frozen");
    brief["spec"]["expirationSeconds"] = 20.into();
    create::<ExecutionHookTemplate>(&database.client, brief).await;
    database.begin("freeze-db", "brief").await;
    match condition {
        "Frozen" => database.reaches("freeze-db", "Frozen").await,
        _ => looking::until("the file is on the volume", async || database.is_on_the_volume("frozen")).await,
    }
    assert_eq!(database.cluster.end(Signal::KILL), None);
    assert!(database.is_on_the_volume("frozen"));
    database.cluster.up_with(options);
    database.client = database.cluster.client().await;
    database.reaches("freeze-db", "Thawed").await;
    assert!(!database.is_on_the_volume("frozen"));
    let hooks: Api<ExecutionHook> = Api::default_namespaced(database.client.clone());
    let hooks = hooks.list(&ListParams::default()).await.unwrap();
    assert_eq!(hooks.items[0].status.as_ref().unwrap().post_action_succeed, Some(true));
}

#[tokio::test]
async fn freeze_of_a_killed_cluster_is_thawed_by_the_controller() {
    is_thawed_after_a_kill("killed-api", &[], "touch data/frozen", "Frozen").await;
}

#[tokio::test]
async fn freeze_of_a_killed_cluster_is_thawed_by_the_agent() {
    is_thawed_after_a_kill("killed-agent", &["--agent"], "touch data/frozen", "Frozen").await;
}

#[tokio::test]
async fn pre_action_that_a_kill_interrupts_is_thawed() {
    is_thawed_after_a_kill("interrupted", &[], "touch data/frozen; sleep 100", "file").await;
}

#[tokio::test]
async fn cluster_does_not_wait_for_the_lease_of_a_killed_one() {
    let mut cluster = Cluster::new("killed-leader");
    cluster.up();
    assert_eq!(cluster.end(Signal::KILL), None);
    cluster.up();
    let said = std::fs::read_to_string(cluster.log()).unwrap();
    assert!(!said.contains("holds the lease"), "{said}");
}
