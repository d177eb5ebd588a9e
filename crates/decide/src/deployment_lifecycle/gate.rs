//! The gate: what may happen to the replicas of a ReplicaSet. A pure rule over one request, asked by admission.
//!
//! A ReplicaSet is managed by the annotation that the Deployment controller copies from the Deployment. What may happen
//! to it stands in a label of its own, which nobody copies. Requests are never denied: what may not be is written as it
//! was before. Most of this is decided in the API server by `matchConditions`, so that open ReplicaSets never need us.

use std::{fmt, str::FromStr};

/// What the label on a ReplicaSet says. Absent: it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It may grow while it has this revision; post is pending.
    Open { revision: String },
    /// The same; post has finished.
    Done { revision: String },
    /// It may shrink for this target.
    Draining(DrainFor),
}

/// The target for which a ReplicaSet may shrink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainFor {
    /// The ReplicaSet with this `pod-template-hash`, while it has this revision and the Deployment's template.
    ReplicaSet { revision: String, pod_template_hash: String },
    /// Under Recreate, before the new ReplicaSet exists: a template with this digest.
    Template { digest: String },
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { revision } => write!(f, "open.{revision}"),
            Self::Done { revision } => write!(f, "done.{revision}"),
            Self::Draining(DrainFor::ReplicaSet { revision, pod_template_hash }) => {
                write!(f, "draining.{revision}.{pod_template_hash}")
            }
            Self::Draining(DrainFor::Template { digest }) => write!(f, "draining.t.{digest}"),
        }
    }
}

/// A label that says nothing that is known here: the ReplicaSet is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAMark;

impl FromStr for Mark {
    type Err = NotAMark;

    fn from_str(label: &str) -> Result<Self, NotAMark> {
        let parts: Vec<&str> = label.split('.').collect();
        match parts[..] {
            ["open", revision] => Ok(Self::Open { revision: revision.to_owned() }),
            ["done", revision] => Ok(Self::Done { revision: revision.to_owned() }),
            ["draining", "t", digest] => Ok(Self::Draining(DrainFor::Template { digest: digest.to_owned() })),
            ["draining", revision, hash] => Ok(Self::Draining(DrainFor::ReplicaSet {
                revision: revision.to_owned(),
                pod_template_hash: hash.to_owned(),
            })),
            _ => Err(NotAMark),
        }
    }
}

/// A write that moves the replicas of a managed ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Create {
        replicas: i32,
    },
    Update(Update),
    /// Through `replicasets/scale`.
    Scale {
        old: i32,
        new: i32,
        /// `desired-replicas` of the ReplicaSet.
        desired: Option<String>,
        revision: Option<String>,
        mark: Option<Mark>,
        /// It has the Deployment's template.
        is_target: bool,
    },
}

/// An update of a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    pub old: i32,
    pub new: i32,
    /// The annotation `desired-replicas`, before and after.
    pub old_desired: Option<String>,
    pub new_desired: Option<String>,
    /// Its revision after the write.
    pub revision: Option<String>,
    /// What its label said before the write.
    pub mark: Option<Mark>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Only if [`drain_is_valid`] by a live look; else as it was.
    PassIf(DrainFor),
    /// The replicas are written as this.
    Replicas(i32),
}

pub fn judge(request: &Request) -> Verdict {
    match request {
        Request::Create { replicas: 0 } => Verdict::Pass,
        Request::Create { .. } => Verdict::Replicas(0),
        Request::Update(update) => judge_update(update),
        Request::Scale { old, new, .. } if old == new => Verdict::Pass,
        Request::Scale { old, new, desired, revision, mark, is_target } => match new > old {
            true if *is_target && lets_in(mark.as_ref(), revision.as_deref()) => Verdict::Pass,
            true => Verdict::Replicas(*old),
            false => judge_shrink(*old, *new, desired.as_deref(), mark.as_ref()),
        },
    }
}

fn judge_update(update: &Update) -> Verdict {
    let Update { old, new, old_desired, new_desired, revision, mark } = update;
    if old == new {
        return Verdict::Pass;
    }
    // A person or an autoscaler scales the Deployment, and its share is written.
    if *old > 0 && old_desired.as_deref().is_some_and(|desired| !desired.is_empty()) && old_desired != new_desired {
        return Verdict::Pass;
    }
    match new > old {
        true if lets_in(mark.as_ref(), revision.as_deref()) => Verdict::Pass,
        true => Verdict::Replicas(*old),
        false => judge_shrink(*old, *new, new_desired.as_deref(), mark.as_ref()),
    }
}

fn lets_in(mark: Option<&Mark>, revision: Option<&str>) -> bool {
    match mark {
        Some(Mark::Open { revision: marked } | Mark::Done { revision: marked }) => revision == Some(marked.as_str()),
        Some(Mark::Draining(_)) | None => false,
    }
}

fn judge_shrink(old: i32, new: i32, desired: Option<&str>, mark: Option<&Mark>) -> Verdict {
    if desired == Some(new.to_string().as_str()) {
        // A correction: it has more than the Deployment wants in all.
        return Verdict::Pass;
    }
    match mark {
        Some(Mark::Draining(target)) => Verdict::PassIf(target.clone()),
        Some(Mark::Open { .. } | Mark::Done { .. }) | None => Verdict::Replicas(old),
    }
}

/// Whether a ReplicaSet may shrink for this target: what is rolled out now is exactly that. `replica_sets` are those of
/// the Deployment: the `pod-template-hash`, revision and template's digest of each.
pub fn drain_is_valid<'a>(
    target: &DrainFor,
    deployment_digest: &str,
    mut replica_sets: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
) -> bool {
    match target {
        DrainFor::Template { digest } => digest == deployment_digest,
        DrainFor::ReplicaSet { revision, pod_template_hash } => replica_sets.any(|(hash, its_revision, digest)| {
            hash == pod_template_hash && its_revision == revision && digest == deployment_digest
        }),
    }
}
