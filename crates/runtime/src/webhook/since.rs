//! Since when what the webhooks check counts as checked.
//!
//! An API server asks a webhook some time after its configuration was created, and what it took in before that is not
//! checked. So the time is taken after a call was seen to reach the webhook, from the API server's own clock, and is written
//! into the validating configuration. It counts for that very configuration: one that is created anew, or restored from a
//! backup, gets its own.
//!
//! The time stays when the webhooks of the configuration change, as at an upgrade. If it did not, each upgrade that changes
//! a rule would refuse every existing template and every declaration of a running pod, until both are created again.

use boathook_api::words::CHECKED_SINCE;
use jiff::{SignedDuration, Timestamp};
use kube::{Resource, ResourceExt};

/// The API server's clock tells whole seconds, and another API server may have another time and ask a little later.
const MARGIN: SignedDuration = SignedDuration::from_secs(1);

/// Whether an object of this creation time was checked by the webhooks of this configuration.
pub fn was_checked(configuration: &impl Resource, created: Timestamp) -> bool {
    of(configuration).is_some_and(|since| created.duration_since(since) > MARGIN)
}

/// The time that is written there.
pub(super) fn of(configuration: &impl Resource) -> Option<Timestamp> {
    let (uid, time) = configuration.annotations().get(CHECKED_SINCE)?.split_once('/')?;
    (configuration.uid()? == uid).then_some(())?;
    time.parse().ok()
}

/// Writes the time there.
pub(super) fn put_into(configuration: &mut impl Resource, since: Timestamp) {
    let uid = configuration.uid().unwrap_or_default();
    configuration.annotations_mut().insert(CHECKED_SINCE.to_owned(), format!("{uid}/{since}"));
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;

    use super::*;

    #[test]
    fn only_what_is_created_after_the_margin_was_checked() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let mut configuration = ValidatingWebhookConfiguration::default();
        configuration.metadata.uid = Some("a".to_owned());
        assert!(!was_checked(&configuration, at(9)), "no call was seen to reach the webhook");
        put_into(&mut configuration, at(0));
        let checked = [-1, 0, 1, 2, 3].map(|second| was_checked(&configuration, at(second)));
        assert_eq!(checked, [false, false, false, true, true]);
        configuration.metadata.uid = Some("b".to_owned());
        assert!(!was_checked(&configuration, at(9)), "it was created anew");
    }
}
