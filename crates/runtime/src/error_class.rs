//! What a failed API call means for whoever made it: when to try again, and whether to look afresh first.

use std::{error::Error, time::Duration};

use crate::webhook::without_tokens;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The object has changed since it was read.
    Conflict,
    /// The object is not there.
    NotFound,
    /// An object of this name is there already.
    AlreadyExists,
    /// We may not do that: by RBAC, by quota, by a webhook, or because the namespace is terminating.
    Forbidden,
    /// The API server cannot make sense of the request, or we of its answer.
    Invalid,
    /// The API server is unreachable, overloaded or broken: the same call may succeed later.
    Transient,
}

/// An error that knows its class; the run loop asks when to try again.
pub trait Classified: Error {
    fn class(&self) -> ErrorClass;
}

/// What is tried again at once is tried slower from the second time on.
const STALE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(10));
const TRANSIENT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Only a person, or a change elsewhere, can help; a change of the object itself is seen at once anyway.
const HOPELESS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

impl ErrorClass {
    /// The class as a metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::Forbidden => "forbidden",
            Self::Invalid => "invalid",
            Self::Transient => "transient",
        }
    }

    /// Whether what we know of the world is out of date, so that only a look at the API server itself helps.
    pub fn is_stale(self) -> bool {
        match self {
            Self::Conflict | Self::NotFound | Self::AlreadyExists => true,
            Self::Forbidden | Self::Invalid | Self::Transient => false,
        }
    }

    /// How long to wait after this many failures in a row (the first is 1).
    pub fn delay(self, failures: u32) -> Duration {
        let doubled = |(first, longest): (Duration, Duration), times: u32| {
            first.saturating_mul(2u32.saturating_pow(times)).min(longest)
        };
        match self {
            Self::Conflict | Self::NotFound | Self::AlreadyExists => match failures.checked_sub(2) {
                None => Duration::ZERO,
                Some(times) => doubled(STALE, times),
            },
            Self::Transient => doubled(TRANSIENT, failures.saturating_sub(1)),
            Self::Forbidden | Self::Invalid => doubled(HOPELESS, failures.saturating_sub(1)),
        }
    }
}

impl Classified for kube::Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Api(status) => match (status.code, status.reason.as_str()) {
                (409, "AlreadyExists") => ErrorClass::AlreadyExists,
                (409, _) => ErrorClass::Conflict,
                (404, _) => ErrorClass::NotFound,
                (401 | 403, _) => ErrorClass::Forbidden,
                // 408 timeout, 410 a version that is too old, 429 too many: the same call may succeed later.
                (408 | 410 | 429, _) => ErrorClass::Transient,
                (400..=499, _) => ErrorClass::Invalid,
                _ => ErrorClass::Transient,
            },
            Self::SerdeError(_) | Self::BuildRequest(_) | Self::FromUtf8(_) => ErrorClass::Invalid,
            // The rest is about connections and credentials.
            _ => ErrorClass::Transient,
        }
    }
}

/// The error and its causes, in one line. A cause that the text contains already is not repeated.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut told = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let (words, cause) = match error.downcast_ref::<kube::Error>() {
            // `kube` prints the whole answer as Rust's Debug; its message is for people.
            Some(kube::Error::Api(status)) if !status.message.is_empty() => (status.message.clone(), None),
            _ => (error.to_string(), error.source()),
        };
        if told.is_empty() {
            told = words;
        } else if !told.contains(&words) {
            told = format!("{told}: {words}");
        }
        next = cause;
    }
    without_tokens(&told)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn class(code: u16, reason: &str) -> ErrorClass {
        kube::Error::Api(Box::new(Status::failure("", reason).with_code(code))).class()
    }

    #[test]
    fn a_status_tells_its_class() {
        assert_eq!(class(409, "AlreadyExists"), ErrorClass::AlreadyExists);
        assert_eq!(class(409, "Conflict"), ErrorClass::Conflict);
        assert_eq!(class(404, "NotFound"), ErrorClass::NotFound);
        assert_eq!(class(403, "Forbidden"), ErrorClass::Forbidden);
        assert_eq!(class(422, "Invalid"), ErrorClass::Invalid);
        for later in [408, 410, 429, 500, 503] {
            assert_eq!(class(later, ""), ErrorClass::Transient, "{later}");
        }
        assert_eq!(kube::Error::LinesCodecMaxLineLengthExceeded.class(), ErrorClass::Transient);
    }

    #[test]
    fn error_of_an_unreachable_webhook_has_no_token() {
        let token = format!("token-{}", "0".repeat(64));
        let message = format!("failed calling webhook: Post \"https://a/{token}/authors?timeout=10s\": refused");
        let error = kube::Error::Api(Box::new(Status::failure(&message, "InternalError").with_code(500)));
        let told = chain(&error);
        assert!(told.contains("https://a/token-.../authors") && !told.contains(&token), "{told}");
    }

    #[test]
    fn answer_of_the_api_server_is_told_by_its_message() {
        let status = Status::failure("pods is forbidden", "Forbidden").with_code(403);
        let error = kube::Error::Api(Box::new(status));
        assert_eq!(chain(&error), "pods is forbidden");
        let lost = kube::Error::Service("no route".into());
        assert_eq!(chain(&lost), "ServiceError: no route");
    }

    #[test]
    fn who_is_stale_looks_again_at_once_and_who_is_refused_waits_longest() {
        let delays = |class: ErrorClass| [1, 2, 3, 99].map(|failures| class.delay(failures).as_millis());
        assert_eq!(delays(ErrorClass::Conflict), [0, 20, 40, 10_000]);
        assert_eq!(delays(ErrorClass::Transient), [100, 200, 400, 10_000]);
        assert_eq!(delays(ErrorClass::Forbidden), [5_000, 10_000, 20_000, 60_000]);
    }
}
