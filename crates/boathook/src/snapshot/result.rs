//! How a snapshot ended: in words, and as an exit code.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{ApplicationSnapshotStatus, Consistency, HookRecord, Phase, SnapshotRecord},
    words::condition,
};
use kube::ResourceExt;

use super::steps::find;
use crate::{
    cli::called_as,
    output::{Colour, plain::one_line},
};

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it was wished for.
    Complete,
    /// There is a snapshot, but it is not what hooks are for.
    OnlyCrashConsistent,
    Failed,
    /// There is a snapshot, but something is still frozen.
    NotThawed,
}

/// None while it has not ended.
pub(super) fn verdict(snapshot: &ApplicationSnapshot) -> Option<Verdict> {
    let status = snapshot.status.as_ref()?;
    let with_hooks = !snapshot.spec.execution_hook_infos.is_empty();
    match (status.phase, status.consistency) {
        (Phase::Pending | Phase::Freezing | Phase::Cutting | Phase::Thawing, _) => None,
        (Phase::ThawFailed, Some(_)) => Some(Verdict::NotThawed),
        (Phase::Complete, Some(Consistency::Crash) | None) if with_hooks => Some(Verdict::OnlyCrashConsistent),
        (Phase::Complete, _) => Some(Verdict::Complete),
        (Phase::ThawFailed, None) | (Phase::Failed, _) => Some(Verdict::Failed),
    }
}

/// The hooks whose PostActions have failed.
fn not_thawed(status: &ApplicationSnapshotStatus) -> impl Iterator<Item = &HookRecord> {
    status.hooks.iter().filter(|hook| hook.post_action_succeed == Some(false))
}

/// The last lines: what came of it, and where the snapshots are.
pub(super) fn lines(snapshot: &ApplicationSnapshot) -> Vec<(Colour, String)> {
    let (status, namespace) = (snapshot.status.clone().unwrap_or_default(), snapshot.namespace().unwrap_or_default());
    let said = |kind| find(&status.conditions, kind).map(|found| one_line(&found.message)).filter(|it| !it.is_empty());
    let window = status.freeze_window.as_ref().and_then(|window| window.duration.clone());
    let window = window.map(|window| format!(", frozen for {window}")).unwrap_or_default();
    let failure = status.failure.as_ref().map(|failure| one_line(&failure.message));
    let because = |why: Option<String>| why.map(|why| format!(": {why}")).unwrap_or_default();
    let (colour, headline) = match verdict(snapshot) {
        None => return vec![],
        Some(Verdict::Failed) => {
            (Colour::Bad, format!("FAILED{window}{}", because(said(condition::FAILED).or(failure))))
        }
        Some(Verdict::OnlyCrashConsistent | Verdict::NotThawed)
            if status.consistency != Some(Consistency::Application) =>
        {
            (Colour::Bad, format!("only crash-consistent{window}{}", because(failure)))
        }
        Some(_) if status.consistency == Some(Consistency::Application) => {
            let idle = status.hooks.is_empty().then(|| "no pod used the claims".to_owned());
            (Colour::Good, format!("application-consistent{window}{}", because(idle)))
        }
        Some(_) => (Colour::Good, format!("crash-consistent{window}")),
    };
    let cut = |record: &&SnapshotRecord| record.cut_seen_time.is_some() && status.consistency.is_some();
    let cuts = status.snapshots.iter().filter(cut).map(|record| {
        let SnapshotRecord { persistent_volume_claim_name: claim, volume_snapshot_name: name, .. } = record;
        (Colour::Good, format!("claim {claim}: kubectl get volumesnapshot {name} -n {namespace}"))
    });
    let vouched = (!status.vouched_pods.is_empty()).then(|| {
        let pods = status.vouched_pods.join(", ");
        (Colour::Bad, format!("no hook covered {pods}: vouched for by `otherPods: Vouched`"))
    });
    let frozen = not_thawed(&status).map(|hook| {
        let HookRecord { name, execution_hook_template_name: template, .. } = hook;
        let thaw = format!("{} thaw {name} -n {namespace}", called_as());
        (Colour::Bad, format!("STILL FROZEN by hook {template}: fix the cause, then run {thaw}"))
    });
    std::iter::once((colour, headline)).chain(vouched).chain(cuts).chain(frozen).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::steps::tests::snapshot, *};

    #[test]
    fn a_snapshot_that_is_less_than_was_wished_for_is_no_success() {
        let of = |status| verdict(&snapshot(&status));
        assert_eq!(of(json!({"phase": "Cutting"})), None);
        assert_eq!(of(json!({"phase": "Complete", "consistency": "Application"})), Some(Verdict::Complete));
        assert_eq!(of(json!({"phase": "Complete", "consistency": "Crash"})), Some(Verdict::OnlyCrashConsistent));
        assert_eq!(of(json!({"phase": "Failed"})), Some(Verdict::Failed));
        let frozen = json!({"phase": "ThawFailed", "consistency": "Application", "hooks": [
            {"name": "nightly-0", "executionHookTemplateName": "mysql", "postActionSucceed": false}]});
        assert_eq!(of(frozen.clone()), Some(Verdict::NotThawed));
        let (colour, last) = lines(&snapshot(&frozen)).pop().unwrap();
        assert_eq!(colour, Colour::Bad);
        assert_eq!(last, "STILL FROZEN by hook mysql: fix the cause, then run boathook thaw nightly-0 -n sea");
        let failure = json!({"reason": "HookFailed", "message": "no room"});
        let failed = snapshot(&json!({"phase": "ThawFailed", "failure": failure, "hooks": frozen["hooks"]}));
        assert_eq!(verdict(&failed), Some(Verdict::Failed));
        let told = lines(&failed).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
        assert_eq!(told, ["FAILED: no room".to_owned(), last]);
        let mut without_hooks = snapshot(&json!({"phase": "Complete", "consistency": "Crash"}));
        without_hooks.spec.execution_hook_infos.clear();
        assert_eq!(verdict(&without_hooks), Some(Verdict::Complete));
    }

    #[test]
    fn the_end_says_what_there_is_now() {
        let window = json!({"duration": "1.234s"});
        let cut = json!({"persistentVolumeClaimName": "data", "volumeSnapshotName": "nightly",
            "cutSeenTime": "2026-01-01T00:00:00.500000Z"});
        let told = |status| lines(&snapshot(&status)).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
        let whole = json!({"phase": "Complete", "consistency": "Application", "freezeWindow": window, "snapshots": [cut],
            "hooks": [{"name": "nightly-0", "executionHookTemplateName": "mysql"}]});
        let get = "claim data: kubectl get volumesnapshot nightly -n sea";
        let wanted = ["application-consistent, frozen for 1.234s", get];
        assert_eq!(told(whole), wanted);
        let vouched = json!({"phase": "Complete", "consistency": "Application", "vouchedPods": ["db-1", "db-2"],
            "hooks": [{"name": "nightly-0", "executionHookTemplateName": "mysql"}]});
        let relied_on = "no hook covered db-1, db-2: vouched for by `otherPods: Vouched`";
        assert_eq!(told(vouched), ["application-consistent", relied_on]);
        let idle = json!({"phase": "Complete", "consistency": "Application"});
        assert_eq!(told(idle), ["application-consistent: no pod used the claims"]);
        let failure = json!({"reason": "ContainerRestarted", "message": "container `main` restarted"});
        let crash = json!({"phase": "Complete", "consistency": "Crash", "failure": failure});
        assert_eq!(told(crash), ["only crash-consistent: container `main` restarted"]);
        let why = json!({"type": "Failed", "status": "True", "reason": "CutTimeout", "message": "no cut within 60s",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let failed = json!({"phase": "Failed", "conditions": [why], "snapshots": [cut]});
        assert_eq!(told(failed), ["FAILED: no cut within 60s"]);
    }
}
