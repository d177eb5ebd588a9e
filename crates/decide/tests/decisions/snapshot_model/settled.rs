//! What must have come about when faults have stopped.

use boathook_api::words::{CONSISTENCY, condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{
    Wish, World,
    look::notification,
    objects::{Kind, Object},
    promises::{is_over, status},
};

impl World {
    pub(crate) fn check_settled(&self) {
        for object in self.server.now().values() {
            match &**object {
                Object::Snapshot(snapshot) => {
                    let status = snapshot.status.clone().unwrap_or_default();
                    assert!(status.phase.is_terminal(), "I12: it is not over: {snapshot:#?}");
                    assert!(snapshot.finalizers().is_empty(), "I9: it is over, and held: {snapshot:#?}");
                }
                Object::Hook(hook) => {
                    assert!(status(hook).start_time.is_some(), "I12: nobody looked at {hook:#?}");
                    let owned = !hook.owner_references().is_empty();
                    assert!(is_over(hook) || !owned, "I12: it is frozen for nobody: {hook:#?}");
                    if is_over(hook) {
                        self.check_thawed(hook);
                    }
                }
                Object::Notification(child) => {
                    let over = child.status.as_ref().is_some_and(|status| status.state.is_terminal());
                    assert!(over, "I12: it neither ran nor was revoked: {child:#?}");
                }
                Object::Volume(volume) => {
                    let marked = object.meta().annotations.as_ref().is_some_and(|all| all.contains_key(CONSISTENCY));
                    let meant = self.plan.wish != Wish::DoorTwo || volume.metadata.uid.as_deref() == Some("theirs-uid");
                    let known = self.server.keys(Kind::Snapshot).len() == self.asked_for();
                    assert!(marked || !meant || !known, "nobody says how good it is: {volume:#?}");
                }
            }
        }
        self.check_idle();
    }

    /// How many snapshots were asked for.
    fn asked_for(&self) -> usize {
        match self.plan.wish {
            Wish::Hook => 0,
            Wish::Snapshot | Wish::DoorTwo => 1,
            Wish::Snapshots => 2,
        }
    }

    fn check_thawed(&self, hook: &boathook_api::ExecutionHook) {
        let given_up =
            status(hook).conditions.iter().any(|said| said.type_ == condition::THAWED && is_given_up(&said.reason));
        let thawed = status(hook).post_action_succeed == Some(true);
        assert!(thawed || given_up, "I12: it is not thawed: {hook:#?}");
        let is_certain = |said: &Condition| said.type_ == condition::THAWED && said.status == "True";
        let is_said = given_up || status(hook).conditions.iter().any(is_certain);
        assert!(is_said, "I12: it does not say that it is thawed: {hook:#?}");
        assert!(hook.finalizers().is_empty(), "I9: it is thawed, and held: {hook:#?}");
        for handler in &self.pods.handlers {
            let of_this = self.children(hook).iter().any(|child| child.name_any() == handler.child);
            if of_this {
                self.check_taken_back(handler);
            }
        }
    }

    /// When faults have stopped and everything was deleted.
    pub(crate) fn check_gone(&self) {
        let left = self.server.now().keys().find(|key| key.0 != Kind::Volume);
        assert!(left.is_none(), "I9: it is still there: {:#?}", left.and_then(|key| self.server.get(key)));
        self.pods.handlers.iter().for_each(|handler| self.check_taken_back(handler));
        self.check_idle();
        let ledger = &self.processes[2].ledger;
        assert!(ledger.is_empty(), "the agent remembers for ever: {ledger:?}");
    }

    /// I1: whatever was done has been taken back.
    fn check_taken_back(&self, handler: &super::pods::Handler) {
        let child = self.server.last_seen(&(Kind::Notification, handler.child.clone()));
        let child = notification(child.as_ref()).expect("a handler runs for an object");
        let conditions = child.status.iter().flat_map(|status| &status.conditions);
        let given_up = conditions.into_iter().any(|said| said.type_ == condition::UNDONE && is_given_up(&said.reason));
        let taken_back = child.spec.undo.is_none() || given_up || self.pods.is_taken_back(handler);
        assert!(taken_back, "I1: not taken back: {handler:#?} {:#?}", self.pods.undos);
    }

    fn check_idle(&self) {
        for process in &self.processes {
            let busy = process.memory.children.values().find(|child| !child.run.is_idle() || !child.undo.is_idle());
            assert!(busy.is_none(), "something is remembered for ever: {busy:#?}");
        }
    }
}

fn is_given_up(reason: &str) -> bool {
    reason == "Abandoned" || reason == "ThawUnconfirmed"
}
