//! Actions under way in one process: the handlers of the object, or its undo.

use boathook_api::{
    outcome::{Ended, Failure, Outcome},
    pod_notification::ErrorType,
};
use boathook_decide::pod_notification::Progress;
use jiff::Timestamp;

/// How one container's action ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Succeeded,
    Failed,
    Unknown,
    /// There is no such pod any more.
    PodGone,
}

#[derive(Debug, Default)]
pub(crate) enum Run {
    #[default]
    Idle,
    Running(Running),
    Ended {
        results: Vec<(String, Ended)>,
        round: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Running {
    /// The containers; in each the place in the record, if it was reached at all.
    pub(crate) containers: Vec<(String, Option<usize>)>,
    pub(crate) pod: String,
    pub(crate) started: Timestamp,
    /// Whoever runs it ends it then.
    pub(crate) deadline: Timestamp,
    /// How often the containers had been restarted when it began.
    pub(crate) restarts: u32,
    pub(crate) cancelled: bool,
}

impl Run {
    pub(crate) fn progress(&self) -> Progress {
        match self {
            Self::Idle => Progress::Idle,
            Self::Running(_) => Progress::Running,
            Self::Ended { results, round } => Progress::Ended { results: results.clone(), round: *round },
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }
}

impl End {
    pub(crate) fn ended(self, started: Timestamp, completed: Timestamp) -> Ended {
        let outcome = match self {
            Self::Succeeded => Outcome::Succeeded,
            Self::Failed => Outcome::Failed(Failure::new(ErrorType::HandlerFailed, "exit code 1")),
            Self::PodGone => Outcome::Failed(Failure::new(ErrorType::PodNotFound, "there is no such pod")),
            Self::Unknown => Outcome::Unknown(Failure::new(ErrorType::OutcomeUnknown, "the stream closed")),
        };
        Ended {
            outcome,
            exit_code: None,
            output: String::new(),
            // Its handler had begun.
            container_id: Some("model://1".to_owned()),
            attempts: 1,
            started,
            completed,
            process_may_remain: matches!(self, Self::Unknown),
        }
    }
}
