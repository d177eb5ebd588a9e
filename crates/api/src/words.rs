//! Every word that objects carry for Boathook: each in one place, each documented.

/// The API group of every kind.
pub const GROUP: &str = "boathook.dev";
pub const VERSION: &str = "v1alpha1";

/// Holds an object while an undo is owed, also one that is to run once more; and only then.
pub const UNDO_FINALIZER: &str = "boathook.dev/undo";

/// The prefix of the annotations by which a pod's author declares notifiers; the container's name follows it.
pub const NOTIFIERS_PREFIX: &str = "notifiers.boathook.dev/";

/// Set to `true` on a PodNotification or ExecutionHook, it gives up an undo that cannot succeed: the object is then let go.
/// On an ApplicationSnapshot it only allows the removal of the finalizer. Setting it needs the right to `abandon` the object.
pub const ABANDON_UNDO: &str = "boathook.dev/abandon-undo";

/// The user who set [`ABANDON_UNDO`]. Admission writes it, and the controller copies it from a hook to its
/// PodNotifications.
pub const ABANDONED_BY: &str = "boathook.dev/abandoned-by";

/// On a PodNotification or ExecutionHook: a time. An undo that waits for its next round goes at once.
pub const UNDO_NOW: &str = "boathook.dev/undo-now";

/// Holds an ExecutionHook until its PostActions are done, and an ApplicationSnapshot until its hooks are.
pub const THAW_FINALIZER: &str = "boathook.dev/thaw";

/// On a PodNotification that an ExecutionHook made: the name of that hook.
pub const EXECUTION_HOOK_LABEL: &str = "boathook.dev/execution-hook";

/// On an ExecutionHook or VolumeSnapshot that an ApplicationSnapshot made: the name of that ApplicationSnapshot.
pub const APPLICATION_SNAPSHOT_LABEL: &str = "boathook.dev/application-snapshot";

/// On a VolumeSnapshot that an ApplicationSnapshot made: the UID of that ApplicationSnapshot.
pub const APPLICATION_SNAPSHOT_UID: &str = "boathook.dev/application-snapshot-uid";

/// Marks a VolumeSnapshot to be taken with hooks: the list of `executionHookInfos`, as YAML or JSON.
pub const EXECUTION_HOOK_INFOS: &str = "boathook.dev/execution-hook-infos";

/// Marks a VolumeSnapshot to be taken with the hook of this template (a label, for tools that set no annotations).
pub const EXECUTION_HOOK_TEMPLATE_LABEL: &str = "boathook.dev/execution-hook-template";

/// On a marked VolumeSnapshot, as a label or an annotation: `otherPods` of the ApplicationSnapshot, `MustBeCovered` or
/// `Vouched`.
pub const OTHER_PODS: &str = "boathook.dev/other-pods";

/// On a VolumeSnapshot: the hooks that ran around its cut.
pub const EXECUTION_HOOK_NAMES: &str = "boathook.dev/execution-hook-names";

/// On a VolumeSnapshot: `Application` or `Crash`.
pub const CONSISTENCY: &str = "boathook.dev/consistency";

/// The annotations of a VolumeSnapshot that only Boathook sets: admission refuses them from other users.
pub const SNAPSHOT_MARKS: [&str; 3] = [CONSISTENCY, EXECUTION_HOOK_NAMES, APPLICATION_SNAPSHOT_UID];

/// The field manager with which Boathook writes its verdict on a VolumeSnapshot.
pub const VERDICT_FIELD_MANAGER: &str = "boathook-verdict";

/// On a Deployment: its rollouts have hooks. `required` by a person, from the start; `managed` since it was adopted. The
/// Deployment controller copies it to the ReplicaSets, which are held for it.
pub const LIFECYCLE: &str = "boathook.dev/lifecycle";

/// The value of [`LIFECYCLE`] by which a person has the first rollout held until there is a lifecycle.
pub const LIFECYCLE_REQUIRED: &str = "required";

/// The value of [`LIFECYCLE`] on a Deployment that was adopted.
pub const LIFECYCLE_MANAGED: &str = "managed";

/// On a ReplicaSet: what may happen to it. See `boathook_decide::deployment_lifecycle::gate`.
pub const GATE: &str = "boathook.dev/gate";

/// Holds a DeploymentLifecycle until its Deployment is let go.
pub const LIFECYCLE_FINALIZER: &str = "boathook.dev/lifecycle";

/// On a hook's pod: the Deployment that it is for; a digest of its name if that is longer than a label may be.
pub const HOOK_OF_LABEL: &str = "boathook.dev/hook-of";

/// On a hook's pod: the stage that it runs.
pub const STAGE_LABEL: &str = "boathook.dev/stage";

/// On a hook's pod: which rollout it is of.
pub const ROLLOUT_LABEL: &str = "boathook.dev/rollout";

/// On a DeploymentLifecycle: a person asks for a stage to be retried or skipped.
pub const ROLLOUT_REQUEST: &str = "boathook.dev/rollout-request";

/// On a DeploymentLifecycle: who asked for it. Written by admission alone.
pub const ROLLOUT_REQUESTED_BY: &str = "boathook.dev/rollout-requested-by";

/// What the messages begin with that Boathook writes into a Deployment's own conditions.
pub const ABORT_PREFIX: &str = "boathook: ";

/// What is written there when an abort is over.
pub const HOLDS: &str = "Boathook holds a new version until its hooks have passed.";

/// On a PodNotification that a Notification made: the name of that Notification.
pub const NOTIFICATION_LABEL: &str = "boathook.dev/notification";

/// On a PodNotification that `boathook notify` made: which run of it, so that all of one run are found.
pub const NOTIFY_LABEL: &str = "boathook.dev/notify";

/// On an ExecutionHook that `boathook drill` made: which run of it, so that all of one run are found.
pub const DRILL_LABEL: &str = "boathook.dev/drill";

/// On a PodNotification that is created in a dry run: it is no notification, but a try of the webhooks by the process of
/// this identity. Webhooks refuse it.
pub const WEBHOOK_PROBE: &str = "boathook.dev/webhook-probe";

/// On the webhook configuration: its UID, and the time after which its webhooks have checked the objects that are created.
pub const CHECKED_SINCE: &str = "boathook.dev/checked-since";

/// The name of the Lease by which controllers agree who leads.
pub const LEASE: &str = "boathook";

/// The prefix of notifier names that are Kubernetes' own to define.
pub const RESERVED_NOTIFIER_PREFIX: &str = "k8s.io/";

/// The types of conditions.
pub mod condition {
    /// A controller has looked at the object and pinned what it is about.
    pub const ACCEPTED: &str = "Accepted";
    /// The handlers have ended, well or not.
    pub const COMPLETE: &str = "Complete";
    /// The same for every kind, and what `kubectl wait` is for: Unknown until the end is known, then True for success and
    /// False for failure.
    pub const SUCCEEDED: &str = "Succeeded";
    /// What was done has been taken back.
    pub const UNDONE: &str = "Undone";
    /// A hook has no expiry: if nobody deletes it, it stays frozen.
    pub const NO_EXPIRY: &str = "NoExpiry";
    /// Every PreAction has succeeded, and no PostAction was begun.
    pub const FROZEN: &str = "Frozen";
    /// The time of a hook was over before anybody asked for its PostActions.
    pub const EXPIRED: &str = "Expired";
    /// Every PostAction has succeeded.
    pub const THAWED: &str = "Thawed";
    /// The sessions that a PodNotification holds are open.
    pub const HELD: &str = "Held";
    /// On a Deployment: how far its rollout is held, and why. A change of it also wakes the Deployment controller.
    pub const LIFECYCLE: &str = "BoathookLifecycle";
    /// On a Deployment, and Kubernetes' own: its rollout makes progress.
    pub const PROGRESSING: &str = "Progressing";
    /// An ApplicationSnapshot did not come about; a rollout was aborted.
    pub const FAILED: &str = "Failed";
}

/// The lines by which a held command and its executor speak.
pub mod session {
    /// On its stdout: what it does is done, and lasts as long as its session.
    pub const READY: &str = "READY";
    /// On its stdin: it is to take back what it did, and to end with exit code 0.
    pub const RELEASE: &str = "RELEASE";
}

/// Why a condition is as it is, and why an Event was written.
pub mod reason {
    /// `Accepted`: pod, node and executor are pinned.
    pub const PINNED: &str = "Pinned";
    /// `Accepted`: refused, for the reason that `status.error` gives.
    pub const REFUSED: &str = "Refused";
    /// `Accepted`: the feature gate is off.
    pub const FEATURE_DISABLED: &str = "FeatureDisabled";
    /// `Complete`: no container of the pod declares the notifier; nothing was to be done.
    pub const NO_MATCHING_NOTIFIER: &str = "NoMatchingNotifier";
    /// A Notification's `Complete`: it found no Running pod.
    pub const NO_POD: &str = "NoPod";
    /// `Complete`: every handler succeeded.
    pub const SUCCEEDED: &str = "Succeeded";
    /// `Complete`: a handler failed, or nothing was run; `status.error` says why.
    pub const FAILED: &str = "Failed";
    /// `Undone`: the undo is armed, and runs when it is asked for or its time has come.
    pub const ARMED: &str = "Armed";
    /// `Undone`: every container's undo succeeded.
    pub const UNDO_SUCCEEDED: &str = "UndoSucceeded";
    /// `Undone`: an undo failed; it is tried again until it succeeds or the pod is gone.
    pub const UNDO_FAILED: &str = "UndoFailed";
    /// `Undone`: the pod is gone and its node is well, so there is nothing left to undo. `Thawed`: likewise, and the PostAction
    /// did not run.
    pub const POD_GONE: &str = "PodGone";
    /// The pod was told to end, so its undo was asked for.
    pub const POD_ENDING: &str = "PodEnding";
    /// `Undone`: the pod is gone, but its node is not Ready: nobody knows whether it still runs there. `Thawed`: likewise,
    /// or its PodNotification was removed with its finalizer.
    pub const THAW_UNCONFIRMED: &str = "ThawUnconfirmed";
    /// `Undone`: nothing had been done that could be undone.
    pub const NOTHING_TO_UNDO: &str = "NothingToUndo";
    /// `Undone`: a held session had ended by itself, or was ended, and there is no action that could follow: what it held
    /// went with it, because a held command must end when its input ends.
    pub const SESSION_ENDED: &str = "SessionEnded";
    /// `Held`: every session is open.
    pub const SESSION_OPEN: &str = "SessionOpen";
    /// `Held`: a session ended before it was asked to, or its executor had to let go of it; the message says where and how.
    pub const SESSION_LOST: &str = "SessionLost";
    /// `Held`: every session was asked to release, and ended with exit code 0.
    pub const RELEASED: &str = "Released";
    /// `Held`: a session was asked to release, and did not end well; the message says where and how.
    pub const RELEASE_FAILED: &str = "ReleaseFailed";
    /// `Undone`: a person gave it up, by annotation.
    pub const ABANDONED: &str = "Abandoned";
    /// `Undone` with one of these: no undo is owed any longer.
    pub const UNDO_CLOSED: [&str; 6] =
        [UNDO_SUCCEEDED, SESSION_ENDED, POD_GONE, THAW_UNCONFIRMED, NOTHING_TO_UNDO, ABANDONED];
    /// The spec cannot be carried out; the message names the field and says what to write.
    pub const INVALID: &str = "Invalid";
    /// A Notification's `Complete`: pods are still to be told. `Succeeded`: the end is not known yet.
    pub const IN_PROGRESS: &str = "InProgress";
    /// A hook cannot run: it selects no container.
    pub const NO_TARGET: &str = "NoTarget";
    /// A hook cannot run: there is no template of that name.
    pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
    /// A hook cannot run: a pod that it selects does not run.
    pub const POD_NOT_RUNNING: &str = "PodNotRunning";
    /// `NoExpiry`: the hook has no `expirationSeconds`.
    pub const NO_EXPIRY: &str = "NoExpiry";
    /// `Frozen`: PreActions are under way.
    pub const FREEZING: &str = "Freezing";
    /// `Frozen`: every PreAction succeeded.
    pub const FROZEN: &str = "Frozen";
    /// `Frozen`: a PreAction failed, or nobody knows how it went; everything is taken back.
    pub const PRE_ACTION_FAILED: &str = "PreActionFailed";
    /// `Frozen`, `Expired`: the time was over.
    pub const EXPIRED: &str = "Expired";
    /// `Frozen`: somebody asked for the thaw, or deleted the hook.
    pub const THAW_REQUESTED: &str = "ThawRequested";
    /// `Thawed`: PostActions are under way.
    pub const THAWING: &str = "Thawing";
    /// `Thawed`: every PostAction succeeded.
    pub const THAWED: &str = "Thawed";
    /// `Thawed`: a PostAction failed; it is tried again until it succeeds.
    pub const THAW_FAILED: &str = "ThawFailed";
    /// `Thawed`: every PostAction succeeded, but a PreAction may still run and freeze again; the PostAction runs once more.
    pub const PROCESS_MAY_REMAIN: &str = "ProcessMayRemain";
    /// An ApplicationSnapshot waits for another one of the same claim.
    pub const WAITING: &str = "Waiting";
    /// Nothing is frozen: no pod uses the claims.
    pub const NOT_IN_USE: &str = "NotInUse";
    /// Nothing is frozen: the snapshot has no hooks.
    pub const NO_HOOKS: &str = "NoHooks";
    /// There is no such claim.
    pub const CLAIM_NOT_FOUND: &str = "ClaimNotFound";
    /// There is a VolumeSnapshot of that name already.
    pub const SNAPSHOT_EXISTS: &str = "SnapshotExists";
    /// A hook of the snapshot did not freeze.
    pub const HOOK_FAILED: &str = "HookFailed";
    /// The freeze took longer than `freezeTimeoutSeconds`.
    pub const FREEZE_TIMED_OUT: &str = "FreezeTimedOut";
    /// The storage could not cut the snapshot.
    pub const CUT_FAILED: &str = "CutFailed";
    /// The cut took longer than `cutTimeoutSeconds`.
    pub const CUT_TIMED_OUT: &str = "CutTimedOut";
    /// The ApplicationSnapshot was deleted.
    pub const DELETED: &str = "Deleted";
    /// A container restarted while it was frozen.
    pub const CONTAINER_RESTARTED: &str = "ContainerRestarted";
    /// A pod that nobody had frozen used the claim.
    pub const NEW_POD: &str = "NewPod";
    /// The VolumeSnapshotClass does not exist, or none is the default: the storage could not cut.
    pub const SNAPSHOT_CLASS_NOT_FOUND: &str = "SnapshotClassNotFound";
    /// A running pod mounted the claim, and no hook covered it.
    pub const POD_NOT_FROZEN: &str = "PodNotFrozen";
    /// Something else that was frozen in the same container was thawed before the cut was seen.
    pub const THAWED_BY_ANOTHER: &str = "ThawedByAnother";
    /// A verdict on a VolumeSnapshot that Boathook had not written was removed.
    pub const FOREIGN_VERDICT: &str = "ForeignVerdict";
    /// Another process began the hook: this one cannot know whether its time was over.
    pub const CONTROLLER_CHANGED: &str = "ControllerChanged";
    /// `Complete`: as asked for.
    pub const CUT: &str = "Cut";
    /// A lifecycle waits: there is no Deployment of its name.
    pub const DEPLOYMENT_NOT_FOUND: &str = "DeploymentNotFound";
    /// A lifecycle cannot be carried out with the strategy that its Deployment has.
    pub const STRATEGY: &str = "Strategy";
    /// A lifecycle looks after its Deployment.
    pub const MANAGED: &str = "Managed";
    /// A Deployment is about to be looked after: it does not carry the annotation yet.
    pub const ADOPTING: &str = "Adopting";
    /// A Deployment is looked after from now on; what it runs was rolled out before.
    pub const ADOPTED: &str = "Adopted";
    /// The Deployment is paused: nothing is begun and nothing let in.
    pub const PAUSED: &str = "Paused";
    /// A hook runs, or is about to; the new version is held.
    pub const PRE: &str = "Pre";
    /// The old version ends; the new one is held.
    pub const DRAINING: &str = "Draining";
    /// A hook runs while no pod does.
    pub const MID: &str = "Mid";
    /// The new version is let in.
    pub const ROLLING: &str = "Rolling";
    /// A hook runs after the rollout.
    pub const POST: &str = "Post";
    /// The rollout is complete, with its hooks.
    pub const COMPLETE: &str = "Complete";
    /// The template is that again which runs already: no hooks.
    pub const CANCELLED: &str = "Cancelled";
    /// A hook failed, and the rollout ended there.
    pub const ABORTED: &str = "Aborted";
    /// A newer template has taken the place of the one that was rolled out.
    pub const SUPERSEDED: &str = "Superseded";
    /// A hook's command failed, or could not be run.
    pub const HOOK_RUN_FAILED: &str = "HookRunFailed";
    /// A hook has succeeded.
    pub const HOOK_SUCCEEDED: &str = "HookSucceeded";
    /// The configuration of the webhooks that hold rollouts is missing.
    pub const GATE_MISSING: &str = "GateMissing";
    /// A hook's pod was gone before it had ended: another one is made.
    pub const HOOK_POD_LOST: &str = "HookPodLost";
    /// A hook's pod cannot be made: a quota, somebody's policy or a pod of its name is in the way. It is tried again.
    pub const HOOK_POD_REFUSED: &str = "HookPodRefused";
    /// A person had a stage skipped.
    pub const SKIPPED: &str = "Skipped";
    /// A person had a stage retried.
    pub const RETRIED: &str = "Retried";
    /// A request of a person cannot be carried out.
    pub const REQUEST_REFUSED: &str = "RequestRefused";
    /// `Progressing`, as Kubernetes has it: the rollout makes none any more.
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// Likewise: it makes some.
    pub const REPLICA_SET_UPDATED: &str = "ReplicaSetUpdated";
    /// A lifecycle that is deleted cannot let its Deployment go yet.
    pub const LETTING_GO: &str = "LettingGo";
}
