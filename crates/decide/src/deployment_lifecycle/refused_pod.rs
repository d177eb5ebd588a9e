//! A hook's pod that cannot be made: a quota, somebody's policy, or a pod of its name that is not ours is in the way. That
//! is said where people look, and tried again until the time of the stage is over: what is in the way may go.

use boathook_api::{deployment_lifecycle::StageRecord, words::reason};
use jiff::{SignedDuration, Timestamp};

use super::{Look, stage::Step};

/// How the message of a stage begins then.
const REFUSED: &str = "failed to create the hook pod: ";

/// Whoever refuses may have a lot to say; it is kept with the stage.
const LONGEST: usize = 2 << 10;

/// When it is tried again: the longer it lasts, the less often.
const SOONEST: SignedDuration = SignedDuration::from_secs(2);
const LATEST: SignedDuration = SignedDuration::from_secs(30);

pub(super) fn is_refusal(message: &str) -> bool {
    message.starts_with(REFUSED)
}

impl Look<'_> {
    /// Told once for each reason.
    pub(super) fn note_refused(&mut self, record: &mut StageRecord, why: &str) {
        let mut message = format!("{REFUSED}{why}");
        message.truncate(message.floor_char_boundary(LONGEST));
        if record.message.as_ref() != Some(&message) {
            self.warn(reason::HOOK_POD_REFUSED, "RunHook", format!("{}: {message}", record.stage));
            record.message = Some(message);
        }
    }

    pub(super) fn wait_to_create(&mut self, record: StageRecord, over: Timestamp) -> Step {
        let pause = (self.now.duration_since(self.start_of(&record)) / 4).clamp(SOONEST, LATEST);
        self.again(over.min(self.now + pause));
        self.put(record);
        Step::Waits
    }
}
