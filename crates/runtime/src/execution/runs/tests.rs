use std::time::Duration;

use boathook_actions::ApiServer;
use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::json;
use tokio::{sync::Semaphore, time::timeout};

use super::*;
use crate::execution::Limits;

const DEADLINE: Duration = Duration::from_secs(600);

/// Runs through an API server without pods, which answers when told to and counts what it is asked.
struct Stage {
    runs: Runs,
    rooms: Rooms,
    ended: mpsc::UnboundedReceiver<ObjectRef<PodNotification>>,
    asked: watch::Receiver<usize>,
    answers: Arc<Semaphore>,
}

impl Stage {
    fn new() -> Self {
        Self::with_rooms(Rooms::new)
    }

    fn with_rooms(rooms: impl FnOnce(Limits, mpsc::UnboundedSender<ObjectRef<PodNotification>>) -> Rooms) -> Self {
        let (count, asked) = watch::channel(0);
        let answers = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&answers);
        let service = tower::service_fn(move |_: Request<Body>| {
            count.send_modify(|count| *count += 1);
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.expect("it is never closed").forget();
                let status = json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
                Response::builder().status(404).body(Body::from(status.to_string().into_bytes()))
            }
        });
        let (tell, ended) = mpsc::unbounded_channel();
        let place = Place::Api(ApiServer::new(Client::new(service, "default")));
        let rooms = rooms(Limits { per_node: 9, per_namespace: 9 }, tell.clone());
        Self { runs: Runs::new(place, Arc::default(), rooms.clone(), tell), rooms, ended, asked, answers }
    }

    async fn ends(&mut self) {
        self.answers.add_permits(1);
        timeout(DEADLINE, self.ended.recv()).await.unwrap().unwrap();
    }

    /// How often the API server was asked, after all that was started has had time to ask.
    async fn asked(&mut self) -> usize {
        timeout(DEADLINE, self.asked.wait_for(|count| *count > 0)).await.unwrap().unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        *self.asked.borrow()
    }

    /// Gives all that was started time to ask: nothing asks the API server.
    async fn nothing_is_asked(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*self.asked.borrow(), 0);
    }

    /// Waits for the end of the handler of [`subject`].
    async fn handler_ended(&mut self) -> Ended {
        timeout(DEADLINE, self.ended.recv()).await.unwrap().unwrap();
        let (run, _) = self.runs.progress("u");
        let Progress::Ended { results, .. } = run else { panic!("{run:?}") };
        results.into_iter().next().unwrap().1
    }

    fn under_way(&self) -> usize {
        *self.runs.under_way().borrow()
    }
}

fn subject() -> Subject {
    let [uid, namespace, name, pod, pod_uid, node] = ["u", "default", "one", "db-0", "p", "node"].map(str::to_owned);
    Subject { uid, namespace, name, pod, pod_uid, node }
}

fn thaw() -> Vec<(String, UndoWork)> {
    let action = serde_json::from_value(json!({"exec": {"command": ["thaw"]}, "timeoutSeconds": 60})).unwrap();
    let work = boathook_decide::pod_notification::undo_work(Some(&action), None).unwrap();
    vec![("main".to_owned(), work)]
}

fn handler() -> Vec<(String, Work)> {
    thaw().into_iter().map(|(container, undo)| (container, undo.action.unwrap())).collect()
}

#[tokio::test]
async fn handler_starts_once_however_often_it_is_begun() {
    let mut stage = Stage::new();
    for _ in 0..2 {
        stage.runs.start(&subject(), handler(), None);
    }
    assert_eq!(stage.asked().await, 1);
    stage.ends().await;
    stage.runs.start(&subject(), handler(), None);
    assert_eq!(stage.asked().await, 1, "its end is not written down yet");
}

#[tokio::test]
async fn two_rounds_of_an_undo_do_not_run_at_once() {
    let mut stage = Stage::new();
    for _ in 0..2 {
        stage.runs.start_undo(&subject(), thaw());
    }
    assert_eq!(stage.asked().await, 1);
}

#[tokio::test]
async fn handler_is_under_way_until_its_end_is_written_down() {
    let mut stage = Stage::new();
    stage.runs.start(&subject(), handler(), None);
    assert_eq!(stage.under_way(), 1);
    stage.ends().await;
    assert_eq!(stage.under_way(), 1, "a stop waits for the write");
    stage.runs.forget_run("u");
    assert_eq!(stage.under_way(), 0);
}

#[tokio::test]
async fn handler_with_room_yields_to_an_undo_until_it_ends() {
    let mut stage = Stage::new();
    let room = stage.rooms.take("node", &subject().reference());
    assert!(room.is_some());
    for undo in ["one", "two"] {
        stage.rooms.undo_begins("node", undo);
    }
    stage.runs.start(&subject(), handler(), room);
    stage.nothing_is_asked().await;
    stage.rooms.undo_ended("one");
    stage.nothing_is_asked().await;
    stage.rooms.undo_ended("two");
    assert_eq!(stage.asked().await, 1);
}

#[tokio::test]
async fn undo_does_not_wait_for_the_handler_that_yields_to_it() {
    let mut stage = Stage::new();
    stage.runs.undo_is_due(&subject());
    stage.runs.start(&subject(), handler(), None);
    stage.nothing_is_asked().await;
    stage.runs.begin_no_more("u");
    let begun = std::time::Instant::now();
    let ended = stage.handler_ended().await;
    assert_eq!(ended.outcome.failure().unwrap().kind, ErrorType::Revoked);
    assert_eq!(ended.container_id, None, "nothing was run");
    assert!(begun.elapsed() < Duration::from_secs(4), "it waited until the longest hold ended");
    stage.nothing_is_asked().await;
    stage.runs.start_undo(&subject(), thaw());
    assert_eq!(stage.asked().await, 1);
}

#[tokio::test]
async fn handler_that_yielded_does_not_start_without_the_lease() {
    let client =
        Client::new(tower::service_fn(async |_: Request<Body>| Ok::<_, http::Error>(Response::new(Body::empty()))), "");
    let (_candidate, lease) =
        crate::lease::candidate(client, crate::lease::Options::new("default", "me"), crate::Clock::of_the_machine());
    let mut stage = Stage::with_rooms(|limits, tell| Rooms::of_leader(limits, tell, lease));
    stage.runs.start(&subject(), handler(), None);
    let ended = stage.handler_ended().await;
    assert_eq!((ended.outcome.failure().unwrap().kind, ended.container_id), (ErrorType::Revoked, None));
    stage.nothing_is_asked().await;
}
