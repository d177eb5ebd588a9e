//! Namespaces of ended scenarios, which go while other scenarios run: the namespace controller of a real cluster lets 5 s
//! pass before it begins, and then waits for the grace periods of pods.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use kube::Client;
use tokio::task::JoinHandle;

use crate::{namespace, scenario::explain};

#[derive(Clone, Default)]
pub struct Departures(Arc<Mutex<Vec<JoinHandle<Result<()>>>>>);

impl Departures {
    /// Begins to delete the namespace of this scenario.
    pub fn begin(&self, client: Client, scenario: &str, namespace: String) {
        let what = format!("the namespace of `{scenario}` stays");
        let going = tokio::spawn(async move { namespace::destroy(&client, &namespace).await.context(what) });
        self.lock().push(going);
    }

    /// Waits until all are gone.
    pub async fn all_gone(&self) -> Result<()> {
        let going = std::mem::take(&mut *self.lock());
        let mut outcome = Ok(());
        for namespace in going {
            outcome = outcome.and(namespace.await.context("a deletion panicked").and_then(|gone| gone));
        }
        outcome
    }

    /// The same; prints what stays, and returns whether all are gone.
    pub async fn report(&self) -> bool {
        match self.all_gone().await {
            Ok(()) => true,
            Err(error) => {
                eprintln!("{}", explain(&error));
                false
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<Result<()>>>> {
        // A list is whole between two pushes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
