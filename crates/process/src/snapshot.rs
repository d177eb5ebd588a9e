//! What processes there are, by one look at `/proc`.

use std::{collections::BTreeSet, fs, io};

/// Which process: its number, and when it started. Together they come only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub pid: i32,
    /// In clock ticks since the machine started.
    pub started: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub identity: Identity,
    pub parent: i32,
    pub session: i32,
    /// It has ended, and only its parent has not asked how.
    pub ended: bool,
}

impl Process {
    /// The process of this number now.
    pub fn of(pid: i32) -> Option<Self> {
        parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }
}

/// Everyone who is there. Who comes or goes meanwhile may be in it or not.
pub fn processes() -> io::Result<Vec<Process>> {
    Ok(numbers()?.into_iter().filter_map(Process::of).collect())
}

/// The numbers of all processes: later ones are greater, until they begin again.
pub fn numbers() -> io::Result<BTreeSet<i32>> {
    let names = fs::read_dir("/proc")?.flatten().map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// One line of `/proc/PID/stat`.
fn parse(stat: &str) -> Option<Process> {
    let pid = stat.split_once(' ')?.0.parse().ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let _group = fields.next()?;
    let session = fields.next()?.parse().ok()?;
    // The 22nd of all.
    let started = fields.nth(15)?.parse().ok()?;
    Some(Process { identity: Identity { pid, started }, parent, session, ended: matches!(state, "Z" | "X") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) Z 1 b) S 3 4 5 0 -1 4194560 1 0 0 0 1 2 3 4 20 0 1 0 12345 1 2";
        let process = parse(stat).unwrap();
        assert_eq!(
            process,
            Process { identity: Identity { pid: 7, started: 12345 }, parent: 3, session: 5, ended: false }
        );
        assert!(parse(&stat.replace(") S ", ") Z ")).unwrap().ended);
        assert_eq!(parse("7 (a"), None);
    }

    #[test]
    fn this_process_is_among_them() {
        let me = i32::try_from(std::process::id()).unwrap();
        let all = processes().unwrap();
        let mine = all.iter().find(|process| process.identity.pid == me).unwrap();
        assert_eq!(Process::of(me).as_ref(), Some(mine));
        assert!(mine.identity.started > 0 && !mine.ended);
    }
}
