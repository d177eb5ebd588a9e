//! The command line: the same as a program of its own and as a hidden command of Boathook.

use std::{path::Path, process::ExitCode, time::Duration};

use crate::{
    control,
    error::Error,
    server::{Options, Server},
    verify::verify,
};

const USAGE: &str = "\
the logbook is the demo database of Boathook
usage: logbook serve DIR [--pace RECORDS_PER_SECOND] [--thaw-after SECONDS]
       logbook freeze|thaw|hold DIR
       logbook status|verify DIR [-o json]";

/// The records a second of a book that nobody said more of.
const PACE: u32 = 50;

const TORN: u8 = 1;

/// Of `verify` when there is nothing to be read, and of a wrong command line.
const UNREADABLE: u8 = 2;

/// Runs the command, and returns the code that the program ends with.
pub fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.into_iter().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words.iter().any(|word| ["-h", "--help"].contains(word)) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let outcome = match words[..] {
        ["serve", dir, ref options @ ..] => match serve_options(options) {
            Some(options) => serve(Path::new(dir), &options),
            None => return usage(),
        },
        [request @ ("freeze" | "thaw"), dir] => {
            control::ask(Path::new(dir), request).map(|status| println!("{status}"))
        }
        ["hold", dir] => control::hold(Path::new(dir), std::io::stdin(), || println!("READY")),
        ["status", dir, ref format @ ..] => match wants_json(format) {
            Some(true) => control::ask(Path::new(dir), "status").map(|status| println!("{}", status.json())),
            Some(false) => control::ask(Path::new(dir), "status").map(|status| println!("{status}")),
            None => return usage(),
        },
        ["verify", dir, ref format @ ..] => match wants_json(format) {
            Some(json) => return tell_report(Path::new(dir), json),
            None => return usage(),
        },
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&error);
            ExitCode::FAILURE
        }
    }
}

/// Until it fails, or is killed.
fn serve(dir: &Path, options: &Options) -> Result<(), Error> {
    let mut server = Server::start(dir, options)?;
    loop {
        server.write_one()?;
    }
}

fn tell_report(dir: &Path, json: bool) -> ExitCode {
    match verify(dir) {
        Ok(report) => {
            if json {
                println!("{}", report.json());
            } else {
                println!("{report}");
            }
            if report.is_torn() { ExitCode::from(TORN) } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            tell(&error);
            ExitCode::from(UNREADABLE)
        }
    }
}

fn serve_options(words: &[&str]) -> Option<Options> {
    let mut options = Options { pace: PACE, thaw_after: None };
    for pair in words.chunks(2) {
        match *pair {
            ["--pace", pace] => options.pace = pace.parse().ok().filter(|pace| (1..=10_000).contains(pace))?,
            ["--thaw-after", seconds] => options.thaw_after = Some(Duration::from_secs(seconds.parse().ok()?)),
            _ => return None,
        }
    }
    Some(options)
}

fn wants_json(words: &[&str]) -> Option<bool> {
    match words {
        [] => Some(false),
        ["-o", "json"] => Some(true),
        _ => None,
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(UNREADABLE)
}

fn tell(error: &Error) {
    eprintln!("error: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_with_their_values() {
        let options = serve_options(&["--pace", "200", "--thaw-after", "5"]).unwrap();
        assert_eq!((options.pace, options.thaw_after), (200, Some(Duration::from_secs(5))));
        assert_eq!(serve_options(&[]).unwrap().pace, PACE);
        for wrong in [&["--pace"][..], &["--pace", "0"], &["--thaw-after", "soon"], &["--paces", "1"]] {
            assert!(serve_options(wrong).is_none(), "{wrong:?}");
        }
        assert_eq!(
            [wants_json(&[]), wants_json(&["-o", "json"]), wants_json(&["-o"])],
            [Some(false), Some(true), None]
        );
    }

    #[test]
    fn a_copy_is_called_whole_or_torn_or_unreadable_by_the_exit_code() {
        let dir = crate::scratch::Scratch::new("codes");
        let path = dir.path().display().to_string();
        let code = || run(["verify".to_owned(), path.clone()]);
        assert_eq!(code(), ExitCode::from(2));
        crate::book::Book::open(dir.path()).unwrap();
        assert_eq!(code(), ExitCode::from(0));
        std::fs::write(dir.path().join("entries"), "record").unwrap();
        assert_eq!(code(), ExitCode::from(1));
    }
}
