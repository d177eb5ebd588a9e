//! `boathook notify`: one PodNotification for each pod that is meant, created and watched to its end.

mod follow;
mod report;
mod request;
mod round;
mod view;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use boathook_api::PodNotification;
use futures::{StreamExt, stream};
use kube::{Client, ResourceExt};
use tokio::time::{Instant, timeout_at};

use crate::{
    access::{Attempt, POD_NOTIFICATIONS, explained},
    cli::called_as,
    output::{
        self, Screen,
        duration::shown,
        format::{self, Format},
        plain::{count, names},
    },
    pods::{self, Choice, FoundPod, Scope},
    server,
    waiting::INTERRUPTED,
};
use follow::{End, Following};
use request::Run;
use round::{Ended, Round};
use view::{Extra, View, left_over};

/// What a person asked for.
pub(crate) struct Notify {
    pub(crate) scope: Scope,
    pub(crate) choice: Choice,
    pub(crate) notifier: String,
    pub(crate) wait: bool,
    /// Absent: all at once.
    pub(crate) parallelism: Option<usize>,
    pub(crate) timeout: Duration,
    pub(crate) format: Format,
}

impl Notify {
    pub(crate) async fn run(self, client: &Client) -> Result<ExitCode> {
        let mut screen = if self.format.is_for_programs() { Screen::aside() } else { Screen::new() };
        let found = pods::find(client, &self.scope, &self.choice).await?;
        let pods = self.meant(found, &mut screen)?;
        let run = Run::new();
        let requests = pods.iter().map(|pod| run.request(pod, &self.notifier)).collect();
        let deadline = Instant::now() + self.timeout;
        match (pods.is_empty(), self.wait) {
            (true, _) => self.print_objects(vec![]).map(|()| ExitCode::FAILURE),
            (false, false) => self.create(client, requests, deadline, &mut screen).await,
            (false, true) => self.tell(client, &run, &pods, requests, deadline, screen).await,
        }
    }

    /// Of the pods that were found those that are told. Why others are not is said.
    fn meant(&self, found: Vec<FoundPod>, screen: &mut Screen) -> Result<Vec<FoundPod>> {
        let Self { scope, choice, notifier, .. } = self;
        let (running, still): (Vec<_>, Vec<_>) = found.into_iter().partition(FoundPod::is_running);
        // A broken declaration is the controller's to refuse, on record.
        let declares = |pod: &FoundPod| pod.declared.is_err() || !pod.declaring(notifier).is_empty();
        let (meant, others): (Vec<_>, Vec<_>) = running.into_iter().partition(declares);
        if let Choice::Named(_) = choice {
            if let Some(pod) = still.first() {
                bail!("pod `{}` is not running: it is {}", pod.name, pod.phase);
            }
            if let Some(pod) = others.first() {
                bail!("pod `{}` declares no notifier `{notifier}`; {}", pod.name, declared_by(pod));
            }
        }
        if still.is_empty() && others.is_empty() && meant.is_empty() {
            screen.note(&format!("error: there are no {} {}", choice.words(), scope.place()));
            return Ok(meant);
        }
        for (left_out, one, many) in [
            (still, "is not running".to_owned(), "are not running".to_owned()),
            (others, format!("declares no notifier `{notifier}`"), format!("declare no notifier `{notifier}`")),
        ] {
            let names = names(left_out.iter().map(|pod| pod.name.as_str()));
            match left_out.len() {
                0 => {}
                1 => screen.note(&format!("not notified: 1 pod {one} ({names})")),
                several => screen.note(&format!("not notified: {several} pods {many} ({names})")),
            }
        }
        if meant.is_empty() {
            screen.note("error: no pod was notified");
        }
        Ok(meant)
    }

    /// Creates them all, and says their names.
    async fn create(
        &self,
        client: &Client,
        requests: Vec<PodNotification>,
        deadline: Instant,
        screen: &mut Screen,
    ) -> Result<ExitCode> {
        let creates = requests.into_iter().map(|request| follow::create(client.clone(), request));
        let mut creates = stream::iter(creates).buffered(follow::CREATES);
        let mut objects = Vec::new();
        loop {
            let created = timeout_at(deadline, creates.next()).await;
            let Some((key, created)) = created.with_context(|| self.late(objects.len()))? else { break };
            let scope = Scope::Namespace(key.0);
            let attempt = Attempt { verb: "create", resource: POD_NOTIFICATIONS, scope: &scope };
            let object = created.map_err(|error| explained(error, attempt))?;
            if !self.format.is_for_programs() {
                screen.line(&format!("podnotification.boathook.dev/{} created", object.name_any()))?;
            }
            objects.push(object);
        }
        self.print_objects(objects)?;
        Ok(ExitCode::SUCCESS)
    }

    fn late(&self, created: usize) -> String {
        format!("{} created only {} within {}", server::named(), count(created, "PodNotification"), shown(self.timeout))
    }

    /// Creates them, waits for them, says how it went.
    async fn tell(
        &self,
        client: &Client,
        run: &Run,
        pods: &[FoundPod],
        requests: Vec<PodNotification>,
        deadline: Instant,
        screen: Screen,
    ) -> Result<ExitCode> {
        let all_namespaces = self.scope == Scope::AllNamespaces;
        let extra = Extra { namespace: all_namespaces, wide: self.format == Format::Wide };
        let mut view = View::new(screen, extra, pods, &self.notifier);
        let mut round = Round::new(requests, self.parallelism);
        let selector = run.selector();
        let begun = Instant::now();
        let following = Following { client, scope: &self.scope, selector: &selector, deadline };
        let outcome = following.follow(&mut round, &mut view).await;
        view.screen.clear();
        let (end, ended) = outcome?;
        if ended.iter().any(report::is_unsupported) && pods.iter().any(|pod| pod.sends_signal(&self.notifier)) {
            view.screen.note(&signal_hint());
        }
        if round.ended() > 0 {
            view.screen.line(&view.tally().summary(begun.elapsed()))?;
        }
        let code = match end {
            End::AllEnded if view.tally().is_success() => ExitCode::SUCCESS,
            End::AllEnded => ExitCode::FAILURE,
            End::TimeOver => {
                view.screen.note(&format!("error: not all pods have ended within {}:", shown(self.timeout)));
                ExitCode::FAILURE
            }
            End::Interrupted => {
                view.screen.note("interrupted; still running:");
                ExitCode::from(INTERRUPTED)
            }
        };
        if end != End::AllEnded {
            left_over(&round, &selector, &self.scope).iter().for_each(|line| view.screen.note(line));
        }
        let objects = ended.into_iter().filter_map(|ended| match ended {
            Ended::Object(object) => Some(object),
            Ended::NotCreated { .. } | Ended::Deleted { .. } => None,
        });
        self.print_objects(objects.chain(round.under_way().cloned()).collect())?;
        Ok(code)
    }

    /// For `-o json|yaml`: one pod's object as it is, several in a list.
    fn print_objects(&self, mut objects: Vec<PodNotification>) -> Result<()> {
        objects.sort_by_key(|object| (object.namespace(), object.spec.pod_name.clone()));
        let values = objects.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
        let mut values = values.context("failed to write the objects")?;
        let value = match &self.choice {
            Choice::Named(_) if values.len() == 1 => format::single(values.remove(0)),
            Choice::Named(_) | Choice::Matching { .. } => format::list(values),
        };
        match self.format.text(&value)? {
            Some(text) => Ok(output::print(&text)?),
            None => Ok(()),
        }
    }
}

/// What to do when an executor cannot send signals.
fn signal_hint() -> String {
    let boathook = called_as();
    format!(
        "hint: notifier signals need the node agent: restart the embedded cluster with `{boathook} up --agent`; on another \
         cluster, run `{boathook} agent` on each node and the controller with `--executor agent`"
    )
}

/// For a sentence: what a pod declares.
fn declared_by(pod: &FoundPod) -> String {
    let declared = pod.declared.as_ref().ok();
    let notifiers = declared.into_iter().flat_map(boathook_api::Declarations::iter);
    let all: Vec<_> = notifiers.map(|(container, notifier)| format!("`{}` ({container})", notifier.name)).collect();
    match all.is_empty() {
        true => "it declares no notifiers".to_owned(),
        false => format!("it declares {}", all.join(", ")),
    }
}
