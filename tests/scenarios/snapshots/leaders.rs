//! Two controllers, of which the leader is stopped past its lease and comes back: by then another one leads, and whatever
//! the first one was about to do, nothing is frozen a second time, and everything is thawed.

use std::time::Duration;

use anyhow::{Result, ensure};
use boathook_api::{application_snapshot::Consistency, pod_notification::Executor};
use boathook_tests::{
    Ctx,
    boathook::{
        api_proxy::{ApiProxy, Cut, Fate},
        application_snapshots::is_complete,
        execution_hooks::with,
        installation::Installation,
        process::Process,
    },
};

use crate::snapshots::two_pods::{self, PODS};

/// What the first one still had to do, it has done by then.
const QUIET: Duration = Duration::from_secs(1);

pub(crate) async fn a_leader_stopped_while_frozen_comes_back_and_freezes_nothing(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let pair = Pair::start(&ctx, &installation, executor).await?;
    let storage = ctx.silent_storage().await?;
    two_pods::create_templates(&ctx, "nightly", Some(two_pods::LONG)).await?;
    ctx.create_application_snapshot("nightly", with(two_pods::snapshot("nightly"), storage.fields())).await?;
    storage.asked_for("nightly").await?;

    let pair = pair.stop_the_leader(&installation, executor).await?;
    // It goes on while everything is frozen still, so it sees the thaw; and what is owed by itself it may undo.
    pair.first.resume()?;
    storage.cuts("nightly").await?;
    pair.ends_well(&ctx).await
}

/// What it was about to write when it was stopped arrives when everything is over.
pub(crate) async fn a_leader_stopped_between_two_hooks_comes_back_and_freezes_nothing(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let pair = Pair::start(&ctx, &installation, executor).await?;
    two_pods::create_templates(&ctx, "nightly", Some(two_pods::LONG)).await?;
    pair.proxy.cut(Cut { of: "POST executionhooks", at: 2, fate: Fate::Late });
    ctx.create_application_snapshot("nightly", two_pods::snapshot("nightly")).await?;
    pair.proxy.cut_made().await?;

    let pair = pair.stop_the_leader(&installation, executor).await?;
    ctx.over("nightly").await?;
    pair.proxy.release();
    pair.first.resume()?;
    pair.ends_well(&ctx).await
}

/// The first controller, which writes through a proxy, and those that come after it.
struct Pair {
    first: Process,
    proxy: ApiProxy,
    others: Vec<Process>,
}

impl Pair {
    /// One of them, and the agent if there is one to be.
    async fn start(ctx: &Ctx, installation: &Installation, executor: Executor) -> Result<Self> {
        two_pods::start(ctx).await?;
        let (first, proxy) = installation.controller_behind_proxy(executor).await?;
        let others = match executor {
            Executor::Api => vec![],
            Executor::Agent => vec![installation.agent().await?],
        };
        Ok(Self { first, proxy, others })
    }

    /// Stops the first where it stands, and waits until the second leads.
    async fn stop_the_leader(mut self, installation: &Installation, executor: Executor) -> Result<Self> {
        self.first.pause()?;
        self.others.push(installation.controller(executor, &[]).await?);
        Ok(self)
    }

    /// The second brings it to its end, which it cannot vouch for; the first begins nothing more, and both are well.
    async fn ends_well(self, ctx: &Ctx) -> Result<()> {
        is_complete(&ctx.over("nightly").await?, Consistency::Crash)?;
        // Whoever looks at the next one has seen what came before it.
        two_pods::create_templates(ctx, "weekly", Some(two_pods::LONG)).await?;
        is_complete(&ctx.take("weekly", two_pods::snapshot("weekly")).await?, Consistency::Application)?;
        self.proxy.quiet_for(QUIET).await?;
        for name in ["nightly", "weekly"] {
            for pod in PODS {
                let lines = two_pods::recorded(ctx, pod, name, pod).await?;
                let freezes = lines.iter().filter(|line| *line == "frozen").count();
                ensure!(freezes == 1, "pod `{pod}` was frozen {freezes} times for `{name}`: {lines:?}");
            }
            two_pods::is_thawed(ctx, name).await?;
        }
        self.first.stop().await?;
        for other in self.others {
            other.stop().await?;
        }
        Ok(())
    }
}
