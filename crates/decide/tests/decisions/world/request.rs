//! A request to the API server, and what becomes of it and its answer.

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Answered,
    /// It was carried out, and nobody heard of it.
    AnswerLost,
    NeverArrives,
    /// It arrives after its sender has given up.
    Late,
}

/// The sender knows only that it failed.
#[derive(Debug)]
pub(crate) struct Failed;
