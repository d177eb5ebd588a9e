//! An agent that is dead or cut off: the leader reports the undo that it does not.

use boathook_api::{pod_notification::Executor, words::condition};
use boathook_decide::pod_notification::{Decision, Role, SeenPod};

use super::{Look, at, controller, deeds, ended, reason, undoing::SUCCEEDED, undone};

#[test]
fn undo_that_an_agent_does_not_report_is_overdue() {
    let mut look = Look::at_held(Executor::Agent).requested();
    (look.role, look.agent_due_since, look.now) = (controller(Executor::Agent), Some(10), 20);
    let later = Decision { again: Some(at(21)), ..Decision::default() };
    assert_eq!(look.decide(), later, "a second for the undo, 10 to report it");
    look.now = 21;
    let reported = look.decide();
    assert_eq!((deeds(&reported), reported.again), (vec!["write".to_owned()], Some(at(70))));
    assert_eq!(reported.reports.len(), 1);
    assert!(
        reported.reports[0].note.contains("the agent of node `node` has not reported the undo that was due 11 seconds")
    );
    let mut look = look.written();
    assert_eq!(reason(&look.status(), condition::UNDONE), ("UndoFailed".to_owned(), "False".to_owned()));
    look.now = 69;
    assert_eq!(deeds(&look.decide()), Vec::<String>::new(), "at most once a minute");
    look.now = 71;
    assert_eq!(deeds(&look.decide()), ["write"]);
    assert!(look.decide().reports[0].note.contains("1 minute ago"));
}

#[test]
fn overdue_undo_is_closed_by_the_agent_that_comes_back() {
    let mut look = Look::at_held(Executor::Agent).requested();
    (look.role, look.agent_due_since, look.now) = (controller(Executor::Agent), Some(10), 40);
    let mut look = look.written();
    (look.role, look.agent_due_since, look.now) = (Role::Agent, None, 50);
    assert_eq!(deeds(&look.decide()), ["undo back front"]);
    look.undo = ended([50, 51], SUCCEEDED);
    assert_eq!(undone(&look.written().status()), "UndoSucceeded");
}

#[test]
fn only_an_undo_that_an_agent_owes_is_overdue() {
    let late = |mut look: Look| {
        (look.agent_due_since, look.now) = (Some(1), 29);
        look
    };
    let mut early = late(Look::at_held(Executor::Agent));
    early.role = controller(Executor::Agent);
    assert_eq!(deeds(&early.decide()), Vec::<String>::new(), "nothing is due");
    assert_eq!(deeds(&late(Look::at_held(Executor::Agent)).decide()), Vec::<String>::new(), "the agent itself");
    let mut gone = late(Look::at_held(Executor::Agent).requested());
    (gone.role, gone.pod) = (controller(Executor::Agent), SeenPod::Gone { node_ready: true });
    assert_eq!(undone(&gone.written().status()), "PodGone");
}
