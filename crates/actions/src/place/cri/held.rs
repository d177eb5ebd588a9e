//! The streams of a held command over CRI. The protocol cannot end its input alone: a line has to do, and if it does
//! not, everything is ended.

use super::{exec::Running, stream::Event as Came};
use crate::{exec::Verdict, place::held::Event};

impl Running {
    /// What comes next. It can be dropped and asked for again without losing anything.
    pub(in crate::place) async fn next(&mut self) -> Event {
        let Self { stream, hold, place, .. } = self;
        let came = tokio::select! {
            biased;
            came = stream.next() => came,
            () = hold.watch(place) => unreachable!("a watch never ends"),
        };
        match came {
            Came::Stdout(bytes) => Event::Stdout(bytes),
            Came::Stderr(bytes) => Event::Stderr(bytes),
            Came::Ended(status) => Event::Ended(Verdict::of(&status)),
            Came::Lost => Event::Lost,
        }
    }

    /// If it fails, the stream ends without a status.
    pub(in crate::place) async fn write(&mut self, line: &str) {
        self.stream.write_stdin(line).await.ok();
    }
}
