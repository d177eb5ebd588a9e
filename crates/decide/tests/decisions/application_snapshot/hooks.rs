//! The hooks of a snapshot, as their own controller and executors carry them out.

use std::collections::BTreeMap;

use boathook_api::ExecutionHook;
use boathook_decide::{Leadership, application_snapshot::awaits_end_of, execution_hook::Pod};
use kube::ResourceExt;
use serde_json::json;

use super::Look;
use crate::execution_hook::{self, children, pod, template};

impl Look {
    /// It is stored, unless it is there already.
    pub(crate) fn made(&mut self, mut hook: ExecutionHook) {
        if !self.hooks.iter().any(|there| there.name_any() == hook.name_any()) {
            hook.metadata.uid = Some(format!("{}-uid", hook.name_any()));
            self.hooks.push(hook);
        }
    }

    pub(crate) fn hook_mut(&mut self, name: &str) -> &mut ExecutionHook {
        self.hooks.iter_mut().find(|hook| hook.name_any() == name).expect("it is there")
    }

    /// The hook's controller does what there is to do about it.
    pub(crate) fn play(&mut self, place: usize) {
        let hook = self.hooks[place].clone();
        let is_awaited = awaits_end_of(&self.object, &hook);
        let own = |name: &str| name.starts_with(&hook.name_any());
        let (children, others) = self.notifications.drain(..).partition(|child| own(&child.name_any()));
        let mut pre_and_post = json!({
            "preAction": {"exec": {"command": ["freeze"]}},
            "postAction": {"exec": {"command": ["thaw"]}},
        });
        pre_and_post["policy"] = json!(self.policy);
        if let Some(seconds) = self.expiration {
            pre_and_post["expirationSeconds"] = seconds.into();
        }
        let pods: Vec<Pod> = (0..=self.more_pods).map(pod).collect();
        let look = execution_hook::Look {
            object: hook,
            leadership: Leadership::Leader,
            template: Some(template(pre_and_post)),
            pods,
            author_checked: true,
            children,
            refused: None,
            is_awaited,
            begun: BTreeMap::new(),
            now: self.now,
        };
        let look = look.done();
        self.hooks[place] = look.object;
        self.notifications = others;
        self.notifications.extend(look.children);
    }

    /// The hook is accepted, its PreAction fails in these containers or succeeds, and that is written.
    pub(crate) fn run(&mut self, place: usize, failed: &[&str]) {
        self.play(place);
        let name = self.hooks[place].name_any();
        let (identity, now) = (self.identity, self.now);
        let own = self.notifications.iter_mut().filter(|child| child.name_any().starts_with(&name));
        for child in own {
            children::claim(child, identity, now);
            children::end(child, now, failed);
        }
        self.play(place);
    }

    /// The hook that was made last is frozen.
    pub(crate) fn freeze_last(&mut self) {
        self.run(self.hooks.len() - 1, &[]);
    }

    /// Those hooks that were asked to are thawed, or fail to.
    pub(crate) fn thaw_hooks(&mut self, well: bool) {
        for place in 0..self.hooks.len() {
            let name = self.hooks[place].name_any();
            if !self.hooks[place].spec.thaw_requested {
                continue;
            }
            self.play(place);
            let now = self.now;
            let own = self.notifications.iter_mut().filter(|child| child.name_any().starts_with(&name));
            let claimed = own.filter(|child| child.status.as_ref().is_some_and(|status| status.claim.is_some()));
            claimed.for_each(|child| children::undo(child, [now, now], well));
            self.play(place);
        }
    }

    pub(crate) fn thaw_asked(&mut self) {
        self.thaw_hooks(true);
    }
}
