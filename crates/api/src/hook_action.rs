//! What a hook does before and after: one of exec, httpGet, tcpSocket and a notifier that the pod's author declared.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Action, ExecAction, HttpGetAction, TcpSocketAction,
    action::{DEFAULT_TIMEOUT_SECONDS, Output, ValidAction},
};

/// One action of a hook. The author of a command needs the right to `create pods/exec` in the namespace. The action
/// must be idempotent, because Boathook retries it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.notifier)].filter(x, x).size() == 1", "write exactly one of exec, httpGet, tcpSocket and notifier"),
    validation = ("!has(self.notifier) || !has(self.actionTimeoutSeconds)", "actionTimeoutSeconds is not valid with notifier: remove it, and set timeoutSeconds where the pod declares the notifier"),
    validation = ("!has(self.notifier) || !has(self.output)", "output is not valid with notifier: remove it, and set output where the pod declares the notifier")
)]
pub struct HookAction {
    /// Command to run. Exit code 0 is success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    /// HTTP GET to the pod. Status 200 to 399 is success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HttpGetAction>,
    /// TCP connection to the pod. An accepted connection is success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TcpSocketAction>,
    /// Name of a notifier that the selected containers declare. Its timeout and output are set there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub notifier: Option<String>,
    /// Time limit in seconds per container, for all attempts together. Not valid with `notifier`. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub action_timeout_seconds: Option<i32>,
    /// Output that the PodNotification and messages keep, readable with the objects: `Tail` the last 10 KiB, `None`
    /// nothing. Not valid with `notifier`. Default: Tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}

/// What a hook's action is, once it has been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidHookAction {
    /// Written by the hook's author.
    Inline(ValidAction),
    /// Declared by the pod's author, under this name.
    Notifier(String),
}

impl HookAction {
    /// Whether its author wrote a command of their own.
    pub fn is_inline(&self) -> bool {
        self.notifier.is_none()
    }

    /// Whether its session is held until the thaw.
    pub fn holds(&self) -> bool {
        self.exec.as_ref().is_some_and(|exec| exec.hold)
    }

    /// What it does; the error says what to write instead.
    pub fn validate(&self) -> Result<ValidHookAction, String> {
        let Self { exec, http_get, tcp_socket, notifier, action_timeout_seconds, output } = self;
        let inline = Action {
            exec: exec.clone(),
            signal: None,
            http_get: http_get.clone(),
            tcp_socket: tcp_socket.clone(),
            timeout_seconds: action_timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS),
            output: *output,
        };
        match notifier {
            None => match inline.validate() {
                Ok(action) => Ok(ValidHookAction::Inline(action)),
                Err(wrong) if exec.is_none() && http_get.is_none() && tcp_socket.is_none() => {
                    Err(wrong.replace("exec, signal, httpGet and tcpSocket", "exec, httpGet, tcpSocket and notifier"))
                }
                Err(wrong) => Err(wrong.replace("timeoutSeconds", "actionTimeoutSeconds")),
            },
            Some(_) if exec.is_some() || http_get.is_some() || tcp_socket.is_some() => {
                Err("write exactly one of exec, httpGet, tcpSocket and notifier".to_owned())
            }
            Some(name) => Ok(ValidHookAction::Notifier(name.clone())),
        }
    }
}

/// `ExecuteAll`: run in every selected pod. `ExecuteOnce`: run in the oldest selected pod that is Ready. Default:
/// ExecuteAll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HookPolicy {
    /// On every one.
    #[default]
    ExecuteAll,
    /// On the oldest that is Ready.
    ExecuteOnce,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn action(json: serde_json::Value) -> HookAction {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_hook_does_one_thing() {
        let valid = action(json!({"exec": {"command": ["sync"]}, "actionTimeoutSeconds": 3})).validate().unwrap();
        let ValidHookAction::Inline(valid) = valid else { panic!("{valid:?}") };
        assert_eq!(valid.timeout.as_secs(), 3);
        assert_eq!(valid.output, Output::Tail);
        let silent = action(json!({"exec": {"command": ["dump"]}, "output": "None"})).validate().unwrap();
        assert!(matches!(silent, ValidHookAction::Inline(silent) if silent.output == Output::None));
        let named = action(json!({"notifier": "freeze"})).validate().unwrap();
        assert_eq!(named, ValidHookAction::Notifier("freeze".to_owned()));
        for (wrong, word) in [
            (json!({}), "exec, httpGet, tcpSocket and notifier"),
            (json!({"exec": {"command": ["a"]}, "notifier": "freeze"}), "exactly one"),
            (json!({"exec": {"command": ["a"]}, "actionTimeoutSeconds": 0}), "actionTimeoutSeconds: 0"),
        ] {
            assert!(action(wrong.clone()).validate().unwrap_err().contains(word), "{wrong}");
        }
    }
}
