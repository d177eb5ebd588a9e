//! What happened, said once: the runtime makes an Event and a metric of each report.

/// One thing that happened to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub about: About,
    pub gravity: Gravity,
    /// A constant of `boathook_api::words::reason`, or an `ErrorType`'s name: the Event's reason and the metric's label.
    pub reason: String,
    /// What was being done: an Event's `action`, one word such as `Accept`, `Run`, `Undo`.
    pub action: &'static str,
    /// For a person.
    pub note: String,
}

/// Whose Events it is found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The object that was decided about.
    Object,
    /// That object, and what it is about: a pod, a Deployment.
    ObjectAndSubject,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gravity {
    Normal,
    /// A person should know.
    Warning,
}
