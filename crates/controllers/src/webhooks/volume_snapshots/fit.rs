//! Whether hooks can be frozen in the time that a request has.

use boathook_api::{ExecutionHookTemplate, action::DEFAULT_TIMEOUT_SECONDS};
use kube::ResourceExt;

/// Hooks freeze one after the other; how long a notifier may take stands with the pod that declares it, and is not
/// counted here.
pub fn check(templates: &[ExecutionHookTemplate], seconds: u64) -> Result<(), String> {
    let longest = |template: &ExecutionHookTemplate| {
        let action = &template.spec.pre_action;
        let inline = action.is_inline().then(|| action.action_timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS));
        u64::try_from(inline.unwrap_or_default()).unwrap_or_default()
    };
    let needed: u64 = templates.iter().map(longest).sum();
    if needed <= seconds {
        return Ok(());
    }
    let names: Vec<_> = templates.iter().map(|template| format!("`{}`", template.name_any())).collect();
    Err(format!(
        "the PreActions of {} may take {needed} s, and this request has {seconds} s for them: give them a shorter \
         actionTimeoutSeconds, or create an ApplicationSnapshot, which has all the time that they need",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn template(name: &str, pre_action: Value) -> ExecutionHookTemplate {
        ExecutionHookTemplate::new(name, serde_json::from_value(json!({"preAction": pre_action})).unwrap())
    }

    #[test]
    fn what_may_take_longer_than_the_request_is_refused() {
        let twenty = template("slow", json!({"exec": {"command": ["sync"]}, "actionTimeoutSeconds": 20}));
        let ten = template("default", json!({"exec": {"command": ["sync"]}}));
        let notifier = template("declared", json!({"notifier": "freeze"}));
        assert_eq!(check(&[twenty.clone(), notifier.clone()], 27), Ok(()));
        assert_eq!(check(&[ten.clone(), ten.clone()], 20), Ok(()));
        let refused = check(&[twenty, ten], 27).unwrap_err();
        for words in ["`slow`, `default`", "30 s", "27 s", "ApplicationSnapshot"] {
            assert!(refused.contains(words), "{refused}");
        }
        assert_eq!(check(&[notifier], 0), Ok(()));
    }
}
