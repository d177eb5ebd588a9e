//! `boathook notifiers`: what pods declare, and what is wrong with declarations.

use std::time::Duration;

use anyhow::Result;
use boathook_api::{
    Notifier, Probe,
    action::{Deed, ValidAction},
};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    output::{
        self, Screen,
        action::deed_text,
        duration::shown,
        format::Format,
        plain::{command, cut, one_line},
        table::{NONE, lines},
    },
    pods::{self, Choice, FoundPod, Scope},
};

/// A longer command is cut, unless the table is wide.
const LONGEST_COMMAND: usize = 60;

/// Where a declaration cannot be read.
const INVALID: &str = "<invalid>";

/// What a person asked for.
pub(crate) struct Notifiers {
    pub(crate) scope: Scope,
    pub(crate) choice: Choice,
    pub(crate) format: Format,
}

impl Notifiers {
    pub(crate) async fn run(self, client: &Client) -> Result<()> {
        let mut screen = Screen::new();
        let found = pods::find(client, &self.scope, &self.choice).await?;
        let items = json!({"items": found.iter().flat_map(objects).collect::<Vec<_>>()});
        match self.format.text(&items)? {
            Some(text) => output::print(&text)?,
            None => self.print_table(&found, &mut screen)?,
        }
        for pod in &found {
            if let Err(mistake) = &pod.declared {
                let (namespace, name) = (&pod.namespace, &pod.name);
                screen.warn(&format!("pod `{namespace}/{name}`: {}", one_line(&mistake.to_string())));
            }
        }
        Ok(())
    }

    fn print_table(&self, found: &[FoundPod], screen: &mut Screen) -> Result<()> {
        let rows: Vec<_> = found.iter().flat_map(|pod| self.rows(pod)).collect();
        if rows.is_empty() {
            screen.note(&match &self.choice {
                Choice::Named(name) => format!("pod `{name}` declares no notifiers"),
                matching @ Choice::Matching { .. } => {
                    format!("no {} declare notifiers {}", matching.words(), self.scope.place())
                }
            });
            return Ok(());
        }
        let header = ["NAMESPACE", "POD", "CONTAINER", "NOTIFIER", "HANDLER", "TIMEOUT", "PROBE"].map(str::to_owned);
        let all: Vec<_> = std::iter::once(header.into()).chain(rows).map(|row| self.without_namespace(row)).collect();
        for line in lines(&all) {
            screen.line(&line)?;
        }
        Ok(())
    }

    fn without_namespace(&self, mut row: Vec<String>) -> Vec<String> {
        match self.scope {
            Scope::AllNamespaces => row,
            Scope::Namespace(_) => row.split_off(1),
        }
    }

    fn rows(&self, pod: &FoundPod) -> Vec<Vec<String>> {
        let row = |container: &str, notifier: &str, handler: String, timeout: String, probe: String| {
            let [container, notifier] = [container, notifier].map(str::to_owned);
            vec![pod.namespace.clone(), pod.name.clone(), container, notifier, handler, timeout, probe]
        };
        let of_notifier = |(container, notifier): (&str, &Notifier)| {
            let Notifier { name, action: ValidAction { deed, timeout, output: _ }, probe } = notifier;
            let probe = probe.as_ref().map_or_else(|| NONE.to_owned(), |probe| self.fitting(probe_text(probe)));
            row(container, name, self.fitting(deed_text(deed)), shown(*timeout), probe)
        };
        match &pod.declared {
            Ok(declared) => declared.iter().map(of_notifier).collect(),
            Err(mistake) => {
                let entry = mistake.entry.as_ref().and_then(|(_, name)| name.as_deref()).unwrap_or(INVALID);
                let none = || NONE.to_owned();
                vec![row(&mistake.container, &one_line(entry), INVALID.to_owned(), none(), none())]
            }
        }
    }

    fn fitting(&self, text: String) -> String {
        match self.format {
            Format::Wide => text,
            Format::Table | Format::Json | Format::Yaml => cut(&text, LONGEST_COMMAND),
        }
    }
}

/// In the words of `kubectl describe`.
fn probe_text(probe: &Probe) -> String {
    match probe.action() {
        Ok(ValidAction { deed: Deed::Exec(exec), .. }) => format!("exec {}", command(&exec.command)),
        Ok(ValidAction { deed, .. }) => deed_text(&deed),
        // It was valid when it was read.
        Err(wrong) => wrong,
    }
}

/// For a program: each notifier as it was declared, with its defaults filled in, and where it was.
fn objects(pod: &FoundPod) -> Vec<Value> {
    let FoundPod { namespace, name: pod_name, declared, .. } = pod;
    let place = |container: &str| json!({"namespace": namespace, "pod": pod_name, "container": container});
    match declared {
        Ok(declared) => declared.iter().map(|(container, notifier)| object(place(container), notifier)).collect(),
        Err(mistake) => {
            let mut object = place(&mistake.container);
            object["mistake"] = mistake.to_string().into();
            vec![object]
        }
    }
}

fn object(mut object: Value, notifier: &Notifier) -> Value {
    let Notifier { name, action: ValidAction { deed, timeout, output }, probe } = notifier;
    object["name"] = name.as_str().into();
    object["handler"] = match deed {
        Deed::Exec(exec) => json!({"exec": exec}),
        Deed::Signal(signal) => json!({"signal": signal}),
        Deed::HttpGet(get) => json!({"httpGet": get}),
        Deed::TcpSocket(socket) => json!({"tcpSocket": socket}),
    };
    object["timeoutSeconds"] = Duration::as_secs(timeout).into();
    object["output"] = json!(output);
    if let Some(probe) = probe {
        object["probe"] = json!(probe);
    }
    object
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    const DECLARED: &str = "
- name: reload
  handler: {signal: HUP}
- name: rotate
  handler: {exec: {command: [sh, -c, 'kill -USR1 $(cat /var/run/nginx/nginx.pid) && echo rotated the log']}}
  timeoutSeconds: 90
  output: None
  probe: {httpGet: {port: 80, path: /healthz}}
";

    fn pod(declared: &str) -> FoundPod {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"namespace": "sea", "name": "web", "annotations": {"notifiers.boathook.dev/main": declared}},
            "spec": {"containers": [{"name": "main"}]},
        }))
        .unwrap();
        pod.into()
    }

    fn shown_rows(format: Format, declared: &str) -> Vec<Vec<String>> {
        let choice = Choice::Named("web".to_owned());
        Notifiers { scope: Scope::AllNamespaces, choice, format }.rows(&pod(declared))
    }

    #[test]
    fn a_notifier_is_a_row() {
        let rows = shown_rows(Format::Table, DECLARED);
        assert_eq!(rows[0], ["sea", "web", "main", "reload", "signal SIGHUP", "1s", "<none>"]);
        let cut = "sh -c 'kill -USR1 $(cat /var/run/nginx/nginx.pid) && echo...";
        assert_eq!(rows[1], ["sea", "web", "main", "rotate", cut, "1m30s", "http-get :80/healthz"]);
        assert!(shown_rows(Format::Wide, DECLARED)[1][4].ends_with("rotated the log'"));
    }

    #[test]
    fn a_broken_declaration_is_a_row_too() {
        let rows = shown_rows(Format::Table, "[{name: reload, handler: {}}]");
        assert_eq!(rows, [["sea", "web", "main", "reload", "<invalid>", "<none>", "<none>"].map(str::to_owned)]);
        let rows = shown_rows(Format::Table, "{");
        assert_eq!(rows[0][3], "<invalid>");
    }

    #[test]
    fn programs_get_what_was_declared_or_the_mistake() {
        let objects = objects(&pod(DECLARED));
        assert_eq!(objects[0]["handler"], json!({"signal": "SIGHUP"}));
        assert_eq!((&objects[1]["timeoutSeconds"], &objects[1]["pod"]), (&json!(90), &json!("web")));
        assert_eq!((&objects[0]["output"], &objects[1]["output"]), (&json!("Tail"), &json!("None")));
        assert_eq!(objects[1]["probe"]["httpGet"]["port"], 80);
        let mistake = &super::objects(&pod("{"))[0]["mistake"];
        assert!(mistake.as_str().unwrap().contains("`notifiers.boathook.dev/main`"), "{mistake}");
    }
}
