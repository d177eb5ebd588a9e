//! What the parts of the embedded cluster have to say to the person who started it: a line each, on stderr.

use std::fmt::{Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::output;

/// From now on warnings of this program's own crates are shown. Libraries have their errors returned.
pub fn to_stderr() {
    // Fails only when another subscriber is set already, which then shows them.
    let _ = tracing::subscriber::set_global_default(Lines(output::to_stderr));
}

struct Lines<F>(F);

impl<F: Fn(&str) + 'static> Subscriber for Lines<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("boathook")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let kind = if *event.metadata().level() == Level::ERROR { "error" } else { "warning" };
        (self.0)(&format!("{kind}: {}{}", line.message, line.fields));
    }

    // Nothing here opens spans; one that comes from elsewhere is not shown.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The message, then the fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "; {name}: {value:?}"),
        };
        written.expect("a text takes what is written to it");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_warning_is_a_line_with_its_fields_and_less_than_that_is_none() {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&lines);
        let keep = move |line: &str| kept.lock().unwrap().push(line.to_owned());
        tracing::subscriber::with_default(Lines(keep), || {
            tracing::warn!(error = %"disk full", node = "a", "the lease was not renewed");
            tracing::info!("will try again");
            tracing::error!("it ended");
        });
        let wanted = ["warning: the lease was not renewed; error: disk full; node: a", "error: it ended"];
        assert_eq!(*lines.lock().unwrap(), wanted);
    }
}
