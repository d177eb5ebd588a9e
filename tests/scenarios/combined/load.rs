//! What the users of the fault run do until its time is over, and how each of them checks what it asked for.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, application_snapshot::Consistency, pod_notification::Executor, words::condition,
};
use boathook_tests::{
    Ctx,
    boathook::{
        application_snapshots::status,
        conditions::is_true,
        execution_hooks::{mains, shell, with},
        recording::recorder_on,
        traces::{Traces, done, since_boot, undone},
    },
    claims::claim,
    deployments::DeploymentBuilder,
    pods::pod,
    random::Random,
};
use futures::future::try_join_all;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use crate::{
    notifications,
    rollouts::walk::{self, HookPreludes},
    snapshots::two_pods,
};

/// The pods that hooks and notifications run in.
pub(super) const BOXES: [&str; 2] = ["box-one", "box-two"];

/// So many users create notifications, and as many create hooks.
const USERS: usize = 3;

/// Between two steps of one user no more than this many milliseconds pass.
const PAUSE: u64 = 800;

/// A hook expires after this many seconds, or up to as many more.
const EXPIRATION: u64 = 4;

/// The claim on which pods of Deployments and their hooks lock each other out, and the pod that reads it.
const RUN_LOG: &str = "log";

/// Each pod of a Deployment shares a lock as long as it runs.
const SERVES: &str = "exec 9>>log/serves-$DEPLOYMENT; \
                      flock -n -s 9 || { echo a pod of $DEPLOYMENT began beside mid >>log/overlaps; flock -s 9; }; \
                      trap 'exit 0' TERM; sleep 2147483647 9>&- & wait";

/// Each hook of a Deployment has a lock alone as long as it runs; and mid the lock that the pods share.
const HOOKS: HookPreludes = HookPreludes {
    any: "exec 8>>log/hook-$DEPLOYMENT; flock -n -x 8 || echo two hooks of $DEPLOYMENT at once >>log/overlaps; ",
    mid: "exec 9>>log/serves-$DEPLOYMENT; flock -n -x 9 || echo mid of $DEPLOYMENT began beside a pod >>log/overlaps; ",
};

async fn pause(random: &mut Random) {
    // The moment is random: nothing is waited for.
    tokio::time::sleep(Duration::from_millis(random.below(PAUSE))).await;
}

/// Several users create notifications, each with an undo. Returns the number of rounds.
pub(super) async fn notifications(ctx: &Ctx, mut random: Random, until: Instant) -> Result<usize> {
    let users = (0..USERS).map(|user| notifications_of(user, ctx, random.another(), until));
    Ok(try_join_all(users).await?.into_iter().sum())
}

async fn notifications_of(user: usize, ctx: &Ctx, mut random: Random, until: Instant) -> Result<usize> {
    let mut rounds = 0;
    while Instant::now() < until {
        let pod = random.one_of(&BOXES).copied().unwrap_or_default();
        let asked = notifications::faults::begin(ctx, pod, rounds * USERS + user).await?;
        rounds += 1;
        pause(&mut random).await;
        if random.below(2) == 0 {
            ctx.request_undo(&asked).await?;
        }
        pause(&mut random).await;
    }
    Ok(rounds)
}

/// The hooks that were created.
#[derive(Default)]
pub(super) struct Hooks {
    names: Vec<String>,
    /// When each of these was known to be gone.
    gone: Vec<(String, Duration)>,
}

/// Several users create hooks of both pods; each asks for the thaw, deletes the hook or lets it expire.
pub(super) async fn hooks(ctx: &Ctx, mut random: Random, until: Instant) -> Result<Hooks> {
    let users = (0..USERS).map(|user| hooks_of(user, ctx, random.another(), until));
    let mut all = Hooks::default();
    for hooks in try_join_all(users).await? {
        all.names.extend(hooks.names);
        all.gone.extend(hooks.gone);
    }
    Ok(all)
}

async fn hooks_of(user: usize, ctx: &Ctx, mut random: Random, until: Instant) -> Result<Hooks> {
    let mut hooks = Hooks::default();
    while Instant::now() < until {
        let name = format!("hook-{user}-{}", hooks.names.len());
        let actions = json!({
            "preAction": shell(&done(&name)),
            "postAction": shell(&undone(&name)),
            "expirationSeconds": EXPIRATION + random.below(EXPIRATION),
        });
        let spec = with(actions, mains(BOXES));
        let create = async || ctx.create_hook(&name, spec.clone()).await;
        ctx.when_admitted(&format!("hook `{name}` is admitted"), create).await?;
        hooks.names.push(name.clone());
        pause(&mut random).await;
        match random.below(3) {
            0 => ctx.request_thaw(&name).await?,
            1 => {
                ctx.delete_and_see_gone::<ExecutionHook>(&name).await?;
                hooks.gone.push((name, since_boot()?));
            }
            _ => {}
        }
        pause(&mut random).await;
    }
    Ok(hooks)
}

impl Hooks {
    /// Deletes those that are left, and waits until all are gone.
    pub(super) async fn all_gone(mut self, ctx: &Ctx) -> Result<Self> {
        let api = ctx.api::<ExecutionHook>();
        for hook in api.list(&ListParams::default()).await? {
            let name = hook.name_any();
            // Hooks of snapshots go with their snapshots.
            if self.names.contains(&name) {
                api.delete(&name, &DeleteParams::default()).await?;
                ctx.gone::<ExecutionHook>(&name).await?;
                self.gone.push((name, since_boot()?));
            }
        }
        Ok(self)
    }

    pub(super) fn check(&self, traces: &Traces, executor: Executor) -> Result<()> {
        for name in &self.names {
            traces.is_taken_back(name, executor)?;
        }
        for (name, at) in &self.gone {
            traces.did_not_run_after(name, *at)?;
        }
        let ran = self.names.iter().filter(|name| traces.ran(name)).count();
        eprintln!("{ran} of {} hooks ran", self.names.len());
        Ok(())
    }
}

/// The ApplicationSnapshots that were created, and whether each was deleted.
pub(super) struct Snapshots(Vec<(String, bool)>);

impl Snapshots {
    /// Takes one snapshot after the other; some are deleted on the way, and some have hooks that expire.
    pub(super) async fn take_again_and_again(ctx: &Ctx, mut random: Random, until: Instant) -> Result<Self> {
        let mut taken = Vec::new();
        while Instant::now() < until {
            let name = format!("snapshot-{}", taken.len());
            let expiration = (random.below(2) == 0).then_some(20);
            two_pods::create_templates(ctx, &name, expiration).await?;
            let create = async || ctx.create_application_snapshot(&name, two_pods::snapshot(&name)).await;
            ctx.when_admitted(&format!("snapshot `{name}` is admitted"), create).await?;
            pause(&mut random).await;
            let deleted = random.below(4) == 0;
            match deleted {
                true => ctx.delete_and_see_gone::<ApplicationSnapshot>(&name).await?,
                false => _ = ctx.over(&name).await?,
            }
            taken.push((name, deleted));
        }
        Ok(Self(taken))
    }

    /// Each is thawed; and where one is called application-consistent, its copy was cut in the freeze.
    pub(super) async fn check(&self, ctx: &Ctx, executor: Executor) -> Result<()> {
        let mut application = 0;
        for (name, deleted) in &self.0 {
            match executor {
                Executor::Api => two_pods::is_thawed_at_last(ctx, name).await?,
                Executor::Agent => two_pods::is_thawed(ctx, name).await?,
            }
            if *deleted {
                continue;
            }
            let status = status(&ctx.api().get(name).await?);
            let says = |kind: &str| is_true(&status.conditions, kind);
            ensure!(says(condition::COMPLETE) != says(condition::FAILED), "`{name}` is not one of both: {status:?}");
            two_pods::is_honest(ctx, name, &status).await?;
            application += usize::from(status.consistency == Some(Consistency::Application));
        }
        eprintln!("{application} of {} snapshots are application-consistent", self.0.len());
        Ok(())
    }
}

/// Two Deployments, one for each strategy, whose pods and hooks record an overlap.
pub(super) fn deployments(ctx: &Ctx) -> Vec<(DeploymentBuilder, Value)> {
    let template = pod("web", ctx.images().shell).command(["sh", "-c", SERVES]).mount_claim(RUN_LOG, "/log");
    walk::deployments(&template.env("VERSION", "v1"), &HOOKS).into_iter().step_by(2).collect()
}

/// The claim that the Deployments need.
pub(super) async fn run_log(ctx: &Ctx) -> Result<()> {
    ctx.create(&claim(RUN_LOG).build()).await?;
    ctx.run_pod(recorder_on(ctx, RUN_LOG, RUN_LOG).build()).await.map(drop)
}

/// No hook ran beside another one of its Deployment, and no mid beside a pod.
pub(super) async fn no_overlap(ctx: &Ctx) -> Result<()> {
    let locks = ctx.shell(RUN_LOG, "ls log").await?;
    for lock in ["serves-surge", "hook-surge", "serves-recreate", "hook-recreate"] {
        ensure!(locks.lines().any(|name| name == lock), "no `{lock}` was ever taken: {locks}");
    }
    let overlaps = ctx.shell(RUN_LOG, "cat log/overlaps 2>/dev/null || true").await?;
    ensure!(overlaps.is_empty(), "pods and hooks recorded an overlap:\n{overlaps}");
    Ok(())
}
