//! Views that clients are paging through.
//!
//! A continue token names a revision; the following pages come from the view that the first one came from, however
//! much is written meanwhile. Bounded in number and age, because a view holds the objects that were replaced since.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::View;

/// Lists being paged through at the same time; each was taken at another revision.
const VIEWS: usize = 64;
/// As long as Kubernetes keeps old versions: its etcd is compacted every five minutes.
const AGE: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(super) struct Kept {
    /// Oldest first.
    views: VecDeque<(Instant, View)>,
}

impl Kept {
    /// Keeps it from now on; a view that is there already is kept longer.
    pub(super) fn keep(&mut self, view: View, now: Instant) {
        self.views.retain(|(_, kept)| kept.revision() != view.revision());
        self.views.push_back((now, view));
        if self.views.len() > VIEWS {
            self.views.pop_front();
        }
        self.forget_aged(now);
    }

    pub(super) fn at(&self, revision: u64, now: Instant) -> Option<View> {
        let (since, view) = self.views.iter().find(|(_, view)| view.revision() == revision)?;
        (now.duration_since(*since) <= AGE).then(|| view.clone())
    }

    pub(super) fn forget_aged(&mut self, now: Instant) {
        while self.views.front().is_some_and(|(since, _)| now.duration_since(*since) > AGE) {
            self.views.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use rpds::RedBlackTreeMapSync;

    use super::*;

    fn view(revision: u64) -> View {
        View::new(revision, RedBlackTreeMapSync::new_sync())
    }

    #[test]
    fn views_are_kept_for_a_time_that_starts_anew_with_every_page() {
        let (mut kept, begin) = (Kept::default(), Instant::now());
        kept.keep(view(1), begin);
        kept.keep(view(2), begin);
        kept.keep(view(1), begin + AGE);
        let later = begin + AGE + Duration::from_secs(1);
        assert!(kept.at(1, later).is_some());
        assert!(kept.at(2, later).is_none());
        kept.forget_aged(later);
        assert_eq!(kept.views.len(), 1);
    }

    #[test]
    fn the_view_that_was_used_least_recently_makes_room() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        for revision in 0..=VIEWS as u64 {
            kept.keep(view(revision), now);
        }
        assert!(kept.at(0, now).is_none());
        assert!(kept.at(1, now).is_some());
    }
}
