//! `boathook snapshot list`: what each line says.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{Consistency, Phase},
};
use jiff::Timestamp;

use super::result::{Verdict, verdict};
use crate::{
    listing::Listed,
    output::{Colour, plain::names},
};

impl Listed for ApplicationSnapshot {
    const COLUMNS: &'static [&'static str] = &["PHASE", "CONSISTENCY", "FROZEN FOR", "CLAIMS", "VOLUMESNAPSHOTS"];
    const COLOURED: &'static str = "PHASE";
    const WIDE: &'static [&'static str] = &["HOOKS"];

    fn cells(&self, _now: Timestamp) -> Vec<Option<String>> {
        let status = self.status.clone().unwrap_or_default();
        let claims = names(status.snapshots.iter().map(|record| record.persistent_volume_claim_name.as_str()));
        let claims = Some(claims).filter(|claims| !claims.is_empty());
        let made = status.snapshots.iter().filter(|record| record.cut_seen_time.is_some());
        vec![
            Some(phase(status.phase).to_owned()),
            status.consistency.map(|consistency| consistency_word(consistency).to_owned()),
            status.freeze_window.and_then(|window| window.duration),
            claims.or_else(|| self.spec.source.persistent_volume_claim_name.clone()),
            Some(names(made.map(|record| record.volume_snapshot_name.as_str()))),
        ]
    }

    fn wide_cells(&self) -> Vec<Option<String>> {
        let infos = self.spec.execution_hook_infos.iter();
        vec![Some(names(infos.map(|info| info.execution_hook_template_name.as_str())))]
    }

    fn colour(&self) -> Colour {
        match verdict(self) {
            Some(Verdict::Complete) => Colour::Good,
            Some(Verdict::OnlyCrashConsistent | Verdict::Failed | Verdict::NotThawed) => Colour::Bad,
            None => Colour::Odd,
        }
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Freezing => "Freezing",
        Phase::Cutting => "Cutting",
        Phase::Thawing => "Thawing",
        Phase::ThawFailed => "ThawFailed",
        Phase::Complete => "Complete",
        Phase::Failed => "Failed",
    }
}

fn consistency_word(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Application => "Application",
        Consistency::Crash => "Crash",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::steps::tests::snapshot, *};
    use crate::{listing::List, output::format::Format, pods::Scope};

    #[test]
    fn a_snapshot_is_a_row() {
        let cut = json!({"persistentVolumeClaimName": "data", "volumeSnapshotName": "nightly",
            "cutSeenTime": "2026-01-01T00:00:00.500000Z"});
        let whole = snapshot(&json!({"phase": "Complete", "consistency": "Application",
            "freezeWindow": {"duration": "1.234s"}, "snapshots": [cut]}));
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let wide = List { scope: Scope::AllNamespaces, labels: None, format: Format::Wide };
        let wanted = ["sea", "nightly", "Complete", "Application", "1.234s", "data", "nightly", "60s", "mysql, files"];
        assert_eq!(wide.row(&whole, now), wanted);
        assert_eq!(wide.header::<ApplicationSnapshot>().last().unwrap(), "HOOKS");
        let here = List { scope: Scope::Namespace("sea".to_owned()), labels: None, format: Format::Table };
        let young = here.row(&snapshot(&serde_json::Value::Null), now);
        assert_eq!(young, ["nightly", "Pending", "<none>", "<none>", "data", "<none>", "60s"]);
        assert_eq!(here.header::<ApplicationSnapshot>().len(), young.len());
    }
}
