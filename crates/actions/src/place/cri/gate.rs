//! A gate before a command: it waits where it can be found, until whoever is to end it later has a hold on it.
//!
//! The gate is a shell of the container's own. It waits for a line, puts it into the environment as the mark by which the
//! command and what it starts are known, and becomes the command. If no line comes, because the stream was closed,
//! nothing of the command ever runs.

use std::fmt::Write;

use ring::rand::{SecureRandom, SystemRandom};

/// What every image with a shell has.
pub(super) const SHELL: &str = "/bin/sh";

/// The line is the mark's value, and the id is in the arguments, where it is looked for.
const SCRIPT: &str = r#"read -r BOATHOOK_EXEC && export BOATHOOK_EXEC && exec "$@""#;
const WITHOUT_INPUT: &str = " </dev/null";

#[derive(Debug)]
pub(super) struct Gate {
    /// 32 hexadecimal digits that nobody else has.
    pub(super) id: String,
}

impl Gate {
    pub(super) fn new() -> Self {
        let mut bytes = [0_u8; 16];
        SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
        let mut id = String::new();
        for byte in bytes {
            write!(id, "{byte:02x}").expect("a text takes everything");
        }
        Self { id }
    }

    /// The command behind the gate. With input, it reads what comes after the line.
    pub(super) fn before(&self, command: &[String], input: bool) -> Vec<String> {
        let script = format!("{SCRIPT}{}", if input { "" } else { WITHOUT_INPUT });
        let gate = [SHELL.to_owned(), "-c".to_owned(), script, self.id.clone()];
        gate.into_iter().chain(command.iter().cloned()).collect()
    }

    /// What opens it.
    pub(super) fn line(&self) -> String {
        format!("{}\n", self.id)
    }
}

/// What all that comes of the command behind the gate with this id has in its environment.
pub(super) fn mark(id: &str) -> String {
    format!("BOATHOOK_EXEC={id}")
}

/// What an exit code of the gate itself means: a shell that cannot become the command tells it by these.
pub(super) fn explain(code: i32, program: &str) -> Option<String> {
    match code {
        127 => Some(format!("exit code 127: program `{program}` was not found, or itself ended with this code")),
        126 => Some(format!("exit code 126: program `{program}` could not be run, or itself ended with this code")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        process::{Command, Output, Stdio},
    };

    use super::*;

    fn run(command: &[&str], line: &str) -> Output {
        run_with(command, line, false)
    }

    fn run_with(command: &[&str], line: &str, input: bool) -> Output {
        let gate = Gate { id: "7".repeat(32) };
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let argv = gate.before(&command, input);
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    #[test]
    fn behind_an_open_gate_a_command_is_as_it_would_be_without() {
        let line = Gate { id: "7".repeat(32) }.line();
        let output = run(&["sh", "-c", "cat; echo \"$0\" \"$1\" $BOATHOOK_EXEC; exit 7", "a b", "*"], &line);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("a b * {}\n", "7".repeat(32)));
        assert_eq!(output.status.code(), Some(7));
    }

    #[test]
    fn a_command_with_input_reads_what_comes_after_the_line() {
        let output = run_with(&["cat"], &format!("{}RELEASE\n", Gate::new().line()), true);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "RELEASE\n");
    }

    #[test]
    fn a_gate_that_is_never_opened_runs_nothing() {
        let output = run(&["echo", "ran"], "");
        assert_eq!(output.stdout, b"");
        assert_ne!(output.status.code(), Some(0));
    }

    #[test]
    fn a_missing_program_is_told_by_its_name() {
        let line = Gate::new().line();
        let code = run(&["/no/such/program"], &line).status.code().unwrap();
        assert!(explain(code, "/no/such/program").unwrap().contains("`/no/such/program` was not found"));
        let code = run(&["/etc/passwd"], &line).status.code().unwrap();
        assert!(explain(code, "/etc/passwd").unwrap().contains("could not be run"));
        assert_eq!(explain(1, "a"), None);
    }

    #[test]
    fn no_two_gates_are_alike() {
        assert_ne!(Gate::new().id, Gate::new().id);
        assert_eq!(Gate::new().id.len(), 32);
    }
}
