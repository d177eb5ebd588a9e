//! What to do: exactly one of exec, signal, HTTP GET and TCP connect, with a time limit.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Signal, names};

/// An action written by the caller, who needs the right to `create pods/exec` in the namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.exec), has(self.signal), has(self.httpGet), has(self.tcpSocket)].filter(x, x).size() == 1",
    "write exactly one of exec, signal, httpGet and tcpSocket"
))]
pub struct Action {
    /// Command to run. Exit code 0 is success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    /// Linux signal for the container's first process, for example SIGHUP. Requires the node agent; KILL, STOP and TERM
    /// also its option `--allow-signals`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// HTTP GET to the pod. Status 200 to 399 is success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HttpGetAction>,
    /// TCP connection to the pod. An accepted connection is success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TcpSocketAction>,
    /// Time limit in seconds, for all attempts together. Default: 10.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: i32,
    /// Output that the status and messages keep, readable with the object: `Tail` the last 10 KiB, `None` nothing.
    /// Default: Tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}

/// How much of an action's output is kept: the output may hold secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Output {
    None,
    #[default]
    Tail,
}

impl Output {
    /// What may be shown of this output.
    pub fn shown(self, output: String) -> String {
        match self {
            Self::None => String::new(),
            Self::Tail => output,
        }
    }

    /// As objects have it: the default is not written.
    pub fn written(self) -> Option<Self> {
        match self {
            Self::None => Some(self),
            Self::Tail => None,
        }
    }
}

/// Runs a command in the container: an argument list, never a line for a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecAction {
    /// Program and arguments; no shell expands them.
    #[schemars(length(min = 1), inner(regex(pattern = names::WORD)))]
    pub command: Vec<String>,
    /// Keeps the command running until the undo (a held session). It succeeds when it prints the line `READY`; the undo
    /// writes the line `RELEASE` to its stdin and expects exit code 0. It must exit when its stdin closes. Valid in
    /// `action` of a PodNotification with `undo`, and in `preAction`. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
}

/// An HTTP GET to the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpGetAction {
    /// Port number, or name of a port of the container.
    pub port: IntOrString,
    /// URL path. Default: `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Host to connect to. Default: the pod's IP address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `HTTP` or `HTTPS`. Certificates are not verified, as in a Kubernetes probe. Default: HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// Request headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_headers: Option<Vec<HttpHeader>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Scheme {
    #[default]
    Http,
    Https,
}

/// One request header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpHeader {
    /// Header name.
    pub name: String,
    /// Header value.
    pub value: String,
}

/// A TCP connection to the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TcpSocketAction {
    /// Port number, or name of a port of the container.
    pub port: IntOrString,
    /// Host to connect to. Default: the pod's IP address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// The default of `timeoutSeconds` of an action that a caller writes.
pub const DEFAULT_TIMEOUT_SECONDS: i32 = 10;

fn default_timeout() -> i32 {
    DEFAULT_TIMEOUT_SECONDS
}

/// The one thing that an action does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Exec(ExecAction),
    Signal(Signal),
    HttpGet(HttpGetAction),
    TcpSocket(TcpSocketAction),
}

/// An action that has been looked at: it does one thing, within a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidAction {
    pub deed: Deed,
    pub timeout: Duration,
    pub output: Output,
}

impl Action {
    /// Whether it is a command whose session is held until the undo.
    pub fn holds(&self) -> bool {
        self.exec.as_ref().is_some_and(|exec| exec.hold)
    }

    /// What it does; the error says what to write instead.
    pub fn validate(&self) -> Result<ValidAction, String> {
        let Self { exec, signal, http_get, tcp_socket, timeout_seconds, output } = self;
        let deed = match (exec, signal, http_get, tcp_socket) {
            (Some(exec), None, None, None) => {
                if exec.command.first().is_none_or(String::is_empty) {
                    return Err("exec.command: names no program".to_owned());
                }
                names::words("exec.command", &exec.command)?;
                Deed::Exec(exec.clone())
            }
            (None, Some(signal), None, None) => Deed::Signal(*signal),
            (None, None, Some(get), None) => Deed::HttpGet(get.clone()),
            (None, None, None, Some(socket)) => Deed::TcpSocket(socket.clone()),
            _ => return Err("write exactly one of exec, signal, httpGet and tcpSocket".to_owned()),
        };
        let timeout = u64::try_from(*timeout_seconds).ok().filter(|seconds| *seconds >= 1);
        let timeout = timeout.ok_or_else(|| format!("timeoutSeconds: {timeout_seconds} is less than 1"))?;
        Ok(ValidAction { deed, timeout: Duration::from_secs(timeout), output: output.unwrap_or_default() })
    }
}

impl From<&ValidAction> for Action {
    fn from(valid: &ValidAction) -> Self {
        let timeout_seconds = i32::try_from(valid.timeout.as_secs()).unwrap_or(i32::MAX);
        let output = valid.output.written();
        let mut action = Self { exec: None, signal: None, http_get: None, tcp_socket: None, timeout_seconds, output };
        match valid.deed.clone() {
            Deed::Exec(exec) => action.exec = Some(exec),
            Deed::Signal(signal) => action.signal = Some(signal),
            Deed::HttpGet(get) => action.http_get = Some(get),
            Deed::TcpSocket(socket) => action.tcp_socket = Some(socket),
        }
        action
    }
}

impl ValidAction {
    /// Whether it is a command whose session is held until the undo.
    pub fn holds(&self) -> bool {
        matches!(&self.deed, Deed::Exec(exec) if exec.hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(json: serde_json::Value) -> Action {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn an_action_does_exactly_one_thing_for_at_least_a_second() {
        let valid = action(serde_json::json!({"exec": {"command": ["sync"]}})).validate().unwrap();
        assert_eq!(valid.timeout, Duration::from_secs(10));
        assert_eq!(action(serde_json::to_value(Action::from(&valid)).unwrap()).validate().unwrap(), valid);
        for (wrong, word) in [
            (serde_json::json!({}), "exactly one"),
            (serde_json::json!({"exec": {"command": ["a"]}, "signal": "HUP"}), "exactly one"),
            (serde_json::json!({"exec": {"command": []}}), "program"),
            (serde_json::json!({"signal": "HUP", "timeoutSeconds": 0}), "less than 1"),
            (serde_json::json!({"exec": {"command": ["a", "\0"]}}), "exec.command[1]: contains a NUL"),
        ] {
            assert!(action(wrong.clone()).validate().unwrap_err().contains(word), "{wrong}");
        }
    }
    #[test]
    fn opt_out_of_output_survives_validation() {
        for (written, output) in [(None, Output::Tail), (Some("Tail"), Output::Tail), (Some("None"), Output::None)] {
            let mut json = serde_json::json!({"exec": {"command": ["dump"]}});
            if let Some(written) = written {
                json["output"] = written.into();
            }
            let valid = action(json).validate().unwrap();
            assert_eq!(valid.output, output);
            assert_eq!(Action::from(&valid).output, output.written());
        }
        let wrong = serde_json::json!({"exec": {"command": ["dump"]}, "output": "Head"});
        let wrong = serde_json::from_value::<Action>(wrong).unwrap_err().to_string();
        assert!(wrong.contains("`Head`") && wrong.contains("`None` or `Tail`"), "{wrong}");
        assert_eq!(Output::None.shown("secret".to_owned()), "");
        assert_eq!(Output::Tail.shown("well".to_owned()), "well");
    }
}
