//! The pods of hooks, tried: the API server is asked in a dry run whether it would make them. A quota, a policy, a service
//! account that is missing: what would otherwise be seen only when the rollout is held already.

use anyhow::Result;
use boathook_api::deployment_lifecycle::Stage;
use boathook_controllers::webhooks::Right;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, api::PostParams};

use super::{documents::Documents, rehearsed::Rehearsed};
use crate::{objects, rights};

/// How sure it is that a pod that is refused now would be refused then.
#[derive(Debug, PartialEq, Eq)]
enum Weight {
    Fails,
    Risk,
    /// It was not tried.
    Note,
}

/// Adds what came of it. Who may not create pods cannot try either.
pub(super) async fn try_pods(client: &Client, documents: &Documents, rehearsed: &mut Rehearsed) -> Result<()> {
    if !rehearsed.would_work || rehearsed.stages.is_empty() {
        return Ok(());
    }
    let right = Right::RunPods;
    let may = rights::answer(client, right.name().to_owned(), right.attributes(&rehearsed.namespace)).await?;
    if !may.granted {
        rehearsed.notes.push(format!("whether the hooks' pods can be made was not tried: you may not {}", may.right));
        return Ok(());
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &rehearsed.namespace);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    for staged in rehearsed.stages.clone() {
        let Some(mut pod) = staged.pod else { continue };
        pod.metadata.namespace = Some(rehearsed.namespace.clone());
        // Its own is known only when it is made.
        (pod.metadata.name, pod.metadata.generate_name) = (None, Some(format!("{}-{}-", rehearsed.name, staged.stage)));
        match objects::answer(pods.create(&dry_run, &pod)).await? {
            Ok(_) => {}
            Err(kube::Error::Api(status)) => {
                let text = format!("the pod of {} would be refused: {}", staged.stage, status.message);
                match weight(staged.stage, documents, &status.message) {
                    Weight::Fails => rehearsed.reasons.push(text),
                    Weight::Risk => rehearsed.risks.push(text),
                    Weight::Note => {
                        rehearsed.notes.push(format!("the pod of {} was not tried: {}", staged.stage, status.message))
                    }
                }
            }
            Err(error) => return Err(anyhow::Error::new(error).context("failed to try the pod of a hook")),
        }
    }
    rehearsed.would_work = rehearsed.reasons.is_empty();
    Ok(())
}

fn weight(stage: Stage, documents: &Documents, message: &str) -> Weight {
    if message.contains("does not support dry run") {
        // Somebody's webhook has side effects.
        return Weight::Note;
    }
    // When mid runs, the pods of the old version are gone, and what they used is free.
    let other_then = stage == Stage::Mid;
    // The file may bring what is missing now.
    let comes = documents.others.iter().any(|other| other.starts_with("ServiceAccount "));
    if other_then || comes { Weight::Risk } else { Weight::Fails }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_unless_it_may_be_otherwise_by_then() {
        let alone = Documents::default();
        let with_account = Documents { others: vec!["ServiceAccount shop".to_owned()], ..Documents::default() };
        let quota = "exceeded quota: small";
        assert_eq!(weight(Stage::Pre, &alone, quota), Weight::Fails);
        assert_eq!(weight(Stage::Mid, &alone, quota), Weight::Risk);
        assert_eq!(weight(Stage::Pre, &with_account, "serviceaccount \"shop\" not found"), Weight::Risk);
        let deaf = "admission webhook \"a.b\" does not support dry run";
        assert_eq!(weight(Stage::Pre, &alone, deaf), Weight::Note);
    }
}
