//! Scaling in the middle of a rollout: each ReplicaSet grows or shrinks with its share. Pure.

use std::cmp::Reverse;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::numbers::{size, surge, total, wanted};
use super::revision;

/// The new size of each active ReplicaSet. `active` from the oldest to the youngest.
pub(super) fn sizes(deployment: &Deployment, mut active: Vec<ReplicaSet>) -> Vec<(ReplicaSet, i32)> {
    let allowed = if wanted(deployment) > 0 { wanted(deployment) + surge(deployment) } else { 0 };
    let to_add = allowed - total(&active, size);
    // The largest takes what rounding leaves over: of equals the youngest to grow, the oldest to shrink.
    if to_add > 0 {
        active.reverse();
    }
    if to_add != 0 {
        active.sort_by_key(|set| Reverse(size(set)));
    }
    let mut added = 0;
    let mut sizes = Vec::new();
    for set in active {
        let left = to_add - added;
        let share = match to_add {
            0 => 0,
            1.. => share(&set, deployment).min(left),
            ..0 => share(&set, deployment).max(left),
        };
        added += share;
        sizes.push((set.clone(), size(&set) + share));
    }
    if let Some((_, largest)) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

/// How much the ReplicaSet would change if it kept its part of the whole.
fn share(set: &ReplicaSet, deployment: &Deployment) -> i32 {
    if wanted(deployment) == 0 {
        return -size(set);
    }
    let whole = wanted(deployment) + surge(deployment);
    let actual = deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or_default();
    let whole_before = revision::max(set).filter(|max| *max != 0).unwrap_or(actual);
    if whole_before == 0 {
        return 0;
    }
    let part = f64::from(size(set)) * f64::from(whole) / f64::from(whole_before);
    // Sizes are far below what an i32 holds; the cast saturates anyway.
    part.round() as i32 - size(set)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(replicas: i32, surge: i32) -> Deployment {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 2}});
        let spec = json!({"replicas": replicas, "strategy": strategy, "selector": {}, "template": {}});
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()
    }

    fn replica_set(name: &str, size: i32, max: i32) -> ReplicaSet {
        let annotations = json!({"deployment.kubernetes.io/max-replicas": max.to_string()});
        let spec = json!({"replicas": size, "selector": {}});
        serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec})).unwrap()
    }

    fn scaled(deployment: &Deployment, active: &[(&str, i32)], max: i32) -> Vec<(String, i32)> {
        let active = active.iter().map(|(name, size)| replica_set(name, *size, max)).collect();
        sizes(deployment, active).into_iter().map(|(set, size)| (set.metadata.name.unwrap(), size)).collect()
    }

    #[test]
    fn growing_keeps_the_shares() {
        // The documentation's example: 10 + 3, then 15 + 3.
        let sizes = scaled(&deployment(15, 3), &[("old", 8), ("new", 5)], 13);
        assert_eq!(sizes, [("old".to_owned(), 11), ("new".to_owned(), 7)]);
    }

    #[test]
    fn what_rounding_leaves_goes_to_the_largest_and_of_equals_to_the_youngest() {
        let sizes = scaled(&deployment(6, 0), &[("old", 2), ("new", 2)], 5);
        assert_eq!(sizes, [("new".to_owned(), 4), ("old".to_owned(), 2)]);
    }

    #[test]
    fn shrinking_to_nothing_empties_all() {
        let sizes = scaled(&deployment(0, 1), &[("old", 3), ("new", 2)], 5);
        assert_eq!(sizes, [("old".to_owned(), 0), ("new".to_owned(), 0)]);
    }
}
