//! A notification: the pod is told to do what its author declared.

use anyhow::{Result, bail};
use boathook_api::{PodNotification, pod_notification::State};
use serde_json::json;

use super::{
    Story,
    database::{NAME, NOTIFIER},
    objects::{create, reached},
};
use crate::output::plain::one_line;

pub(super) async fn told(story: &mut Story) -> Result<String> {
    let client = story.client();
    story.teller.say(&format!("PodNotification: runs what the pod's author declared as `{NOTIFIER}`"))?;
    let spec = json!({"podName": NAME, "notifier": NOTIFIER});
    create::<PodNotification>(&client, json!({"metadata": {"name": "told"}, "spec": spec})).await?;
    let is_over = |told: &PodNotification| told.status.as_ref().is_some_and(|status| status.state.is_terminal());
    let told = story.teller.wait("telling the pod", reached(&client, "told", is_over)).await?;
    let status = told.status.unwrap_or_default();
    match status.state {
        State::Succeeded => {}
        State::New | State::Failed => bail!("{}", status.error.map(|error| error.message).unwrap_or_default()),
    }
    let said = status.containers.into_iter().find_map(|container| container.output).unwrap_or_default();
    Ok(format!("it answered: {}", one_line(said.trim())))
}
