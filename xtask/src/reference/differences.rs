//! Where a field differs from the published proposal that its kind comes from. The pages of the flows say why.

use anyhow::{Result, ensure};

/// How the proposal has some fields of one table.
pub(super) struct Difference {
    /// A kind or a shared type, and `spec` or `status` of a kind.
    of: (&'static str, &'static str),
    /// The rows of that table. None: the table as a whole.
    pub(super) fields: &'static [&'static str],
    pub(super) proposal: Proposal,
}

pub(super) enum Proposal {
    /// It does not have them.
    HasNone,
    /// It has them in another way: the end of a sentence.
    Differs(&'static str),
}

use Proposal::{Differs, HasNone};

const DIFFERENCES: &[Difference] = &[
    Difference {
        of: ("ApplicationSnapshot", "spec"),
        fields: &[],
        proposal: Differs("a VolumeSnapshot has `executionHookInfos`, and there is no ApplicationSnapshot"),
    },
    Difference {
        of: ("ApplicationSnapshot", "spec"),
        fields: &["onHookFailure", "otherPods", "cutTimeoutSeconds", "freezeTimeoutSeconds"],
        proposal: HasNone,
    },
    Difference {
        of: ("ApplicationSnapshot", "status"),
        fields: &[],
        proposal: Differs("the status of the VolumeSnapshot has `executionHookNames`, and nothing of the rest"),
    },
    Difference {
        of: ("DeploymentLifecycle", "spec"),
        fields: &[],
        proposal: Differs("fields of the Deployment's strategy"),
    },
    Difference { of: ("DeploymentLifecycle", "status"), fields: &[], proposal: Differs("no such status") },
    Difference {
        of: ("ExecutionHook", "spec"),
        fields: &[],
        proposal: Differs("its type has actions only in the template, its samples also here"),
    },
    Difference { of: ("ExecutionHook", "spec"), fields: &["thawRequested"], proposal: HasNone },
    Difference {
        of: ("ExecutionHook", "status"),
        fields: &["recorded", "startTime", "acceptedBy", "freezeWindow", "conditions"],
        proposal: HasNone,
    },
    Difference {
        of: ("ExecutionHook", "status"),
        fields: &["postActionSucceed"],
        proposal: Differs("false is final, and left to an administrator"),
    },
    Difference {
        of: ("ExecutionHookTemplate", "spec"),
        fields: &[],
        proposal: Differs("these fields are beside `metadata`"),
    },
    Difference {
        of: ("ExecutionHookTemplate", "spec"),
        fields: &["policy"],
        proposal: Differs("`ExecuteOnce` runs in any one pod"),
    },
    Difference {
        of: ("ExecutionHookTemplate", "spec"),
        fields: &["expirationSeconds"],
        proposal: Differs("`expirationTimeSeconds` in its samples"),
    },
    Difference { of: ("Notification", "status"), fields: &["undeclaredCount", "conditions"], proposal: HasNone },
    Difference {
        of: ("PodNotification", "spec"),
        fields: &[
            "action",
            "podUID",
            "containers",
            "startDeadlineSeconds",
            "retry",
            "undo",
            "undoRequested",
            "ttlSecondsAfterFinished",
        ],
        proposal: HasNone,
    },
    Difference {
        of: ("PodNotification", "status"),
        fields: &[
            "podUID",
            "nodeName",
            "executor",
            "claim",
            "conditions",
            "containers[].containerID",
            "containers[].attempts",
            "containers[].exitCode",
            "containers[].output",
            "containers[].processMayRemain",
            "containers[].undo",
        ],
        proposal: HasNone,
    },
    Difference {
        of: ("HookAction", ""),
        fields: &[],
        proposal: Differs("its type nests the handler under `action`, its samples do not"),
    },
    Difference { of: ("HookAction", ""), fields: &["notifier", "output"], proposal: HasNone },
    Difference { of: ("ExecAction", ""), fields: &["hold"], proposal: HasNone },
    Difference {
        of: ("PodContainerNames", ""),
        fields: &["containerNames"],
        proposal: Differs("some samples write `containerName`, which is rejected"),
    },
    Difference {
        of: ("ContainerSelector", ""),
        fields: &["containerName"],
        proposal: Differs("the key `ContainerName` of a map, which is rejected"),
    },
    Difference { of: ("ContainerExecutionHookStatus", ""), fields: &["podUID", "containerID"], proposal: HasNone },
    Difference { of: ("ExecutionHookActionStatus", ""), fields: &["actionTimestamp"], proposal: Differs("a number") },
    Difference { of: ("ExecutionHookActionStatus", ""), fields: &["completeTimestamp", "attempts"], proposal: HasNone },
    Difference {
        of: ("LifecycleHook", ""),
        fields: &["failurePolicy"],
        proposal: Differs("`Retry` lasts until `progressDeadlineSeconds` of the whole rollout"),
    },
    Difference { of: ("LifecycleHook", ""), fields: &["execNewPod.output"], proposal: HasNone },
    Difference {
        of: ("NotificationError", ""),
        fields: &["type"],
        proposal: Differs("only `PodNotFound` and `HandlerTimeout`"),
    },
];

pub(super) fn of(section: &str, part: &str) -> Vec<&'static Difference> {
    DIFFERENCES.iter().filter(|one| one.of == (section, part)).collect()
}

/// Fails for a field that the table has no row for.
pub(super) fn assert_known(differences: &[&Difference], rows: &[String]) -> Result<()> {
    for Difference { of, fields, .. } in differences {
        for field in *fields {
            ensure!(rows.iter().any(|row| row == field), "{of:?} has no field `{field}`: fix xtask/src/reference");
        }
    }
    Ok(())
}

impl Difference {
    pub(super) fn sentence(&self) -> String {
        match self.proposal {
            HasNone => String::new(),
            Differs(how) => format!("Proposal: {how}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::shared::SHARED;

    #[test]
    fn every_difference_has_its_section() {
        let kinds: Vec<_> = boathook_api::crds::all().into_iter().map(|crd| crd.spec.names.kind).collect();
        for Difference { of: (section, part), .. } in DIFFERENCES {
            let is_known = match *part {
                "" => SHARED.iter().any(|shared| shared.name == *section),
                _ => kinds.iter().any(|kind| kind == section),
            };
            assert!(is_known, "{section} {part}");
        }
    }
}
