//! The numbers of a rollout: sizes of ReplicaSets, and how far above and below the wanted size it may go. Pure.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub(super) fn wanted(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

pub(super) fn ready(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()
}

/// The pods it has, whatever it should have.
pub(super) fn actual(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map(|status| status.replicas).unwrap_or_default()
}

pub(super) fn total(sets: &[ReplicaSet], number: impl Fn(&ReplicaSet) -> i32) -> i32 {
    sets.iter().map(number).sum()
}

fn strategy(spec: &DeploymentSpec) -> &str {
    spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()).unwrap_or("RollingUpdate")
}

pub(super) fn is_rolling(deployment: &Deployment) -> bool {
    deployment.spec.as_ref().is_some_and(|spec| strategy(spec) == "RollingUpdate")
}

/// How many pods a rollout may have above the wanted number.
pub(super) fn surge(deployment: &Deployment) -> i32 {
    if is_rolling(deployment) { fenceposts(deployment).0 } else { 0 }
}

/// How many of the wanted pods a rollout may take away.
pub(super) fn unavailable(deployment: &Deployment) -> i32 {
    if is_rolling(deployment) && wanted(deployment) > 0 { fenceposts(deployment).1.min(wanted(deployment)) } else { 0 }
}

/// Percentages of the surge are rounded up, those of the unavailable down; both may not be zero.
fn fenceposts(deployment: &Deployment) -> (i32, i32) {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let of = |value: Option<&IntOrString>, up| value.map_or(0, |value| scaled(value, wanted(deployment), up));
    let surge = of(rolling.and_then(|rolling| rolling.max_surge.as_ref()), true);
    let unavailable = of(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), false);
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

fn scaled(value: &IntOrString, of: i32, up: bool) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            // The API server has checked that it is a percentage.
            let percent: i64 = text.strip_suffix('%').and_then(|percent| percent.parse().ok()).unwrap_or_default();
            let product = percent * i64::from(of) + if up { 99 } else { 0 };
            i32::try_from(product / 100).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn deployment(replicas: i32, surge: Value, unavailable: Value) -> Deployment {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        let spec = json!({"replicas": replicas, "strategy": strategy, "selector": {}, "template": {}});
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_quarter_of_three_is_one_more_and_none_less() {
        let deployment = deployment(3, json!("25%"), json!("25%"));
        assert_eq!((surge(&deployment), unavailable(&deployment)), (1, 0));
    }

    #[test]
    fn one_may_be_missing_if_nothing_else_may_happen() {
        let deployment = deployment(3, json!("0%"), json!("10%"));
        assert_eq!((surge(&deployment), unavailable(&deployment)), (0, 1));
    }

    #[test]
    fn no_more_can_be_missing_than_there_are() {
        assert_eq!(unavailable(&deployment(2, json!(0), json!(5))), 2);
        assert_eq!(unavailable(&deployment(0, json!(0), json!(5))), 0);
    }

    #[test]
    fn recreating_has_no_fenceposts() {
        let mut deployment = deployment(3, json!(2), json!(2));
        deployment.spec.as_mut().unwrap().strategy.as_mut().unwrap().type_ = Some("Recreate".to_owned());
        assert_eq!((surge(&deployment), unavailable(&deployment)), (0, 0));
    }
}
