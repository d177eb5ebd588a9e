//! What a name on the command line stands for: an ApplicationSnapshot with its hooks, or one ExecutionHook.

use anyhow::{Result, bail};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, volume_snapshot::VolumeSnapshot, words::APPLICATION_SNAPSHOT_LABEL,
};
use kube::{Client, Resource, ResourceExt};

use crate::{objects, pods::Scope};

/// A name, and its kind if it was said: `NAME`, `hook/NAME`, `snapshot/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    kind: Option<Kind>,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Snapshot,
    Hook,
}

/// What was found.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// With those of its hooks that still exist, in order.
    Snapshot(Box<ApplicationSnapshot>, Vec<ExecutionHook>),
    Hook(Box<ExecutionHook>),
}

impl Name {
    /// As kubectl names objects, or shorter.
    pub(crate) fn parse(given: &str) -> Result<Self, String> {
        let (kind, name) = match given.split_once('/') {
            None => (None, given),
            Some((kind, name)) => match kind.split('.').next().unwrap_or_default() {
                "applicationsnapshot" | "applicationsnapshots" | "appsnap" | "snapshot" => (Some(Kind::Snapshot), name),
                "executionhook" | "executionhooks" | "eh" | "hook" => (Some(Kind::Hook), name),
                other => {
                    return Err(format!("unknown kind `{other}`: write snapshot/NAME or hook/NAME"));
                }
            },
        };
        match name.is_empty() || name.contains('/') {
            true => Err("give the name of an ApplicationSnapshot or ExecutionHook".to_owned()),
            false => Ok(Self { kind, name: name.to_owned() }),
        }
    }

    pub(crate) async fn find(&self, client: &Client, scope: &Scope) -> Result<Subject> {
        let Self { kind, name } = self;
        let snapshot: Option<ApplicationSnapshot> = match kind {
            None | Some(Kind::Snapshot) => objects::find(client, scope, name).await?,
            Some(Kind::Hook) => None,
        };
        let hook: Option<ExecutionHook> = match kind {
            None | Some(Kind::Hook) => objects::find(client, scope, name).await?,
            Some(Kind::Snapshot) => None,
        };
        match (snapshot, hook) {
            (Some(_), Some(_)) => bail!(
                "`{name}` is the name of an ApplicationSnapshot and of an ExecutionHook: write snapshot/{name} or hook/{name}"
            ),
            (Some(snapshot), None) => {
                let hooks = hooks_of(client, scope, &snapshot).await?;
                Ok(Subject::Snapshot(Box::new(snapshot), hooks))
            }
            (None, Some(hook)) => Ok(Subject::Hook(Box::new(hook))),
            (None, None) => bail!(self.missing(client, scope).await?),
        }
    }

    async fn missing(&self, client: &Client, scope: &Scope) -> Result<String> {
        let snapshot = objects::missing::<ApplicationSnapshot>(client, scope, &self.name);
        let hook = objects::missing::<ExecutionHook>(client, scope, &self.name);
        Ok(match self.kind {
            Some(Kind::Snapshot) => snapshot.await?,
            Some(Kind::Hook) => hook.await?,
            None => match owner_of_volume_snapshot(client, scope, &self.name).await {
                Some(hint) => hint,
                None => format!("{}; {}", snapshot.await?, hook.await?),
            },
        })
    }
}

/// That the name is a VolumeSnapshot's, and which ApplicationSnapshot took it. A caller without the right to read
/// VolumeSnapshots gets no hint.
async fn owner_of_volume_snapshot(client: &Client, scope: &Scope, name: &str) -> Option<String> {
    let found: VolumeSnapshot = objects::find(client, scope, name).await.ok()??;
    let label = found.labels().get(APPLICATION_SNAPSHOT_LABEL);
    let mut owners = found.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.kind == ApplicationSnapshot::kind(&())).map(|owner| &owner.name);
    let place = scope.place();
    Some(match owner.or(label) {
        Some(owner) => format!(
            "`{name}` {place} is a VolumeSnapshot; ApplicationSnapshot `{owner}` took it: use the name `{owner}` instead"
        ),
        None => {
            format!("`{name}` {place} is a VolumeSnapshot that Boathook did not take: no freeze is recorded for it")
        }
    })
}

/// The hooks of a snapshot that still exist, in order.
pub(crate) async fn hooks_of(
    client: &Client,
    scope: &Scope,
    snapshot: &ApplicationSnapshot,
) -> Result<Vec<ExecutionHook>> {
    let mut hooks = Vec::new();
    for name in snapshot.status.iter().flat_map(|status| &status.execution_hook_names) {
        hooks.extend(objects::find::<ExecutionHook>(client, scope, name).await?);
    }
    Ok(hooks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_say_its_kind() {
        let name = |kind| Ok(Name { kind, name: "nightly".to_owned() });
        assert_eq!(Name::parse("nightly"), name(None));
        assert_eq!(Name::parse("hook/nightly"), name(Some(Kind::Hook)));
        assert_eq!(Name::parse("applicationsnapshot.boathook.dev/nightly"), name(Some(Kind::Snapshot)));
        for wrong in ["pod/nightly", "hook/", "", "hook/a/b"] {
            assert!(Name::parse(wrong).is_err(), "{wrong}");
        }
    }
}
