//! The lease of a process that ended without giving it back, for a caller that knows that the process ended.

use k8s_openapi::{api::coordination::v1::Lease as Record, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{Api, Client, api::PostParams};
use snafu::{ResultExt, Snafu};

use super::{NAME, candidate};
use crate::in_time::in_time;

#[derive(Debug, Snafu)]
#[snafu(display("failed to {action} the lease `{NAME}` in namespace `{namespace}`"))]
pub struct ReleaseError {
    action: &'static str,
    namespace: String,
    source: kube::Error,
}

/// The identity of the process that holds the lease, if any does.
pub async fn holder(client: &Client, namespace: &str) -> Result<Option<String>, ReleaseError> {
    let record = read(client, namespace).await?;
    Ok(record.as_ref().and_then(candidate::holder).cloned())
}

/// Gives the lease back for this process, which must have ended: so its successor need not wait until the lease expires.
/// A lease of any other holder is not touched.
pub async fn release_of_ended(client: &Client, namespace: &str, identity: &str) -> Result<(), ReleaseError> {
    let Some(mut record) = read(client, namespace).await? else { return Ok(()) };
    if candidate::holder(&record).is_none_or(|holder| holder != identity) {
        return Ok(());
    }
    if let Some(spec) = &mut record.spec {
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
    }
    // Only in the version that was read: the holder that it had is the one that ended.
    let api: Api<Record> = Api::namespaced(client.clone(), namespace);
    let released = in_time(api.replace(NAME, &PostParams::default(), &record)).await;
    released.map(drop).context(ReleaseSnafu { action: "release", namespace })
}

async fn read(client: &Client, namespace: &str) -> Result<Option<Record>, ReleaseError> {
    let api: Api<Record> = Api::namespaced(client.clone(), namespace);
    in_time(api.get_opt(NAME)).await.context(ReleaseSnafu { action: "read", namespace })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        Clock,
        lease::{Options, candidate},
        test_cluster,
    };

    #[tokio::test]
    async fn lease_of_an_ended_holder_is_free_and_any_other_is_not_touched() {
        let client = test_cluster::client().await;
        release_of_ended(&client, "default", "ended").await.unwrap();
        assert_eq!(holder(&client, "default").await.unwrap(), None, "there is no lease");
        let (leading, lease) = candidate(client.clone(), Options::new("default", "ended"), Clock::of_the_machine());
        // Aborted, it gives nothing back.
        let leading = tokio::spawn(leading.run(std::future::pending()));
        tokio::time::timeout(Duration::from_secs(60), lease.led()).await.unwrap();
        leading.abort();
        release_of_ended(&client, "default", "another").await.unwrap();
        assert_eq!(holder(&client, "default").await.unwrap().as_deref(), Some("ended"));
        release_of_ended(&client, "default", "ended").await.unwrap();
        assert_eq!(holder(&client, "default").await.unwrap(), None);
    }
}
