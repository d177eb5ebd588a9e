//! The effects of a decision, one at a time.

use boathook_api::{Notification, PodNotification};
use boathook_decide::notification::Effect;
use boathook_runtime::{Classified, ErrorClass, in_time};
use kube::{Api, ResourceExt, api::PostParams};
use snafu::{ResultExt, Snafu, ensure};

use super::Controller;

#[derive(Debug, Snafu)]
pub enum ActError {
    #[snafu(display("failed to create PodNotification `{name}`"))]
    Create { name: String, source: kube::Error },
    #[snafu(display("failed to write the status of Notification `{name}`"))]
    Status { name: String, source: kube::Error },
    #[snafu(display("the lease was lost: the new leader continues"))]
    LeaseLost,
}

impl Classified for ActError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Create { source, .. } | Self::Status { source, .. } => source.class(),
            Self::LeaseLost => ErrorClass::Transient,
        }
    }
}

pub(super) async fn act(controller: &Controller, object: &Notification, effects: Vec<Effect>) -> Result<(), ActError> {
    let namespace = object.namespace().unwrap_or_default();
    for effect in effects {
        // Asked again before each: the writes before may have taken long.
        ensure!(controller.lease.leads(), LeaseLostSnafu);
        match effect {
            Effect::CreateChild(child) => {
                let api: Api<PodNotification> = Api::namespaced(controller.client.clone(), &namespace);
                let name = child.name_any();
                match in_time(api.create(&PostParams::default(), &child)).await {
                    Ok(_) => {}
                    // Its name is that of this object and that pod: it is there already.
                    Err(error) if error.class() == ErrorClass::AlreadyExists => {}
                    Err(error) => {
                        // It may be there all the same: nobody knows until the watch tells.
                        controller.made.remember(*child);
                        return Err(error).context(CreateSnafu { name });
                    }
                }
                controller.made.remember(*child);
            }
            Effect::WriteStatus(status) => {
                let api: Api<Notification> = Api::namespaced(controller.client.clone(), &namespace);
                let (name, next) = (object.name_any(), Notification { status: Some(*status), ..object.clone() });
                in_time(api.replace_status(&name, &PostParams::default(), &next))
                    .await
                    .context(StatusSnafu { name })?;
            }
        }
    }
    Ok(())
}
