//! What an ApplicationSnapshot says of its freeze.

use boathook_api::{ApplicationSnapshot, application_snapshot::Phase, words::condition};

/// How it stands with the freeze.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    UnderWay,
    /// The cut may be made.
    Frozen,
    /// It will not come about, and this is why.
    Over(String),
}

pub(super) fn of(snapshot: &ApplicationSnapshot) -> Standing {
    let status = snapshot.status.clone().unwrap_or_default();
    let why = status.failure.map(|failure| failure.message);
    if let Some(why) = why {
        return Standing::Over(why);
    }
    if snapshot.metadata.deletion_timestamp.is_some() {
        return Standing::Over("the ApplicationSnapshot of this VolumeSnapshot was deleted".to_owned());
    }
    let frozen = status.conditions.iter().any(|said| said.type_ == condition::FROZEN && said.status == "True");
    match status.phase {
        Phase::Pending | Phase::Freezing => Standing::UnderWay,
        Phase::Cutting if frozen => Standing::Frozen,
        Phase::Cutting | Phase::Thawing | Phase::ThawFailed | Phase::Complete | Phase::Failed => {
            Standing::Over("the application was thawed before the storage could cut the snapshot".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use boathook_api::application_snapshot::{ApplicationSnapshotStatus, SnapshotFailure};
    use serde_json::json;

    use super::*;

    fn at(phase: Phase, frozen: &str, failure: Option<&str>) -> ApplicationSnapshot {
        let spec = serde_json::from_value(json!({"source": {}})).unwrap();
        let said = json!([{"type": "Frozen", "status": frozen, "reason": "A", "message": "",
            "lastTransitionTime": "2026-11-01T00:00:00Z"}]);
        let failure = failure.map(|message| SnapshotFailure { reason: "A".to_owned(), message: message.to_owned() });
        let conditions = serde_json::from_value(said).unwrap();
        let status = ApplicationSnapshotStatus { phase, failure, conditions, ..Default::default() };
        ApplicationSnapshot { status: Some(status), ..ApplicationSnapshot::new("a", spec) }
    }

    #[test]
    fn only_what_is_frozen_and_not_thawed_may_be_cut() {
        for (snapshot, expected) in [
            (at(Phase::Pending, "False", None), Standing::UnderWay),
            (at(Phase::Freezing, "False", None), Standing::UnderWay),
            (at(Phase::Cutting, "True", None), Standing::Frozen),
            (at(Phase::Thawing, "False", Some("no disk")), Standing::Over("no disk".to_owned())),
            (at(Phase::Failed, "False", Some("no disk")), Standing::Over("no disk".to_owned())),
        ] {
            assert_eq!(of(&snapshot), expected, "{:?}", snapshot.status);
        }
        for phase in [Phase::Cutting, Phase::Thawing, Phase::Complete] {
            assert!(matches!(of(&at(phase, "False", None)), Standing::Over(_)), "{phase:?}");
        }
        let mut deleted = at(Phase::Cutting, "True", None);
        deleted.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-11-01T00:00:00Z")).unwrap());
        assert!(matches!(of(&deleted), Standing::Over(_)));
    }
}
