//! The controller that an earlier `boathook up` of this data directory ran.
//!
//! Each `up` notes the identity of its controller in the data directory. The next one has the lock of the store there, so
//! the process that wrote the note has ended, and so has its controller: a lease that it holds is given back. The lease of any
//! other holder, such as a `boathook controller` beside the cluster, is not touched.

use std::{fs, io, path::Path};

use anyhow::{Context, Result};
use boathook_runtime::lease;
use kube::Client;

use super::files::{CONTROLLER, write_private};

/// Releases the lease of the controller that the note in `dir` names, then notes this one. The caller has the store's lock.
pub(super) async fn succeed(dir: &Path, client: &Client, namespace: &str, identity: &str) -> Result<()> {
    let note = dir.join(CONTROLLER);
    match fs::read_to_string(&note) {
        Ok(former) => lease::release_of_ended(client, namespace, former.trim()).await?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("failed to read `{}`", note.display())),
    }
    write_private(&note, &format!("{identity}\n"))
}

#[cfg(test)]
mod tests {
    use boathook_api::words::LEASE;
    use boathook_apiserver::{
        access::{Tokens, User},
        api::Api as Server,
        server,
        store::Store,
    };
    use k8s_openapi::api::coordination::v1::Lease;
    use kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    };
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn lease_of_the_former_up_is_released_and_that_of_another_controller_is_not() {
        let admin = User::authenticated("admin", &["system:masters"]);
        let tokens = Tokens::new(&[7; 32], [("admin".to_owned(), admin)]);
        let client = server::client(Server::new(Store::in_memory(), tokens).await.unwrap(), "admin", "test");
        let dir = std::env::temp_dir().join(format!("boathook-former-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let leases: Api<Lease> = Api::default_namespaced(client.clone());
        let held = json!({"metadata": {"name": LEASE}, "spec": {"holderIdentity": "first"}});
        leases.create(&PostParams::default(), &serde_json::from_value(held).unwrap()).await.unwrap();
        let holder = async || lease::holder(&client, "default").await.unwrap();

        succeed(&dir, &client, "default", "first").await.unwrap();
        assert_eq!(holder().await.as_deref(), Some("first"), "no note says that it ended");
        succeed(&dir, &client, "default", "second").await.unwrap();
        assert_eq!(holder().await, None);
        let other = Patch::Merge(json!({"spec": {"holderIdentity": "other"}}));
        leases.patch(LEASE, &PatchParams::default(), &other).await.unwrap();
        succeed(&dir, &client, "default", "third").await.unwrap();
        assert_eq!(holder().await.as_deref(), Some("other"));
        fs::remove_dir_all(dir).unwrap();
    }
}
