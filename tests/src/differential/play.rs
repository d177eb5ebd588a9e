//! One case on one cluster: its steps in order, each giving what it saw, normalised.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use futures::{AsyncBufReadExt, TryStreamExt, io::BufReader};
use http_body_util::{BodyExt, Limited};
use hyper::{Request, Response, header};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    case::{Act, Case, Step, Variables},
    normal::Normaliser,
    record::Recording,
};
use crate::DEADLINE;

/// Past the largest list of any case.
const LARGEST_ANSWER: usize = 16 << 20;
/// Between two looks of an `until`: short against what is waited for, long against one request.
const INTERVAL: Duration = Duration::from_millis(100);

/// What the steps of a case have shown, in their order; steps that only wait show nothing.
pub struct Played {
    pub shown: Vec<Shown>,
}

pub struct Shown {
    pub step: String,
    pub outcome: Value,
    pub named_only: bool,
}

pub struct Player {
    client: Client,
    /// One without credentials.
    nobody: Client,
    variables: Variables,
    normaliser: Normaliser,
    recordings: BTreeMap<String, Recording>,
}

impl Player {
    /// `image` is one with a shell, as this cluster calls it.
    pub fn new(client: Client, nobody: Client, namespace: &str, image: &str, mut variables: Variables) -> Self {
        variables.set("ns", json!(namespace));
        variables.set("image", json!(image));
        let normaliser = Normaliser::new(namespace, image);
        Self { client, nobody, variables, normaliser, recordings: BTreeMap::new() }
    }

    /// Waits until a new namespace has what every namespace gets, which controllers make in their own time.
    pub async fn settle(&mut self) -> Result<()> {
        for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let path = format!("/api/v1/namespaces/{{ns}}/{path}");
            let step =
                Step { until: Some(path), is: [("status code".to_owned(), json!(200))].into(), ..Step::default() };
            self.step(&step).await?;
        }
        Ok(())
    }

    pub async fn play(&mut self, case: &Case) -> Result<Played> {
        let mut shown = Vec::new();
        for (index, step) in case.steps.iter().enumerate() {
            let title = format!("step {} ({})", index + 1, title(step));
            let outcome = self.step(step).await.with_context(|| title.clone())?;
            let Some(outcome) = outcome else { continue };
            let mut outcome = self.normaliser.normalise(outcome);
            if step.request.is_some() && !step.fields.is_empty() {
                outcome = fields(&outcome, &step.fields);
            }
            shown.push(Shown { step: title, outcome, named_only: step.named_only });
        }
        Ok(Played { shown })
    }

    /// Takes away what the case has made outside of its namespace.
    pub async fn clean_up(&mut self, case: &Case) -> Result<()> {
        for step in &case.finally {
            self.step(step).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<Option<Value>> {
        match step.act()? {
            Act::Request { verb, path } => {
                let answer = self.request(step, verb, path).await?;
                for (name, pointer) in &step.save {
                    let value = answer.body.pointer(pointer);
                    let value = value.with_context(|| format!("nothing at `{pointer}` of {}", answer.body))?;
                    self.variables.set(name, value.clone());
                }
                Ok(Some(answer.shown()))
            }
            Act::Watch { path, events } => self.watch(step, path, events).await.map(Some),
            Act::Until { verb, path } => self.until(step, verb, path).await.map(|()| None),
            Act::Record { path, name } => {
                let recording = Recording::start(self.client.clone(), self.variables.fill(path)).await?;
                self.recordings.insert(name.to_owned(), recording);
                Ok(None)
            }
            Act::Recorded { name } => {
                let recording = self.recordings.get(name).with_context(|| format!("no recording named `{name}`"))?;
                let objects = recording.caught_up(self.client.clone()).await?;
                // The names are in the whole objects. How many states there were is not what is compared.
                objects.iter().flatten().for_each(|state| self.normaliser.learn(state));
                Ok(Some(objects.into_iter().map(|states| project(&states, &step.fields)).collect()))
            }
        }
    }

    async fn request(&self, step: &Step, verb: &str, path: &str) -> Result<Answer> {
        let client = if step.token.is_some() { &self.nobody } else { &self.client };
        let answering = async { Answer::read(client.send(self.build(step, verb, path)?).await?).await };
        timeout(DEADLINE, answering).await.context("no answer")?
    }

    fn build(&self, step: &Step, verb: &str, path: &str) -> Result<Request<Body>> {
        let mut request = Request::builder().method(verb).uri(self.variables.fill(path).replace(' ', "%20"));
        if let Some(user) = &step.r#as {
            request = request.header("Impersonate-User", self.variables.fill(user));
        }
        for group in &step.groups {
            request = request.header("Impersonate-Group", self.variables.fill(group));
        }
        for (name, value) in &step.headers {
            request = request.header(name, self.variables.fill(value));
        }
        if let Some(token) = step.token.as_ref().filter(|token| !token.is_empty()) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.variables.fill(token)));
        }
        if let Some(accept) = &step.accept {
            request = request.header(header::ACCEPT, accept);
        }
        let body = match (&step.body, &step.text) {
            (Some(value), None) => serde_json::to_vec(&self.variables.fill_value(value))?,
            (None, Some(text)) => self.variables.fill(text).into_bytes(),
            (None, None) => return Ok(request.body(Body::empty())?),
            (Some(_), Some(_)) => bail!("a request has a body or a text"),
        };
        Ok(request.header(header::CONTENT_TYPE, step.content_type()).body(Body::from(body))?)
    }

    async fn watch(&self, step: &Step, path: &str, most: usize) -> Result<Value> {
        let deadline = Instant::now() + DEADLINE;
        let response = timeout_at(deadline, self.client.send(self.build(step, "GET", path)?)).await??;
        if !response.status().is_success() {
            return Ok(Answer::read(response).await?.shown());
        }
        let mut lines = lines(response);
        let mut events = Vec::new();
        while events.len() < most {
            let line = timeout_at(deadline, lines.try_next()).await;
            let line = line.map_err(|_| anyhow!("the watch showed only {}", Value::Array(events.clone())))?;
            let Some(line) = line? else { break };
            events.push(serde_json::from_str::<Value>(&line).with_context(|| format!("not an event: {line}"))?);
        }
        Ok(json!({ "events": events }))
    }

    async fn until(&self, step: &Step, verb: &str, path: &str) -> Result<()> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let answer = self.request(step, verb, path).await?;
            let holds = step.is.iter().all(|(pointer, wanted)| match pointer.as_str() {
                "status code" => json!(answer.status) == *wanted,
                _ => answer.body.pointer(pointer).unwrap_or(&Value::Null) == &self.variables.fill_value(wanted),
            });
            if holds {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("waited {DEADLINE:?} in vain until {:?}; seen last: {} {}", step.is, answer.status, answer.body);
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

struct Answer {
    status: u16,
    kind: Option<String>,
    warnings: Vec<String>,
    body: Value,
}

impl Answer {
    async fn read(response: Response<Body>) -> Result<Self> {
        let text = |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let status = response.status().as_u16();
        let kind = response.headers().get(header::CONTENT_TYPE).map(text);
        let warnings = response.headers().get_all(header::WARNING).iter().map(text).collect();
        let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
        let body = body.map_err(anyhow::Error::from_boxed)?.to_bytes();
        let body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
        Ok(Self { status, kind, warnings, body })
    }

    fn shown(self) -> Value {
        json!({"status": self.status, "contentType": self.kind, "warnings": self.warnings, "body": self.body})
    }
}

/// The lines of a streamed answer.
pub(super) fn lines(response: Response<Body>) -> impl futures::Stream<Item = std::io::Result<String>> + Unpin {
    let bytes = response.into_body().into_data_stream().map_err(std::io::Error::other);
    BufReader::new(bytes.into_async_read()).lines()
}

fn title(step: &Step) -> String {
    let Step { request, watch, until, record, recorded, .. } = step;
    let named = [("", request), ("watch ", watch), ("until ", until), ("record ", record), ("recorded ", recorded)];
    named.iter().filter_map(|(verb, what)| what.as_ref().map(|what| format!("{verb}{what}"))).collect()
}

/// The fields of each state, each change once.
fn project(states: &[Value], fields: &[String]) -> Value {
    let mut rows: Vec<Value> = states.iter().map(|state| self::fields(state, fields)).collect();
    rows.dedup();
    Value::Array(rows)
}

fn fields(value: &Value, fields: &[String]) -> Value {
    fields.iter().map(|field| (field.clone(), at(value, field))).collect()
}

/// What is at a pointer in which `*` stands for every element of a list and `key=value` for the one that has it.
fn at(value: &Value, pointer: &str) -> Value {
    let Some(rest) = pointer.strip_prefix('/') else { return value.clone() };
    let (segment, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let found = match (value, segment.split_once('=')) {
        (Value::Array(items), None) if segment == "*" => return items.iter().map(|item| at(item, below)).collect(),
        (Value::Array(items), Some((key, wanted))) => items.iter().find(|item| item[key] == wanted),
        _ => value.pointer(&format!("/{segment}")),
    };
    found.map_or(Value::Null, |found| at(found, below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projection_shows_each_change_once() {
        let state = |size: u64, reason: &str| json!({"spec": {"replicas": size}, "status": {"conditions": [{"reason": reason}]}});
        let states = [state(1, "A"), state(1, "A"), state(2, "A"), state(2, "B")];
        let fields = ["/spec/replicas".to_owned(), "/status/conditions/*/reason".to_owned()];
        let row = |size: u64, reason: &str| json!({"/spec/replicas": size, "/status/conditions/*/reason": [reason]});
        assert_eq!(project(&states, &fields), json!([row(1, "A"), row(2, "A"), row(2, "B")]));
    }

    #[test]
    fn an_element_is_found_by_its_key() {
        let value = json!({"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]});
        assert_eq!(at(&value, "/conditions/type=B/status"), json!("False"));
        assert_eq!(at(&value, "/conditions/type=C/status"), Value::Null);
        assert_eq!(at(&value, "/conditions/*/type"), json!(["A", "B"]));
        assert_eq!(at(&json!({"a/b": 1}), "/a~1b"), json!(1));
    }
}
