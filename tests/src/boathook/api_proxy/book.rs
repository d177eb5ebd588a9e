//! What a controller has written so far, and what is to become of the write that a scenario chose.

use hyper::Method;

/// What a controller does as long as it lives, whether or not there is work; and what only asks.
const UPKEEP: [&str; 5] = [
    "/apis/coordination.k8s.io/",
    "/apis/events.k8s.io/",
    "/apis/admissionregistration.k8s.io/",
    "/apis/authorization.k8s.io/",
    "/apis/authentication.k8s.io/",
];

/// What becomes of the chosen write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It never arrives, and nothing that is asked after it does.
    NeverArrives,
    /// It is done, but its answer is lost, and nothing that is asked after that arrives.
    AnswerLost,
    /// It arrives when it is released. Everything else goes on.
    Late,
}

/// A write that is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Of the writes that begin with this, as the book shows them: `POST executionhooks`.
    pub of: &'static str,
    /// The how manieth of these, from 1.
    pub at: usize,
    pub fate: Fate,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    /// In the order of their arrival.
    pub(super) writes: Vec<String>,
    pub(super) cut: Option<Cut>,
    /// The chosen write has come as far as it was to.
    pub(super) cut_made: bool,
    /// Nothing arrives any more.
    pub(super) closed: bool,
    /// The chosen write may arrive after all.
    pub(super) released: bool,
    /// Of the next stream nothing comes back.
    pub(super) lose_next_stream: bool,
}

impl Book {
    /// Enters what is asked; returns what is to become of it, if anything is.
    pub(super) fn enter(&mut self, method: &Method, path: &str) -> Option<Fate> {
        if self.closed {
            return Some(Fate::NeverArrives);
        }
        self.writes.push(write(method, path)?);
        let fate = self.fate_of_the_last();
        match fate {
            Some(Fate::NeverArrives) => self.close(),
            Some(Fate::Late) => self.cut_made = true,
            Some(Fate::AnswerLost) | None => {}
        }
        fate
    }

    /// The chosen write is where it was to come to, and nothing may follow.
    pub(super) fn close(&mut self) {
        (self.cut_made, self.closed) = (true, true);
    }

    fn fate_of_the_last(&self) -> Option<Fate> {
        let Cut { of, at, fate } = self.cut?;
        let is_meant = |write: &&String| write.starts_with(of);
        let is_the_last = self.writes.last().as_ref().is_some_and(is_meant);
        (is_the_last && self.writes.iter().filter(is_meant).count() == at).then_some(fate)
    }
}

/// How a write is shown: its method and its object, without group and namespace. `None`: it is none that counts.
fn write(method: &Method, path: &str) -> Option<String> {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    // Events of the core group are as good as the others.
    let is_event = path.starts_with("/api/v1/") && path.contains("/events");
    if reads || is_event || UPKEEP.iter().any(|upkeep| path.starts_with(upkeep)) {
        return None;
    }
    let object = match path.split_once("/namespaces/").and_then(|(_, rest)| rest.split_once('/')) {
        Some((_, object)) => object,
        None => path,
    };
    Some(format!("{method} {object}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOKS: &str = "/apis/boathook.dev/v1alpha1/namespaces/ours/executionhooks";

    fn book(of: &'static str, at: usize, fate: Fate) -> Book {
        Book { cut: Some(Cut { of, at, fate }), ..Book::default() }
    }

    #[test]
    fn reads_upkeep_and_questions_are_not_counted() {
        let mut book = Book::default();
        book.enter(&Method::GET, HOOKS);
        book.enter(&Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/boathook-system/leases/boathook");
        book.enter(&Method::POST, "/apis/events.k8s.io/v1/namespaces/ours/events");
        book.enter(&Method::POST, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
        assert_eq!(book.writes, [] as [&str; 0]);
        book.enter(&Method::PUT, &format!("{HOOKS}/one/status"));
        assert_eq!(book.writes, ["PUT executionhooks/one/status"]);
    }

    #[test]
    fn the_chosen_write_does_not_arrive_and_nothing_after_it() {
        let mut book = book("", 2, Fate::NeverArrives);
        assert_eq!(book.enter(&Method::POST, HOOKS), None);
        assert_eq!(book.enter(&Method::POST, HOOKS), Some(Fate::NeverArrives));
        assert!(book.cut_made);
        assert_eq!(book.enter(&Method::GET, HOOKS), Some(Fate::NeverArrives));
        assert_eq!(book.writes.len(), 2);
    }

    #[test]
    fn a_write_is_chosen_among_those_of_its_kind_and_only_once() {
        let mut book = book("POST executionhooks", 2, Fate::Late);
        let mut fates = Vec::new();
        for path in [HOOKS, "/api/v1/namespaces/ours/pods", HOOKS, "/api/v1/namespaces/ours/pods", HOOKS] {
            fates.push(book.enter(&Method::POST, path));
        }
        assert_eq!(fates, [None, None, Some(Fate::Late), None, None]);
    }
}
