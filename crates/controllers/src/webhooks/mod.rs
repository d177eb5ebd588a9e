//! What the admission webhooks answer: a file per webhook. Where they are asked, and about what, stands in `install`.

mod access;
mod authors;
mod pod_declarations;
mod volume_snapshots;

use std::sync::Arc;

use boathook_install::webhooks::{AUTHORS, DECLARATION_CHANGES, POD_DECLARATIONS, VOLUME_SNAPSHOTS};
use boathook_runtime::webhook::Reviews;
use kube::Client;

use access::Access;
pub use access::{Error, Right};
pub use authors::rights_to_write;
use volume_snapshots::Door;
pub use volume_snapshots::{fits, intended, seconds_for_hooks};

/// All of them.
pub async fn reviews(client: Client) -> Result<Reviews, Error> {
    let access = Arc::new(Access::new(client.clone()).await?);
    let door = Arc::new(Door::new(client, Arc::clone(&access)));
    let reviews = Reviews::default()
        .on(AUTHORS, move |ask| {
            let access = Arc::clone(&access);
            async move { authors::review(&access, &ask).await }
        })
        .on(POD_DECLARATIONS, |ask| async move { pod_declarations::review_new_pod(&ask) })
        .on(DECLARATION_CHANGES, |ask| async move { pod_declarations::review_change(&ask) })
        .on_by_when(VOLUME_SNAPSHOTS, move |ask, by_when| {
            let door = Arc::clone(&door);
            async move { door.review(&ask, by_when).await }
        });
    Ok(reviews)
}

#[cfg(test)]
mod test_asks;
