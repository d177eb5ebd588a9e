//! Actions in a few words, as `kubectl describe` has them.

use boathook_api::{
    HookAction, HttpGetAction, TcpSocketAction,
    action::{Deed, Output, ValidAction},
    hook_action::ValidHookAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{
    duration::shown,
    plain::{command, one_line},
};

pub(crate) fn deed_text(deed: &Deed) -> String {
    match deed {
        Deed::Exec(exec) => command(&exec.command),
        Deed::Signal(signal) => format!("signal {signal}"),
        Deed::HttpGet(get) => get_text(get),
        Deed::TcpSocket(socket) => socket_text(socket),
    }
}

/// What a hook does, and how long it may take.
pub(crate) fn hook_action_text(action: &HookAction) -> String {
    match action.validate() {
        Ok(ValidHookAction::Notifier(name)) => format!("notifier {}", one_line(&name)),
        Ok(ValidHookAction::Inline(ValidAction { deed, timeout, output })) => {
            let output = if output == Output::None { ", output not kept" } else { "" };
            format!("{} (at most {}{output})", deed_text(&deed), shown(timeout))
        }
        Err(wrong) => format!("<invalid>: {}", one_line(&wrong)),
    }
}

fn get_text(get: &HttpGetAction) -> String {
    let host = get.host.as_deref().unwrap_or_default();
    let path = get.path.as_deref().unwrap_or("/");
    one_line(&format!("http-get {host}:{}{path}", port_text(&get.port)))
}

fn socket_text(socket: &TcpSocketAction) -> String {
    one_line(&format!("tcp-socket {}:{}", socket.host.as_deref().unwrap_or_default(), port_text(&socket.port)))
}

fn port_text(port: &IntOrString) -> String {
    match port {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(name) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_is_said_in_a_line() {
        let text = |action| hook_action_text(&serde_json::from_value(action).unwrap());
        assert_eq!(text(json!({"exec": {"command": ["sh", "-c", "sync; sync"]}})), "sh -c 'sync; sync' (at most 10s)");
        let get = json!({"httpGet": {"port": 80, "path": "/freeze"}, "actionTimeoutSeconds": 90});
        assert_eq!(text(get), "http-get :80/freeze (at most 1m30s)");
        assert_eq!(text(json!({"tcpSocket": {"port": "db"}})), "tcp-socket :db (at most 10s)");
        let silent = json!({"exec": {"command": ["dump"]}, "output": "None"});
        assert_eq!(text(silent), "dump (at most 10s, output not kept)");
        assert_eq!(text(json!({"notifier": "freeze"})), "notifier freeze");
        assert!(text(json!({})).starts_with("<invalid>: write exactly one of"));
    }
}
