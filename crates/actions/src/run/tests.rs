//! Attempts: which follow, and which do not.

use boathook_api::{Action, Probe};
use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};

use super::*;
use crate::ApiServer;

const DEADLINE: Duration = Duration::from_secs(600);
const FAILS: &str = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
const SUCCEEDS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn an_attempt_that_was_cut_short_tells_why_the_one_before_it_failed() {
    let told = |attempt, before: Option<&str>| {
        let attempt = with_the_one_before(attempt, before.map(str::to_owned));
        attempt.outcome.failure().map(|failure| failure.message.clone())
    };
    let late = || Attempt::failed(ErrorType::HandlerTimeout, "too late");
    assert_eq!(told(late(), Some("exit code 7")).as_deref(), Some("too late; the previous attempt: exit code 7"));
    assert_eq!(told(late(), None).as_deref(), Some("too late"));
    let failed = Attempt::failed(ErrorType::HandlerFailed, "exit code 8");
    assert_eq!(told(failed, Some("exit code 7")).as_deref(), Some("exit code 8"));
    assert_eq!(told(Attempt::succeeded(), Some("exit code 7")), None);
}

#[test]
fn what_may_be_running_or_cannot_change_is_not_tried_again() {
    let failed = Attempt::failed(ErrorType::HandlerFailed, "exit code 1");
    assert!(may_be_tried_again(&failed));
    assert!(!may_be_tried_again(&Attempt { process_may_remain: true, ..failed }));
    assert!(!may_be_tried_again(&Attempt::failed(ErrorType::PodNotFound, "gone")));
    assert!(!may_be_tried_again(&Attempt { process_may_remain: false, ..Attempt::unknown("lost") }));
    assert!(!may_be_tried_again(&Attempt::succeeded()));
}

#[test]
fn retries_use_the_whole_timeout() {
    let took = Duration::from_millis(20);
    let (mut left, mut pause, mut attempts) = (Duration::from_secs(10) - took, FIRST_PAUSE, 1);
    while let Some(waited) = pause_within(left, pause, took) {
        assert!(waited >= FIRST_PAUSE && waited + took < left, "attempt {attempts} has its time");
        left -= waited + took;
        pause = LONGEST_PAUSE.min(pause * 2);
        attempts += 1;
    }
    assert!(left <= 2 * FIRST_PAUSE, "{left:?} of the timeout were not used");
    assert_eq!(attempts, 8, "the back-off still grows");
}

#[test]
fn instance_of_an_earlier_attempt_is_kept() {
    let absent = Attempt::failed(ErrorType::ContainerNotRunning, "not running");
    let begun = Attempt { container_id: Some("containerd://1".to_owned()), ..Attempt::succeeded() };
    let kept = absent.clone().in_instance_of(Some(&begun));
    assert_eq!(kept.container_id.as_deref(), Some("containerd://1"));
    assert_eq!(absent.clone().in_instance_of(Some(&absent)).container_id, None);
}

#[test]
fn a_slow_handler_gets_the_time_left() {
    let (left, took) = (Duration::from_secs(2), Duration::from_secs(4));
    assert_eq!(pause_within(left, LONGEST_PAUSE, took), Some(FIRST_PAUSE));
    assert_eq!(pause_within(2 * FIRST_PAUSE, FIRST_PAUSE, took), None);
}

/// A pod that answers on this machine, and an API server that knows it.
struct Fixture {
    listener: TcpListener,
    place: Place,
    /// How often the pod was looked for.
    looks: watch::Receiver<usize>,
    /// Whether those who look for it are answered.
    answers: watch::Sender<bool>,
}

impl Fixture {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (counting, looks) = watch::channel(0);
        let (answers, answering) = watch::channel(true);
        let service = tower::service_fn(move |_: Request<Body>| {
            counting.send_modify(|looks| *looks += 1);
            let mut answering = answering.clone();
            async move {
                let _ = answering.wait_for(|answers| *answers).await;
                Response::builder().body(Body::from(pod().to_string().into_bytes()))
            }
        });
        let place = Place::Api(ApiServer::new(Client::new(service, "default")));
        Self { listener, place, looks, answers }
    }

    /// Asks the pod by HTTP, again and again until that succeeds.
    fn run(&self, cancel: &Cancel, probe: Option<Probe>) -> tokio::task::JoinHandle<Ended> {
        self.run_showing("Tail", cancel, probe)
    }

    fn run_showing(&self, output: &str, cancel: &Cancel, probe: Option<Probe>) -> tokio::task::JoinHandle<Ended> {
        let port = self.listener.local_addr().unwrap().port();
        let action = json!({"httpGet": {"port": port}, "timeoutSeconds": 600, "output": output});
        let action = serde_json::from_value::<Action>(action).unwrap().validate().unwrap();
        let work = Work { action, probe, retry: Retry::UntilTimeout };
        let [namespace, pod, pod_uid, container] = ["default", "db-0", "uid-1", "main"].map(str::to_owned);
        let target = Target { namespace, pod, pod_uid, container };
        let (place, cancel) = (self.place.clone(), cancel.clone());
        tokio::spawn(async move { place.run(&target, &work, cancel).await })
    }

    /// The next request, read.
    async fn asked(&self) -> TcpStream {
        let (mut stream, _) = timeout(DEADLINE, self.listener.accept()).await.unwrap().unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        stream
    }

    async fn looked_for(&mut self, times: usize) {
        timeout(DEADLINE, self.looks.wait_for(|looks| *looks >= times)).await.unwrap().unwrap();
    }
}

fn pod() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "db-0", "namespace": "default", "uid": "uid-1"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"podIP": "127.0.0.1", "containerStatuses": [{
            "name": "main", "containerID": "containerd://1", "image": "", "imageID": "", "ready": true,
            "restartCount": 0, "state": {"running": {}},
        }]},
    })
}

async fn ended(run: tokio::task::JoinHandle<Ended>) -> Ended {
    timeout(DEADLINE, run).await.expect("it goes on").unwrap()
}

#[tokio::test]
async fn when_nothing_more_is_to_begin_no_attempt_follows_the_one_that_runs_and_its_end_counts() {
    let fixture = Fixture::new().await;
    for (answer, outcome) in [(FAILS, false), (SUCCEEDS, true)] {
        let cancel = Cancel::new();
        let run = fixture.run(&cancel, None);
        fixture.asked().await.write_all(FAILS.as_bytes()).await.unwrap();
        let mut second = fixture.asked().await;
        cancel.begin_no_more();
        second.write_all(answer.as_bytes()).await.unwrap();
        let ended = ended(run).await;
        assert_eq!((ended.outcome == Outcome::Succeeded, ended.attempts), (outcome, 2), "{ended:?}");
        assert!(!ended.process_may_remain);
    }
}

#[tokio::test]
async fn when_nothing_more_is_to_begin_nothing_is_run_in_a_pod_that_was_looked_up_for_it() {
    let mut fixture = Fixture::new().await;
    fixture.answers.send_replace(false);
    let cancel = Cancel::new();
    let run = fixture.run(&cancel, None);
    fixture.looked_for(1).await;
    cancel.begin_no_more();
    fixture.answers.send_replace(true);
    let never_begun = ended(run).await;
    assert!(failed_with(&never_begun, ErrorType::Revoked), "{never_begun:?}");

    // Of a handler that has run before, that is what is told.
    let cancel = Cancel::new();
    let run = fixture.run(&cancel, None);
    let mut first = fixture.asked().await;
    fixture.answers.send_replace(false);
    first.write_all(FAILS.as_bytes()).await.unwrap();
    fixture.looked_for(3).await;
    cancel.begin_no_more();
    let ended = ended(run).await;
    assert!(failed_with(&ended, ErrorType::HandlerFailed) && ended.attempts == 1, "{ended:?}");
}

fn failed_with(ended: &Ended, kind: ErrorType) -> bool {
    matches!(&ended.outcome, Outcome::Failed(failure) if failure.kind == kind)
}

#[tokio::test]
async fn output_that_is_not_to_be_shown_is_dropped() {
    let fixture = Fixture::new().await;
    let answer = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 6\r\n\r\nsecret");
    for (output, shown) in [("Tail", "secret"), ("None", "")] {
        let run = fixture.run_showing(output, &Cancel::new(), None);
        fixture.asked().await.write_all(answer("200 OK").as_bytes()).await.unwrap();
        let well = ended(run).await;
        assert_eq!((well.outcome, well.output.as_str()), (Outcome::Succeeded, shown));
        let cancel = Cancel::new();
        let run = fixture.run_showing(output, &cancel, None);
        let mut asked = fixture.asked().await;
        cancel.begin_no_more();
        asked.write_all(answer("503 No").as_bytes()).await.unwrap();
        let ill = ended(run).await;
        assert!(failed_with(&ill, ErrorType::HandlerFailed), "{ill:?}");
        assert_eq!(ill.output, shown);
        assert!(!format!("{:?}", ill.outcome).contains("secret"), "{ill:?}");
    }
}

#[tokio::test]
async fn a_probe_that_is_not_answered_in_time_is_asked_again() {
    let fixture = Fixture::new().await;
    let port = fixture.listener.local_addr().unwrap().port();
    let probe = serde_json::from_value(json!({"httpGet": {"port": port}, "timeoutSeconds": 1})).unwrap();
    let run = fixture.run(&Cancel::new(), Some(probe));
    fixture.asked().await.write_all(SUCCEEDS.as_bytes()).await.unwrap();
    let _unanswered = fixture.asked().await;
    // On a busy machine an answer may be late, and then the probe asks once more.
    let answering = async {
        loop {
            fixture.asked().await.write_all(SUCCEEDS.as_bytes()).await.unwrap();
        }
    };
    tokio::select! {
        ended = ended(run) => assert_eq!(ended.outcome, Outcome::Succeeded),
        () = answering => {}
    }
}
