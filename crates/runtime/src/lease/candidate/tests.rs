use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::*;
use crate::{
    Clock,
    lease::candidate,
    test_cluster::{Trouble, client, disturbed},
};

/// A clock that goes when it is told to.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn go_on(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let hand = self.clone();
        Clock::new(move || Duration::from_secs(1000 + hand.0.load(Ordering::SeqCst)))
    }
}

fn contender(client: &Client, identity: &str, hand: &Hand) -> (Candidate, Lease) {
    candidate(client.clone(), Options::new("default", identity), hand.clock())
}

#[tokio::test]
async fn the_second_waits_until_it_has_seen_no_renewal_for_the_leases_duration() {
    let (client, hand) = (client().await, Hand::default());
    let (mut first, first_lease) = contender(&client, "first", &hand);
    let (mut second, second_lease) = contender(&client, "second", &hand);
    first.step().await.unwrap();
    second.step().await.unwrap();
    assert_eq!((first_lease.leadership(), second_lease.leadership()), (Some(Leadership::Leader), None));
    // Renewals are seen as such.
    for _ in 0..10 {
        hand.go_on(3);
        first.step().await.unwrap();
        second.step().await.unwrap();
        assert!(first_lease.leads() && !second_lease.leads());
    }
    // From here on the first is silent. It knows before the second does.
    hand.go_on(12);
    assert_eq!(first_lease.leadership(), Some(Leadership::ThawOnly));
    second.step().await.unwrap();
    assert!(!second_lease.leads());
    hand.go_on(3);
    second.step().await.unwrap();
    assert!(second_lease.leads());
    // The first finds it taken, and wins it again when the second is silent.
    first.step().await.unwrap();
    assert_eq!(first_lease.leadership(), Some(Leadership::ThawOnly));
    hand.go_on(15);
    first.step().await.unwrap();
    assert_eq!(first_lease.leadership(), Some(Leadership::Leader));
    assert_eq!(second_lease.leadership(), Some(Leadership::ThawOnly));
    let record = first.api.get(NAME).await.unwrap().spec.unwrap();
    assert_eq!((record.lease_transitions, record.lease_duration_seconds), (Some(2), Some(15)));
}

#[tokio::test]
async fn who_wakes_up_past_its_time_does_not_lead_before_it_has_asked_anyone() {
    let (client, hand) = (client().await, Hand::default());
    let (mut first, lease) = contender(&client, "first", &hand);
    first.step().await.unwrap();
    let mut changes = lease.changes();
    assert_eq!(*changes.borrow_and_update(), Some(Leadership::Leader));
    hand.go_on(3600);
    assert_eq!(lease.leadership(), Some(Leadership::ThawOnly));
    // Nobody took it meanwhile, so it leads again.
    first.step().await.unwrap();
    assert!(lease.leads());
}

#[tokio::test]
async fn a_renewal_counts_from_its_beginning_however_long_it_takes() {
    let (client, hand) = (client().await, Hand::default());
    let slow = {
        let (client, hand) = (client.clone(), hand.clone());
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (client, hand) = (client.clone(), hand.clone());
            async move {
                let answer = client.send(request).await?;
                hand.go_on(7);
                Ok::<_, tower::BoxError>(answer)
            }
        });
        Client::new(service, "default")
    };
    let (mut first, lease) = contender(&slow, "first", &hand);
    first.step().await.unwrap();
    // It was read for 7 s, then created for 7 s; 5 of the 12 are left.
    assert!(lease.leads());
    hand.go_on(5);
    assert!(!lease.leads());
}

#[tokio::test]
async fn a_lease_given_back_is_taken_at_once() {
    let (client, hand) = (client().await, Hand::default());
    let (mut first, first_lease) = contender(&client, "first", &hand);
    let (mut second, second_lease) = contender(&client, "second", &hand);
    first.step().await.unwrap();
    second.step().await.unwrap();
    first.release().await.unwrap();
    assert_eq!(first_lease.leadership(), Some(Leadership::ThawOnly));
    second.step().await.unwrap();
    assert!(second_lease.leads());
    // Who no longer has it gives nothing back.
    first.step().await.unwrap();
    first.release().await.unwrap();
    assert_eq!(holder(&second.api.get(NAME).await.unwrap()).unwrap(), "second");
}

#[tokio::test]
async fn lost_answers_and_requests_are_made_good_by_the_next_look() {
    let (client, hand, trouble) = (client().await, Hand::default(), Arc::new(Trouble::default()));
    let (mut first, lease) = contender(&disturbed(client.clone(), Arc::clone(&trouble)), "first", &hand);
    let lose = |counter: &std::sync::atomic::AtomicUsize| counter.store(1, Ordering::SeqCst);
    // The create has happened, but nobody knows: it does not lead yet.
    lose(&trouble.lost_answers);
    first.step().await.unwrap_err();
    assert_eq!(lease.leadership(), None);
    first.step().await.unwrap();
    assert!(lease.leads());
    // A renewal that has happened, and one that has not.
    lose(&trouble.lost_answers);
    first.step().await.unwrap_err();
    lose(&trouble.lost_requests);
    first.step().await.unwrap_err();
    hand.go_on(11);
    assert!(lease.leads());
    first.step().await.unwrap();
    hand.go_on(11);
    assert!(lease.leads());
    // Given back in spite of a renewal that was not known.
    lose(&trouble.lost_answers);
    first.step().await.unwrap_err();
    first.release().await.unwrap();
    assert_eq!(holder(&first.api.get(NAME).await.unwrap()), None);
}

#[tokio::test]
async fn a_lease_that_someone_deleted_is_made_again_and_one_that_someone_labelled_is_not_renewed_by_that() {
    let (client, hand) = (client().await, Hand::default());
    let (mut first, lease) = contender(&client, "first", &hand);
    let (mut second, second_lease) = contender(&client, "second", &hand);
    first.step().await.unwrap();
    first.api.delete(NAME, &Default::default()).await.unwrap();
    first.step().await.unwrap();
    assert!(lease.leads());
    second.step().await.unwrap();
    hand.go_on(14);
    let label = kube::api::Patch::Merge(serde_json::json!({"metadata": {"labels": {"a": "b"}}}));
    first.api.patch(NAME, &Default::default(), &label).await.unwrap();
    second.step().await.unwrap();
    hand.go_on(1);
    second.step().await.unwrap();
    assert!(second_lease.leads());
}

#[tokio::test]
async fn deleted_lease_is_not_taken_from_its_holder() {
    let (client, hand) = (client().await, Hand::default());
    let (mut first, first_lease) = contender(&client, "first", &hand);
    let (mut second, second_lease) = contender(&client, "second", &hand);
    let delete = async || Api::<Record>::default_namespaced(client.clone()).delete(NAME, &Default::default()).await;
    first.step().await.unwrap();
    second.step().await.unwrap();
    delete().await.unwrap();
    second.step().await.unwrap();
    assert!(first_lease.leads() && !second_lease.leads());
    // The holder creates it again.
    first.step().await.unwrap();
    second.step().await.unwrap();
    assert!(first_lease.leads() && !second_lease.leads());
    // A holder that is gone does not.
    delete().await.unwrap();
    hand.go_on(14);
    second.step().await.unwrap();
    assert!(!first_lease.leads() && !second_lease.leads());
    hand.go_on(1);
    second.step().await.unwrap();
    assert!(second_lease.leads());
}

/// A process that starts after the deletion knows of no holder.
#[tokio::test]
async fn leader_that_sees_another_holder_no_longer_leads() {
    let (client, hand) = (client().await, Hand::default());
    let (mut first, first_lease) = contender(&client, "first", &hand);
    first.step().await.unwrap();
    first.api.delete(NAME, &Default::default()).await.unwrap();
    let (mut second, second_lease) = contender(&client, "second", &hand);
    second.step().await.unwrap();
    assert!(second_lease.leads());
    first.step().await.unwrap();
    assert_eq!(first_lease.leadership(), Some(Leadership::ThawOnly));
}

#[tokio::test]
async fn it_runs_until_it_is_told_to_stop_and_then_gives_the_lease_back() {
    let client = client().await;
    let options = Options::new("default", "first");
    let (candidate, lease) = candidate(client.clone(), options, Clock::of_the_machine());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(candidate.run(async {
        let _ = stopped.await;
    }));
    tokio::time::timeout(Duration::from_secs(60), lease.led()).await.unwrap();
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(60), running).await.unwrap().unwrap();
    assert_eq!(lease.leadership(), Some(Leadership::ThawOnly));
    assert_eq!(holder(&Api::<Record>::namespaced(client, "default").get(NAME).await.unwrap()), None);
}

/// Keeps the messages of warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<std::sync::Mutex<Vec<String>>>);

impl Warnings {
    /// Those since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut keep = |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                self.0.lock().unwrap().push(format!("{value:?}"));
            }
        };
        event.record(&mut keep);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn loss_and_return_of_leadership_are_logged_once() {
    let (warnings, hand) = (Warnings::default(), Hand::default());
    let _logged = tracing::subscriber::set_default(warnings.clone());
    let (client, trouble) = (client().await, Arc::new(Trouble::default()));
    let (mut first, _) = contender(&disturbed(client.clone(), Arc::clone(&trouble)), "first", &hand);
    first.step().await.unwrap();
    assert_eq!(warnings.take(), [""; 0]);
    hand.go_on(12);
    for _ in 0..2 {
        trouble.lost_requests.store(1, Ordering::SeqCst);
        first.step().await.unwrap_err();
    }
    let lost =
        |why| format!("this controller no longer leads ({why}): until it leads again it only thaws what it froze");
    assert_eq!(warnings.take(), [lost("it could not renew the lease in time")]);
    first.step().await.unwrap();
    assert_eq!(warnings.take(), ["this controller leads again"]);
    let (mut second, _) = contender(&client, "second", &hand);
    second.step().await.unwrap();
    hand.go_on(15);
    second.step().await.unwrap();
    for _ in 0..2 {
        first.step().await.unwrap();
    }
    assert_eq!(warnings.take(), [lost("`second` holds the lease")]);
    second.release().await.unwrap();
    assert_eq!(warnings.take(), [""; 0], "it was told to");
}
