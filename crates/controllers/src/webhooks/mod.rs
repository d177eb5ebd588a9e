//! What the admission webhooks answer: a file per webhook. Where they are asked, and about what, stands in `install`.

mod inline_actions;
mod pod_declarations;

use std::sync::Arc;

use boathook_install::webhooks::{DECLARATION_CHANGES, INLINE_ACTIONS, POD_DECLARATIONS};
use boathook_runtime::webhook::Reviews;
use kube::Client;

pub use inline_actions::{Error, InlineActions};

/// All of them.
pub async fn reviews(client: Client) -> Result<Reviews, Error> {
    let inline_actions = Arc::new(InlineActions::new(client).await?);
    let reviews = Reviews::default()
        .on(INLINE_ACTIONS, move |ask| {
            let inline_actions = Arc::clone(&inline_actions);
            async move { inline_actions.review(&ask).await }
        })
        .on(POD_DECLARATIONS, |ask| async move { pod_declarations::review_new_pod(&ask) })
        .on(DECLARATION_CHANGES, |ask| async move { pod_declarations::review_change(&ask) });
    Ok(reviews)
}

#[cfg(test)]
mod test_asks;
