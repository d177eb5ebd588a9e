//! `pods/NAME/exec`, `attach` and `log`: into a container, and what it said.

use http::Response;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Call;
use crate::answer::{self, Body};
use crate::channels;
use crate::object;
use crate::sessions::{Command, LogRange};
use crate::status::{Result, Status};

/// The protocols that are spoken, the best first: v5 can close a stream, v4 cannot.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", channels::V4];

impl Call {
    /// Opens the streams, then the session: what goes wrong with it is told on the error channel, as by a real node.
    pub(super) fn open_session(&mut self) -> Result<Response<Body>> {
        let pod = self.stored()?.object;
        let container = self.container_of(&pod)?;
        let attach = self.target.subresource == "attach";
        let argv = if attach { Vec::new() } else { self.query.all("command").to_vec() };
        if !attach && argv.is_empty() {
            return Err(Status::bad_request("you must specify at least one command for the container"));
        }
        let command = Command { argv, stdin: self.query.is_set("stdin"), tty: self.query.is_set("tty") };
        let Some((upgrade, key)) = self.upgrade.take() else {
            return Err(Status::bad_request("Upgrade request required"));
        };
        let protocol = channels::choose(&PROTOCOLS, &self.protocols).ok_or_else(|| {
            Status::bad_request(format!("none of the client's protocols is served: use one of {PROTOCOLS:?}"))
        })?;
        let sessions = self.api.sessions()?;
        let opening = sessions.open(&pod, &container, command);
        channels::switch(upgrade, &key, protocol, opening)
    }

    pub(super) fn log(&self) -> Result<Response<Body>> {
        let since_seconds = self.query.number::<i64>("sinceSeconds")?;
        let since_time = match self.query.get("sinceTime") {
            "" => None,
            text => Some(text.parse::<Timestamp>().map_err(Status::bad_request_of)?),
        };
        let since = match since_seconds {
            Some(seconds) => self.api.now().saturating_sub(SignedDuration::from_secs(seconds)).ok(),
            None => since_time,
        };
        let range = LogRange {
            previous: self.query.is_set("previous"),
            follow: self.query.is_set("follow"),
            timestamps: self.query.is_set("timestamps"),
            since,
            tail: self.query.number("tailLines")?,
            limit_bytes: self.query.number("limitBytes")?,
        };
        let pod = self.stored()?.object;
        let container = self.container_of(&pod)?;
        let log = self.api.sessions()?.log(&pod, &container, range)?;
        Ok(answer::stream("text/plain", log))
    }

    /// The container that the query names, or the only one there is.
    fn container_of(&self, pod: &Value) -> Result<String> {
        let named = |list: &str| {
            let containers = pod.pointer(list).and_then(Value::as_array).into_iter().flatten();
            containers.map(|container| object::text(container, "/name").to_owned()).collect::<Vec<_>>()
        };
        let (containers, inits) = (named("/spec/containers"), named("/spec/initContainers"));
        let name = object::name(pod);
        match (self.query.get("container"), containers.as_slice()) {
            ("", [only]) => Ok(only.clone()),
            ("", several) => Err(Status::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                several.join(" ")
            ))),
            (wanted, _) if containers.iter().chain(&inits).any(|known| known == wanted) => Ok(wanted.to_owned()),
            (wanted, _) => Err(Status::bad_request(format!("container {wanted} is not valid for pod {name}"))),
        }
    }
}
