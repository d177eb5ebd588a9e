//! What the admission webhooks answer: a file per webhook. Where they are asked, and about what, stands in `install`.

mod access;
mod authors;
mod pod_declarations;

use std::sync::Arc;

use boathook_install::webhooks::{AUTHORS, DECLARATION_CHANGES, POD_DECLARATIONS};
use boathook_runtime::webhook::Reviews;
use kube::Client;

pub use access::{Access, Error};

/// All of them.
pub async fn reviews(client: Client) -> Result<Reviews, Error> {
    let access = Arc::new(Access::new(client).await?);
    let reviews = Reviews::default()
        .on(AUTHORS, move |ask| {
            let access = Arc::clone(&access);
            async move { authors::review(&access, &ask).await }
        })
        .on(POD_DECLARATIONS, |ask| async move { pod_declarations::review_new_pod(&ask) })
        .on(DECLARATION_CHANGES, |ask| async move { pod_declarations::review_change(&ask) });
    Ok(reviews)
}

#[cfg(test)]
mod test_asks;
