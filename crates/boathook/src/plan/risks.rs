//! What may go wrong though it would work: a pure look at hooks.

use std::time::Duration;

use boathook_api::hook_action::HookPolicy;

use super::hook::Hook;
use crate::output::{duration::shown, plain::count};

/// The risks of hooks that freeze in this order; of a snapshot, with the time that its cut may take.
pub(super) fn risks(hooks: &[Hook], cut_timeout: Option<Duration>) -> Vec<String> {
    let each = hooks.iter().enumerate().flat_map(|(place, hook)| {
        let of = of_actions(&hook.name, hook.thaws, hook.holds_session, hook.expiration_seconds);
        of.into_iter().chain(too_short(hook, &hooks[place..], cut_timeout)).chain(one_of_many(hook))
    });
    each.collect()
}

/// The risks of a pair of actions, wherever it runs.
pub(super) fn of_actions(name: &str, thaws: bool, holds_session: bool, expiration_seconds: Option<i32>) -> Vec<String> {
    let mut risks = Vec::new();
    match (thaws, expiration_seconds) {
        (false, _) => risks.push(format!("`{name}` has no postAction: nothing undoes its PreAction")),
        (true, None) => risks
            .push(format!("`{name}` has no expirationSeconds: what it freezes stays frozen until a thaw is requested")),
        (true, Some(_)) => {}
    }
    if holds_session {
        risks.push(format!(
            "`{name}` holds its session: its command must exit at the end of its stdin, or nothing thaws it when its \
             executor dies"
        ));
    }
    risks
}

/// A hook's time begins with its own PreAction, and must not be over before the later hooks have frozen and the cut is seen.
fn too_short(hook: &Hook, from_here: &[Hook], cut_timeout: Option<Duration>) -> Option<String> {
    let seconds = u64::try_from(hook.expiration_seconds?).unwrap_or_default();
    if !hook.thaws {
        return None;
    }
    let freezes: Duration = from_here.iter().map(Hook::freeze_timeout).sum();
    let needed = freezes + cut_timeout.unwrap_or_default();
    let expiry = Duration::from_secs(seconds);
    if needed <= expiry {
        return None;
    }
    let what = match cut_timeout {
        Some(_) => "freeze and cut",
        None => "freeze",
    };
    Some(format!(
        "`{}` thaws {} after its first PreAction, but {what} may take {}: if they do, it is thawed too early",
        hook.name,
        shown(expiry),
        shown(needed),
    ))
}

fn one_of_many(hook: &Hook) -> Option<String> {
    (hook.policy == HookPolicy::ExecuteOnce && hook.selected_pods > 1).then(|| {
        let pod = hook.containers.first().map(|container| container.pod.as_str()).unwrap_or_default();
        let all = count(hook.selected_pods, "pod");
        format!("`{}` is ExecuteOnce: of {all} only `{pod}` is frozen, the oldest that is Ready", hook.name)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::hook::tests::{hook, pod},
        *,
    };

    fn planned(name: &str, more: Value, pods: usize) -> Hook {
        let mut spec = json!({"preAction": {"exec": {"command": ["a"]}}, "postAction": {"exec": {"command": ["b"]}}});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        hook(name, spec, (0..pods).map(|number| pod(&format!("db-{number}"), "[]")).collect()).unwrap()
    }

    #[test]
    fn what_may_go_wrong_is_said() {
        let minute = Some(Duration::from_secs(60));
        let safe = planned("a", json!({"expirationSeconds": 80}), 1);
        assert_eq!(risks(&[safe.clone(), safe.clone()], minute), Vec::<String>::new());
        for (hooks, word, number) in [
            (vec![planned("a", json!({}), 1)], "no expirationSeconds", 1),
            (vec![planned("a", json!({"postAction": null}), 1)], "no postAction", 1),
            (
                vec![planned(
                    "a",
                    json!({"preAction": {"exec": {"command": ["a"], "hold": true}}, "postAction": null,
                        "expirationSeconds": 80}),
                    1,
                )],
                "holds its session",
                1,
            ),
            (
                vec![safe.clone(), safe.clone(), safe.clone()],
                "`a` thaws 1m20s after its first PreAction, but freeze and cut may take 1m30s",
                1,
            ),
            (
                vec![planned("a", json!({"expirationSeconds": 80, "policy": "ExecuteOnce"}), 2)],
                "of 2 pods only `db-0`",
                1,
            ),
            (vec![planned("a", json!({"expirationSeconds": 80, "policy": "ExecuteOnce"}), 1)], "", 0),
        ] {
            let told = risks(&hooks, minute);
            assert_eq!(told.len(), number, "{told:?}");
            assert!(told.iter().all(|told| told.contains(word)), "{told:?}");
        }
        let alone = planned("a", json!({"expirationSeconds": 5}), 1);
        assert!(risks(&[alone], None)[0].contains("but freeze may take 10s"));
    }
}
